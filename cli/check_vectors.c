/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden vectors: records of 80 bytes, little-endian: u32 type, u32 tag, 32 bytes a, 32 bytes b,
 * u32 c, u32 d. d is what an H200 returned for d = dot(a, b) + c.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "common.h"
#include "io/io_source.h"

enum { RECORD_BYTES = 80, RECORDS_AT_ONCE = 4096 };

static const halfbyte_type golden_types[GOLDEN_TYPES] = {HALFBYTE_TYPE_E4M3, HALFBYTE_TYPE_E5M2,
                                                         HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F16};

static uint32_t load_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static int replay(const char *path, const unsigned char *record, uint64_t index,
                  golden_counts *counts)
{
    uint32_t type = load_u32(record);
    uint32_t tag = load_u32(record + 4);
    uint32_t c = load_u32(record + 72);
    uint32_t expected = load_u32(record + 76);
    uint32_t got = 0;
    unsigned char a[32], b[32];
    if (type == 16 || type == 17) {
        ++counts->skipped[type - 16].problems;
        return CLI_OK;
    }
    if (type >= GOLDEN_TYPES)
        return cli_fail(CLI_ENVIRONMENT, "%s: record %llu has the unknown type %lu",
                        io_quote_path(path).text, (unsigned long long)index, (unsigned long)type);
    /* Two-byte codes are stored little-endian, which is the order of the machines served. */
    memcpy(a, record + 8, sizeof a);
    memcpy(b, record + 40, sizeof b);
    halfbyte_status status = halfbyte_tensor_core_dot(golden_types[type], a, b, c, &got);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, "golden vectors");
    check_count *count = &counts->types[type];
    ++count->compared;
    if (got == expected)
        return CLI_OK;
    ++count->mismatches;
    check_mismatch(count, "%s: record %llu (tag %lu): c = %08lx gives %08lx, the H200 gave %08lx",
                   count->name, (unsigned long long)index, (unsigned long)tag, (unsigned long)c,
                   (unsigned long)got, (unsigned long)expected);
    return CLI_OK;
}

static int replay_all(const io_source *source, const char *path, unsigned char *records,
                      golden_counts *counts)
{
    uint64_t total = source->size_bytes / RECORD_BYTES;
    for (uint64_t first = 0; first < total; first += RECORDS_AT_ONCE) {
        uint64_t now = total - first < RECORDS_AT_ONCE ? total - first : RECORDS_AT_ONCE;
        io_error error;
        if (io_source_read(source, first * RECORD_BYTES, records, (size_t)now * RECORD_BYTES,
                           &error) != IO_OK)
            return cli_fail_io(&error);
        for (uint64_t i = 0; i < now; ++i) {
            int code = replay(path, records + i * RECORD_BYTES, first + i, counts);
            if (code != CLI_OK)
                return code;
        }
    }
    return CLI_OK;
}

int check_vectors(const char *path, golden_counts *counts)
{
    static const char *const names[GOLDEN_TYPES] = {"e4m3", "e5m2", "bf16", "f16"};
    static const char *const skipped[GOLDEN_SKIPPED] = {"mma.sync e4m3", "mma.sync e5m2"};
    io_source source;
    io_error error;
    memset(counts, 0, sizeof *counts);
    for (int i = 0; i < GOLDEN_TYPES; ++i)
        counts->types[i].name = names[i];
    for (int i = 0; i < GOLDEN_SKIPPED; ++i)
        counts->skipped[i].name = skipped[i];
    if (io_source_open_file(&source, path, &error) != IO_OK)
        return cli_fail_io(&error);
    int code = CLI_OK;
    unsigned char *records = NULL;
    if (source.size_bytes == 0 || source.size_bytes % RECORD_BYTES != 0)
        code =
            cli_fail(CLI_ENVIRONMENT,
                     "%s is no file of golden vectors: %llu bytes are not a whole number of "
                     "%d-byte records",
                     io_quote_path(path).text, (unsigned long long)source.size_bytes, RECORD_BYTES);
    else if ((records = cli_alloc(RECORDS_AT_ONCE, RECORD_BYTES)) == NULL)
        code = cli_fail_memory((uint64_t)RECORDS_AT_ONCE * RECORD_BYTES);
    else
        code = replay_all(&source, path, records, counts);
    io_source_close(&source);
    free(records);
    return code;
}
