/* SPDX-License-Identifier: Apache-2.0 */
/* The input is a model.safetensors.index.json. */
#include <stdint.h>

#include "fuzz_check.h"
#include "io/safetensors_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    io_source source;
    io_error error;
    safetensors_index index = {0};
    if (io_source_open_memory(&source, data, size, "input", &error) != IO_OK)
        return 0;
    io_status status = safetensors_index_read(&index, &source, &error);
    if (status != IO_OK)
        fuzz_check_error(status, &error);
    for (size_t i = 0; i < index.count; i++) {
        FUZZ_CHECK(index.entries[i].shard < index.shard_count);
        FUZZ_CHECK(strlen(index.entries[i].name) <= 4096);
    }
    /* Distinct plain names: none can leave the directory of the index. */
    for (size_t i = 0; i < index.shard_count; i++) {
        const char *name = index.shard_names[i];
        FUZZ_CHECK(strchr(name, '/') == NULL && name[0] != '\0');
        FUZZ_CHECK(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
        for (size_t other = 0; other < i; other++)
            FUZZ_CHECK(strcmp(name, index.shard_names[other]) != 0);
    }
    safetensors_index_free(&index);
    io_source_close(&source);
    return 0;
}
