/* SPDX-License-Identifier: Apache-2.0 */
/* Group sizes: the arrays, which every run checks, and the values, for halfbyte_check_groups(). */
#include <stdbool.h>

#include "api/error.h"
#include "api/gpu_groups.h"
#include "api/operands.h"
#include "api/plan.h"
#include "api/struct_copy.h"
#include "model/groups.h"

static halfbyte_status array_check(const char *name, const void *data, int64_t stride,
                                   int64_t count, int bytes, const tensor *d)
{
    if (data == NULL) {
        return HALFBYTE_SUCCESS;
    }
    CHECK_ARGUMENT(count <= 1 || stride >= 0, "%s_stride = %lld: must be at least 0 (0 = 1)", name,
                   (long long)stride);
    tensor t = {.name = name,
                .row_stride_name = "stride",
                .data = data,
                .bits = 8 * bytes,
                .groups = 1,
                .rows = count,
                .columns = 1,
                .row_stride = stride == 0 ? 1 : stride,
                .stride_multiple = 1,
                .alignment = (size_t)bytes};
    CHECK_STATUS(tensor_check(&t, false));
    return d == NULL ? HALFBYTE_SUCCESS : tensor_check_apart(d, &t);
}

/* Which of the four arrays the grouping takes. */
static halfbyte_status arrays_present_check(halfbyte_grouping grouping,
                                            const halfbyte_groups *groups)
{
    const bool starts = groups->starts != NULL;
    const bool ends = groups->ends != NULL;
    const bool counts = groups->counts != NULL;
    const bool labels = groups->labels != NULL;
    bool fits = false;
    const char *name = "";
    const char *accepted = "";
    switch (grouping) {
    case HALFBYTE_GROUPING_DENSE:
        fits = !starts && !ends && !counts && !labels;
        name = "dense";
        accepted = "no array";
        break;
    case HALFBYTE_GROUPING_RANGES:
        fits = !labels && ends != counts;
        name = "ranges";
        accepted = "starts and ends, starts and counts, ends, or counts";
        break;
    case HALFBYTE_GROUPING_MASKED:
        fits = !starts && !ends && !labels;
        name = "masked";
        accepted = "counts, or no array";
        break;
    case HALFBYTE_GROUPING_LABELS:
        fits = !starts && !ends && !counts && labels;
        name = "labels";
        accepted = "labels";
        break;
    }
    CHECK_ARGUMENT(fits, "operands.groups has%s%s%s%s%s: accepted where problem.grouping is %s: %s",
                   starts ? " starts" : "", ends ? " ends" : "", counts ? " counts" : "",
                   labels ? " labels" : "", starts || ends || counts || labels ? "" : " no array",
                   name, accepted);
    return HALFBYTE_SUCCESS;
}

halfbyte_status groups_check(const halfbyte_problem *problem, const halfbyte_operands *operands,
                             const tensor *d)
{
    const halfbyte_groups *groups = &operands->groups;
    const int64_t count = problem->groups;
    const int bytes = problem->index_type == HALFBYTE_INDEX_INT64 ? 8 : 4;
    CHECK_STATUS(arrays_present_check(problem->grouping, groups));
    CHECK_STATUS(array_check("operands.groups.starts", groups->starts, groups->starts_stride, count,
                             bytes, d));
    CHECK_STATUS(
        array_check("operands.groups.ends", groups->ends, groups->ends_stride, count, bytes, d));
    CHECK_STATUS(array_check("operands.groups.counts", groups->counts, groups->counts_stride, count,
                             bytes, d));
    return array_check("operands.groups.labels", groups->labels, 1, operands->m, 4, d);
}

/* One value of an array must be in [low, high]; `why` says what these are. */
static halfbyte_status value_check(const char *array, int64_t index, int64_t value, int64_t low,
                                   int64_t high, const char *why)
{
    CHECK_ARGUMENT(value >= low && value <= high,
                   "operands.groups.%s[%lld] = %lld: must be in [%lld, %lld] (%s)", array,
                   (long long)index, (long long)value, (long long)low, (long long)high, why);
    return HALFBYTE_SUCCESS;
}

static halfbyte_status ranges_check(const halfbyte_problem *p, const halfbyte_operands *o)
{
    const halfbyte_groups *groups = &o->groups;
    int64_t taken = 0; /* rows below it belong to groups before this one, or to nobody */
    for (int64_t g = 0; g < p->groups; g++) {
        int64_t start = taken;
        if (groups->starts != NULL) {
            start = group_index_read(p->index_type, groups->starts, groups->starts_stride, g);
            CHECK_STATUS(value_check("starts", g, start, 0, o->m, "rows of a"));
        }
        int64_t end;
        if (groups->ends != NULL) {
            end = group_index_read(p->index_type, groups->ends, groups->ends_stride, g);
            CHECK_STATUS(value_check("ends", g, end, start, o->m, "from its start to operands.m"));
        } else {
            const int64_t count =
                group_index_read(p->index_type, groups->counts, groups->counts_stride, g);
            CHECK_STATUS(
                value_check("counts", g, count, 0, o->m - start, "rows left from its start"));
            end = start + count;
        }
        if (start == end) {
            continue;
        }
        CHECK_ARGUMENT(start >= taken,
                       "operands.groups.starts[%lld] = %lld: must be at least %lld, where the "
                       "groups before it end; groups ascend and do not overlap",
                       (long long)g, (long long)start, (long long)taken);
        taken = end;
    }
    return HALFBYTE_SUCCESS;
}

static halfbyte_status counts_check(const halfbyte_problem *p, const halfbyte_operands *o)
{
    const halfbyte_groups *groups = &o->groups;
    for (int64_t g = 0; groups->counts != NULL && g < p->groups; g++) {
        const int64_t count =
            group_index_read(p->index_type, groups->counts, groups->counts_stride, g);
        CHECK_STATUS(value_check("counts", g, count, 0, o->m, "rows a group"));
    }
    return HALFBYTE_SUCCESS;
}

static halfbyte_status labels_check(const halfbyte_problem *p, const halfbyte_operands *o)
{
    int64_t last = 0;
    for (int64_t row = 0; row < o->m; row++) {
        const int64_t label = o->groups.labels[row];
        CHECK_ARGUMENT(label >= -1 && label < p->groups,
                       "operands.groups.labels[%lld] = %lld: must be in [-1, %lld]", (long long)row,
                       (long long)label, (long long)(p->groups - 1));
        CHECK_ARGUMENT(label == -1 || label >= last,
                       "operands.groups.labels[%lld] = %lld: must be -1 or at least %lld, the "
                       "label before it; labels do not decrease",
                       (long long)row, (long long)label, (long long)last);
        last = label == -1 ? last : label;
    }
    return HALFBYTE_SUCCESS;
}

/* Of arrays that the host can read. */
static halfbyte_status values_check(const halfbyte_problem *p, const halfbyte_operands *o)
{
    switch (p->grouping) {
    case HALFBYTE_GROUPING_DENSE: break;
    case HALFBYTE_GROUPING_RANGES: return ranges_check(p, o);
    case HALFBYTE_GROUPING_MASKED: return counts_check(p, o);
    case HALFBYTE_GROUPING_LABELS: return labels_check(p, o);
    }
    return HALFBYTE_SUCCESS;
}

halfbyte_status halfbyte_check_groups(const halfbyte_plan *plan, const halfbyte_operands *operands,
                                      halfbyte_stream stream)
{
    CHECK_ARGUMENT(plan != NULL, "plan = NULL: must be a plan");
    halfbyte_operands o;
    CHECK_STATUS(struct_copy(&o, operands, "operands", halfbyte_operands));
    const bool on_gpu = plan->device->executor == HALFBYTE_EXECUTOR_GPU;
    CHECK_STATUS(on_gpu ? HALFBYTE_SUCCESS : cpu_check(plan->device, stream));
    const halfbyte_problem *p = &plan->problem;
    CHECK_STATUS(operands_m_check(p, &o));
    const bool none = o.groups.starts == NULL && o.groups.ends == NULL && o.groups.counts == NULL &&
                      o.groups.labels == NULL;
    if (o.m == 0 && none) {
        return HALFBYTE_SUCCESS;
    }
    CHECK_STATUS(groups_check(p, &o, NULL));
    if (!on_gpu) {
        return values_check(p, &o);
    }
    gpu_groups fetched;
    CHECK_STATUS(gpu_groups_fetch(plan->device->gpu, p, &o, stream, &fetched));
    o.groups = fetched.groups;
    const halfbyte_status status = values_check(p, &o);
    gpu_groups_free(&fetched);
    return status;
}
