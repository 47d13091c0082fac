/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a device.  Immutable once it is open; the pool does its own locking. */
#ifndef HALFBYTE_API_DEVICE_H
#define HALFBYTE_API_DEVICE_H

#include "api/describe.h"
#include "halfbyte.h"

struct chain_ops;
struct gpu;
struct parallel_pool;
struct tune_table;

struct halfbyte_device {
    halfbyte_executor executor; /* never AUTO */
    halfbyte_profile profile;
    const struct chain_ops *chain; /* MODEL: the code path */
    struct parallel_pool *pool;    /* MODEL: owned */
    int threads;                   /* MODEL: that work on a product, the caller's included */
    struct gpu *gpu;               /* GPU: owned */
    struct tune_table *tune;       /* owned; NULL: no tune file */
};

/* Adds "executor=... profile=..." and what distinguishes the executor. */
void device_describe_add(describe_line *line, const halfbyte_device *device);

#endif
