/* SPDX-License-Identifier: Apache-2.0 */
/* The input is a .npy file. */
#include <stdint.h>

#include "fuzz_check.h"
#include "io/npy.h"
#include "io/npy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_data(const npy_file *file, const uint8_t *data, size_t size)
{
    const tensor_spec *spec = npy_spec(file);
    FUZZ_CHECK(spec->bytes < size);
    FUZZ_CHECK(spec->bytes == spec->elems * tensor_dtype_bytes(spec->dtype));
    uint64_t elems = 1;
    for (int dim = 0; dim < spec->rank; dim++)
        elems *= (uint64_t)spec->shape[dim];
    FUZZ_CHECK(elems == spec->elems);
    size_t bytes = (size_t)spec->bytes;
    unsigned char *got = malloc(bytes + 1);
    io_error error;
    FUZZ_CHECK(got != NULL);
    FUZZ_CHECK(npy_read(file, 0, got, bytes, &error) == IO_OK);
    FUZZ_CHECK(memcmp(got, data + size - bytes, bytes) == 0);
    FUZZ_CHECK(npy_read(file, 1, got, bytes, &error) == IO_ARGUMENT);
    free(got);
}

/* What the writer would make of the same type and shape is read as just that. */
static void check_rewritten(const tensor_spec *spec)
{
    char header[NPY_HEADER_FORMAT_BYTES];
    size_t length = npy_header_format(spec, header);
    FUZZ_CHECK(length % 64 == 0 && length <= sizeof header);
    tensor_spec again;
    io_error error;
    FUZZ_CHECK(npy_header_parse(header + 10, length - 10, "again", &again, &error) == IO_OK);
    FUZZ_CHECK(again.dtype == spec->dtype && again.rank == spec->rank);
    FUZZ_CHECK(again.bytes == spec->bytes && again.elems == spec->elems);
    FUZZ_CHECK(memcmp(again.shape, spec->shape, sizeof spec->shape) == 0);
}

static void check_input(const uint8_t *data, size_t size)
{
    io_source source;
    io_error error;
    npy_file *file;
    if (io_source_open_memory(&source, data, size, "input", &error) != IO_OK)
        return;
    io_status status = npy_open_source(&file, &source, &error);
    if (status != IO_OK) {
        fuzz_check_error(status, &error);
        FUZZ_CHECK(file == NULL);
        return;
    }
    check_data(file, data, size);
    check_rewritten(npy_spec(file));
    npy_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_input(data, size);
    /* Also as a version 1.0 file whose header ends at the first newline, whatever its fields say.
     */
    const uint8_t *newline = size > 10 ? memchr(data + 10, '\n', size - 10) : NULL;
    if (newline == NULL || newline - data > 60000)
        return 0;
    uint8_t *repaired = malloc(size);
    FUZZ_CHECK(repaired != NULL);
    memcpy(repaired, data, size);
    memcpy(repaired, "\x93NUMPY\x01", 8);
    size_t length = (size_t)(newline - data) + 1 - 10;
    repaired[8] = (uint8_t)(length & 0xff);
    repaired[9] = (uint8_t)(length >> 8);
    check_input(repaired, size);
    free(repaired);
    return 0;
}
