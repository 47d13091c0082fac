/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a device.  Immutable once it is open; the pool does its own locking. */
#ifndef HALFBYTE_API_DEVICE_H
#define HALFBYTE_API_DEVICE_H

#include "halfbyte.h"

struct chain_ops;
struct parallel_pool;

struct halfbyte_device {
    halfbyte_executor executor; /* never AUTO */
    halfbyte_profile profile;
    const struct chain_ops *chain; /* the model's code path */
    struct parallel_pool *pool;    /* owned */
    int threads;                   /* that work on a product, the caller's included */
};

#endif
