/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From two accesses without order to a hazard class and a sentence.
 */
#ifndef HALFBYTE_EMULATOR_CONFLICT_H
#define HALFBYTE_EMULATOR_CONFLICT_H

#include "emulator/shadow.h"

/* by conflicts with an earlier access of 4 bytes at address; was_write, is_write: which of the two
 * write. */
void conflict_report(const struct block *owner, uint32_t address, touch earlier, bool was_write,
                     const observer *by, bool is_write);

#endif
