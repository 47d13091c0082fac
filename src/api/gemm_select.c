/* SPDX-License-Identifier: Apache-2.0 */
#include "api/gemm_select.h"

#include <stdlib.h>
#include <string.h>

#include "api/error.h"

/* ---- what the kernels serve ------------------------------------------------------------------ */

static inline bool varies_along_k(halfbyte_scale_mode mode)
{
    return mode == HALFBYTE_SCALE_1X128 || mode == HALFBYTE_SCALE_128X128 ||
           mode == HALFBYTE_SCALE_K_GROUP;
}

static bool accepts_fp8(const halfbyte_problem *problem)
{
    return problem->family == HALFBYTE_FAMILY_FP8;
}

/* For fewer than 64 rows, where all that a group may have is known.  Of RANGES and LABELS only the
 * mean is, and one group may have all rows: tiles of 64 rows take no longer for few, and a quarter
 * of the time for many. */
static bool accepts_fp8_few(const halfbyte_problem *problem)
{
    return accepts_fp8(problem) && (problem->grouping == HALFBYTE_GROUPING_DENSE ||
                                    problem->grouping == HALFBYTE_GROUPING_MASKED);
}

/* One scale of B in 128 x 128, or none along k, by kernels that issue the next tile's products
 * before they know the tile: no range of k may be empty, so there is one. */
static bool accepts_fp8_block(const halfbyte_problem *problem)
{
    return accepts_fp8(problem) && problem->k_splits == 1 &&
           (problem->b_scale.mode == HALFBYTE_SCALE_128X128 ||
            !varies_along_k(problem->b_scale.mode));
}

/* Row-major weights are packed ahead of the kernel. */
static bool accepts_w4a8(const halfbyte_problem *problem)
{
    return problem->family == HALFBYTE_FAMILY_W4A8 && problem->weight_group_size != 32 &&
           problem->weight_group_size != 64;
}

/* No scales of A along k. */
static bool accepts_w4a8_no_1x128(const halfbyte_problem *problem)
{
    return accepts_w4a8(problem) && !varies_along_k(problem->a_scale.mode);
}

/* One sum, not empty, of which nothing becomes but the scale of A and a 16-bit number:
 * gemm_w4a8_expand.h says why. */
static bool accepts_w4a8_expand(const halfbyte_problem *problem)
{
    return accepts_w4a8_no_1x128(problem) && problem->k_splits == 1 && problem->k > 0 &&
           problem->d_type != HALFBYTE_TYPE_F32 && problem->c_type == HALFBYTE_TYPE_NONE &&
           problem->bias_type == HALFBYTE_TYPE_NONE &&
           problem->channel_scale_type == HALFBYTE_TYPE_NONE &&
           problem->alpha_mode == HALFBYTE_ALPHA_NONE &&
           (varies_along_k(problem->b_scale.mode) || problem->b_scale.mode == HALFBYTE_SCALE_NONE);
}

/* Weight groups of 32 and 64.  Ranges of k end at multiples of 128 in the kernels. */
static bool accepts_w4a8_groups(const halfbyte_problem *problem)
{
    return problem->family == HALFBYTE_FAMILY_W4A8 && !accepts_w4a8(problem) &&
           problem->k_splits == 1;
}

typedef bool accept_function(const halfbyte_problem *problem);

static accept_function *const accepts_table[] = {
#define KERNEL_ROW(name, threads, smem_bytes, tile_m, tile_n, cluster_m, cluster_n, d_box_rows,    \
                   block_ns, tile_ns, start_ns, accepts)                                           \
    accepts,
#include "api/kernels.def"
#undef KERNEL_ROW
};
_Static_assert(KERNEL_COUNT <= 64, "gemm_kernel_set has a bit for each kernel");

bool gemm_kernel_accepts(int index, const halfbyte_problem *problem)
{
    return accepts_table[index](problem);
}

/* Does a word of HALFBYTE_SKIP_KERNELS occur in the name? */
static bool is_skipped(const char *name)
{
    const char *words = getenv("HALFBYTE_SKIP_KERNELS");
    while (words != NULL && *words != '\0') {
        const size_t length = strcspn(words, ",");
        for (const char *at = name; length > 0 && *at != '\0'; at++) {
            if (strncmp(at, words, length) == 0) {
                return true;
            }
        }
        words += length + (words[length] == ',');
    }
    return false;
}

gemm_kernel_set gemm_select(const halfbyte_problem *problem, gemm_kernel_set built)
{
    gemm_kernel_set found = 0;
    for (int i = 0; i < KERNEL_COUNT; i++) {
        if (gemm_set_has(built, i) && gemm_kernel_accepts(i, problem) &&
            !is_skipped(kernel_table[i].name)) {
            found |= (gemm_kernel_set)1 << i;
        }
    }
    return found;
}

halfbyte_status gemm_select_failed(const halfbyte_problem *problem)
{
    if (problem->family == HALFBYTE_FAMILY_W4A8) {
        return status_fail(
            HALFBYTE_ERR_UNSUPPORTED,
            "no GPU kernel serves the problem: k_splits > 1 with weight groups of 32 or "
            "64, or HALFBYTE_SKIP_KERNELS leaves none");
    }
    return status_fail(HALFBYTE_ERR_UNSUPPORTED,
                       "no GPU kernel serves the problem: HALFBYTE_SKIP_KERNELS leaves none");
}

/* ---- the choice of a run --------------------------------------------------------------------- */

/*
 * What a product is expected to take: the longer of two parts, and a share of the other, since
 * neither hides the other whole.
 *
 *   busy    every block works on one unit at a time, so the last wave counts whole, and so does a
 *           tile that is not full: tile width against waves decides most choices
 *   rate    weights that are read once, at MEMORY_BYTES_PER_NS, and the end of the last tile, which
 *           nothing hides
 *
 * Before both comes what a block does once.
 */
enum { MEMORY_BYTES_PER_NS = 4000, LESSER_SHARE = 8 };

gemm_expected_groups gemm_groups_expected(const halfbyte_problem *problem,
                                          const halfbyte_operands *operands)
{
    const int64_t m = operands->m, hint = operands->expected_m;
    const int64_t groups = problem->groups;
    if (problem->grouping == HALFBYTE_GROUPING_DENSE) {
        return (gemm_expected_groups){m, 1};
    }
    if (problem->grouping == HALFBYTE_GROUPING_MASKED) {
        return (gemm_expected_groups){hint > 0 && hint < m ? hint : m, groups};
    }
    /* All rows are somebody's: with the hint, so many groups have some. */
    if (hint > 0 && hint < m) {
        const int64_t busy = (m + hint - 1) / hint;
        return (gemm_expected_groups){hint, busy < groups ? busy : groups};
    }
    return (gemm_expected_groups){(m + groups - 1) / groups, m < groups ? m : groups};
}

int64_t gemm_expected_weight_bytes(const halfbyte_problem *problem,
                                   const gemm_expected_groups *groups)
{
    const int64_t bits = problem->family == HALFBYTE_FAMILY_W4A8 ? 4 : 8;
    return groups->count * (problem->n * problem->k * bits / 8);
}

/* Both at least 0.  Division is what the choice spends its time on, and small numbers take less. */
static int64_t divided(int64_t value, int64_t by)
{
    return (uint64_t)(value | by) >> 32 == 0 ? (int64_t)((uint32_t)value / (uint32_t)by)
                                             : value / by;
}

static int64_t divided_up(int64_t value, int64_t by)
{
    return divided(value + by - 1, by);
}

/* What is the same for all kernels. */
typedef struct expected_work {
    gemm_expected_groups groups;
    int64_t n;
    int64_t splits;
    int64_t k_blocks; /* of a split */
    int64_t rate_ns;  /* at the memory's rate */
    int64_t sms;
} expected_work;

static expected_work work_expected(const halfbyte_problem *problem,
                                   const gemm_expected_groups *groups, int sms)
{
    const int64_t bytes =
        gemm_expected_weight_bytes(problem, groups) + groups->count * groups->rows * problem->k;
    return (expected_work){*groups,
                           problem->n,
                           problem->k_splits,
                           divided_up(divided_up(problem->k, 128), problem->k_splits),
                           bytes / MEMORY_BYTES_PER_NS,
                           sms};
}

static int64_t expected_ns(const kernel_row *row, const expected_work *work)
{
    const int64_t cluster = (int64_t)row->cluster_m * row->cluster_n;
    const int64_t high = divided_up(work->groups.rows, (int64_t)row->tile_m * row->cluster_m);
    const int64_t wide = divided_up(work->n, (int64_t)row->tile_n * row->cluster_n);
    const int64_t at_once = work->sms > cluster ? divided(work->sms, cluster) : 1;
    const int64_t units = work->groups.count * high * wide * work->splits;
    const int64_t busy =
        divided_up(units, at_once) * (work->k_blocks * row->block_ns + row->tile_ns);
    const int64_t rate = work->rate_ns + row->tile_ns;
    return row->start_ns + (busy > rate ? busy + rate / LESSER_SHARE : rate + busy / LESSER_SHARE);
}

int gemm_kernel_for(gemm_kernel_set kernels, const tune_table *tune,
                    const halfbyte_problem *problem, const halfbyte_operands *operands, int sms)
{
    const gemm_expected_groups groups = gemm_groups_expected(problem, operands);
    const int tuned = tune_find(tune, kernels, problem, groups.rows, sms);
    if (tuned >= 0) {
        return tuned;
    }
    const expected_work work = work_expected(problem, &groups, sms);
    int best = 0;
    int64_t best_ns = INT64_MAX;
    for (int i = 0; i < KERNEL_COUNT; i++) {
        if (gemm_set_has(kernels, i)) {
            const int64_t ns = expected_ns(&kernel_table[i], &work);
            if (ns < best_ns) {
                best = i;
                best_ns = ns;
            }
        }
    }
    return best;
}

/* ---- uneven groups --------------------------------------------------------------------------- */

/*
 * From what time on, and up to how many rows and how many times the mean, a size is looked for from
 * which another kernel is the better one, by how many percent: a launch that finds no group costs
 * 10 us.  The mean itself is none of the large sizes: the first kernel is chosen for it.
 */
enum { UNEVEN_FROM_NS = 200 * 1000, UNEVEN_ROWS = 128, UNEVEN_TIMES = 8, UNEVEN_PERCENT = 10 };
enum { LARGE_FIRST = 128, LARGE_LAST = 4096 };

/* What the blocks spend on a group of so many rows, all together. */
static double group_ns(const kernel_row *row, const expected_work *work, int64_t rows)
{
    return (double)divided_up(rows, row->tile_m) * (double)divided_up(work->n, row->tile_n) *
           ((double)work->k_blocks * row->block_ns + row->tile_ns);
}

/* Spent on a row of a large group, in the mean of many sizes, so that none is chosen because it
 * fits a tile. */
static double large_group_ns(const kernel_row *row, const expected_work *work, int64_t most)
{
    double sum = 0;
    for (int64_t rows = LARGE_FIRST; rows <= most && rows <= LARGE_LAST; rows *= 2) {
        const int64_t half_more = rows + rows / 2;
        sum += group_ns(row, work, rows) / (double)rows +
               group_ns(row, work, half_more) / (double)half_more;
    }
    return sum;
}

/* most: rows that a group may have, at least LARGE_FIRST. */
static int kernel_for_large(gemm_kernel_set kernels, const expected_work *work, int64_t most)
{
    int best = GEMM_NO_KERNEL;
    double best_ns = 0;
    for (int i = 0; i < KERNEL_COUNT; i++) {
        if (gemm_set_has(kernels, i)) {
            const double ns = large_group_ns(&kernel_table[i], work, most);
            if (best == GEMM_NO_KERNEL || ns < best_ns) {
                best = i;
                best_ns = ns;
            }
        }
    }
    return best;
}

/* The most rows, whole tiles, up to which `row` is the better one; more than `most` if it always
 * is. */
static int64_t rows_for_small(const kernel_row *row, const kernel_row *large,
                              const expected_work *work, int64_t most)
{
    int64_t rows = row->tile_m;
    while (rows <= most &&
           group_ns(row, work, rows + row->tile_m) <= group_ns(large, work, rows + row->tile_m)) {
        rows += row->tile_m;
    }
    return rows;
}

gemm_choice gemm_choice_of(int kernel)
{
    return (gemm_choice){kernel, GEMM_NO_KERNEL, INT32_MAX};
}

/* Can the expected rows fall to the groups so that the kernel takes longer than the memory does?
 * There is at most one tile for each group and one for each tile's worth of rows. */
static bool suffers_from_uneven(const kernel_row *row, const expected_work *work)
{
    const int64_t rows = work->groups.rows * work->groups.count;
    const double tiles = (double)work->groups.count + (double)rows / row->tile_m;
    return tiles * group_ns(row, work, 1) > (double)work->rate_ns * (double)work->sms;
}

gemm_choice gemm_choice_for(gemm_kernel_set kernels, const tune_table *tune,
                            const halfbyte_problem *problem, const halfbyte_operands *operands,
                            int sms)
{
    const gemm_expected_groups groups = gemm_groups_expected(problem, operands);
    const gemm_choice alone =
        gemm_choice_of(gemm_kernel_for(kernels, tune, problem, operands, sms));
    const int64_t m = operands->m; /* rows that one group may have */
    if (problem->family != HALFBYTE_FAMILY_W4A8 || problem->grouping == HALFBYTE_GROUPING_DENSE ||
        problem->groups < 2 || problem->k_splits > 1 || m <= LARGE_FIRST ||
        tune_find(tune, kernels, problem, groups.rows, sms) >= 0) {
        return alone;
    }
    const expected_work work = work_expected(problem, &groups, sms);
    const kernel_row *row = &kernel_table[alone.kernel];
    if (expected_ns(row, &work) < UNEVEN_FROM_NS || !suffers_from_uneven(row, &work)) {
        return alone;
    }
    const int large = kernel_for_large(kernels, &work, m);
    if (large_group_ns(&kernel_table[large], &work, m) * 100 >
        large_group_ns(row, &work, m) * (100 - UNEVEN_PERCENT)) {
        return alone;
    }
    const int64_t times = groups.rows < UNEVEN_ROWS ? groups.rows * UNEVEN_TIMES : UNEVEN_ROWS;
    int64_t most = times < UNEVEN_ROWS ? times : UNEVEN_ROWS;
    most = most < m ? most : m - 1;
    const int64_t rows = rows_for_small(row, &kernel_table[large], &work, most);
    return rows > most || rows < groups.rows ? alone
                                             : (gemm_choice){alone.kernel, large, (int32_t)rows};
}

void gemm_describe(describe_line *line, gemm_kernel_set kernels)
{
    static const char prefix[] = "halfbyte_sm90_";
    const char *separator = " kernels=";
    for (int i = 0; i < KERNEL_COUNT; i++) {
        if (gemm_set_has(kernels, i)) {
            describe_add(line, "%s%s", separator, kernel_table[i].name + sizeof prefix - 1);
            separator = ",";
        }
    }
}
