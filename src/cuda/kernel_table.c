/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/kernel_table.h"

#include <stddef.h>

#include "kernels/pack_weights_params.h"
#include "kernels/quantize_params.h"

/*
 * The cubins stand in objects of their own (kernel_image.S).  Weak in a build without nvcc, which
 * has none of them: then the address is NULL.  Strong otherwise, since a weak reference takes
 * nothing out of an archive.
 */
#if defined(HALFBYTE_HAS_KERNELS)
#define IMAGE_ATTRIBUTE __attribute__((visibility("hidden")))
#else
#define IMAGE_ATTRIBUTE __attribute__((weak, visibility("hidden")))
#endif
#define KERNEL_ROW(name, ...) extern const unsigned char kernel_image_##name[] IMAGE_ATTRIBUTE;
#define GROUP_ROW KERNEL_ROW
#define QUANTIZER_ROW KERNEL_ROW
#define PACKER_ROW KERNEL_ROW
#include "api/group_kernels.def"
#include "api/kernels.def"
#include "api/pack_kernels.def"
#include "api/quantize_kernels.def"
#undef PACKER_ROW
#undef QUANTIZER_ROW
#undef GROUP_ROW
#undef KERNEL_ROW

/* By index, so that the order in which the tables are included here does not matter. */
#define AT(name) [KERNEL_INDEX_##name]
const kernel_row kernel_table[KERNEL_ALL + 1] = {
#define KERNEL_ROW(name, threads, smem_bytes, tile_m, tile_n, cluster_m, cluster_n, d_box_rows,    \
                   block_ns, tile_ns, start_ns, accepts)                                           \
    AT(name) = {#name,     kernel_image_##name, threads,    smem_bytes, tile_m,  tile_n,           \
                cluster_m, cluster_n,           d_box_rows, block_ns,   tile_ns, start_ns},
#include "api/kernels.def"
#undef KERNEL_ROW
#define GROUP_ROW(name, threads, smem_bytes)                                                       \
    AT(name) = {#name, kernel_image_##name, threads, smem_bytes, 0, 0, 1, 1, 0, 0, 0, 0},
#define QUANTIZER_ROW GROUP_ROW
#define PACKER_ROW GROUP_ROW
#include "api/group_kernels.def"
#include "api/pack_kernels.def"
#include "api/quantize_kernels.def"
#undef PACKER_ROW
#undef QUANTIZER_ROW
#undef GROUP_ROW
    [KERNEL_ALL] = {NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
};
