/* SPDX-License-Identifier: Apache-2.0 */
#include "api/gpu_groups.h"

#include <stdlib.h>
#include <string.h>

#include "api/error.h"

typedef struct group_array {
    const void *data; /* on the GPU */
    size_t bytes;     /* from the first value to the end of the last */
} group_array;

static group_array array_of(const void *data, int64_t count, int64_t stride, size_t value_bytes)
{
    const int64_t step = count <= 1 || stride == 0 ? 1 : stride;
    const group_array array = {
        data, data == NULL || count == 0 ? 0 : (size_t)((count - 1) * step + 1) * value_bytes};
    return array;
}

void gpu_groups_free(gpu_groups *fetched)
{
    for (size_t i = 0; i < sizeof fetched->memory / sizeof fetched->memory[0]; i++) {
        free(fetched->memory[i]);
    }
}

halfbyte_status gpu_groups_fetch(gpu *device, const halfbyte_problem *problem,
                                 const halfbyte_operands *operands, halfbyte_stream stream,
                                 gpu_groups *fetched)
{
    const halfbyte_groups *from = &operands->groups;
    const size_t bytes = problem->index_type == HALFBYTE_INDEX_INT64 ? 8 : 4;
    const group_array arrays[4] = {
        array_of(from->starts, problem->groups, from->starts_stride, bytes),
        array_of(from->ends, problem->groups, from->ends_stride, bytes),
        array_of(from->counts, problem->groups, from->counts_stride, bytes),
        array_of(from->labels, operands->m, 1, sizeof(int32_t))};
    memset(fetched, 0, sizeof *fetched);
    for (int i = 0; i < 4; i++) {
        fetched->memory[i] = arrays[i].bytes == 0 ? NULL : malloc(arrays[i].bytes);
        if (arrays[i].bytes != 0 && fetched->memory[i] == NULL) {
            gpu_groups_free(fetched);
            return status_fail(HALFBYTE_ERR_OUT_OF_MEMORY,
                               "out of memory copying operands.groups (%zu bytes)",
                               arrays[i].bytes);
        }
    }
    cuda_status status = gpu_enter(device);
    const bool entered = status.status == HALFBYTE_SUCCESS;
    for (int i = 0; i < 4 && status.status == HALFBYTE_SUCCESS; i++) {
        if (arrays[i].bytes != 0) {
            status = gpu_fetch(device, fetched->memory[i], arrays[i].data, arrays[i].bytes, stream);
        }
    }
    if (entered) {
        gpu_leave(device);
    }
    if (status.status != HALFBYTE_SUCCESS) {
        gpu_groups_free(fetched);
        return status_fail(status.status, "%s", status.text);
    }
    fetched->groups = *from;
    fetched->groups.starts = fetched->memory[0];
    fetched->groups.ends = fetched->memory[1];
    fetched->groups.counts = fetched->memory[2];
    fetched->groups.labels = fetched->memory[3];
    return HALFBYTE_SUCCESS;
}
