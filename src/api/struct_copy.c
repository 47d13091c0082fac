/* SPDX-License-Identifier: Apache-2.0 */
#include "api/struct_copy.h"

#include <string.h>

/* Offset of the first byte that is not zero in bytes [from, to), `to` if there is none. */
static size_t first_nonzero(const unsigned char *bytes, size_t from, size_t to)
{
    while (from < to && bytes[from] == 0) {
        from++;
    }
    return from;
}

halfbyte_status struct_copy_bytes(void *known, size_t known_bytes, size_t first_bytes,
                                  const void *source, const char *name, const char *type)
{
    CHECK_ARGUMENT(source != NULL, "%s = NULL: must point to a %s", name, type);
    size_t bytes;
    memcpy(&bytes, source, sizeof bytes);
    CHECK_ARGUMENT(bytes >= first_bytes && bytes <= known_bytes + STRUCT_MOST_UNKNOWN_BYTES,
                   "%s.struct_size = %zu: no version of %s has this size (here it is %zu); make "
                   "the struct with %s_init()",
                   name, bytes, type, known_bytes, type);
    const size_t unknown = first_nonzero(source, known_bytes, bytes);
    CHECK(unknown >= bytes, HALFBYTE_ERR_UNSUPPORTED,
          "%s.struct_size = %zu: byte %zu is not zero, but this library (version %s) knows %zu "
          "bytes of %s; accepted: zero in every later field",
          name, bytes, unknown, halfbyte_version_text(), known_bytes, type);
    memset(known, 0, known_bytes);
    memcpy(known, source, bytes < known_bytes ? bytes : known_bytes);
    memcpy(known, &known_bytes, sizeof known_bytes);
    return HALFBYTE_SUCCESS;
}
