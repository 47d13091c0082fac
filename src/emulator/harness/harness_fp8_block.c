/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense FP8, A scaled 1x128 (m-major), B 128x128 (k-major), bf16 out.
 */
#include <stdlib.h>
#include <string.h>

#include "emulator/harness/harness.h"
#include "kernels/gemm_fp8_params.h"

struct harness_instance {
    const harness_kernel *kernel;
    harness_problem problem;
    emu_memory *memory;
    uint8_t *a, *b;       /* [m, ld], [n, ld] e4m3 */
    float *a_scale;       /* [k blocks, m] */
    float *b_scale;       /* [n blocks, k blocks] */
    uint16_t *d, *wanted; /* [m, ldd] */
    int64_t ld, ldd, k_blocks, n_blocks;
    size_t d_bytes;
    gemm_fp8_params params;
};

enum { SWIZZLE_OF_TILES = 1 /* SWIZZLE_128B */, TILE_K = 128 };

/* ---- data ------------------------------------------------------------------------------------ */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Every code but the NaN ones: those would hide in a row what else goes wrong there. */
static void fill_e4m3(uint8_t *data, size_t bytes, uint64_t *state)
{
    for (size_t i = 0; i < bytes; i++) {
        const uint8_t code = (uint8_t)next_random(state);
        data[i] = (code & 0x7fu) == 0x7fu ? 0x38u : code;
    }
}

/* Of both signs, 2^-7 to 2^8. */
static void fill_scales(float *data, size_t count, uint64_t *state)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = next_random(state);
        const float fraction = 1.0f + (float)(bits & 0xffffffu) / 16777216.0f;
        const int exponent = (int)(bits >> 24 & 15u) - 7;
        const float power = exponent < 0 ? 1.0f / (float)(1 << -exponent) : (float)(1 << exponent);
        data[i] = (bits >> 40 & 7u) == 0 ? -fraction * power : fraction * power;
    }
}

/* 64-byte aligned; never NULL for 0 bytes. */
static void *allocate(size_t bytes)
{
    return aligned_alloc(64, bytes / 64 * 64 + 64);
}

static bool allocate_all(harness_instance *made)
{
    const harness_problem *p = &made->problem;
    made->k_blocks = (p->k + 127) / 128;
    made->n_blocks = (p->n + 127) / 128;
    made->ld = p->k / 16 * 16 + 32;
    made->ldd = p->n + p->d_gap;
    made->d_bytes = (size_t)(p->m * made->ldd) * sizeof *made->d;
    made->a = allocate((size_t)(p->m * made->ld));
    made->b = allocate((size_t)(p->n * made->ld));
    made->a_scale = allocate((size_t)(p->m * made->k_blocks) * sizeof(float));
    made->b_scale = allocate((size_t)(made->n_blocks * made->k_blocks) * sizeof(float));
    made->d = allocate(made->d_bytes);
    made->wanted = allocate(made->d_bytes);
    made->memory = emu_memory_create();
    return made->a != NULL && made->b != NULL && made->a_scale != NULL && made->b_scale != NULL &&
           made->d != NULL && made->wanted != NULL && made->memory != NULL;
}

/* The kernel may touch this and nothing else. */
static bool register_all(harness_instance *made)
{
    const harness_problem *p = &made->problem;
    const struct {
        const void *data;
        int64_t bytes;
        const char *name;
        emu_access access;
    } buffers[] = {
        {made->a, p->k == 0 ? 0 : (p->m - 1) * made->ld + p->k, "a", EMU_READ_ONLY},
        {made->b, p->k == 0 ? 0 : (p->n - 1) * made->ld + p->k, "b", EMU_READ_ONLY},
        {made->a_scale, p->m * made->k_blocks * 4, "a_scale", EMU_READ_ONLY},
        {made->b_scale, made->n_blocks * made->k_blocks * 4, "b_scale", EMU_READ_ONLY},
        {made->d, (int64_t)made->d_bytes, "d", EMU_READ_WRITE},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        good &= buffers[i].bytes == 0 ||
                emu_memory_add(made->memory, buffers[i].data, (size_t)buffers[i].bytes,
                               buffers[i].name, buffers[i].access);
    }
    return good;
}

static bool encode_maps(harness_instance *made)
{
    const harness_problem *p = &made->problem;
    const harness_kernel *kernel = made->kernel;
    const emu_tensor a = {.data = made->a,
                          .element_bytes = 1,
                          .rank = 2,
                          .dims = {(uint64_t)p->k, (uint64_t)p->m},
                          .strides_bytes = {0, (uint64_t)made->ld},
                          .box = {TILE_K, kernel->tile_m},
                          .swizzle = SWIZZLE_OF_TILES};
    emu_tensor b = a;
    b.data = made->b;
    b.dims[1] = (uint64_t)p->n;
    b.box[1] = kernel->tile_n;
    return p->k == 0 || (emu_tensor_map_encode(&made->params.a, &a) &&
                         emu_tensor_map_encode(&made->params.b, &b));
}

static void fill_params(harness_instance *made)
{
    gemm_fp8_params *params = &made->params;
    params->a_scale = made->a_scale;
    params->b_scale = made->b_scale;
    params->d = made->d;
    params->a_scale_stride_m = 1;
    params->a_scale_stride_k = made->problem.m;
    params->b_scale_stride_n = made->k_blocks;
    params->b_scale_stride_k = 1;
    params->ldd = made->ldd;
    params->m = (int32_t)made->problem.m;
    params->n = (int32_t)made->problem.n;
    params->k_blocks = (int32_t)made->k_blocks;
    params->d_pairs = made->ldd % 2 == 0;
    params->d_groups = made->ldd % 8 == 0 && made->problem.n % 8 == 0;
}

/* ---- reference ------------------------------------------------------------------------------- */

static halfbyte_problem state_problem(const harness_problem *p)
{
    halfbyte_problem problem = halfbyte_problem_init();
    problem.family = HALFBYTE_FAMILY_FP8;
    problem.groups = 1;
    problem.m_max = p->m;
    problem.n = p->n;
    problem.k = p->k;
    problem.d_type = HALFBYTE_TYPE_BF16;
    problem.a_scale.mode = HALFBYTE_SCALE_1X128;
    problem.b_scale.mode = HALFBYTE_SCALE_128X128;
    problem.b_scale.layout = HALFBYTE_SCALE_K_MAJOR;
    return problem;
}

static halfbyte_status multiply(harness_instance *made, halfbyte_device *device)
{
    const halfbyte_problem problem = state_problem(&made->problem);
    halfbyte_operands operands = halfbyte_operands_init();
    operands.m = made->problem.m;
    operands.a.data = made->a;
    operands.a.ld = made->ld;
    operands.b.data = made->b;
    operands.b.ld = made->ld;
    operands.a_scale.data = made->a_scale;
    operands.a_scale.stride_k = made->problem.m;
    operands.b_scale.data = made->b_scale;
    operands.b_scale.stride_mn = made->k_blocks;
    operands.d.data = made->wanted;
    operands.d.ld = made->ldd;
    halfbyte_plan *plan = NULL;
    halfbyte_status status = halfbyte_plan_create(&plan, &problem, device);
    if (status == HALFBYTE_SUCCESS) {
        status = halfbyte_run(plan, &operands, NULL, 0, NULL);
    }
    halfbyte_plan_destroy(plan);
    return status;
}

static bool compute_wanted(harness_instance *made)
{
    halfbyte_device_options options = halfbyte_device_options_init();
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    options.profile = HALFBYTE_PROFILE_ANY;
    options.threads = 1;
    halfbyte_device *device = NULL;
    if (halfbyte_device_open(&device, &options) != HALFBYTE_SUCCESS) {
        return false;
    }
    const halfbyte_status status = multiply(made, device);
    halfbyte_device_close(device);
    return status == HALFBYTE_SUCCESS;
}

/* ---- interface ------------------------------------------------------------------------------- */

static bool accepts(const halfbyte_problem *problem)
{
    const halfbyte_problem served =
        state_problem(&(harness_problem){problem->m_max, problem->n, problem->k, 0, 1});
    return problem->family == served.family && problem->grouping == HALFBYTE_GROUPING_DENSE &&
           problem->groups <= 1 && problem->d_type == served.d_type &&
           problem->a_scale.mode == served.a_scale.mode &&
           problem->b_scale.mode == served.b_scale.mode && problem->k_splits <= 1 &&
           problem->alpha_mode == HALFBYTE_ALPHA_NONE && problem->c_type == HALFBYTE_TYPE_NONE &&
           problem->bias_type == HALFBYTE_TYPE_NONE &&
           problem->channel_scale_type == HALFBYTE_TYPE_NONE;
}

static void destroy(harness_instance *instance)
{
    if (instance != NULL) {
        emu_memory_destroy(instance->memory);
        free(instance->a);
        free(instance->b);
        free(instance->a_scale);
        free(instance->b_scale);
        free(instance->d);
        free(instance->wanted);
        free(instance);
    }
}

static harness_instance *create(const harness_kernel *kernel, const harness_problem *problem,
                                uint64_t seed)
{
    harness_instance *made = allocate(sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    memset(made, 0, sizeof *made);
    made->kernel = kernel;
    made->problem = *problem;
    uint64_t state = seed;
    if (!allocate_all(made) || !register_all(made) || !encode_maps(made)) {
        destroy(made);
        return NULL;
    }
    fill_params(made);
    fill_e4m3(made->a, (size_t)(problem->m * made->ld), &state);
    fill_e4m3(made->b, (size_t)(problem->n * made->ld), &state);
    fill_scales(made->a_scale, (size_t)(problem->m * made->k_blocks), &state);
    fill_scales(made->b_scale, (size_t)(made->n_blocks * made->k_blocks), &state);
    memset(made->wanted, 0xa5, made->d_bytes);
    if (!compute_wanted(made)) {
        destroy(made);
        return NULL;
    }
    return made;
}

/* Registers a thread that __launch_bounds__(threads, 1) leaves. */
static uint32_t registers_of(uint32_t threads)
{
    const uint32_t most = 65536 / threads / 8 * 8;
    return most < 255 ? most : 255;
}

static emu_status run(harness_instance *instance, const emu_config *config, emu_report *report,
                      uint64_t *mismatches)
{
    const harness_kernel *kernel = instance->kernel;
    const emu_launch launch = {
        .name = kernel->name,
        .kernel = kernel->entry,
        .params = &instance->params,
        .params_bytes = sizeof instance->params,
        .blocks = instance->problem.blocks,
        .cluster = kernel->cluster,
        .threads = kernel->threads,
        .smem_bytes = kernel->smem_bytes,
        .registers = registers_of(kernel->threads),
    };
    memset(instance->d, 0xa5, instance->d_bytes);
    const emu_status status = emu_run(config, instance->memory, &launch, 1, report);
    *mismatches = 0;
    for (size_t i = 0; i < instance->d_bytes; i++) {
        *mismatches += ((const uint8_t *)instance->d)[i] != ((const uint8_t *)instance->wanted)[i];
    }
    return status;
}

const harness_family family_of_accepts_fp8_block_dense = {
    .accepts = accepts,
    .state = state_problem,
    .create = create,
    .run = run,
    .destroy = destroy,
};
