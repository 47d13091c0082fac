/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the public enums' values, for messages and describe texts: "unknown" outside an enum. */
#ifndef HALFBYTE_API_ENUM_NAMES_H
#define HALFBYTE_API_ENUM_NAMES_H

#include "halfbyte.h"

const char *executor_name(halfbyte_executor executor);
const char *profile_name(halfbyte_profile profile);
const char *isa_name(halfbyte_isa isa);
const char *family_name(halfbyte_family family);
const char *grouping_name(halfbyte_grouping grouping);
const char *scale_mode_name(halfbyte_scale_mode mode);
const char *scale_layout_name(halfbyte_scale_layout layout);

#endif
