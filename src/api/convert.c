/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: names, sizes and conversions of arrays.  Integer arithmetic alone. */
#include <inttypes.h>
#include <stdbool.h>

#include "api/error.h"
#include "format/fp8.h"
#include "format/half.h"

static const struct {
    const char *name;
    int bits;
} types[] = {
    [HALFBYTE_TYPE_NONE] = {"none", 0},  [HALFBYTE_TYPE_F32] = {"f32", 32},
    [HALFBYTE_TYPE_BF16] = {"bf16", 16}, [HALFBYTE_TYPE_F16] = {"f16", 16},
    [HALFBYTE_TYPE_E4M3] = {"e4m3", 8},  [HALFBYTE_TYPE_E5M2] = {"e5m2", 8},
    [HALFBYTE_TYPE_E8M0] = {"e8m0", 8},  [HALFBYTE_TYPE_INT4] = {"int4", 4},
};

static bool type_is_known(halfbyte_type type)
{
    return (unsigned int)type < sizeof types / sizeof types[0];
}

const char *halfbyte_type_name(halfbyte_type type)
{
    return type_is_known(type) ? types[type].name : "unknown";
}

int halfbyte_type_bits(halfbyte_type type)
{
    return type_is_known(type) ? types[type].bits : 0;
}

static void convert_from_f32(void *dst, halfbyte_type type, const float *src, size_t count)
{
    switch (type) {
    case HALFBYTE_TYPE_BF16: bf16_encode_n(dst, src, count); break;
    case HALFBYTE_TYPE_F16: fp16_encode_n(dst, src, count); break;
    case HALFBYTE_TYPE_E4M3: e4m3_encode_n(dst, src, count); break;
    case HALFBYTE_TYPE_E5M2: e5m2_encode_n(dst, src, count); break;
    default: /* E8M0 */
        for (size_t i = 0; i < count; i++) {
            ((uint8_t *)dst)[i] = e8m0_encode_ceil(src[i]);
        }
        break;
    }
}

static void convert_to_f32(float *dst, const void *src, halfbyte_type type, size_t count)
{
    switch (type) {
    case HALFBYTE_TYPE_BF16: bf16_decode_n(dst, src, count); break;
    case HALFBYTE_TYPE_F16: fp16_decode_n(dst, src, count); break;
    case HALFBYTE_TYPE_E4M3: e4m3_decode_n(dst, src, count); break;
    case HALFBYTE_TYPE_E5M2: e5m2_decode_n(dst, src, count); break;
    default: /* E8M0 */ e8m0_decode_n(dst, src, count); break;
    }
}

static bool pair_is_served(halfbyte_type dst_type, halfbyte_type src_type)
{
    if (!type_is_known(dst_type) || !type_is_known(src_type) || dst_type == HALFBYTE_TYPE_INT4 ||
        src_type == HALFBYTE_TYPE_INT4 || dst_type == HALFBYTE_TYPE_NONE ||
        src_type == HALFBYTE_TYPE_NONE) {
        return false;
    }
    return dst_type == src_type || dst_type == HALFBYTE_TYPE_F32 || src_type == HALFBYTE_TYPE_F32;
}

static halfbyte_status array_check(const char *name, const void *data, halfbyte_type type,
                                   int64_t count)
{
    const uintptr_t bytes = (uintptr_t)types[type].bits / 8;

    CHECK_ARGUMENT(data != NULL, "%s = NULL: must point to %" PRId64 " elements", name, count);
    CHECK((uintptr_t)data % bytes == 0, HALFBYTE_ERR_MISALIGNED,
          "%s = %p: must be aligned to %zu bytes (%s)", name, data, (size_t)bytes,
          types[type].name);
    CHECK_ARGUMENT((uint64_t)count <= (UINTPTR_MAX - (uintptr_t)data) / bytes,
                   "count = %" PRId64 ": %s would not fit into the address space", count, name);
    return HALFBYTE_SUCCESS;
}

halfbyte_status halfbyte_convert(void *dst, halfbyte_type dst_type, const void *src,
                                 halfbyte_type src_type, int64_t count)
{
    CHECK(pair_is_served(dst_type, src_type), HALFBYTE_ERR_UNSUPPORTED,
          "dst_type = %s (%d), src_type = %s (%d): accepted: f32 and any type but int4, or twice "
          "the same",
          halfbyte_type_name(dst_type), (int)dst_type, halfbyte_type_name(src_type), (int)src_type);
    CHECK_ARGUMENT(count >= 0, "count = %" PRId64 ": must be at least 0", count);
    if (count == 0) {
        return HALFBYTE_SUCCESS;
    }
    CHECK_STATUS(array_check("dst", dst, dst_type, count));
    CHECK_STATUS(array_check("src", src, src_type, count));

    const size_t size = (size_t)count, dst_bytes = size * ((size_t)types[dst_type].bits / 8),
                 src_bytes = size * ((size_t)types[src_type].bits / 8);
    const uintptr_t to = (uintptr_t)dst, from = (uintptr_t)src;
    CHECK_ARGUMENT(to + dst_bytes <= from || from + src_bytes <= to ||
                       (to == from && dst_bytes == src_bytes),
                   "dst = %p: overlaps src = %p; must not", dst, src);

    if (dst_type == src_type) {
        memmove(dst, src, dst_bytes);
    } else if (src_type == HALFBYTE_TYPE_F32) {
        convert_from_f32(dst, dst_type, src, size);
    } else {
        convert_to_f32(dst, src, src_type, size);
    }
    return HALFBYTE_SUCCESS;
}
