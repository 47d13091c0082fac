/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/kernel_table.h"

#include <stddef.h>

/*
 * The cubins stand in objects of their own (kernel_image.S).  Weak: a build without nvcc has none
 * of them, and then the address is NULL.
 */
#define KERNEL_ROW(name, ...)                                                                      \
    extern const unsigned char kernel_image_##name[] __attribute__((weak, visibility("hidden")));
#include "api/kernels.def"
#undef KERNEL_ROW

const kernel_row kernel_table[KERNEL_COUNT + 1] = {
#define KERNEL_ROW(name, threads, smem_bytes, tile_m, tile_n, cluster, most_m, accepts)            \
    {#name, kernel_image_##name, threads, smem_bytes, tile_m, tile_n, cluster, most_m},
#include "api/kernels.def"
#undef KERNEL_ROW
    {NULL, NULL, 0, 0, 0, 0, 0, 0},
};
