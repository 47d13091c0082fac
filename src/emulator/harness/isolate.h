/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work in a process of its own.  The emulator numbers call sites by file and line, so those that
 * one kernel meets can be told from those of others only where the others have not run.
 */
#ifndef HALFBYTE_EMULATOR_HARNESS_ISOLATE_H
#define HALFBYTE_EMULATOR_HARNESS_ISOLATE_H

#include <stddef.h>

/* Zeroed memory that children share with their parent; NULL if there is none. */
void *isolate_memory(size_t bytes);
void isolate_free(void *memory, size_t bytes);

/* Runs work(argument) in a child and returns what it returned (0 .. 255); -1 if the child could not
 * be started or died. */
int isolate_run(int (*work)(void *argument), void *argument);

#endif
