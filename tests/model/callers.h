/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers that a result must not depend on: without a device and with devices of 1, 2 and 7
 * threads, each in three floating-point environments.
 */
#ifndef HALFBYTE_TESTS_MODEL_CALLERS_H
#define HALFBYTE_TESTS_MODEL_CALLERS_H

#include <fenv.h>
#include <stdbool.h>

#include "halfbyte.h"
#include "model/host_fp.h"

enum {
    CALLER_DEVICES = 4,
    CALLER_ENVIRONMENTS = 3,
    CALLERS = CALLER_DEVICES * CALLER_ENVIRONMENTS
};

/* devices[0] is NULL. */
typedef struct callers {
    halfbyte_device *devices[CALLER_DEVICES];
} callers;

static inline bool callers_open(callers *all)
{
    static const int threads[CALLER_DEVICES] = {0, 1, 2, 7};
    bool opened = true;

    all->devices[0] = NULL;
    for (int i = 1; i < CALLER_DEVICES; i++) {
        halfbyte_device_options options = halfbyte_device_options_init();
        options.executor = HALFBYTE_EXECUTOR_MODEL;
        options.threads = threads[i];
        const fp_env before = fp_env_save();
        host_fp_set_hostile(); /* threads start in the environment of the one that makes them */
        opened &= halfbyte_device_open(&all->devices[i], &options) == HALFBYTE_SUCCESS;
        fp_env_restore(before);
    }
    return opened;
}

static inline void callers_close(callers *all)
{
    for (int i = 1; i < CALLER_DEVICES; i++) {
        halfbyte_device_close(all->devices[i]);
    }
}

static inline halfbyte_device *caller_device(const callers *all, int caller)
{
    return all->devices[caller / CALLER_ENVIRONMENTS];
}

/* Sets the caller's environment: the default, rounding to zero with FTZ and DAZ, or rounding up. */
static inline void caller_environment_set(int caller)
{
    if (caller % CALLER_ENVIRONMENTS == 1) {
        host_fp_set_hostile();
    } else if (caller % CALLER_ENVIRONMENTS == 2) {
        fesetround(FE_UPWARD);
    }
}

#endif
