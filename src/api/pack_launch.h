/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels pack and unpack given weights, with which parameters: the part that a GPU and the
 * emulator share.  Nothing here touches a device.
 */
#ifndef HALFBYTE_API_PACK_LAUNCH_H
#define HALFBYTE_API_PACK_LAUNCH_H

#include <stdbool.h>

#include "cuda/kernel_table.h"
#include "format/int4_packed.h"
#include "halfbyte.h"
#include "kernels/pack_weights_params.h"

/* Weights in a checkpoint's layout, and packed.  packed == plain: in place. */
typedef struct pack_tensors {
    struct int4_packed_shape shape;
    enum int4_form form;
    unsigned char *plain;
    int64_t row_bytes, group_bytes;
    unsigned char *packed;
} pack_tensors;

typedef struct pack_launch {
    int kernel;      /* KERNEL_INDEX_halfbyte_sm90_*pack_* */
    uint32_t blocks; /* 0: there is nothing to do */
    uint32_t cluster;
    uint32_t smem_bytes;
    pack_params params;
} pack_launch;

/*
 * For checked tensors.
 *
 * pack_launch_scan    raises *flag, which is 0 before, to 1 if there is a -8.  In place the flag is
 *                     the first word of the tensor, and the caller looks at the weights in it.
 * pack_launch_make    packs or unpacks; shape.flags says in which form.
 *
 * ERR_UNSUPPORTED: more blocks than a grid has, which no memory holds; in place, a panel that no
 * cluster can keep.
 */
halfbyte_status pack_launch_scan(const pack_tensors *tensors, uint32_t *flag, pack_launch *launch);
halfbyte_status pack_launch_make(const pack_tensors *tensors, bool unpack, pack_launch *launch);

#endif
