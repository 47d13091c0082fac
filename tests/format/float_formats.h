/* SPDX-License-Identifier: Apache-2.0 */
/* The four formats under one signature, so that the tests can loop over them. */
#ifndef HALFBYTE_TESTS_FORMAT_FLOAT_FORMATS_H
#define HALFBYTE_TESTS_FORMAT_FLOAT_FORMATS_H

#include "format/fp8.h"
#include "format/half.h"
#include "reference.h"

struct float_format {
    const struct ref_format *ref;
    uint32_t num_codes;
    uint32_t (*decode)(uint32_t code); /* -> fp32 bits */
    uint32_t (*encode)(uint32_t bits);
};

#define FLOAT_FORMAT_WRAPPERS(name, type)                                                          \
    static uint32_t name##_decode_wide(uint32_t code)                                              \
    {                                                                                              \
        return name##_decode_bits((type)code);                                                     \
    }                                                                                              \
    static uint32_t name##_encode_wide(uint32_t bits)                                              \
    {                                                                                              \
        return name##_encode_bits(bits);                                                           \
    }

FLOAT_FORMAT_WRAPPERS(e4m3, uint8_t)
FLOAT_FORMAT_WRAPPERS(e5m2, uint8_t)
FLOAT_FORMAT_WRAPPERS(bf16, uint16_t)
FLOAT_FORMAT_WRAPPERS(fp16, uint16_t)

static const struct float_format float_formats[] = {
    {&ref_e4m3, 0x100, e4m3_decode_wide, e4m3_encode_wide},
    {&ref_e5m2, 0x100, e5m2_decode_wide, e5m2_encode_wide},
    {&ref_bf16, 0x10000, bf16_decode_wide, bf16_encode_wide},
    {&ref_fp16, 0x10000, fp16_decode_wide, fp16_encode_wide},
};
#define NUM_FLOAT_FORMATS (sizeof float_formats / sizeof float_formats[0])

#endif /* HALFBYTE_TESTS_FORMAT_FLOAT_FORMATS_H */
