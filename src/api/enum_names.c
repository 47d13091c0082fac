/* SPDX-License-Identifier: Apache-2.0 */
#include "api/enum_names.h"

/* An enum read from a caller's struct may hold any int, so every look-up checks its range. */
#define NAME_OF(names, value)                                                                      \
    ((unsigned int)(value) < sizeof(names) / sizeof(names)[0] ? (names)[(unsigned int)(value)]     \
                                                              : "unknown")

const char *executor_name(halfbyte_executor executor)
{
    static const char *const names[] = {"auto", "model", "gpu", "emulator"};
    return NAME_OF(names, executor);
}

const char *profile_name(halfbyte_profile profile)
{
    static const char *const names[] = {"sm90", "any"};
    return NAME_OF(names, profile);
}

const char *isa_name(halfbyte_isa isa)
{
    static const char *const names[] = {"auto", "portable", "avx2", "avx512"};
    return NAME_OF(names, isa);
}

const char *family_name(halfbyte_family family)
{
    static const char *const names[] = {"unknown", "fp8", "w4a8"};
    return NAME_OF(names, family);
}

const char *grouping_name(halfbyte_grouping grouping)
{
    static const char *const names[] = {"dense", "ranges", "masked", "labels"};
    return NAME_OF(names, grouping);
}

const char *scale_mode_name(halfbyte_scale_mode mode)
{
    static const char *const names[] = {"none", "tensor", "outer", "1x128", "128x128", "k_group"};
    return NAME_OF(names, mode);
}

const char *scale_layout_name(halfbyte_scale_layout layout)
{
    static const char *const names[] = {"mn_major", "k_major", "interleaved4"};
    return NAME_OF(names, layout);
}
