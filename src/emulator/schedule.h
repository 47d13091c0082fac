/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs.  A thread runs until it waits; the order picks the next.  When nobody can run, pending
 * operations progress; when there is none either, the run is over or stuck.
 */
#ifndef HALFBYTE_EMULATOR_SCHEDULE_H
#define HALFBYTE_EMULATOR_SCHEDULE_H

#include "emulator/machine.h"

/* Puts the thread on the list and runs others until it is woken, by whatever woke it: callers loop
 * until their condition holds. */
void thread_block(thread *self, wait_kind kind, const void *object, uint64_t value, wait_list *on);

/* Lets all threads of a list go on. */
void wait_list_wake(wait_list *list);

void thread_make_ready(thread *self);

/* The end of a thread: never returns. */
_Noreturn void thread_finish(thread *self);

/* Runs all threads until they have returned, or the run is stopped. */
void schedule_run(void);

/* deadlock.c: one finding for each place where threads wait. */
void deadlock_report(void);

#endif
