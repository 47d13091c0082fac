/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "emulator/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif
#ifdef FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void *fiber_stacks_create(size_t count, size_t stack_bytes)
{
    const size_t slot = stack_bytes + page_bytes();
    char *stacks = mmap(NULL, count * slot, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        mprotect(stacks + i * slot, page_bytes(), PROT_NONE);
    }
    return stacks;
}

void fiber_stacks_destroy(void *stacks, size_t count, size_t stack_bytes)
{
    if (stacks != NULL) {
        munmap(stacks, count * (stack_bytes + page_bytes()));
    }
}

static void place_stack(fiber *self, void *stacks, size_t index, size_t stack_bytes)
{
    self->stack = (char *)stacks + index * (stack_bytes + page_bytes()) + page_bytes();
    self->stack_bytes = stack_bytes;
    self->implementation = NULL;
}

#if defined(__x86_64__) || defined(__aarch64__)

/* Saves the callee-saved registers on the running stack, changes stacks, restores. */
void fiber_swap(void **save, void *load);
void fiber_begin(void);

#if defined(__x86_64__)

__asm__(".text\n"
        ".globl fiber_swap\n.hidden fiber_swap\n.type fiber_swap, @function\n"
        "fiber_swap:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n"
        "    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n"
        "    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size fiber_swap, . - fiber_swap\n"
        /* First switch to a fiber: r12 holds entry, r13 its argument; the stack is 16-byte aligned
         * at the call, and a zero return address ends back traces. */
        ".globl fiber_begin\n.hidden fiber_begin\n.type fiber_begin, @function\n"
        "fiber_begin:\n"
        "    xorl %ebp, %ebp\n"
        "    movq %r13, %rdi\n"
        "    callq *%r12\n"
        "    ud2\n"
        ".size fiber_begin, . - fiber_begin\n");

static void *first_frame(char *top, void (*entry)(void *), void *argument)
{
    /* r15 r14 r13 r12 rbx rbp, then the address that fiber_swap returns to. */
    uintptr_t *frame = (uintptr_t *)(void *)(top - 72); /* after the return: top - 16 */
    frame[2] = (uintptr_t)argument;
    frame[3] = (uintptr_t)entry;
    frame[6] = (uintptr_t)fiber_begin;
    return frame;
}

#else

__asm__(".text\n"
        ".globl fiber_swap\n.hidden fiber_swap\n.type fiber_swap, %function\n"
        "fiber_swap:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size fiber_swap, . - fiber_swap\n"
        ".globl fiber_begin\n.hidden fiber_begin\n.type fiber_begin, %function\n"
        "fiber_begin:\n"
        "    mov x29, xzr\n"
        "    mov x0, x20\n"
        "    blr x19\n"
        "    brk #1\n"
        ".size fiber_begin, . - fiber_begin\n");

static void *first_frame(char *top, void (*entry)(void *), void *argument)
{
    uintptr_t *frame = (uintptr_t *)(void *)(top - 160);
    frame[0] = (uintptr_t)entry;
    frame[1] = (uintptr_t)argument;
    frame[11] = (uintptr_t)fiber_begin; /* x30 */
    return frame;
}

#endif

bool fiber_prepare(fiber *self, void *stacks, size_t index, size_t stack_bytes,
                   void (*entry)(void *argument), void *argument)
{
    place_stack(self, stacks, index, stack_bytes);
    self->stack_pointer = first_frame((char *)self->stack + stack_bytes, entry, argument);
    return true;
}

void fiber_release(fiber *self)
{
    self->stack_pointer = NULL;
}

void fiber_switch(fiber *from, fiber *to)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&from->implementation, to->stack, to->stack_bytes);
#endif
    fiber_swap(&from->stack_pointer, to->stack_pointer);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(from->implementation, NULL, NULL);
#endif
}

#else

#include <ucontext.h>

typedef struct fallback {
    ucontext_t context;
    void (*entry)(void *argument);
    void *argument;
} fallback;

/* makecontext passes ints only, so the pointer goes in two halves. */
static void fallback_begin(unsigned high, unsigned low)
{
    const uintptr_t address = (uintptr_t)(((uint64_t)high << 32) | low);
    fallback *self = (fallback *)address;
    self->entry(self->argument);
}

bool fiber_prepare(fiber *self, void *stacks, size_t index, size_t stack_bytes,
                   void (*entry)(void *argument), void *argument)
{
    fallback *made = calloc(1, sizeof *made);
    place_stack(self, stacks, index, stack_bytes);
    if (made == NULL || getcontext(&made->context) != 0) {
        free(made);
        return false;
    }
    const uint64_t address = (uintptr_t)made;
    made->entry = entry;
    made->argument = argument;
    made->context.uc_stack.ss_sp = self->stack;
    made->context.uc_stack.ss_size = stack_bytes;
    makecontext(&made->context, (void (*)(void))fallback_begin, 2, (unsigned)(address >> 32),
                (unsigned)address);
    self->implementation = made;
    return true;
}

void fiber_release(fiber *self)
{
    free(self->implementation);
    self->implementation = NULL;
}

void fiber_switch(fiber *from, fiber *to)
{
    fallback *source = from->implementation;
    fallback scheduler;
    if (source == NULL) {
        from->implementation = source = &scheduler;
    }
    swapcontext(&source->context, &((fallback *)to->implementation)->context);
    if (source == &scheduler) {
        from->implementation = NULL;
    }
}

#endif
