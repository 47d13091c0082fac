/* SPDX-License-Identifier: Apache-2.0 */
#include "instance.h"

#include <stdlib.h>
#include <string.h>

#include "common.h"

static int64_t ceil_div(int64_t value, int64_t by)
{
    return value / by + (value % by != 0);
}

static int64_t round_up(int64_t value, int64_t to)
{
    return ceil_div(value, to) * to;
}

/* UINT64_MAX where the product does not fit, which no allocation grants. */
static uint64_t product(int64_t a, int64_t b, int64_t c)
{
    uint64_t result = (uint64_t)a;
    const int64_t factors[] = {b, c};
    for (int i = 0; i < 2; ++i) {
        uint64_t factor = (uint64_t)factors[i];
        if (factor != 0 && result > UINT64_MAX / factor)
            return UINT64_MAX;
        result *= factor;
    }
    return result;
}

static size_t type_bytes(halfbyte_type type)
{
    return type == HALFBYTE_TYPE_NONE ? sizeof(float) : (size_t)halfbyte_type_bits(type) / 8;
}

/* ---- scales ---------------------------------------------------------------------------------- */

static scale_extent extent_of(const halfbyte_problem *problem, const halfbyte_scale_spec *spec,
                              int64_t mn)
{
    scale_extent extent = {mn, ceil_div(problem->k, 128)};
    int64_t span = problem->weight_group_size;
    switch (spec->mode) {
    case HALFBYTE_SCALE_NONE: extent.mn = extent.kb = 0; break;
    case HALFBYTE_SCALE_TENSOR: extent.mn = extent.kb = 1; break;
    case HALFBYTE_SCALE_OUTER: extent.kb = 1; break;
    case HALFBYTE_SCALE_128X128: extent.mn = ceil_div(mn, 128); break;
    case HALFBYTE_SCALE_K_GROUP:
        extent.kb = span > 0 ? ceil_div(problem->k + problem->group_k_offset, span) : 1;
        break;
    default: break;
    }
    return extent;
}

int64_t scale_position(const halfbyte_scale_spec *spec, const scale_extent *extent, int64_t mn,
                       int64_t kb)
{
    switch (spec->layout) {
    case HALFBYTE_SCALE_K_MAJOR: return mn * extent->kb + kb;
    case HALFBYTE_SCALE_INTERLEAVED4: return kb / 4 * (4 * extent->mn) + mn * 4 + kb % 4;
    default: return kb * extent->mn + mn;
    }
}

static void set_strides(const halfbyte_scale_spec *spec, const scale_extent *extent, bool per_group,
                        const void *data, halfbyte_scale_in *scale)
{
    scale->data = data;
    scale->stride_mn = spec->layout == HALFBYTE_SCALE_K_MAJOR ? extent->kb : 1;
    scale->stride_k = spec->layout == HALFBYTE_SCALE_MN_MAJOR       ? extent->mn
                      : spec->layout == HALFBYTE_SCALE_INTERLEAVED4 ? 4 * extent->mn
                                                                    : 1;
    if (spec->mode == HALFBYTE_SCALE_OUTER || spec->mode == HALFBYTE_SCALE_TENSOR)
        scale->stride_mn = 1;
    scale->group_stride = per_group ? extent->mn * extent->kb : 0;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int64_t default_size(const instance *made, int64_t group)
{
    if (made->problem.grouping == HALFBYTE_GROUPING_MASKED)
        return made->m;
    return made->m / made->groups + (group < made->m % made->groups);
}

static void put_index(const instance *made, void *array, int64_t at, int64_t value)
{
    if (made->problem.index_type == HALFBYTE_INDEX_INT64)
        ((int64_t *)array)[at] = value;
    else
        ((int32_t *)array)[at] = (int32_t)value;
}

/* Assigns rows to groups; false if they do not fit into m. */
static bool lay_out_groups(instance *made, int64_t gap)
{
    bool masked = made->problem.grouping == HALFBYTE_GROUPING_MASKED;
    int64_t at = 0;
    int64_t next = 0;
    for (int64_t row = 0; made->labels != NULL && row < made->m; ++row)
        made->labels[row] = -1;
    for (int64_t group = 0; group < made->groups; ++group) {
        int64_t start = masked ? 0 : at + gap;
        int64_t end = start + made->sizes[group];
        if (end > made->m)
            return false;
        put_index(made, made->starts, group, start);
        put_index(made, made->ends, group, end);
        put_index(made, made->counts, group, made->sizes[group]);
        for (int64_t row = start; row < end; ++row, ++next) {
            made->owned[next] = masked ? group * made->m + row : row;
            made->owner[next] = (int32_t)group;
            if (made->labels != NULL && !masked)
                made->labels[row] = (int32_t)group;
        }
        at = end;
    }
    return true;
}

static int create_groups(instance *made, const int64_t *sizes, int64_t gap)
{
    int64_t groups = made->groups;
    made->sizes = cli_alloc((uint64_t)groups, sizeof *made->sizes);
    made->starts = cli_alloc((uint64_t)groups, sizeof(int64_t));
    made->ends = cli_alloc((uint64_t)groups, sizeof(int64_t));
    made->counts = cli_alloc((uint64_t)groups, sizeof(int64_t));
    made->labels = cli_alloc((uint64_t)made->m, sizeof *made->labels);
    if (made->sizes == NULL || made->starts == NULL || made->ends == NULL || made->counts == NULL ||
        made->labels == NULL)
        return cli_fail_memory(product(groups, 32, 1));
    for (int64_t group = 0; group < groups; ++group) {
        made->sizes[group] = sizes != NULL ? sizes[group] : default_size(made, group);
        if (made->sizes[group] > INT64_MAX / 2 - made->owned_rows)
            return cli_fail(CLI_USAGE, "the group sizes add up to too much");
        made->owned_rows += made->sizes[group];
    }
    if (made->owned_rows > made->a_rows)
        return cli_fail(CLI_USAGE, "the group sizes add up to %lld rows, but there are %lld",
                        (long long)made->owned_rows, (long long)made->a_rows);
    made->owned = cli_alloc((uint64_t)made->owned_rows, sizeof *made->owned);
    made->owner = cli_alloc((uint64_t)made->owned_rows, sizeof *made->owner);
    if (made->owned == NULL || made->owner == NULL)
        return cli_fail_memory(product(made->owned_rows, 12, 1));
    if (!lay_out_groups(made, gap))
        return cli_fail(CLI_USAGE, "a group has more rows than the %lld of the problem",
                        (long long)made->m);
    return CLI_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Bytes of the tensors; UINT64_MAX where no machine has so many. */
typedef struct tensor_sizes {
    uint64_t a, b, a_scale, b_scale, channel_scale, bias, c, d;
} tensor_sizes;

static tensor_sizes sizes_of(const instance *made)
{
    const halfbyte_problem *problem = &made->problem;
    bool int4 = problem->family == HALFBYTE_FAMILY_W4A8;
    bool masked = problem->grouping == HALFBYTE_GROUPING_MASKED;
    int64_t ld = round_up(made->k, 32);
    int64_t b_row = int4 ? ld / 2 : ld;
    int64_t a_planes = (masked ? made->groups : 1) * (int64_t)sizeof(float);
    int64_t b_planes = made->groups * (int64_t)type_bytes(problem->b_scale.type);
    int64_t c_element = (int64_t)type_bytes(problem->c_type);
    tensor_sizes sizes = {
        .a = product(made->a_rows, ld, 1),
        .b = product(made->groups, made->n, b_row),
        .a_scale = product(a_planes, made->a_extent.mn, made->a_extent.kb),
        .b_scale = product(b_planes, made->b_extent.mn, made->b_extent.kb),
        .channel_scale = product(made->groups, made->n, sizeof(float)),
        .bias = product(made->groups, made->n, (int64_t)type_bytes(problem->bias_type)),
        .c = problem->c_type != HALFBYTE_TYPE_NONE ? product(made->a_rows, made->n, c_element) : 0,
        .d = product(made->a_rows, made->n, (int64_t)type_bytes(problem->d_type)),
    };
    return sizes;
}

void instance_tensors(const instance *made, host_tensor list[INSTANCE_TENSORS])
{
    const tensor_sizes sizes = sizes_of(made);
    const uint64_t groups = (uint64_t)made->groups * sizeof(int64_t);
    const host_tensor all[INSTANCE_TENSORS] = {
        {made->a, sizes.a},
        {made->b, sizes.b},
        {made->b_packed, made->packed_bytes},
        {made->a_scale, sizes.a_scale},
        {made->b_scale, sizes.b_scale},
        {made->channel_scale, sizes.channel_scale},
        {made->bias, sizes.bias},
        {made->c, sizes.c},
        {made->d, sizes.d},
        {made->starts, groups},
        {made->ends, groups},
        {made->counts, groups},
        {made->labels, (uint64_t)made->m * sizeof *made->labels},
    };
    memcpy(list, all, sizeof all);
}

static int create_tensors(instance *made)
{
    const tensor_sizes sizes = sizes_of(made);
    made->a = cli_alloc(sizes.a, 1);
    made->b = cli_alloc(sizes.b, 1);
    made->a_scale = cli_alloc(sizes.a_scale, 1);
    made->b_scale = cli_alloc(sizes.b_scale, 1);
    made->channel_scale = cli_alloc(sizes.channel_scale, 1);
    made->bias = cli_alloc(sizes.bias, 1);
    made->c = cli_alloc(sizes.c, 1);
    made->d = cli_alloc(sizes.d, 1);
    if (made->a == NULL || made->b == NULL || made->a_scale == NULL || made->b_scale == NULL ||
        made->channel_scale == NULL || made->bias == NULL || made->c == NULL || made->d == NULL)
        return cli_fail(CLI_ENVIRONMENT, "out of memory for tensors of %lld x %lld x %lld",
                        (long long)made->a_rows, (long long)made->n, (long long)made->k);
    return CLI_OK;
}

static void set_operands(instance *made)
{
    const halfbyte_problem *problem = &made->problem;
    halfbyte_operands *operands = &made->operands;
    bool masked = problem->grouping == HALFBYTE_GROUPING_MASKED;
    int64_t ld = round_up(made->k, 32);
    *operands = halfbyte_operands_init();
    operands->m = made->m;
    operands->a = (halfbyte_matrix_in){made->a, ld, made->m * ld};
    operands->b = (halfbyte_matrix_in){made->b, ld, made->n * ld};
    operands->c = (halfbyte_matrix_in){made->c, made->n, made->m * made->n};
    operands->d = (halfbyte_matrix_out){made->d, made->n, made->m * made->n};
    bool shared = problem->a_scale.mode == HALFBYTE_SCALE_TENSOR;
    set_strides(&problem->a_scale, &made->a_extent, masked && !shared, made->a_scale,
                &operands->a_scale);
    set_strides(&problem->b_scale, &made->b_extent, true, made->b_scale, &operands->b_scale);
    operands->channel_scale = (halfbyte_vector_in){made->channel_scale, made->n};
    operands->bias = (halfbyte_vector_in){made->bias, made->n};
    operands->alpha = 1;
    operands->beta = 1;
    switch (problem->grouping) {
    case HALFBYTE_GROUPING_RANGES:
        operands->groups.starts = made->starts;
        operands->groups.ends = made->ends;
        break;
    case HALFBYTE_GROUPING_MASKED: operands->groups.counts = made->counts; break;
    case HALFBYTE_GROUPING_LABELS: operands->groups.labels = made->labels; break;
    default: break;
    }
}

/* Adds, staying at UINT64_MAX. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Least bytes of A, B and D, to refuse what no machine holds before any of it is taken. */
static uint64_t least_bytes(const instance *made)
{
    bool int4 = made->problem.family == HALFBYTE_FAMILY_W4A8;
    uint64_t bytes = product(made->a_rows, made->k, 1);
    uint64_t b_bytes = product(made->groups, made->n, made->k);
    uint64_t outputs = product(made->a_rows, made->n, (int64_t)type_bytes(made->problem.d_type));
    bytes = sum(bytes, int4 ? b_bytes / 2 : b_bytes);
    bytes = sum(bytes, sum(outputs, product(made->m, sizeof *made->labels, 1)));
    return sum(bytes, product(made->a_rows, 12, 1));
}

int instance_create(instance *made, const halfbyte_problem *problem, const int64_t *sizes,
                    int64_t gap)
{
    memset(made, 0, sizeof *made);
    made->problem = *problem;
    made->groups = problem->groups > 0 ? problem->groups : 1;
    made->m = problem->m_max;
    made->n = problem->n;
    made->k = problem->k;
    bool masked = problem->grouping == HALFBYTE_GROUPING_MASKED;
    made->a_rows = masked ? made->m * made->groups : made->m;
    made->a_extent = extent_of(problem, &problem->a_scale, made->m);
    made->b_extent = extent_of(problem, &problem->b_scale, made->n);
    int code = cli_check_memory(least_bytes(made));
    if (code == CLI_OK)
        code = create_groups(made, sizes, gap);
    if (code == CLI_OK)
        code = create_tensors(made);
    if (code == CLI_OK)
        set_operands(made);
    return code;
}

void instance_free(instance *made)
{
    void *const owned[] = {made->sizes,   made->owned, made->owner,         made->a,
                           made->a_scale, made->b,     made->b_scale,       made->b_packed,
                           made->bias,    made->c,     made->channel_scale, made->d,
                           made->starts,  made->ends,  made->counts,        made->labels};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; ++i)
        free(owned[i]);
    memset(made, 0, sizeof *made);
}

int instance_pack(instance *made, halfbyte_device *device)
{
    const halfbyte_problem *problem = &made->problem;
    if (problem->b_layout != HALFBYTE_B_PACKED)
        return CLI_OK;
    halfbyte_int4_desc desc = halfbyte_int4_desc_init();
    size_t bytes = 0;
    desc.layout = HALFBYTE_INT4_INT8_LOW_FIRST;
    desc.n = made->n;
    desc.k = made->k;
    desc.groups = made->groups;
    desc.ld = made->operands.b.ld;
    desc.group_stride = made->n * desc.ld;
    desc.group_k_offset = problem->group_k_offset;
    desc.weight_group_size = problem->weight_group_size;
    desc.scale_type =
        problem->b_scale.type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : problem->b_scale.type;
    halfbyte_status status = halfbyte_packed_weights_bytes(&desc, &bytes);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, "cannot pack the weights");
    free(made->b_packed);
    made->b_packed = cli_alloc(bytes, 1);
    if (made->b_packed == NULL)
        return cli_fail_memory(bytes);
    status =
        halfbyte_pack_weights(device, &desc, made->b, made->b_packed, bytes, &made->header, NULL);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, "cannot pack the weights");
    made->packed_bytes = bytes;
    made->operands.b.data = made->b_packed;
    made->operands.b_header = &made->header;
    return CLI_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

uint64_t instance_result_bytes(const instance *made)
{
    return product(made->owned_rows, made->n, (int64_t)type_bytes(made->problem.d_type));
}

int instance_run(instance *made, halfbyte_device *device, char *description, double *seconds)
{
    halfbyte_plan *plan = NULL;
    size_t d_bytes =
        (size_t)product(made->a_rows, made->n, (int64_t)type_bytes(made->problem.d_type));
    halfbyte_status status = halfbyte_plan_create(&plan, &made->problem, device);
    if (status != HALFBYTE_SUCCESS)
        return cli_fail_status(status, NULL);
    size_t bytes = halfbyte_plan_workspace_bytes(plan);
    void *workspace = bytes > 0 ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
    if (bytes > 0 && workspace == NULL) {
        halfbyte_plan_destroy(plan);
        return cli_fail_memory(bytes);
    }
    if (description != NULL)
        status = halfbyte_plan_describe(plan, description, HALFBYTE_TEXT_BYTES);
    memset(made->d, 0xff, d_bytes);
    double start = cli_seconds();
    if (status == HALFBYTE_SUCCESS)
        status = halfbyte_run(plan, &made->operands, workspace, bytes, NULL);
    if (seconds != NULL)
        *seconds = cli_seconds() - start;
    free(workspace);
    halfbyte_plan_destroy(plan);
    return status == HALFBYTE_SUCCESS ? CLI_OK : cli_fail_status(status, NULL);
}

void instance_gather(const instance *made, void *rows)
{
    size_t row_bytes = (size_t)made->n * type_bytes(made->problem.d_type);
    for (int64_t i = 0; i < made->owned_rows; ++i)
        memcpy((char *)rows + (size_t)i * row_bytes,
               (const char *)made->d + (size_t)made->owned[i] * row_bytes, row_bytes);
}
