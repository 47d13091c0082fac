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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    io_source source;
    io_error error;
    npy_file *file;
    if (io_source_open_memory(&source, data, size, "input", &error) != IO_OK)
        return 0;
    io_status status = npy_open_source(&file, &source, &error);
    if (status != IO_OK) {
        fuzz_check_error(status, &error);
        FUZZ_CHECK(file == NULL);
        return 0;
    }
    check_data(file, data, size);
    check_rewritten(npy_spec(file));
    npy_close(file);
    return 0;
}
