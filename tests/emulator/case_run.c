/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/case_run.h"

#include <stdlib.h>
#include <string.h>

struct case_data {
    emu_memory *memory;
    uint8_t *in;
    float *out, *mid;
    tensor_map *maps;
};

/* Memory of its own, so that what lies beside it is nobody's. */
static void *allocate(size_t bytes)
{
    void *data = aligned_alloc(128, bytes);
    if (data != NULL) {
        memset(data, 0, bytes);
    }
    return data;
}

case_data *case_data_create(void)
{
    const size_t floats = CASE_OUT_FLOATS * sizeof(float);
    case_data *data = calloc(1, sizeof *data);
    if (data == NULL) {
        return NULL;
    }
    data->memory = emu_memory_create();
    data->in = allocate(CASE_IN_BYTES);
    data->out = allocate(floats);
    data->mid = allocate(floats);
    data->maps = allocate(CASE_MAPS * sizeof(tensor_map));
    if (data->memory == NULL || data->in == NULL || data->out == NULL || data->mid == NULL ||
        data->maps == NULL ||
        !emu_memory_add(data->memory, data->in, CASE_IN_BYTES, "in", EMU_READ_ONLY) ||
        !emu_memory_add(data->memory, data->out, floats, "out", EMU_READ_WRITE) ||
        !emu_memory_add(data->memory, data->mid, floats, "mid", EMU_READ_WRITE) ||
        !emu_memory_add(data->memory, data->maps, CASE_MAPS * sizeof(tensor_map), "maps",
                        EMU_READ_WRITE)) {
        case_data_destroy(data);
        return NULL;
    }
    for (uint32_t i = 0; i < CASE_IN_BYTES; i++) {
        /* e4m3 of 2^-4 to 2^3, both signs: sums that differ if anything does. */
        const uint32_t bits = (i * 2654435761u) >> 20;
        data->in[i] = (uint8_t)((bits & 0x80u) | (0x18u + bits % 0x38u));
    }
    return data;
}

void case_data_destroy(case_data *data)
{
    if (data != NULL) {
        emu_memory_destroy(data->memory);
        free(data->in);
        free(data->out);
        free(data->mid);
        free(data->maps);
        free(data);
    }
}

static void reset(case_data *data)
{
    const size_t floats = CASE_OUT_FLOATS * sizeof(float);
    memset(data->out, 0xa5, floats);
    memset(data->mid, 0, floats);
    memset(data->maps, 0, CASE_MAPS * sizeof(tensor_map));
}

static bool make_params(case_data *data, case_params *params, int32_t tiles)
{
    const emu_tensor a = {data->in,     1,           2, {256, CASE_IN_ROWS}, {0, 256, 0},
                          {128, 64, 1}, SWIZZLE_128B};
    const emu_tensor b = {data->in,    1,           2,           {256, CASE_IN_ROWS},
                          {0, 256, 0}, {128, 8, 1}, SWIZZLE_128B};
    const emu_tensor d = {data->out, 4, 2, {32, 128}, {0, 128, 0}, {32, 32, 1}, SWIZZLE_NONE};
    const emu_tensor mid_a = {data->mid, 1, 2, {256, 64}, {0, 256, 0}, {128, 64, 1}, SWIZZLE_128B};
    memset(params, 0, sizeof *params);
    params->in = data->in;
    params->out = data->out;
    params->mid = data->mid;
    params->maps = data->maps;
    params->tiles = tiles;
    return emu_tensor_map_encode(&params->a, &a) && emu_tensor_map_encode(&params->b, &b) &&
           emu_tensor_map_encode(&params->d, &d) && emu_tensor_map_encode(&params->mid_a, &mid_a) &&
           emu_tensor_map_encode(&data->maps[0], &b) && emu_tensor_map_encode(&data->maps[1], &d);
}

/* FNV-1a. */
static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        h = (h ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    }
    return h;
}

static uint64_t digest_of(const case_data *data)
{
    const size_t floats = CASE_OUT_FLOATS * sizeof(float);
    return hash(hash(0xcbf29ce484222325u, data->out, floats), data->mid, floats);
}

uint64_t case_data_untouched(case_data *data)
{
    reset(data);
    return digest_of(data);
}

emu_status case_run(case_data *data, const race_case *run, const emu_config *config,
                    emu_report *report, uint64_t *digest)
{
    case_params params;
    reset(data);
    if (!make_params(data, &params, run->tiles)) {
        return EMU_BAD_ARGUMENT;
    }
    const emu_launch kernel = {"case",        run->kernel,     &params,
                               sizeof params, run->blocks,     run->cluster,
                               run->threads,  CASE_SMEM_BYTES, run->registers};
    const emu_launch first = {"first",      run->first,      &params, sizeof params, 1, 1,
                              run->threads, CASE_SMEM_BYTES, 0};
    emu_launch launches[2] = {kernel, kernel};
    size_t count = 1;
    if (run->first != NULL) {
        launches[0] = first;
        count = 2;
    }
    const emu_status status = emu_run(config, data->memory, launches, count, report);
    *digest = digest_of(data);
    return status;
}
