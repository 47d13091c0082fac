/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations to e4m3: one kernel for each thing that a scale may cover.
 *
 *   quantize_blocks   128 values of a row: half a warp (f32: a warp) finds the largest magnitude
 *   quantize_rows     a row: a warp, or a block whose threads keep the row in registers
 *   quantize_amax     the tensor, first pass: the largest magnitude into the word of the scale
 *   quantize_tensor   the tensor, second pass, and scales that are given: divides
 *
 * All are bound by memory: lanes load 16 bytes each, side by side, and a thread has
 * QUANTIZE_VECTORS loads on their way before it uses the first.  A body is compiled for the three
 * source types and branches once.
 *
 * THE WORD OF THE SCALE.  The scale of a tensor is known when all of it has been read, and no
 * memory but the scale itself is there to meet in.  The stream sets the word to 0; quantize_amax
 * raises it to QUANTIZE_AMAX_TAG | bits of the largest magnitude (a maximum of integers: any order
 * gives it); quantize_tensor turns it into the scale.  Blocks of quantize_tensor may read the word
 * before or after that: the tag tells which, and both ways lead to the same scale.  A replay of a
 * graph starts with the 0 again.
 *
 * PARAMETERS (define before including)
 *   QUANTIZE_NAME      name of the kernel: that of the instance file and of its row in
 *                      quantize_kernels.def
 *   QUANTIZE_BODY      one of the four names above
 *   QUANTIZE_MOST_THREADS   of a block
 *   QUANTIZE_SHARING   such blocks on an SM: bounds the registers, so that enough loads are on
 * their way
 */
#include "kernels/hopper/hopper.h"
#include "kernels/quantize_params.h"
#include "kernels/quantize_scale.h"
#include "kernels/quantize_source.h"

#if !defined(QUANTIZE_NAME) || !defined(QUANTIZE_BODY)
#error "define QUANTIZE_NAME and QUANTIZE_BODY"
#endif
#if !defined(QUANTIZE_MOST_THREADS) || !defined(QUANTIZE_SHARING)
#error "define QUANTIZE_MOST_THREADS and QUANTIZE_SHARING"
#endif

/* The largest key among `lanes` neighbouring lanes, a power of two. */
HB_DEVICE uint32_t lanes_larger(uint32_t key, uint32_t lanes)
{
    uint32_t distance;
    HB_UNROLL
    for (distance = 1; distance < lanes; distance *= 2) {
        key = key_larger(key, shuffle_xor_u32(key, distance));
    }
    return key;
}

/* The largest key of the block, in every thread of the first warp, or of all warps.  A word of
 * shared memory a warp; they are not used again. */
HB_DEVICE uint32_t block_larger(uint32_t key, uint32_t warps)
{
    const smem_addr words = smem_base();
    const uint32_t warp = warp_index(); /* here: by all lanes, it is a shuffle */
    key = lanes_larger(key, 32);
    if (lane_index() == 0) {
        smem_store_u32(words + warp * 4u, key);
    }
    block_sync();
    return lanes_larger(lane_index() < warps ? smem_load_u32(words + lane_index() * 4u) : 0u, 32);
}

/* Row and first column of this warp's segment of a tile; false if there is none. */
HB_DEVICE bool warp_segment(const quantize_params *p, int source, uint32_t tile, uint32_t *row,
                            uint32_t *column)
{
    const uint32_t warp = warp_index();
    const uint32_t tile_row = tile / p->columns_of_tiles;
    const uint32_t tile_column = tile - tile_row * p->columns_of_tiles;
    const uint32_t segments = QUANTIZE_WARPS / p->tile_rows;
    *row = tile_row * p->tile_rows + warp % p->tile_rows;
    *column = (tile_column * segments + warp / p->tile_rows) * QUANTIZE_SEGMENT(source);
    return *row < p->m && *column < p->k;
}

/* The vectors of this lane of a segment that starts at `column`. */
HB_DEVICE void load_segment(const quantize_params *p, int source, uint32_t row, uint32_t column,
                            uint32_t *words)
{
    load_vectors(p, source, row, column + lane_index() * QUANTIZE_VECTOR(source),
                 32u * QUANTIZE_VECTOR(source), column + QUANTIZE_SEGMENT(source), words);
}

HB_DEVICE void quantize_blocks(const quantize_params *p, int source)
{
    const uint32_t lanes = 128u / QUANTIZE_VECTOR(source);
    uint32_t words[QUANTIZE_VECTORS * VECTOR_WORDS];
    uint32_t codes[2];
    uint32_t row, segment;
    int i;
    if (!warp_segment(p, source, block_index(), &row, &segment)) {
        return;
    }
    load_segment(p, source, row, segment, words);
    HB_UNROLL
    for (i = 0; i < QUANTIZE_VECTORS; i++) {
        const uint32_t *vector = words + i * VECTOR_WORDS;
        const uint32_t key = lanes_larger(key_of_vector(source, vector), lanes);
        const uint32_t column =
            segment + ((uint32_t)i * 32u + lane_index()) * QUANTIZE_VECTOR(source);
        const float scale = scale_of_magnitude(p, magnitude_of_key(source, key));
        if (column < p->k) {
            vector_codes(source, vector, divisor_of_scale(scale), codes);
            store_codes(p, source, row, column, codes);
            if (column % 128u == 0) {
                global_store_f32(
                    p->scale + row * p->scale_stride_m + column / 128u * p->scale_stride_k, scale);
            }
        }
    }
}

/* Stores the codes of a thread's vectors at column, column + stride, ... */
HB_DEVICE void store_vectors(const quantize_params *p, int source, int64_t row, uint32_t column,
                             uint32_t stride, const uint32_t *words, divisor d)
{
    uint32_t codes[2];
    int i;
    HB_UNROLL
    for (i = 0; i < QUANTIZE_VECTORS; i++) {
        const uint32_t at = column + (uint32_t)i * stride;
        if (at < p->k) {
            vector_codes(source, words + i * VECTOR_WORDS, d, codes);
            store_codes(p, source, row, at, codes);
        }
    }
}

HB_DEVICE uint32_t key_of_vectors(int source, const uint32_t *words)
{
    uint32_t key = 0;
    int i;
    HB_UNROLL
    for (i = 0; i < QUANTIZE_VECTORS; i++) {
        key = key_larger(key, key_of_vector(source, words + i * VECTOR_WORDS));
    }
    return key;
}

/* The first QUANTIZE_VECTORS vectors of each thread stay in registers.  What a longer row has
 * beyond them is read twice, the second time from the cache. */
HB_DEVICE void quantize_rows(const quantize_params *p, int source)
{
    const uint32_t in_row = thread_index() % p->row_threads;
    const uint32_t row = block_index() * p->block_rows + thread_index() / p->row_threads;
    const uint32_t stride = p->row_threads * QUANTIZE_VECTOR(source);
    const uint32_t first = in_row * QUANTIZE_VECTOR(source);
    const uint32_t kept = stride * QUANTIZE_VECTORS;
    uint32_t words[QUANTIZE_VECTORS * VECTOR_WORDS];
    uint32_t vector[VECTOR_WORDS];
    uint32_t codes[2];
    uint32_t key, column;
    float scale;
    divisor d;
    if (row >= p->m) {
        return; /* a whole warp: with more threads a row, blocks have one row, which exists */
    }
    load_vectors(p, source, row, first, stride, kept, words);
    key = key_of_vectors(source, words);
    HB_NO_UNROLL
    for (column = kept + first; column < p->k; column += stride) {
        load_ragged_vector(p, source, row, column, vector);
        key = key_larger(key, key_of_vector(source, vector));
    }
    key = p->row_threads == 32u ? lanes_larger(key, 32) : block_larger(key, p->row_threads / 32u);
    scale = scale_of_magnitude(p, magnitude_of_key(source, key));
    d = divisor_of_scale(scale);
    if (in_row == 0) {
        global_store_f32(p->scale + row, scale);
    }
    store_vectors(p, source, row, first, stride, words, d);
    HB_NO_UNROLL
    for (column = kept + first; column < p->k; column += stride) {
        load_ragged_vector(p, source, row, column, vector);
        vector_codes(source, vector, d, codes);
        store_codes(p, source, row, column, codes);
    }
}

HB_DEVICE void quantize_amax(const quantize_params *p, int source)
{
    uint32_t words[QUANTIZE_VECTORS * VECTOR_WORDS];
    uint32_t key = 0;
    uint32_t tile, row, column;
    HB_NO_UNROLL
    for (tile = block_index(); tile < p->tiles; tile += block_count()) {
        if (warp_segment(p, source, tile, &row, &column)) {
            load_segment(p, source, row, column, words);
            key = key_larger(key, key_of_vectors(source, words));
        }
    }
    key = block_larger(key, QUANTIZE_WARPS);
    if (thread_index() == 0) {
        global_raise_u32((uint32_t *)(void *)p->scale,
                         QUANTIZE_AMAX_TAG | bits_of_f32(magnitude_of_key(source, key)));
    }
}

/* Tiles in descending order: what quantize_amax has read last is still in the cache. */
HB_DEVICE void quantize_tensor(const quantize_params *p, int source)
{
    const uint32_t tile = p->tiles - 1u - block_index();
    uint32_t *const word = (uint32_t *)(void *)p->scale;
    uint32_t words[QUANTIZE_VECTORS * VECTOR_WORDS];
    uint32_t row, column, bits;
    float scale;
    if (!warp_segment(p, source, tile, &row, &column)) {
        return;
    }
    load_segment(p, source, row, column, words);
    bits = global_load_u32_relaxed(word);
    scale = f32_of_bits(bits);
    if (p->is_computed && (bits & QUANTIZE_AMAX_TAG) != 0) {
        scale = scale_of_magnitude(p, f32_of_bits(bits & ~QUANTIZE_AMAX_TAG));
        if (row == 0 && column == 0 && lane_index() == 0) {
            global_store_u32_relaxed(word, bits_of_f32(scale));
        }
    }
    store_vectors(p, source, row, column + lane_index() * QUANTIZE_VECTOR(source),
                  32u * QUANTIZE_VECTOR(source), words, divisor_of_scale(scale));
}

KERNEL_SHARING(QUANTIZE_NAME, quantize_params, p, QUANTIZE_MOST_THREADS, QUANTIZE_SHARING)
{
    switch (p->source) {
    case QUANTIZE_FROM_F32: QUANTIZE_BODY(p, QUANTIZE_FROM_F32); break;
    case QUANTIZE_FROM_BF16: QUANTIZE_BODY(p, QUANTIZE_FROM_BF16); break;
    default: QUANTIZE_BODY(p, QUANTIZE_FROM_F16); break;
    }
}
