/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a machine, kept for the next run of the same shape: mapping it anew costs more than
 * a small kernel's run.
 */
#ifndef HALFBYTE_EMULATOR_PARTS_H
#define HALFBYTE_EMULATOR_PARTS_H

#include "emulator/machine.h"

enum { PARTS_STACK_BYTES = 64 * 1024 };

/* Gives the machine threads, warps, blocks and clusters for its launches, connected to each other,
 * and copies of their parameters.  False if memory is out. */
bool parts_assemble(machine *m);

/* Takes back what only this run needed. */
void parts_take_apart(machine *m);

void *parts_stacks(void);
const void *parts_params(uint32_t grid);

#endif
