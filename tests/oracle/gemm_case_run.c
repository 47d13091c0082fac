/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L /* posix_memalign */

#include "oracle/gemm_case.h"
#include "oracle/operand.h"
#include "oracle/oracle_element.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

halfbyte_device *case_device(halfbyte_profile profile, int threads, halfbyte_isa isa)
{
    halfbyte_device *device = NULL;
    halfbyte_device_options options = halfbyte_device_options_init();
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    options.profile = profile;
    options.threads = threads;
    options.isa = isa;
    if (halfbyte_device_open(&device, &options) != HALFBYTE_SUCCESS)
        fail_msg("device: %s", halfbyte_last_error());
    return device;
}

bool case_has_isa(halfbyte_isa isa)
{
    halfbyte_device *device = NULL;
    halfbyte_device_options options = halfbyte_device_options_init();
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    options.isa = isa;
    options.threads = 1;
    halfbyte_status status = halfbyte_device_open(&device, &options);
    halfbyte_device_close(device);
    assert_true(status == HALFBYTE_SUCCESS || status == HALFBYTE_ERR_NO_DEVICE);
    return status == HALFBYTE_SUCCESS;
}

halfbyte_status case_run_status(const struct gemm_case *c, halfbyte_device *device)
{
    halfbyte_plan *plan = NULL;
    void *workspace = NULL;
    halfbyte_status status = halfbyte_plan_create(&plan, &c->problem, device);
    if (status != HALFBYTE_SUCCESS)
        return status;
    size_t bytes = halfbyte_plan_workspace_bytes(plan);
    if (bytes > 0 && posix_memalign(&workspace, 256, bytes) != 0)
        abort();
    status = halfbyte_run(plan, &c->operands, workspace, bytes, NULL);
    free(workspace);
    halfbyte_plan_destroy(plan);
    return status;
}

void case_run(const struct gemm_case *c, halfbyte_device *device)
{
    halfbyte_status status = case_run_status(c, device);
    if (status != HALFBYTE_SUCCESS) {
        case_print(c);
        fail_msg("%s: %s", halfbyte_status_name(status), halfbyte_last_error());
    }
}

static void expect_element(const struct gemm_case *c, uint8_t *image, int64_t offset, uint32_t code)
{
    size_t element = (size_t)halfbyte_type_bits(c->problem.d_type) / 8;
    uint16_t code16 = (uint16_t)code;
    memcpy(image + c->d_at + (size_t)offset * element, element == 4 ? (const void *)&code : &code16,
           element);
}

/* The group that owns the row of matrix `matrix`, or -1. */
static int64_t owner_of(const struct gemm_case *c, int64_t matrix, int64_t row)
{
    const halfbyte_problem *p = &c->problem;
    if (p->grouping == HALFBYTE_GROUPING_MASKED)
        return oracle_group_owns(p, &c->before, matrix, row) ? matrix : -1;
    for (int64_t g = 0; g < oracle_groups(p); g++) {
        if (oracle_group_owns(p, &c->before, g, row))
            return g;
    }
    return -1;
}

struct comparison case_compare(const struct gemm_case *c)
{
    const halfbyte_problem *p = &c->problem;
    struct comparison result = {0, 0, 0};
    uint8_t *image = malloc(c->d_bytes);
    assert_non_null(image);
    memcpy(image, c->d_before, c->d_bytes);
    for (int64_t matrix = 0; matrix < case_matrices(p); matrix++) {
        for (int64_t row = 0; row < c->before.m; row++) {
            int64_t owner = owner_of(c, matrix, row);
            if (owner < 0 && !(p->flags & HALFBYTE_ZERO_FILL_PADDING))
                continue;
            for (int64_t column = 0; column < p->n; column++) {
                uint32_t code = owner < 0 ? 0 : oracle_element(p, &c->before, owner, row, column);
                expect_element(c, image, oracle_d_offset(p, &c->before, matrix, row, column), code);
                result.owned += owner >= 0;
            }
        }
    }
    for (size_t i = 0; i < c->d_bytes; i++) {
        result.compared++;
        result.equal += image[i] == c->d_base[i];
    }
    free(image);
    return result;
}

void case_print(const struct gemm_case *c)
{
    const halfbyte_problem *p = &c->problem;
    print_error("family %d form %d m %lld n %lld k %lld groups %lld | a scale %d/%d, b scale "
                "%d/%d/%s, group size %lld, offset %lld | packed %d splits %lld d %s c %s beta %g "
                "bias %s alpha %d %g channel %s flags %u\n",
                (int)p->family, (int)c->kind.form, (long long)c->operands.m, (long long)p->n,
                (long long)p->k, (long long)p->groups, (int)p->a_scale.mode, (int)p->a_scale.layout,
                (int)p->b_scale.mode, (int)p->b_scale.layout, halfbyte_type_name(p->b_scale.type),
                (long long)p->weight_group_size, (long long)p->group_k_offset, (int)p->b_layout,
                (long long)p->k_splits, halfbyte_type_name(p->d_type),
                halfbyte_type_name(p->c_type), (double)c->operands.beta,
                halfbyte_type_name(p->bias_type), (int)p->alpha_mode, (double)c->alpha,
                halfbyte_type_name(p->channel_scale_type), (unsigned)p->flags);
}
