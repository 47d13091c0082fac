/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "api/describe.h"
#include "api/enum_names.h"
#include "api/error.h"
#include "api/gemm_launch.h"
#include "api/gemm_select.h"
#include "api/plan.h"

/* ":1x128/mn", ":k_group128:bf16/k", ":tensor"; nothing for NONE.  f32 is the type not said. */
static void scale_describe(describe_line *line, const halfbyte_scale_spec *scale,
                           int64_t weight_group_size)
{
    static const char *const layouts[] = {"/mn", "/k", "/interleaved4"};
    if (scale->mode == HALFBYTE_SCALE_NONE) {
        return;
    }
    describe_add(line, ":%s", scale_mode_name(scale->mode));
    if (scale->mode == HALFBYTE_SCALE_K_GROUP && weight_group_size != 0) {
        describe_add(line, "%lld", (long long)weight_group_size);
    }
    if (scale->type != HALFBYTE_TYPE_F32) {
        describe_add(line, ":%s", halfbyte_type_name(scale->type));
    }
    if (scale->mode > HALFBYTE_SCALE_OUTER) {
        describe_add(line, "%s", layouts[scale->layout]);
    }
}

static void epilogue_describe(describe_line *line, const halfbyte_problem *p)
{
    if (p->channel_scale_type != HALFBYTE_TYPE_NONE) {
        describe_add(line, " channel_scale=%s", halfbyte_type_name(p->channel_scale_type));
    }
    if (p->alpha_mode != HALFBYTE_ALPHA_NONE) {
        describe_add(line, " alpha=%s", p->alpha_mode == HALFBYTE_ALPHA_HOST ? "host" : "device");
    }
    if (p->c_type != HALFBYTE_TYPE_NONE) {
        describe_add(line, " c=%s", halfbyte_type_name(p->c_type));
    }
    if (p->bias_type != HALFBYTE_TYPE_NONE) {
        describe_add(line, " bias=%s", halfbyte_type_name(p->bias_type));
    }
}

static void options_describe(describe_line *line, const halfbyte_problem *p)
{
    if (p->k_splits > 1) {
        describe_add(line, " k_splits=%lld", (long long)p->k_splits);
    }
    if (p->grouping == HALFBYTE_GROUPING_RANGES || p->grouping == HALFBYTE_GROUPING_MASKED) {
        describe_add(line, " index=%s", p->index_type == HALFBYTE_INDEX_INT64 ? "int64" : "int32");
    }
    if ((p->flags & HALFBYTE_ZERO_FILL_PADDING) != 0) {
        describe_add(line, " zero_fill_padding");
    }
    if ((p->flags & HALFBYTE_WEIGHTS_CONSTANT) != 0) {
        describe_add(line, " weights_constant");
    }
    if ((p->flags & HALFBYTE_LAUNCH_DEPENDENTS) != 0) {
        describe_add(line, " launch_dependents");
    }
    if (p->num_sms != 0) {
        describe_add(line, " num_sms=%d", (int)p->num_sms);
    }
}

halfbyte_status halfbyte_plan_describe(const halfbyte_plan *plan, char *text, size_t text_bytes)
{
    CHECK_ARGUMENT(plan != NULL, "plan = NULL: must be a plan");
    const halfbyte_problem *p = &plan->problem;
    const halfbyte_device *device = plan->device;
    describe_line line = {.length = 0};
    describe_add(&line, "%s %s groups=%lld m<=%lld n=%lld k=%lld", family_name(p->family),
                 grouping_name(p->grouping), (long long)p->groups, (long long)p->m_max,
                 (long long)p->n, (long long)p->k);
    describe_add(&line, " a=%s", halfbyte_type_name(p->a_type));
    scale_describe(&line, &p->a_scale, 0);
    describe_add(&line, " b=%s", halfbyte_type_name(p->b_type));
    if (p->b_layout == HALFBYTE_B_PACKED) {
        describe_add(&line, ":packed");
    }
    scale_describe(&line, &p->b_scale, p->weight_group_size);
    if (p->group_k_offset != 0) {
        describe_add(&line, " group_k_offset=%lld", (long long)p->group_k_offset);
    }
    describe_add(&line, " d=%s", halfbyte_type_name(p->d_type));
    epilogue_describe(&line, p);
    options_describe(&line, p);
    describe_add(&line, " ");
    device_describe_add(&line, device);
    if (device->executor == HALFBYTE_EXECUTOR_GPU) {
        gemm_describe(&line, plan->kernels);
        if (gemm_packs_weights(p)) {
            describe_add(&line, " packs=run");
        }
    }
    return describe_finish(&line, text, text_bytes);
}
