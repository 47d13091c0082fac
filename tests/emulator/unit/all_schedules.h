/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every policy with every order, one after another.
 */
#ifndef HALFBYTE_TESTS_EMULATOR_UNIT_ALL_SCHEDULES_H
#define HALFBYTE_TESTS_EMULATOR_UNIT_ALL_SCHEDULES_H

#include "emulator/emulator.h"

enum { ALL_SCHEDULES = EMU_POLICY_COUNT * EMU_ORDER_COUNT };

/* Number index of ALL_SCHEDULES; delay_*: what DELAY_SITE delays. */
static inline emu_config schedule_numbered(int index, uint64_t seed, const char *delay_file,
                                           int delay_line)
{
    emu_config config = emu_config_default();
    config.policy = (emu_policy)(index / EMU_ORDER_COUNT);
    config.order = (emu_order)(index % EMU_ORDER_COUNT);
    config.seed = seed;
    config.delay_file = delay_file;
    config.delay_line = delay_line;
    return config;
}

#endif
