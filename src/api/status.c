/* SPDX-License-Identifier: Apache-2.0 */
/* The status table and the version, both as the public header states them. */
#include "halfbyte.h"

const char *halfbyte_status_name(halfbyte_status status)
{
    switch ((int)status) {
#define STATUS_CASE(name, code, text)                                                              \
    case code: return #name;
        HALFBYTE_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

const char *halfbyte_status_text(halfbyte_status status)
{
    switch ((int)status) {
#define STATUS_CASE(name, code, text)                                                              \
    case code: return text;
        HALFBYTE_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

uint32_t halfbyte_version(void)
{
    return HALFBYTE_VERSION_MAJOR * 1000000u + HALFBYTE_VERSION_MINOR * 1000u +
           HALFBYTE_VERSION_PATCH;
}

#define VERSION_QUOTE_(number) #number
#define VERSION_QUOTE(number) VERSION_QUOTE_(number)

const char *halfbyte_version_text(void)
{
    return VERSION_QUOTE(HALFBYTE_VERSION_MAJOR) "." VERSION_QUOTE(
        HALFBYTE_VERSION_MINOR) "." VERSION_QUOTE(HALFBYTE_VERSION_PATCH);
}
