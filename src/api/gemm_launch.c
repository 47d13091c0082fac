/* SPDX-License-Identifier: Apache-2.0 */
#include "api/gemm_launch.h"

#include <string.h>

#include "api/error.h"
#include "api/pack_launch.h"

/* ---- tensor maps ----------------------------------------------------------------------------- */

static uint64_t rounded_up(uint64_t count, uint64_t unit)
{
    return (count + unit - 1) / unit * unit;
}

static int64_t planes_of(const halfbyte_problem *problem)
{
    return problem->grouping == HALFBYTE_GROUPING_MASKED ? problem->groups : 1;
}

/* A stride along an extent of 1 is not looked at, but the copy engine wants a good one. */
static uint64_t stride_of(uint64_t extent, int64_t stride, uint64_t least)
{
    return extent > 1 ? (uint64_t)stride : rounded_up(least, 16);
}

/* [planes, rows, columns] bytes. */
static gemm_map map_of(const halfbyte_matrix_in *matrix, int64_t columns, int64_t rows,
                       int64_t planes, uint32_t box_rows)
{
    gemm_map map;
    map.data = matrix->data;
    map.columns = (uint64_t)columns;
    map.rows = (uint64_t)rows;
    map.planes = (uint64_t)planes;
    map.row_bytes = stride_of(map.rows, matrix->ld, map.columns);
    map.plane_bytes = stride_of(map.planes, matrix->group_stride, map.row_bytes * map.rows);
    map.box_rows = box_rows;
    return map;
}

/* That of D as bytes, for kernels that store by it: 16-bit numbers in whole units of 16 bytes.
 * Where every row has to be asked for its group nothing is stored so. */
static halfbyte_status d_map_encode(const gemm_machine *machine, const kernel_row *row,
                                    const halfbyte_problem *problem,
                                    const halfbyte_operands *operands, gemm_params *gemm)
{
    const gemm_matrix *d = &gemm->epilogue.d;
    if (row->d_box_rows == 0 || problem->k_splits > 1 ||
        problem->grouping == HALFBYTE_GROUPING_LABELS || d->type == ELEMENT_F32 ||
        d->vectors != 2 || problem->n > INT32_MAX / 2) {
        return HALFBYTE_SUCCESS;
    }
    const halfbyte_matrix_in bytes = {
        .data = d->data, .ld = 2 * d->ld, .group_stride = 2 * d->plane_stride};
    const gemm_map from =
        map_of(&bytes, 2 * problem->n, operands->m, planes_of(problem), row->d_box_rows);
    gemm->flags |= GEMM_D_BOXES;
    return machine->encode(machine->context, &from, &gemm->d);
}

/* No rows are copied that A does not have: the copy engine takes long over what lies outside.  What
 * is in their place in shared memory is multiplied and not stored. */
static int32_t a_box_rows(const kernel_row *row, int64_t m)
{
    return (int32_t)(m < row->tile_m ? m : row->tile_m);
}

/*
 * What becomes of B in L2.  Weights that few tiles read leave it first, so that they do not drive
 * out lines that have to be written to memory before their place is free: up to 10 % of the time.
 * Of many bytes that takes longer than it spares, and what many tiles read is to stay.  Both
 * numbers are measured (docs/notes/fp8-kernels.md, "What stays in L2").
 */
enum { FIRST_TO_GO_BYTES = 256 << 20, FIRST_TO_GO_HIGH = 4 };

static uint64_t b_policy(const kernel_row *row, const halfbyte_problem *problem,
                         const halfbyte_operands *operands)
{
    const gemm_expected_groups groups = gemm_groups_expected(problem, operands);
    return groups.rows <= (int64_t)FIRST_TO_GO_HIGH * row->tile_m &&
                   gemm_expected_weight_bytes(problem, &groups) <= FIRST_TO_GO_BYTES
               ? L2_EVICT_FIRST
               : L2_EVICT_NORMAL;
}

static halfbyte_status maps_encode(const gemm_machine *machine, int kernel,
                                   const halfbyte_problem *problem,
                                   const halfbyte_operands *operands, gemm_params *gemm)
{
    const kernel_row *row = &kernel_table[kernel];
    CHECK_STATUS(d_map_encode(machine, row, problem, operands, gemm));
    if (problem->k == 0) {
        return HALFBYTE_SUCCESS; /* nothing is read */
    }
    gemm->a_box_rows = a_box_rows(row, operands->m);
    gemm->b_policy = b_policy(row, problem, operands);
    gemm_map from = map_of(&operands->a, problem->k, operands->m, planes_of(problem),
                           (uint32_t)gemm->a_box_rows);
    CHECK_STATUS(machine->encode(machine->context, &from, &gemm->a));
    if (problem->family != HALFBYTE_FAMILY_FP8) {
        return HALFBYTE_SUCCESS;
    }
    from = map_of(&operands->b, problem->k, problem->n, problem->groups, row->tile_n);
    return machine->encode(machine->context, &from, &gemm->b);
}

/* ---- grids ----------------------------------------------------------------------------------- */

enum { MOST_UNITS = INT32_MAX, RUNS_FROM_HIGH = 16 };

/* At most so many units of rows x columns; groups whose sizes only the device knows may each have a
 * last one that is not full. */
static halfbyte_status units_of(const halfbyte_problem *problem, int64_t m, int64_t rows,
                                int64_t columns, int64_t *units)
{
    int64_t high = (m + rows - 1) / rows;
    if (problem->grouping == HALFBYTE_GROUPING_MASKED) {
        high *= problem->groups;
    } else if (problem->grouping != HALFBYTE_GROUPING_DENSE) {
        high += problem->groups;
    }
    const int64_t wide = (problem->n + columns - 1) / columns;
    CHECK(high <= MOST_UNITS / wide / problem->k_splits, HALFBYTE_ERR_UNSUPPORTED,
          "m = %lld, n = %lld, groups = %lld: more than %d tiles of %lld x %lld", (long long)m,
          (long long)problem->n, (long long)problem->groups, MOST_UNITS, (long long)rows,
          (long long)columns);
    *units = high * wide * problem->k_splits;
    return HALFBYTE_SUCCESS;
}

/* Persistent blocks: one an SM, whole clusters, no more than there is work for. */
static uint32_t blocks_of(int64_t units, int64_t sms, uint32_t cluster)
{
    const int64_t clusters = sms < cluster ? 1 : sms / cluster;
    return (uint32_t)(units < clusters ? units : clusters) * cluster;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* The next launch; its parameters are not set. */
static gemm_launch *launch_add(gemm_launches *launches, int kernel, size_t params_bytes)
{
    gemm_launch *one = &launches->launch[launches->count++];
    one->kernel = kernel;
    one->cluster = 1;
    one->programmatic = false;
    one->params_bytes = params_bytes;
    return one;
}

enum { WORKSPACE_PIECE = 256 };

/* LABELS: two words a group. */
static size_t bounds_bytes(const halfbyte_problem *problem)
{
    return problem->grouping == HALFBYTE_GROUPING_LABELS
               ? (size_t)rounded_up((uint64_t)problem->groups * 8, WORKSPACE_PIECE)
               : 0;
}

/* Row-major int4 weights in the order that kernels take. */
bool gemm_packs_weights(const halfbyte_problem *problem)
{
    return problem->family == HALFBYTE_FAMILY_W4A8 && problem->b_layout == HALFBYTE_B_ROW_MAJOR &&
           problem->n > 0 && problem->k > 0;
}

/* Words in the form that expresses every weight, since nobody has looked at them. */
static struct int4_packed_shape packed_shape(const halfbyte_problem *problem)
{
    return (struct int4_packed_shape){.groups = problem->groups,
                                      .n = problem->n,
                                      .k = problem->k,
                                      .group_k_offset = problem->group_k_offset,
                                      .flags = INT4_PACKED_HOLDS_MINUS8};
}

/* Atoms are whole pieces of the workspace.  SIZE_MAX if no size_t holds them. */
static size_t packed_bytes(const halfbyte_problem *problem)
{
    if (!gemm_packs_weights(problem)) {
        return 0;
    }
    const struct int4_packed_shape shape = packed_shape(problem);
    const int64_t bytes = int4_packed_bytes(&shape);
    return bytes < 0 ? SIZE_MAX : (size_t)bytes;
}

/* The workspace: bounds of the groups, packed weights, sums of the ranges of k. */
size_t gemm_workspace_bytes(const halfbyte_problem *problem)
{
    const size_t bounds = bounds_bytes(problem), packed = packed_bytes(problem);
    if (packed > SIZE_MAX - bounds) {
        return SIZE_MAX;
    }
    size_t bytes = bounds + packed;
    if (problem->k_splits > 1 && problem->m_max > 0 && problem->n > 0) {
        size_t sums = (size_t)problem->k_splits * sizeof(float);
        const int64_t factors[] = {planes_of(problem), problem->m_max, problem->n};
        for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
            if (sums > (SIZE_MAX - bytes) / (size_t)factors[i]) {
                return SIZE_MAX;
            }
            sums *= (size_t)factors[i];
        }
        bytes += sums;
    }
    return bytes;
}

/* The weights of all groups, packed into the workspace at each run. */
static halfbyte_status packing_add(const halfbyte_problem *problem,
                                   const halfbyte_operands *operands, void *packed,
                                   gemm_params *gemm, gemm_launches *launches)
{
    const pack_tensors tensors = {.shape = packed_shape(problem),
                                  .form = INT4_RAW,
                                  .plain = (unsigned char *)(uintptr_t)operands->b.data,
                                  .row_bytes = operands->b.ld / 2,
                                  .group_bytes = operands->b.group_stride / 2,
                                  .packed = packed};
    pack_launch launch;
    CHECK_STATUS(pack_launch_make(&tensors, false, &launch));
    gemm_launch *one = launch_add(launches, launch.kernel, sizeof one->params.pack);
    one->params.pack = launch.params;
    one->blocks = launch.blocks;
    gemm->b_packed = packed;
    gemm->flags |= GEMM_HOLDS_MINUS8;
    return HALFBYTE_SUCCESS;
}

/* LABELS: the bounds of the groups into the workspace, and from now on RANGES. */
static void bounds_add(const gemm_machine *machine, const halfbyte_problem *problem,
                       const halfbyte_operands *operands, void *workspace, gemm_groups *groups,
                       gemm_launches *launches)
{
    enum { ROWS_A_BLOCK = 256 };
    gemm_launch *one =
        launch_add(launches, KERNEL_INDEX_halfbyte_sm90_group_bounds, sizeof(group_bounds_params));
    group_bounds_params *params = &one->params.bounds;
    const int64_t blocks = (operands->m + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK;
    params->labels = operands->groups.labels;
    params->tops = workspace;
    params->ends = params->tops + problem->groups;
    params->m = (int32_t)operands->m;
    params->groups = (int32_t)problem->groups;
    one->blocks = (uint32_t)(blocks < 4 * machine->sm_count ? blocks : 4 * machine->sm_count);
    launches->clear = workspace;
    launches->clear_bytes = (size_t)problem->groups * 8;
    groups->starts = params->tops;
    groups->ends = params->ends;
    groups->starts_stride = 1;
    groups->ends_stride = 1;
    groups->from_end = 1;
    groups->is_int64 = 0;
}

static void padding_add(const gemm_machine *machine, const halfbyte_problem *problem,
                        const gemm_params *gemm, gemm_launches *launches)
{
    enum { ROWS_A_BLOCK = 32 };
    gemm_launch *one =
        launch_add(launches, KERNEL_INDEX_halfbyte_sm90_zero_padding, sizeof(zero_padding_params));
    zero_padding_params *params = &one->params.padding;
    const int64_t planes = planes_of(problem);
    const int64_t blocks = (gemm->m + ROWS_A_BLOCK - 1) / ROWS_A_BLOCK * planes;
    params->groups = gemm->groups;
    params->d = gemm->epilogue.d;
    params->m = gemm->m;
    params->n = gemm->n;
    params->planes = (int32_t)planes;
    one->blocks = (uint32_t)(blocks < 8 * machine->sm_count ? blocks : 8 * machine->sm_count);
}

/* The sums of the ranges go to the workspace; what the epilogue was follows in a launch behind. */
static void splits_add(const gemm_machine *machine, const halfbyte_problem *problem,
                       gemm_params *gemm, float *sums, gemm_launches *launches)
{
    enum { ROWS_A_BLOCK = 32, COLUMNS_A_BLOCK = 128 };
    gemm_launch *one =
        launch_add(launches, KERNEL_INDEX_halfbyte_sm90_add_splits, sizeof(add_splits_params));
    add_splits_params *params = &one->params.splits;
    const int64_t plane = (int64_t)gemm->m * gemm->n;
    params->gemm = *gemm;
    params->sums = sums;
    params->plane_stride = problem->grouping == HALFBYTE_GROUPING_MASKED ? plane : 0;
    params->split_stride = plane * planes_of(problem);
    params->splits = (int32_t)problem->k_splits;
    one->blocks = 4 * (uint32_t)machine->sm_count;

    memset(&gemm->epilogue, 0, sizeof gemm->epilogue);
    gemm->epilogue.d.data = sums;
    gemm->epilogue.d.ld = gemm->n;
    gemm->epilogue.d.plane_stride = params->plane_stride;
    gemm->epilogue.d.type = ELEMENT_F32;
    gemm->epilogue.d.vectors = gemm->n % 2 == 0;
    gemm->k_splits = (int32_t)problem->k_splits;
    gemm->split_stride = params->split_stride;
}

/* The product by one kernel, of whose parameters those that say nothing of the kernel are there. */
static halfbyte_status product_add(const gemm_machine *machine, int kernel,
                                   const halfbyte_problem *problem,
                                   const halfbyte_operands *operands, gemm_launches *launches)
{
    const kernel_row *row = &kernel_table[kernel];
    const int64_t unit_rows = (int64_t)row->tile_m * row->cluster_m;
    const int64_t unit_columns = (int64_t)row->tile_n * row->cluster_n;
    int64_t units = 0;
    CHECK_STATUS(units_of(problem, operands->m, unit_rows, unit_columns, &units));
    gemm_launch *product = launch_add(launches, kernel, sizeof product->params.gemm);
    gemm_params *gemm = &product->params.gemm;
    CHECK_STATUS(maps_encode(machine, kernel, problem, operands, gemm));
    product->cluster = row->cluster_m * row->cluster_n;
    product->blocks = blocks_of(units, gemm_sms(machine, problem), product->cluster);
    if (problem->grouping == HALFBYTE_GROUPING_DENSE && problem->k_splits <= 1) {
        gemm->direct_high = (int32_t)((operands->m + row->tile_m - 1) / row->tile_m);
        gemm->direct_wide = (int32_t)((problem->n + row->tile_n - 1) / row->tile_n);
    }
    /* With few rows of tiles the blocks would all begin by bringing all of B at once. */
    if (gemm->direct_high >= RUNS_FROM_HIGH && product->cluster == 1) {
        gemm->direct_run = (int32_t)(units / product->blocks);
    }
    return HALFBYTE_SUCCESS;
}

/* All groups, or the small ones and then the large ones.  The second kernel may start under the end
 * of the first, unless the problem is to keep off some SMs: its blocks would wait there. */
static halfbyte_status products_add(const gemm_machine *machine, const gemm_choice *choice,
                                    const halfbyte_problem *problem,
                                    const halfbyte_operands *operands, gemm_launches *launches)
{
    gemm_launch *small = &launches->launch[launches->count], *large = small + 1;
    if (choice->large == GEMM_NO_KERNEL) {
        return product_add(machine, choice->kernel, problem, operands, launches);
    }
    large->params.gemm = small->params.gemm;
    const bool early = gemm_sms(machine, problem) == machine->sm_count;
    small->params.gemm.groups.rows_most = choice->rows_most;
    small->params.gemm.flags |= early ? GEMM_LAUNCH_DEPENDENTS : 0;
    large->params.gemm.groups.rows_least = choice->rows_most + 1;
    CHECK_STATUS(product_add(machine, choice->kernel, problem, operands, launches));
    CHECK_STATUS(product_add(machine, choice->large, problem, operands, launches));
    large->params.gemm.b_policy = L2_EVICT_NORMAL; /* its weights are read by many tiles */
    large->programmatic = early;
    return HALFBYTE_SUCCESS;
}

halfbyte_status gemm_launches_make(const gemm_machine *machine, const gemm_choice *choice,
                                   const halfbyte_problem *problem,
                                   const halfbyte_operands *operands, void *workspace,
                                   gemm_launches *launches)
{
    launches->clear = NULL;
    launches->clear_bytes = 0;
    launches->count = 0;

    /* Its parameters are large: they are made where they stay, before the launches ahead of it. */
    const bool finds_bounds = problem->grouping == HALFBYTE_GROUPING_LABELS;
    const bool fills_padding = problem->grouping != HALFBYTE_GROUPING_DENSE &&
                               (problem->flags & HALFBYTE_ZERO_FILL_PADDING) != 0;
    const bool packs = gemm_packs_weights(problem);
    const int ahead = packs + finds_bounds + fills_padding;
    gemm_params *gemm = &launches->launch[ahead].params.gemm;
    gemm_params_fill(problem, operands, gemm);
    char *const behind_bounds = (char *)workspace + bounds_bytes(problem);
    if (packs) {
        CHECK_STATUS(packing_add(problem, operands, behind_bounds, gemm, launches));
    }
    if (finds_bounds) {
        bounds_add(machine, problem, operands, workspace, &gemm->groups, launches);
    }
    if (fills_padding) {
        padding_add(machine, problem, gemm, launches);
    }
    CHECK_STATUS(products_add(machine, choice, problem, operands, launches));
    const bool products_alone = ahead == 0 && problem->k_splits <= 1;
    if (problem->k_splits > 1) {
        splits_add(machine, problem, gemm, (float *)(void *)(behind_bounds + packed_bytes(problem)),
                   launches);
    }
    launches->launch[0].programmatic =
        (problem->flags & HALFBYTE_WEIGHTS_CONSTANT) != 0 && products_alone;
    return HALFBYTE_SUCCESS;
}
