/* SPDX-License-Identifier: Apache-2.0 */
#include "api/quantize_launch.h"

#include <inttypes.h>
#include <string.h>

#include "api/error.h"

enum {
    WARP = 32,
    MOST_TILE_ROWS = QUANTIZE_WARPS,
    AMAX_BLOCKS_AN_SM = 8, /* as many as fit */
};
#define MOST_BLOCKS INT64_C(0x7fffffff)

static int64_t divide_up(int64_t x, int64_t y)
{
    return x / y + (x % y != 0);
}

static int source_of(halfbyte_type type)
{
    return type == HALFBYTE_TYPE_F32    ? QUANTIZE_FROM_F32
           : type == HALFBYTE_TYPE_BF16 ? QUANTIZE_FROM_BF16
                                        : QUANTIZE_FROM_F16;
}

/* Do all rows begin where whole vectors of theirs, of so many bytes, can be accessed at once? */
static bool rows_are_aligned(const void *data, uint32_t m, int64_t ld, int vector_bytes, int vector)
{
    return (uintptr_t)data % (uintptr_t)vector_bytes == 0 && (m <= 1 || ld % vector == 0);
}

static quantize_params params_make(const halfbyte_activation_quantization *a)
{
    const bool k_major = a->layout == HALFBYTE_SCALE_K_MAJOR;
    quantize_params p;
    memset(&p, 0, sizeof p);
    p.source = source_of(a->src_type);
    p.src = a->src.data;
    p.dst = a->dst.data;
    p.scale = a->scale.data;
    p.src_ld = a->src.ld;
    p.dst_ld = a->dst.ld;
    p.scale_stride_m = k_major ? a->scale.stride_mn : 1;
    p.scale_stride_k = k_major ? 1 : a->scale.stride_k;
    p.m = (uint32_t)a->m;
    p.k = (uint32_t)a->k;
    p.power_of_two = (a->flags & HALFBYTE_QUANTIZE_POWER_OF_TWO) != 0;
    p.epsilon = a->epsilon;
    return p;
}

static quantize_launch *launch_add(quantize_launches *launches, int kernel,
                                   const quantize_params *params)
{
    quantize_launch *added = &launches->launch[launches->count++];
    const int vector = QUANTIZE_VECTOR(params->source);
    added->kernel = kernel;
    added->threads = QUANTIZE_THREADS;
    added->params = *params;
    added->params.src_is_aligned =
        rows_are_aligned(params->src, params->m, params->src_ld, 16, vector);
    added->params.dst_is_aligned =
        rows_are_aligned(params->dst, params->m, params->dst_ld, vector, vector);
    return added;
}

/* Cuts the tensor into tiles of as many rows as there are, up to 8: neighbours in a scale tensor
 * that is contiguous along m are then written by one block. */
static halfbyte_status tiles_make(quantize_params *p)
{
    p->tile_rows = 1;
    while (p->tile_rows < p->m && p->tile_rows < MOST_TILE_ROWS) {
        p->tile_rows *= 2;
    }
    const int64_t columns = (int64_t)QUANTIZE_SEGMENT(p->source) * (QUANTIZE_WARPS / p->tile_rows);
    p->columns_of_tiles = (uint32_t)divide_up(p->k, columns);
    const int64_t tiles = divide_up(p->m, p->tile_rows) * p->columns_of_tiles;
    CHECK(tiles <= MOST_BLOCKS, HALFBYTE_ERR_UNSUPPORTED,
          "arguments.m = %" PRIu32 ", k = %" PRIu32 ": %" PRId64
          " blocks of threads; a GPU takes at most %" PRId64,
          p->m, p->k, tiles, MOST_BLOCKS);
    p->tiles = (uint32_t)tiles;
    return HALFBYTE_SUCCESS;
}

/* Threads that keep a row in registers, if that many make a block. */
static int64_t threads_for_row(const quantize_params *p)
{
    const int64_t a_thread = QUANTIZE_VECTOR(p->source) * QUANTIZE_VECTORS;
    return divide_up(divide_up(p->k, a_thread), WARP) * WARP;
}

static void rows_add(quantize_launches *launches, quantize_params *p)
{
    const int64_t threads = threads_for_row(p);
    p->row_threads = threads <= WARP                    ? WARP
                     : threads <= QUANTIZE_ROWS_THREADS ? (uint32_t)threads
                                                        : QUANTIZE_ROWS_THREADS;
    p->block_rows = p->row_threads == WARP ? QUANTIZE_WARPS : 1;
    quantize_launch *rows = launch_add(launches, KERNEL_INDEX_halfbyte_sm90_quantize_rows, p);
    rows->threads = p->row_threads * p->block_rows;
    rows->blocks = (uint32_t)divide_up(p->m, p->block_rows);
}

/* A tensor without gaps is one row. */
static void rows_join(quantize_params *p)
{
    const int64_t elements = (int64_t)p->m * p->k;
    if (p->src_ld == p->k && p->dst_ld == p->k && elements <= MOST_BLOCKS) {
        p->m = 1;
        p->k = (uint32_t)elements;
    }
}

static halfbyte_status tensor_add(quantize_launches *launches, quantize_params *p, int sm_count)
{
    if (p->m > 1) {
        rows_join(p);
    }
    if (p->is_computed && p->m == 1 && threads_for_row(p) <= QUANTIZE_ROWS_THREADS) {
        rows_add(launches, p); /* one block sees it all: one launch instead of three */
        return HALFBYTE_SUCCESS;
    }
    CHECK_STATUS(tiles_make(p));
    if (p->is_computed) {
        const uint32_t most = (uint32_t)sm_count * AMAX_BLOCKS_AN_SM;
        launches->clears_scale = true;
        launch_add(launches, KERNEL_INDEX_halfbyte_sm90_quantize_amax, p)->blocks =
            p->tiles < most ? p->tiles : most;
    }
    launch_add(launches, KERNEL_INDEX_halfbyte_sm90_quantize_tensor, p)->blocks = p->tiles;
    return HALFBYTE_SUCCESS;
}

halfbyte_status quantize_launches_make(const halfbyte_activation_quantization *arguments,
                                       int sm_count, quantize_launches *launches)
{
    quantize_params p = params_make(arguments);
    const bool is_empty = p.m == 0 || p.k == 0;
    launches->clears_scale = false;
    launches->count = 0;
    switch (arguments->mode) {
    case HALFBYTE_SCALE_1X128:
        if (!is_empty) {
            CHECK_STATUS(tiles_make(&p));
            launch_add(launches, KERNEL_INDEX_halfbyte_sm90_quantize_blocks, &p)->blocks = p.tiles;
        }
        return HALFBYTE_SUCCESS;
    case HALFBYTE_SCALE_OUTER:
        if (p.m > 0) {
            rows_add(launches, &p);
        }
        return HALFBYTE_SUCCESS;
    default: /* TENSOR */
        p.is_computed = (arguments->flags & HALFBYTE_QUANTIZE_STATIC) == 0;
        if (!is_empty) {
            return tensor_add(launches, &p, sm_count);
        }
        if (p.is_computed) { /* the scale of no element is that of one row without any */
            p.m = 1;
            p.k = 0;
            rows_add(launches, &p);
        }
        return HALFBYTE_SUCCESS;
    }
}
