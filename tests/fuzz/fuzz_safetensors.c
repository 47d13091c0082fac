/* SPDX-License-Identifier: Apache-2.0 */
/* The input is a safetensors file. */
#include <stdint.h>

#include "fuzz_check.h"
#include "io/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte of the data section belongs to one tensor, and reading gives the bytes of the file. */
static void check_tensors(const safetensors_file *file, const uint8_t *data, size_t size)
{
    uint64_t header_bytes = 0;
    for (int i = 0; i < 8; i++)
        header_bytes |= (uint64_t)data[i] << (8 * i);
    uint64_t covered = 0;
    unsigned char *owners = calloc(size + 1, 1);
    unsigned char *got = malloc(size + 1);
    FUZZ_CHECK(owners != NULL && got != NULL);
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const safetensors_tensor *tensor = safetensors_at(file, i);
        const tensor_spec *spec = &tensor->spec;
        FUZZ_CHECK(safetensors_find(file, tensor->name) == tensor);
        FUZZ_CHECK(tensor->offset >= 8 + header_bytes && tensor->offset <= size);
        FUZZ_CHECK(spec->bytes <= size - tensor->offset);
        FUZZ_CHECK(spec->bytes == spec->elems * tensor_dtype_bytes(spec->dtype));
        uint64_t elems = 1;
        for (int dim = 0; dim < spec->rank; dim++)
            elems *= (uint64_t)spec->shape[dim];
        FUZZ_CHECK(elems == spec->elems);
        for (uint64_t at = 0; at < spec->bytes; at++)
            FUZZ_CHECK(owners[tensor->offset + at]++ == 0);
        covered += spec->bytes;
        io_error error;
        FUZZ_CHECK(safetensors_read(file, tensor, 0, got, (size_t)spec->bytes, &error) == IO_OK);
        FUZZ_CHECK(memcmp(got, data + tensor->offset, (size_t)spec->bytes) == 0);
        FUZZ_CHECK(safetensors_read(file, tensor, 1, got, (size_t)spec->bytes, &error) ==
                   IO_ARGUMENT);
    }
    FUZZ_CHECK(8 + header_bytes + covered == size);
    free(owners);
    free(got);
}

static void check_metadata(const safetensors_file *file)
{
    for (size_t i = 0; i < safetensors_metadata_count(file); i++)
        FUZZ_CHECK(safetensors_metadata_find(file, safetensors_metadata_key(file, i)) ==
                   safetensors_metadata_value(file, i));
}

static void check_input(const uint8_t *data, size_t size)
{
    io_source source;
    io_error error;
    safetensors_file *file;
    if (io_source_open_memory(&source, data, size, "input", &error) != IO_OK)
        return;
    io_status status = safetensors_open_source(&file, &source, &error);
    if (status != IO_OK) {
        fuzz_check_error(status, &error);
        FUZZ_CHECK(file == NULL);
        return;
    }
    check_tensors(file, data, size);
    check_metadata(file);
    safetensors_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_input(data, size);
    /* A change of the header's length seldom comes with the length field that fits. So the input is
     * also tried with the header ending at its last brace. */
    size_t end = size;
    while (end > 8 && data[end - 1] != '}')
        end--;
    if (end <= 8)
        return 0;
    uint8_t *repaired = malloc(size);
    FUZZ_CHECK(repaired != NULL);
    memcpy(repaired, data, size);
    for (int i = 0; i < 8; i++)
        repaired[i] = (uint8_t)((uint64_t)(end - 8) >> (8 * i));
    check_input(repaired, size);
    free(repaired);
    return 0;
}
