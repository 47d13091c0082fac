/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the scale of (mn, k_blk) stands in a scale tensor.
 *
 * mn counts rows, columns or blocks of them on the M or N side (0 .. num_mn - 1), k_blk counts
 * blocks along k (0 .. num_k - 1). Offsets are in elements, within one group (expert).
 *
 *   order             offset of (mn, k_blk)             made for
 *   SCALE_MN_MAJOR    k_blk * ld + mn, ld >= num_mn     1x128 activation scales, M-major
 *   SCALE_K_MAJOR     mn * ld + k_blk, ld >= num_k      checkpoints: [n, k/group], [n/128, k/128]
 *   SCALE_W4A8_MOE    (k_blk / A) * num_mn * A + mn * A + k_blk % A
 *                     the interleave of cutlass_w4a8_moe_mm, [num_k/A, num_mn*A]: A neighbouring
 *                     group scales of a weight row side by side; A = 4 if num_k % 4 == 0, else 1
 *   SCALE_BLK128_L4   mn * L4 + k_blk, L4 = num_k rounded up to a multiple of 4
 *                     the 128x128 block scales of cuBLASLt
 */
#ifndef HALFBYTE_FORMAT_SCALE_LAYOUT_H
#define HALFBYTE_FORMAT_SCALE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum scale_order { SCALE_MN_MAJOR, SCALE_K_MAJOR, SCALE_W4A8_MOE, SCALE_BLK128_L4 };

/* Made by scale_layout_init; the members are for reading. */
struct scale_layout {
    enum scale_order order;
    int64_t num_mn, num_k;
    int64_t ld; /* MN_MAJOR, K_MAJOR: as given; BLK128_L4: L4; W4A8_MOE: A */
};

/* The A that cutlass_w4a8_moe_mm expects for num_k groups of 128. */
static inline int64_t scale_w4a8_moe_alignment(int64_t num_k)
{
    return num_k % 4 == 0 ? 4 : 1;
}

/*
 * ld: the leading dimension in elements for SCALE_MN_MAJOR and SCALE_K_MAJOR; for the other two it
 * follows from the sizes, and ld must be 0 or that very number (L4, A). Returns false and leaves
 * *layout alone if a size is negative, the order unknown, ld too small or wrong, or the size of the
 * tensor in 8-byte elements beyond INT64_MAX.
 */
bool scale_layout_init(struct scale_layout *layout, enum scale_order order, int64_t num_mn,
                       int64_t num_k, int64_t ld);

/* Element offset of (mn, k_blk), both in range. */
int64_t scale_layout_offset(const struct scale_layout *layout, int64_t mn, int64_t k_blk);

/* Elements from the first to the last, padding between them included: what a buffer must hold. */
int64_t scale_layout_elems(const struct scale_layout *layout);

/*
 * Copies a scale tensor from one layout to another, bit for bit; no overlap, any alignment. The
 * padding of SCALE_BLK128_L4 is written as zero bytes; gaps that a leading dimension leaves are not
 * touched. Returns false and writes nothing if elem_bytes is not 1, 2 or 4 or if the layouts differ
 * in num_mn or num_k.
 */
bool scale_layout_convert(void *dst, const struct scale_layout *dst_layout, const void *src,
                          const struct scale_layout *src_layout, size_t elem_bytes);

#endif /* HALFBYTE_FORMAT_SCALE_LAYOUT_H */
