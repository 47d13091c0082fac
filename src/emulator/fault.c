/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults in the kernel's view of fragments: an access to registers that are in flight.
 *
 * The handler runs on a stack of its own, names reader and element, opens the page and returns, so
 * that the access goes on (and reads a NaN).  Any other fault goes to the handler that was there
 * before.
 */
#define _GNU_SOURCE /* registers in ucontext */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "emulator/emu_wgmma.h"
#include "emulator/fragment.h"

enum { HANDLER_STACK_BYTES = 256 * 1024 };

static struct sigaction previous_action;
static stack_t previous_stack;
static void *handler_stack;

static const void *program_counter(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (const void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)context->uc_mcontext.pc;
#else
    (void)context;
    return NULL;
#endif
}

static bool was_write(const ucontext_t *context)
{
#if defined(__x86_64__)
    return context->uc_mcontext.gregs[REG_ERR] & 2;
#elif defined(__aarch64__)
    /* The syndrome register is in a record of the extension area; bit 6: write not read. */
    const unsigned char *at = (const unsigned char *)context->uc_mcontext.__reserved;
    for (;;) {
        uint32_t head[2];
        uint64_t syndrome;
        memcpy(head, at, sizeof head);
        if (head[0] == 0x45535201) {
            memcpy(&syndrome, at + 8, sizeof syndrome);
            return syndrome >> 6 & 1;
        }
        if (head[0] == 0 || head[1] == 0) {
            return false;
        }
        at += head[1];
    }
#else
    (void)context;
    return true;
#endif
}

static void access_report(const fragment_place *place, const ucontext_t *context)
{
    const thread *owner = &the_machine.threads[place->thread];
    const bool write = was_write(context);
    const emu_site *other = NULL;
    const fragment_use use =
        wgmma_use_of(owner->warp, place->fragment, place->element, write, &other);
    if (use == FRAGMENT_UNUSED) {
        return; /* another part of the fragment */
    }
    const finding_key key = {use == FRAGMENT_ACCUMULATOR ? "a" : "b",
                             the_machine.copying,
                             the_machine.copying != NULL ? NULL : program_counter(context),
                             other,
                             owner->block->index,
                             owner->in_block};
    report_add(the_machine.report, &key,
               "fragment '%s' element %u %s by thread %u while the wgmma is in flight",
               place->fragment->name, place->element, write ? "written" : "read", owner->in_block);
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    fragment_place place;
    if (the_machine.running != NULL && fragment_locate(info->si_addr, &place)) {
        access_report(&place, context);
        fragment_open_thread(place.fragment, place.thread);
        return;
    }
    if (previous_action.sa_flags & SA_SIGINFO) {
        previous_action.sa_sigaction(signal_number, info, context);
    } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
        previous_action.sa_handler(signal_number);
    } else {
        sigaction(SIGSEGV, &previous_action,
                  NULL); /* the access faults again and ends the process */
    }
}

bool faults_begin(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    handler_stack = malloc(HANDLER_STACK_BYTES);
    if (handler_stack == NULL) {
        return false;
    }
    const stack_t stack = {.ss_sp = handler_stack, .ss_size = HANDLER_STACK_BYTES};
    sigaltstack(&stack, &previous_stack);
    sigaction(SIGSEGV, &action, &previous_action);
    return true;
}

void faults_end(void)
{
    sigaction(SIGSEGV, &previous_action, NULL);
    sigaltstack(&previous_stack, NULL);
    free(handler_stack);
    handler_stack = NULL;
}
