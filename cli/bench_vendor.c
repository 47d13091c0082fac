/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt's block-scaled FP8 product, to be timed beside halfbyte's.  Loaded if it is there; the
 * values below are those of cublasLt.h of CUDA 12.9 and later, which know these scales.
 *
 * cuBLASLt thinks in columns: its A is B here, transposed, and its D is D here, transposed.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "common.h"

typedef int status;
typedef struct handle_struct *lt_handle;
typedef struct description_struct *lt_description;
typedef struct layout_struct *lt_layout;
typedef struct preference_struct *lt_preference;

enum {
    COMPUTE_F32 = 68,
    TYPE_F32 = 0,
    TYPE_BF16 = 14,
    TYPE_E4M3 = 28,
    TRANSPOSED = 1,
    DESCRIPTION_TRANSPOSE_A = 3,
    DESCRIPTION_A_SCALE = 17,
    DESCRIPTION_B_SCALE = 18,
    DESCRIPTION_A_SCALE_MODE = 31,
    DESCRIPTION_B_SCALE_MODE = 32,
    SCALE_VECTOR_128 = 4,
    SCALE_BLOCK_128X128 = 5,
    PREFERENCE_WORKSPACE = 1
};

static const size_t workspace_bytes = (size_t)32 << 20;

/* cublasLtMatmulHeuristicResult_t */
typedef struct lt_choice {
    uint64_t algorithm[8];
    size_t workspace;
    status state;
    float waves;
    int reserved[4];
} lt_choice;

#define LT_FUNCTIONS(X)                                                                            \
    X(create, "cublasLtCreate", (lt_handle * handle))                                              \
    X(destroy, "cublasLtDestroy", (lt_handle handle))                                              \
    X(description_create, "cublasLtMatmulDescCreate",                                              \
      (lt_description * description, int compute, int scale))                                      \
    X(description_destroy, "cublasLtMatmulDescDestroy", (lt_description description))              \
    X(description_set, "cublasLtMatmulDescSetAttribute",                                           \
      (lt_description description, int attribute, const void *value, size_t bytes))                \
    X(layout_create, "cublasLtMatrixLayoutCreate",                                                 \
      (lt_layout * layout, int type, uint64_t rows, uint64_t columns, int64_t ld))                 \
    X(layout_destroy, "cublasLtMatrixLayoutDestroy", (lt_layout layout))                           \
    X(preference_create, "cublasLtMatmulPreferenceCreate", (lt_preference * preference))           \
    X(preference_destroy, "cublasLtMatmulPreferenceDestroy", (lt_preference preference))           \
    X(preference_set, "cublasLtMatmulPreferenceSetAttribute",                                      \
      (lt_preference preference, int attribute, const void *value, size_t bytes))                  \
    X(choose, "cublasLtMatmulAlgoGetHeuristic",                                                    \
      (lt_handle handle, lt_description description, lt_layout a, lt_layout b, lt_layout c,        \
       lt_layout d, lt_preference preference, int wanted, lt_choice *choices, int *count))         \
    X(multiply, "cublasLtMatmul",                                                                  \
      (lt_handle handle, lt_description description, const void *alpha, const void *a,             \
       lt_layout a_layout, const void *b, lt_layout b_layout, const void *beta, const void *c,     \
       lt_layout c_layout, void *d, lt_layout d_layout, const void *algorithm, void *workspace,    \
       size_t workspace_bytes, halfbyte_stream stream))

struct bench_vendor {
    void *library;
#define LT_MEMBER_(member, symbol, parameters) status(*member) parameters;
    LT_FUNCTIONS(LT_MEMBER_)
#undef LT_MEMBER_
    lt_handle handle;
    lt_description description;
    lt_layout a, b, d;
    lt_preference preference;
    lt_choice choice;
    const gpu_tensors *tensors;
    gpu_address workspace;
};

/* dlsym returns an object pointer where a function pointer is meant; POSIX vouches for the copy. */
static bool resolve(const bench_vendor *vendor, void *member, size_t bytes, const char *symbol)
{
    void *const address = dlsym(vendor->library, symbol);
    if (address != NULL)
        memcpy(member, &address, bytes);
    return address != NULL;
}

static bool load(bench_vendor *vendor)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    bool all = true;
    for (size_t i = 0; vendor->library == NULL && i < sizeof names / sizeof names[0]; ++i)
        vendor->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (vendor->library == NULL)
        return false;
#define RESOLVE_(member, symbol, parameters)                                                       \
    all = all && resolve(vendor, &vendor->member, sizeof vendor->member, symbol);
    LT_FUNCTIONS(RESOLVE_)
#undef RESOLVE_
    return all;
}

bench_vendor *bench_vendor_open(void)
{
    bench_vendor *vendor = calloc(1, sizeof *vendor);
    if (vendor == NULL)
        return NULL;
    if (!load(vendor) || vendor->create(&vendor->handle) != 0) {
        free(vendor);
        return NULL;
    }
    return vendor;
}

static void release(bench_vendor *vendor)
{
    if (vendor->description != NULL)
        vendor->description_destroy(vendor->description);
    if (vendor->preference != NULL)
        vendor->preference_destroy(vendor->preference);
    lt_layout *const layouts[] = {&vendor->a, &vendor->b, &vendor->d};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; ++i) {
        if (*layouts[i] != NULL)
            vendor->layout_destroy(*layouts[i]);
        *layouts[i] = NULL;
    }
    if (vendor->tensors != NULL)
        gpu_give(vendor->tensors->gpu, vendor->workspace);
    vendor->description = NULL;
    vendor->preference = NULL;
    vendor->tensors = NULL;
    vendor->workspace = 0;
}

void bench_vendor_close(bench_vendor *vendor)
{
    if (vendor == NULL)
        return;
    release(vendor);
    vendor->destroy(vendor->handle);
    free(vendor);
}

static bool serves(const instance *made)
{
    const halfbyte_problem *problem = &made->problem;
    return problem->family == HALFBYTE_FAMILY_FP8 && problem->grouping == HALFBYTE_GROUPING_DENSE &&
           problem->a_scale.mode == HALFBYTE_SCALE_1X128 &&
           problem->a_scale.layout == HALFBYTE_SCALE_MN_MAJOR &&
           problem->b_scale.mode == HALFBYTE_SCALE_128X128 &&
           problem->b_scale.layout == HALFBYTE_SCALE_K_MAJOR &&
           problem->d_type == HALFBYTE_TYPE_BF16 && problem->c_type == HALFBYTE_TYPE_NONE &&
           problem->bias_type == HALFBYTE_TYPE_NONE && problem->alpha_mode == HALFBYTE_ALPHA_NONE &&
           problem->channel_scale_type == HALFBYTE_TYPE_NONE && problem->k_splits <= 1 &&
           /* Both scale tensors are laid out in fours; a last block that hangs over is no other. */
           made->m % 4 == 0 && made->k % 512 == 0;
}

static bool set_int(bench_vendor *vendor, int attribute, int value)
{
    return vendor->description_set(vendor->description, attribute, &value, sizeof value) == 0;
}

static bool set_address(bench_vendor *vendor, int attribute, const void *value)
{
    return vendor->description_set(vendor->description, attribute, &value, sizeof value) == 0;
}

static bool describe(bench_vendor *vendor, const halfbyte_operands *operands)
{
    return vendor->description_create(&vendor->description, COMPUTE_F32, TYPE_F32) == 0 &&
           set_int(vendor, DESCRIPTION_TRANSPOSE_A, TRANSPOSED) &&
           set_int(vendor, DESCRIPTION_A_SCALE_MODE, SCALE_BLOCK_128X128) &&
           set_int(vendor, DESCRIPTION_B_SCALE_MODE, SCALE_VECTOR_128) &&
           set_address(vendor, DESCRIPTION_A_SCALE, operands->b_scale.data) &&
           set_address(vendor, DESCRIPTION_B_SCALE, operands->a_scale.data);
}

static bool lay_out(bench_vendor *vendor, const instance *made)
{
    const halfbyte_operands *operands = &made->operands;
    const uint64_t m = (uint64_t)made->m, n = (uint64_t)made->n, k = (uint64_t)made->k;
    return vendor->layout_create(&vendor->a, TYPE_E4M3, k, n, operands->b.ld) == 0 &&
           vendor->layout_create(&vendor->b, TYPE_E4M3, k, m, operands->a.ld) == 0 &&
           vendor->layout_create(&vendor->d, TYPE_BF16, n, m, operands->d.ld) == 0;
}

static bool choose(bench_vendor *vendor)
{
    int count = 0;
    return vendor->preference_create(&vendor->preference) == 0 &&
           vendor->preference_set(vendor->preference, PREFERENCE_WORKSPACE, &workspace_bytes,
                                  sizeof workspace_bytes) == 0 &&
           vendor->choose(vendor->handle, vendor->description, vendor->a, vendor->b, vendor->d,
                          vendor->d, vendor->preference, 1, &vendor->choice, &count) == 0 &&
           count == 1;
}

static status multiply(bench_vendor *vendor)
{
    static const float one = 1, zero = 0;
    const halfbyte_operands *operands = &vendor->tensors->operands;
    return vendor->multiply(vendor->handle, vendor->description, &one, operands->b.data, vendor->a,
                            operands->a.data, vendor->b, &zero, operands->d.data, vendor->d,
                            operands->d.data, vendor->d, vendor->choice.algorithm,
                            gpu_pointer(vendor->workspace), workspace_bytes,
                            vendor->tensors->gpu->stream);
}

bool bench_vendor_prepare(bench_vendor *vendor, const gpu_tensors *tensors, const instance *made)
{
    release(vendor);
    if (!serves(made))
        return false;
    vendor->tensors = tensors;
    return tensors->gpu->memory_take(&vendor->workspace, workspace_bytes) == 0 &&
           describe(vendor, &tensors->operands) && lay_out(vendor, made) && choose(vendor) &&
           multiply(vendor) == 0 && tensors->gpu->stream_wait(tensors->gpu->stream) == 0;
}

int bench_vendor_enqueue(void *context)
{
    status result = multiply(context);
    return result == 0 ? CLI_OK
                       : cli_fail(CLI_ENVIRONMENT, "cublasLtMatmul failed with %d", result);
}
