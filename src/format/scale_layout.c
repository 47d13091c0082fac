/* SPDX-License-Identifier: Apache-2.0 */
#include "format/scale_layout.h"

#include <string.h>

/* Whether a * b elements of 8 bytes can be addressed; a, b >= 0. */
static bool product_fits(int64_t a, int64_t b)
{
    return b == 0 || a <= INT64_MAX / 8 / b;
}

bool scale_layout_init(struct scale_layout *layout, enum scale_order order, int64_t num_mn,
                       int64_t num_k, int64_t ld)
{
    if (num_mn < 0 || num_k < 0 || ld < 0)
        return false;

    int64_t fixed_ld = 0, min_ld = 0, count = 0;
    switch (order) {
    case SCALE_MN_MAJOR:
        min_ld = num_mn;
        count = num_k;
        break;
    case SCALE_K_MAJOR:
        min_ld = num_k;
        count = num_mn;
        break;
    case SCALE_W4A8_MOE:
        fixed_ld = scale_w4a8_moe_alignment(num_k);
        if (!product_fits(num_mn, num_k))
            return false;
        break;
    case SCALE_BLK128_L4:
        if (num_k > INT64_MAX - 3)
            return false;
        fixed_ld = (num_k + 3) / 4 * 4;
        count = num_mn;
        break;
    default: return false;
    }
    if (order == SCALE_MN_MAJOR || order == SCALE_K_MAJOR) {
        if (ld < min_ld)
            return false;
    } else {
        if (ld != 0 && ld != fixed_ld)
            return false;
        ld = fixed_ld;
    }
    if (!product_fits(ld, count))
        return false;

    layout->order = order;
    layout->num_mn = num_mn;
    layout->num_k = num_k;
    layout->ld = ld;
    return true;
}

int64_t scale_layout_offset(const struct scale_layout *layout, int64_t mn, int64_t k_blk)
{
    const int64_t ld = layout->ld;

    if (layout->order == SCALE_MN_MAJOR)
        return k_blk * ld + mn;
    if (layout->order == SCALE_W4A8_MOE)
        return (k_blk / ld * layout->num_mn + mn) * ld + k_blk % ld;
    return mn * ld + k_blk; /* SCALE_K_MAJOR, SCALE_BLK128_L4 */
}

int64_t scale_layout_elems(const struct scale_layout *layout)
{
    if (layout->num_mn == 0 || layout->num_k == 0)
        return 0;
    if (layout->order == SCALE_BLK128_L4)
        return layout->num_mn * layout->ld;
    return scale_layout_offset(layout, layout->num_mn - 1, layout->num_k - 1) + 1;
}

bool scale_layout_convert(void *dst, const struct scale_layout *dst_layout, const void *src,
                          const struct scale_layout *src_layout, size_t elem_bytes)
{
    const int64_t num_mn = dst_layout->num_mn, num_k = dst_layout->num_k;
    const int64_t bytes = (int64_t)elem_bytes;

    if (elem_bytes != 1 && elem_bytes != 2 && elem_bytes != 4)
        return false;
    if (src_layout->num_mn != num_mn || src_layout->num_k != num_k)
        return false;

    uint8_t *to = dst;
    const uint8_t *from = src;
    for (int64_t mn = 0; mn < num_mn; mn++) {
        for (int64_t k_blk = 0; k_blk < num_k; k_blk++)
            memcpy(to + scale_layout_offset(dst_layout, mn, k_blk) * bytes,
                   from + scale_layout_offset(src_layout, mn, k_blk) * bytes, elem_bytes);
        if (dst_layout->order == SCALE_BLK128_L4 && num_k > 0)
            memset(to + (mn * dst_layout->ld + num_k) * bytes, 0,
                   (size_t)((dst_layout->ld - num_k) * bytes));
    }
    return true;
}
