/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels that are built into the library: kernels.def and, behind its rows, those of
 * group_kernels.def, quantize_kernels.def and pack_kernels.def as one table.
 */
#ifndef HALFBYTE_CUDA_KERNEL_TABLE_H
#define HALFBYTE_CUDA_KERNEL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tables are included for their rows, with KERNEL_ROW(...), GROUP_ROW(...), QUANTIZER_ROW(...)
 * or PACKER_ROW(...) defined by the includer. */
enum {
#define KERNEL_ROW(name, ...) KERNEL_INDEX_##name,
#include "api/kernels.def"
#undef KERNEL_ROW
    KERNEL_COUNT, /* of GEMMs, which plans choose from */
    KERNEL_GROUPS_FROM = KERNEL_COUNT,
    KERNEL_BEFORE_GROUPS = KERNEL_COUNT - 1,
#define GROUP_ROW(name, ...) KERNEL_INDEX_##name,
#include "api/group_kernels.def"
#undef GROUP_ROW
    KERNEL_GROUPS_END,
    KERNEL_BEFORE_QUANTIZERS = KERNEL_GROUPS_END - 1,
#define QUANTIZER_ROW(name, ...) KERNEL_INDEX_##name,
#include "api/quantize_kernels.def"
#undef QUANTIZER_ROW
    KERNEL_QUANTIZERS_END,
    KERNEL_BEFORE_PACKERS = KERNEL_QUANTIZERS_END - 1,
#define PACKER_ROW(name, ...) KERNEL_INDEX_##name,
#include "api/pack_kernels.def"
#undef PACKER_ROW
    KERNEL_ALL
};

typedef struct kernel_row {
    const char *name;
    const void *image; /* cubin; NULL if the library was built without nvcc */
    uint32_t threads;
    uint32_t smem_bytes;
    uint32_t tile_m, tile_n;
    uint32_t cluster_m, cluster_n;
    uint32_t d_box_rows; /* of D's tensor map, where D may be stored by it; 0: never */
    uint32_t block_ns, tile_ns, start_ns; /* for the choice among kernels: see kernels.def */
} kernel_row;

extern const kernel_row kernel_table[KERNEL_ALL + 1];

/* Was the library built with nvcc, so that the rows have images? */
static inline bool kernel_table_is_built(void)
{
    return kernel_table[0].image != NULL;
}

#endif
