/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibers: one stack a CUDA thread, switched by hand in some twenty nanoseconds.
 *
 * A fiber belongs to the OS thread that made it.  The switch saves what the C calling convention
 * asks for and nothing else: kernels do not change rounding modes or signal masks.
 */
#ifndef HALFBYTE_EMULATOR_FIBER_H
#define HALFBYTE_EMULATOR_FIBER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fiber {
    void *stack_pointer; /* while it does not run */
    void *stack;         /* lowest usable byte */
    size_t stack_bytes;
    void *implementation; /* ucontext fallback, or the sanitizer's fake stack */
} fiber;

/* `count` stacks of stack_bytes (a multiple of the page size), each with a guard page below it, in
 * one mapping.  NULL if memory is out. */
void *fiber_stacks_create(size_t count, size_t stack_bytes);
void fiber_stacks_destroy(void *stacks, size_t count, size_t stack_bytes);

/* Makes fiber `index` of the stacks ready to begin entry(argument), which must never return. */
bool fiber_prepare(fiber *self, void *stacks, size_t index, size_t stack_bytes,
                   void (*entry)(void *argument), void *argument);

/* Frees what fiber_prepare() took besides the stack. */
void fiber_release(fiber *self);

/* Runs `to` from `from`; returns when somebody switches back to `from`. */
void fiber_switch(fiber *from, fiber *to);

#endif
