/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "packing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pack_matrices_init(pack_job *job)
{
    pack_matrix *up = &job->matrices[0], *down = &job->matrices[1];
    up->projection = "gate_up_proj";
    up->parts = 2;
    up->names[0] = "gate_proj";
    up->names[1] = "up_proj";
    up->w[0] = "w1";
    up->w[1] = "w3";
    down->projection = "down_proj";
    down->parts = 1;
    down->names[0] = "down_proj";
    down->w[0] = "w2";
}

void pack_matrices_free(pack_job *job)
{
    for (int i = 0; i < PACK_MATRICES; ++i) {
        free(job->matrices[i].layers);
        free(job->matrices[i].indices);
    }
    free(job->prefix);
}

int64_t pack_k_groups(const pack_matrix *matrix)
{
    if (matrix->group_size == 0)
        return 1;
    return matrix->k / matrix->group_size + (matrix->k % matrix->group_size != 0);
}

size_t pack_row_bytes(const pack_matrix *matrix)
{
    return matrix->scheme == SCHEME_W4AFP8 ? (size_t)(matrix->k / 2)
                                           : (size_t)((matrix->k + 7) / 8 * 4);
}

halfbyte_int4_desc pack_desc(const pack_matrix *matrix, int64_t rows)
{
    halfbyte_int4_desc desc = halfbyte_int4_desc_init();
    desc.layout =
        matrix->scheme == SCHEME_W4AFP8 ? HALFBYTE_INT4_INT8_LOW_FIRST : HALFBYTE_INT4_INT32_OFFSET;
    desc.n = rows;
    desc.k = matrix->k;
    desc.groups = 1;
    desc.ld = (int64_t)pack_row_bytes(matrix) * 2;
    desc.weight_group_size = matrix->group_size;
    desc.scale_type = tensor_element_type(matrix->scale_dtype);
    return desc;
}

char *pack_name(const pack_job *job, const pack_matrix *matrix, const char *what)
{
    char *name = NULL;
    if (asprintf(&name, "%s.%s.%s", job->prefix, matrix->projection, what) < 0)
        return NULL;
    return name;
}

void pack_metadata_format(const pack_matrix *matrix, char text[PACK_METADATA_BYTES])
{
    static const char *const inputs[] = {"none", "own", "w"};
    snprintf(text, PACK_METADATA_BYTES,
             "version=1 flags=%d n=%lld k=%lld groups=%lld group_k_offset=0 weight_group_size=%lld "
             "scale_type=%s source=%s inputs=%s shape=%s",
             matrix->holds_minus8 ? HALFBYTE_PACKED_HOLDS_MINUS8 : 0,
             (long long)(matrix->rows * matrix->parts), (long long)matrix->k,
             (long long)matrix->experts, (long long)matrix->group_size,
             halfbyte_type_name(tensor_element_type(matrix->scale_dtype)),
             scheme_name(matrix->scheme), inputs[matrix->inputs],
             tensor_dtype_name(matrix->shape_dtype));
}
