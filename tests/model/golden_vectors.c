/* SPDX-License-Identifier: Apache-2.0 */
#include "golden_vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bits.h"

enum { RECORD_BYTES = 80 };

const char *golden_type_name(uint32_t type)
{
    switch (type) {
    case TENSOR_CORE_E4M3: return "wgmma e4m3";
    case TENSOR_CORE_E5M2: return "wgmma e5m2";
    case TENSOR_CORE_BF16: return "wgmma bf16";
    case TENSOR_CORE_FP16: return "wgmma fp16";
    case GOLDEN_MMA_SYNC_E4M3: return "mma.sync e4m3";
    case GOLDEN_MMA_SYNC_E5M2: return "mma.sync e5m2";
    default: return NULL;
    }
}

static void fail(const char *path, const char *what)
{
    fprintf(stderr, "%s: %s\n", path, what);
    exit(2);
}

static struct golden_vector record_parse(const char *path, const uint8_t record[RECORD_BYTES])
{
    struct golden_vector vector = {
        .type = bits_load_le32(record),
        .tag = bits_load_le32(record + 4),
        .c = bits_load_le32(record + 72),
        .d = bits_load_le32(record + 76),
    };
    memcpy(vector.a, record + 8, sizeof vector.a);
    memcpy(vector.b, record + 40, sizeof vector.b);
    if (!golden_type_name(vector.type))
        fail(path, "record of unknown type");
    return vector;
}

struct golden_vector *golden_load(const char *path, size_t *count)
{
    uint8_t record[RECORD_BYTES];
    size_t room = 0, used = 0, bytes;
    struct golden_vector *vectors = NULL;
    FILE *file = fopen(path, "rb");

    if (!file)
        fail(path, "cannot be opened");
    while ((bytes = fread(record, 1, sizeof record, file)) == sizeof record) {
        if (used == room) {
            room = room ? 2 * room : 1024;
            vectors = realloc(vectors, room * sizeof *vectors);
            if (!vectors)
                fail(path, "does not fit into memory");
        }
        vectors[used++] = record_parse(path, record);
    }
    if (bytes != 0 || ferror(file) || used == 0)
        fail(path, "ends inside a record or holds none");
    fclose(file);
    *count = used;
    return vectors;
}

void golden_operands(const struct golden_vector *vector, uint16_t a[TENSOR_CORE_MAX_K],
                     uint16_t b[TENSOR_CORE_MAX_K])
{
    const int k = tensor_core_k((tensor_core_type)vector->type);
    for (int i = 0; i < k; i++) {
        if (k == 32) {
            a[i] = vector->a[i];
            b[i] = vector->b[i];
        } else {
            a[i] = (uint16_t)bits_load_le16(vector->a + 2 * i);
            b[i] = (uint16_t)bits_load_le16(vector->b + 2 * i);
        }
    }
}
