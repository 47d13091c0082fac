/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle/exact.h"
#include "oracle/gemm_case.h"

#include <string.h>

void case_poison(uint8_t *data, size_t bytes)
{
    struct random r = {0xd1ce};
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)random_bits(&r);
}

/* Characters of data; the last one carries NaN. */
enum { UNIFORM, NARROW, SPARSE, LARGEST, SUBNORMAL, CANCELLING, WIDE, WITH_NAN, CHARACTERS };

void case_fill_e4m3(struct random *r, uint8_t *data, int64_t count,
                    const struct case_options *options)
{
    int character = (int)random_below(r, options->finite ? WITH_NAN : CHARACTERS);
    if (options->plain)
        character = NARROW;
    for (int64_t i = 0; i < count; i++) {
        uint8_t bits = (uint8_t)random_bits(r), sign = bits & 0x80;
        uint8_t code = (bits & 0x7f) == 0x7f ? sign : bits;
        switch (character) {
        case NARROW: code = sign | (uint8_t)random_between(r, 0x28, 0x4f); break;
        case SPARSE: code = random_percent(r, 95) ? sign : code; break;
        case LARGEST: code = random_percent(r, 90) ? 0x7e : sign | 0x7d; break;
        case SUBNORMAL: code = sign | (bits & 0x0f); break;
        case CANCELLING:
            if (i % 2 == 1)
                code = random_percent(r, 90) ? data[i - 1] ^ 0x80 : code;
            break;
        case WIDE:
            code = sign | (random_percent(r, 50) ? bits & 0x0f : 0x70 | (bits & 0x0e));
            break;
        case WITH_NAN: code = random_below(r, 400) == 0 ? sign | 0x7f : code; break;
        default: break;
        }
        data[i] = code;
    }
}

void case_fill_int4(struct random *r, uint8_t *data, int64_t bytes,
                    const struct case_options *options)
{
    int character = options->plain ? 0 : (int)random_below(r, 6);
    for (int64_t i = 0; i < bytes; i++) {
        uint8_t nibble[2];
        int previous = 0;
        for (int half = 0; half < 2; half++) {
            int value = (int)random_between(r, -8, 7);
            switch (character) {
            case 1: value = value == -8 ? 0 : value; break; /* packs into the form without -8 */
            case 2: value = random_percent(r, 95) ? 0 : value; break;
            case 3: value = value < 0 ? -8 : 7; break;
            case 4: value = half ? -previous : value; break;
            case 5: value = value < 0 ? -7 : 7; break;
            default: break;
            }
            nibble[half] = (uint8_t)(value & 15);
            previous = value;
        }
        data[i] = (uint8_t)(nibble[0] | nibble[1] << 4);
    }
}

static uint32_t random_fp32(struct random *r, int low_exponent, int high_exponent, bool negative)
{
    uint32_t field = (uint32_t)(random_between(r, low_exponent, high_exponent) + 127);
    return (negative ? 0x80000000u : 0) | field << 23 | (uint32_t)(random_bits(r) & 0x7fffff);
}

static uint32_t wild_fp32(struct random *r)
{
    static const uint32_t odd[] = {0,           0x80000000u, 1,           0x80000001u, 0x007fffffu,
                                   0x00800000u, 0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u,
                                   0x7fc00000u, 0xff800001u, 0x3f800000u, 0xbf800000u};
    if (random_percent(r, 50))
        return odd[random_below(r, (int64_t)(sizeof odd / sizeof odd[0]))];
    return (uint32_t)random_bits(r);
}

void case_fill_values(struct random *r, void *data, halfbyte_type type, int64_t count, bool scales,
                      const struct case_options *options)
{
    int character = (int)random_below(r, options->finite ? 6 : 10);
    if (options->plain)
        character = 0;
    for (int64_t i = 0; i < count; i++) {
        bool minus = random_percent(r, 50), wild = false;
        uint32_t bits = 0;
        switch (character) {
        case 0:
        case 1: bits = random_fp32(r, -3, 3, !scales && minus); break;
        case 2: bits = random_fp32(r, -2, 6, minus); break;
        case 3: bits = random_fp32(r, -4, 4, false) & 0x7f800000u; break;
        case 4:
            bits = random_percent(r, 40) ? (uint32_t)minus << 31 : random_fp32(r, -9, 2, minus);
            break;
        case 5: bits = random_fp32(r, -14, 14, minus); break;
        case 6: bits = random_fp32(r, -126, -90, minus); break;
        case 7: bits = random_fp32(r, 90, 127, minus); break;
        case 8: bits = (uint32_t)minus << 31 | (uint32_t)(random_bits(r) & 0x7fffff); break;
        default:
            wild = true;
            bits = wild_fp32(r);
            break;
        }
        halfbyte_type t = type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : type;
        uint32_t code = t == HALFBYTE_TYPE_F32 ? bits : oracle_narrow(t, bits);
        if (wild && t != HALFBYTE_TYPE_F32 && minus)
            code = (uint32_t)random_bits(r); /* any code of the type */
        if (options->plain && t == HALFBYTE_TYPE_E4M3)
            code = (uint32_t)random_between(r, 0x20, 0x50);
        uint16_t code16 = (uint16_t)code;
        uint8_t code8 = (uint8_t)code;
        switch (halfbyte_type_bits(t)) {
        case 32: memcpy((char *)data + 4 * i, &code, 4); break;
        case 16: memcpy((char *)data + 2 * i, &code16, 2); break;
        default: memcpy((char *)data + i, &code8, 1); break;
        }
    }
}
