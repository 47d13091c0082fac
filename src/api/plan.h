/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a plan.  Immutable once it is made, but for what its runs remember. */
#ifndef HALFBYTE_API_PLAN_H
#define HALFBYTE_API_PLAN_H

#include "api/device.h"
#include "api/map_cache.h"
#include "halfbyte.h"

struct halfbyte_plan {
    halfbyte_problem problem; /* valid, defaults resolved: see problem_resolve() */
    const halfbyte_device *device;
    size_t workspace_bytes; /* the CPU model needs none */
    uint64_t kernels;       /* GPU: a gemm_kernel_set */
    map_cache *maps;        /* GPU: in the plan's own memory; NULL: nothing is remembered */
};

#endif
