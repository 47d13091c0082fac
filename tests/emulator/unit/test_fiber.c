/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibers: they begin with their argument, keep their locals and floating-point values across
 * switches, and stand on aligned stacks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emulator/fiber.h"

enum { FIBERS = 200, ROUNDS = 50, STACK_BYTES = 16384 };

typedef struct player {
    fiber fiber;
    unsigned index;
    unsigned rounds;
    uint64_t sum;
    double product;
    uintptr_t misaligned;
} player;

static player players[FIBERS];
static fiber main_fiber;

/* Depth keeps something on the stack below the switch. */
static uint64_t play(player *self, unsigned depth)
{
    volatile uint64_t local = (uint64_t)self->index * 1000 + depth;
    _Alignas(16) volatile char aligned[16];
    aligned[0] = (char)depth;
    self->misaligned |= (uintptr_t)aligned % 16;
    if (depth > 0) {
        return local + play(self, depth - 1);
    }
    fiber_switch(&self->fiber, &players[(self->index + 1) % FIBERS].fiber);
    return local + (uint64_t)(unsigned char)aligned[0];
}

static void begin(void *argument)
{
    player *self = argument;
    double product = 1.0 + self->index;
    for (;;) {
        if (self->rounds == ROUNDS) {
            fiber_switch(&self->fiber, &main_fiber);
        }
        self->rounds++;
        self->sum += play(self, self->index % 7);
        product *= 1.0001;
        self->product = product;
    }
}

static void test_round_robin(void **state)
{
    (void)state;
    void *stacks = fiber_stacks_create(FIBERS, STACK_BYTES);
    assert_non_null(stacks);
    for (unsigned i = 0; i < FIBERS; i++) {
        players[i].index = i;
        assert_true(fiber_prepare(&players[i].fiber, stacks, i, STACK_BYTES, begin, &players[i]));
    }
    fiber_switch(&main_fiber, &players[0].fiber);
    unsigned compared = 0;
    for (unsigned i = 0; i < FIBERS; i++) {
        const player *self = &players[i];
        /* Fiber 0 comes back to the start of a round first, and goes to main. */
        const unsigned finished = i == 0 ? ROUNDS : ROUNDS - 1;
        uint64_t each = 0;
        double product = 1.0 + i;
        for (unsigned depth = 0; depth <= i % 7; depth++) {
            each += (uint64_t)i * 1000 + depth;
        }
        for (unsigned round = 0; round < finished; round++) {
            product *= 1.0001;
        }
        assert_int_equal(self->rounds, ROUNDS);
        assert_int_equal(self->sum, each * finished);
        assert_true(self->product == product);
        assert_int_equal(self->misaligned, 0);
        compared++;
    }
    assert_int_equal(compared, FIBERS);
    for (unsigned i = 0; i < FIBERS; i++) {
        fiber_release(&players[i].fiber);
    }
    fiber_stacks_destroy(stacks, FIBERS, STACK_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_robin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
