/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU oracle against the CPU model: random problems of every family, grouping and scale mode,
 * the whole memory image of D compared.  After this it may serve as the oracle of fast kernels.
 */
#include <string.h>

#include "gpu/oracle_run.h"
#include "gpu/tests.h"
#include "oracle/gemm_case.h"
#include "oracle/operand.h"

static size_t type_bytes(halfbyte_type type)
{
    return (size_t)halfbyte_type_bits(type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : type) / 8;
}

/* Elements from the first to the last of `matrices` matrices of rows x columns. */
static int64_t extent(int64_t matrices, int64_t group_stride, int64_t rows, int64_t ld,
                      int64_t columns)
{
    return (matrices - 1) * group_stride + (rows - 1) * ld + columns;
}

static oracle_matrix matrix_upload(session *s, const void *data, int64_t ld, int64_t group_stride,
                                   halfbyte_type type, size_t bytes)
{
    const oracle_matrix matrix = {session_pointer(session_upload(s, data, bytes)), ld, group_stride,
                                  (int32_t)type, 0};
    return matrix;
}

static bool varies_along_k(halfbyte_scale_mode mode)
{
    return mode == HALFBYTE_SCALE_1X128 || mode == HALFBYTE_SCALE_128X128 ||
           mode == HALFBYTE_SCALE_K_GROUP;
}

/* Uploads a scale tensor of mn x kb values a group and says where each value stands. */
static oracle_scale scale_upload(session *s, const halfbyte_scale_spec *spec,
                                 const halfbyte_scale_in *scale, int64_t groups, int64_t mn,
                                 int64_t kb)
{
    const bool k_major = spec->layout == HALFBYTE_SCALE_K_MAJOR;
    oracle_scale o;
    int64_t count = 0;
    memset(&o, 0, sizeof o);
    if (spec->mode == HALFBYTE_SCALE_NONE) {
        return o;
    }
    o.group_stride = scale->group_stride;
    o.mn_block = spec->mode == HALFBYTE_SCALE_128X128 ? 128 : 1;
    o.type = spec->type == HALFBYTE_TYPE_NONE ? HALFBYTE_TYPE_F32 : spec->type;
    o.along_k = varies_along_k(spec->mode);
    o.interleave = spec->layout == HALFBYTE_SCALE_INTERLEAVED4;
    if (spec->mode == HALFBYTE_SCALE_TENSOR) {
        count = extent(groups, o.group_stride, 1, 0, 1);
    } else if (spec->mode == HALFBYTE_SCALE_OUTER) {
        o.stride_mn = 1;
        count = extent(groups, o.group_stride, 1, 0, mn);
    } else if (o.interleave) {
        o.stride_k = scale->stride_k;
        count = extent(groups, o.group_stride, kb / 4, o.stride_k, 4 * mn);
    } else {
        o.stride_mn = k_major ? scale->stride_mn : 1;
        o.stride_k = k_major ? 1 : scale->stride_k;
        count = k_major ? extent(groups, o.group_stride, mn, o.stride_mn, kb)
                        : extent(groups, o.group_stride, kb, o.stride_k, mn);
    }
    o.data = session_pointer(
        session_upload(s, scale->data, (size_t)count * type_bytes((halfbyte_type)o.type)));
    return o;
}

static void scales_upload(session *s, const struct gemm_case *c, oracle_params *params)
{
    const halfbyte_problem *p = &c->problem;
    const int64_t groups = oracle_groups(p);
    const int64_t blocks = (p->k + 127) / 128;
    const bool a_tensor = p->a_scale.mode == HALFBYTE_SCALE_TENSOR;
    const bool masked = p->grouping == HALFBYTE_GROUPING_MASKED;
    int64_t mn = p->n;
    int64_t kb = blocks;
    params->a_scale = scale_upload(s, &p->a_scale, &c->before.a_scale,
                                   a_tensor || masked ? groups : 1, c->before.m, blocks);
    if (!a_tensor && !masked) {
        params->a_scale.group_stride = 0; /* rows of A know no groups */
    }
    if (p->b_scale.mode == HALFBYTE_SCALE_128X128) {
        mn = (p->n + 127) / 128;
    }
    if (p->b_scale.mode == HALFBYTE_SCALE_K_GROUP) {
        kb = p->weight_group_size == 0 ? 1 : oracle_blocks(p).count;
    }
    params->b_scale = scale_upload(s, &p->b_scale, &c->before.b_scale, groups, mn, kb);
    params->b_scale.all_of_k =
        p->b_scale.mode == HALFBYTE_SCALE_K_GROUP && p->weight_group_size == 0;
}

static oracle_matrix vector_upload(session *s, const halfbyte_vector_in *v, halfbyte_type type,
                                   int64_t groups, int64_t n)
{
    oracle_matrix matrix;
    memset(&matrix, 0, sizeof matrix);
    if (type != HALFBYTE_TYPE_NONE) {
        const size_t bytes = (size_t)extent(groups, v->group_stride, 1, 0, n) * type_bytes(type);
        matrix = matrix_upload(s, v->data, 0, v->group_stride, type, bytes);
    }
    return matrix;
}

static void matrices_upload(session *s, const struct gemm_case *c, oracle_params *params)
{
    const halfbyte_problem *p = &c->problem;
    const halfbyte_operands *o = &c->before;
    const int64_t groups = oracle_groups(p);
    const int64_t matrices = case_matrices(p);
    const bool int4 = p->family == HALFBYTE_FAMILY_W4A8;
    const bool packed = c->raw_b != NULL;
    const int64_t ld = packed ? c->raw_ld : o->b.ld;
    const int64_t group_stride = packed ? c->raw_group_stride : o->b.group_stride;
    const int64_t count = extent(groups, group_stride, p->n, ld, p->k);
    params->a = matrix_upload(s, o->a.data, o->a.ld, o->a.group_stride, HALFBYTE_TYPE_E4M3,
                              (size_t)extent(matrices, o->a.group_stride, o->m, o->a.ld, p->k));
    params->b = matrix_upload(s, packed ? c->raw_b : o->b.data, ld, group_stride,
                              int4 ? HALFBYTE_TYPE_INT4 : HALFBYTE_TYPE_E4M3,
                              (size_t)(int4 ? (count + 1) / 2 : count));
    if (p->c_type != HALFBYTE_TYPE_NONE && o->c.data != NULL) {
        params->c = matrix_upload(s, o->c.data, o->c.ld, o->c.group_stride, p->c_type,
                                  (size_t)extent(matrices, o->c.group_stride, o->m, o->c.ld, p->n) *
                                      type_bytes(p->c_type));
    }
    params->channel = vector_upload(s, &o->channel_scale, p->channel_scale_type, groups, p->n);
    params->bias = vector_upload(s, &o->bias, p->bias_type, groups, p->n);
}

/* The group of each row, -1 for none; rows without a group are zeroed in the image of D if the
 * problem says so. */
static void rows_upload(session *s, const struct gemm_case *c, uint8_t *image,
                        oracle_params *params)
{
    const halfbyte_problem *p = &c->problem;
    const int64_t m = c->before.m;
    const int64_t matrices = case_matrices(p);
    const bool masked = p->grouping == HALFBYTE_GROUPING_MASKED;
    int32_t *group = session_host((size_t)(matrices * m) * sizeof *group);
    for (int64_t row = 0; row < matrices * m; row++) {
        group[row] = -1;
        for (int64_t g = 0; g < oracle_groups(p); g++) {
            if ((!masked || g == row / m) && oracle_group_owns(p, &c->before, g, row % m)) {
                group[row] = (int32_t)g;
                break;
            }
        }
        if (group[row] < 0 && (p->flags & HALFBYTE_ZERO_FILL_PADDING)) {
            const int64_t at = oracle_d_offset(p, &c->before, row / m, row % m, 0);
            memset(image + c->d_at + (size_t)at * type_bytes(p->d_type), 0,
                   (size_t)p->n * type_bytes(p->d_type));
        }
    }
    params->row_group =
        session_pointer(session_upload(s, group, (size_t)(matrices * m) * sizeof *group));
    params->rows = matrices * m;
    params->rows_a_group = masked ? m : 0;
    session_host_free(group);
}

static void case_compare_on_gpu(session *s, const oracle_kernels *kernels,
                                const struct gemm_case *c)
{
    const halfbyte_problem *p = &c->problem;
    const struct oracle_blocks blocks = oracle_blocks(p);
    uint8_t *image = session_host(c->d_bytes);
    oracle_params params;
    memset(&params, 0, sizeof params);
    session_reset(s);
    memcpy(image, c->d_before, c->d_bytes);
    rows_upload(s, c, image, &params);
    matrices_upload(s, c, &params);
    scales_upload(s, c, &params);
    /* Its 256-byte alignment is that of the host's image, so elements are aligned alike. */
    const cuda_pointer d = session_upload(s, image, c->d_bytes);
    params.d = (oracle_matrix){(uint8_t *)session_pointer(d) + c->d_at, c->before.d.ld,
                               c->before.d.group_stride, (int32_t)p->d_type, 0};
    params.n = p->n;
    params.k = p->k;
    params.block = (int32_t)blocks.length;
    params.group_k_offset = (int32_t)blocks.offset;
    params.k_splits = p->k_splits > 1 ? (int32_t)p->k_splits : 1;
    params.int4 = p->family == HALFBYTE_FAMILY_W4A8;
    params.has_alpha = p->alpha_mode != HALFBYTE_ALPHA_NONE;
    params.alpha = c->alpha;
    params.beta = c->before.beta;
    oracle_gemm_run(s, kernels, &params);
    session_download(s, image, d, c->d_bytes);
    session_compare(s, "D and what surrounds it", image, c->d_base, 1, c->d_bytes);
    session_host_free(image);
}

static void model_run(session *s, struct gemm_case *c, halfbyte_device *device)
{
    halfbyte_plan *plan = NULL;
    halfbyte_status status = halfbyte_plan_create(&plan, &c->problem, device);
    if (status == HALFBYTE_SUCCESS) {
        status = halfbyte_run(plan, &c->operands, NULL, 0, NULL);
    }
    session_expect(s, halfbyte_last_error(), status == HALFBYTE_SUCCESS);
    halfbyte_plan_destroy(plan);
}

/* Steps through the kinds so that every one is met in every form, given enough cases. */
static void family_test(session *s, halfbyte_family family, int cases)
{
    const oracle_kernels kernels = oracle_load_kernels(s);
    const int kinds = case_kind_count(family);
    halfbyte_device_options options = halfbyte_device_options_init();
    halfbyte_device *device = NULL;
    struct random r = {s->seed * 31 + (uint64_t)family};
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    options.profile = HALFBYTE_PROFILE_ANY;
    if (halfbyte_device_open(&device, &options) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    for (int i = 0; i < cases; i++) {
        struct gemm_case c;
        const struct case_options case_options = {.finite = i % 3 == 0};
        const struct case_kind kind =
            case_kind_at(family, i % kinds, (enum group_form)((i / kinds + i) % FORM_COUNT));
        case_make(&c, &r, &kind, &case_options);
        model_run(s, &c, device);
        case_compare_on_gpu(s, &kernels, &c);
        case_free(&c);
    }
    halfbyte_device_close(device);
    session_figure(s, "problems", cases);
}

void gpu_test_oracle_fp8(session *s)
{
    family_test(s, HALFBYTE_FAMILY_FP8, s->quick ? 70 : 560);
}

void gpu_test_oracle_w4a8(session *s)
{
    family_test(s, HALFBYTE_FAMILY_W4A8, s->quick ? 128 : 2040);
}
