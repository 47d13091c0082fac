/* SPDX-License-Identifier: Apache-2.0 */
/* How the rows of a grouped product fall to its groups, and the time that they may take. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/expert_loads.h"
#include "common.h"

/* What an H200 is taken to give: bytes of weights and activations and multiply-adds of wgmma in a
 * microsecond, a launch, and the share above all that which is allowed. */
static const double bytes_per_us = 4.3e6, flops_per_us = 1724e6, launch_us = 3, allowed = 1.25;

bool bench_load_parse(const char *text, bench_load *load)
{
    static const char zipf[] = "zipf";
    int64_t top = 0;
    *load = (bench_load){.kind = BENCH_LOAD_EVEN};
    if (strcmp(text, "even") == 0)
        return true;
    if (strcmp(text, "one") == 0) {
        load->kind = BENCH_LOAD_ONE;
        return true;
    }
    if (strncmp(text, zipf, sizeof zipf - 1) != 0 ||
        !cli_parse_int(text + sizeof zipf - 1, 1, EXPERT_LOADS_MOST_TOP, &top))
        return false;
    *load = (bench_load){BENCH_LOAD_ZIPF, top};
    return true;
}

const char *bench_load_text(const bench_load *load, char text[BENCH_LOAD_BYTES])
{
    static const char *const names[] = {"", "even", "one", "zipf"};
    int used = snprintf(text, BENCH_LOAD_BYTES, "%s", names[load->kind]);
    if (load->kind == BENCH_LOAD_ZIPF)
        snprintf(text + used, (size_t)(BENCH_LOAD_BYTES - used), "%lld", (long long)load->top);
    return text;
}

/* ---- rows of groups -------------------------------------------------------------------------- */

int bench_load_check(const bench_shape *shape, const char *where)
{
    const halfbyte_problem *problem = &shape->problem;
    const char *colon = where != NULL ? ": " : "";
    where = where != NULL ? where : "";
    if (shape->load.kind == BENCH_LOAD_NONE)
        return CLI_OK;
    if (problem->grouping != HALFBYTE_GROUPING_RANGES &&
        problem->grouping != HALFBYTE_GROUPING_LABELS)
        return cli_fail(CLI_USAGE, "%s%sa load says how rows fall to groups: ranges or labels",
                        where, colon);
    if (shape->load.kind == BENCH_LOAD_ZIPF &&
        (shape->load.top > shape->groups || problem->m_max % shape->load.top != 0))
        return cli_fail(CLI_USAGE,
                        "%s%szipf%lld: %lld rows are no tokens with %lld different ones of %lld "
                        "groups each",
                        where, colon, (long long)shape->load.top, (long long)problem->m_max,
                        (long long)shape->load.top, (long long)shape->groups);
    return CLI_OK;
}

int bench_instance(const bench_shape *shape, uint64_t seed, instance *made)
{
    const bench_load *load = &shape->load;
    int64_t groups = shape->groups, *rows = NULL;
    if (load->kind == BENCH_LOAD_ONE || load->kind == BENCH_LOAD_ZIPF) {
        rows = cli_alloc((uint64_t)groups, sizeof *rows);
        if (rows == NULL) {
            memset(made, 0, sizeof *made);
            return cli_fail_memory((uint64_t)groups * sizeof *rows);
        }
        for (int64_t group = 0; group < groups; ++group)
            rows[group] = group == groups / 2 ? shape->problem.m_max : 0;
    }
    if (load->kind == BENCH_LOAD_ZIPF)
        expert_loads_zipf(shape->problem.m_max / load->top, load->top, groups, seed, rows);
    int code = instance_create(made, &shape->problem, rows, 0);
    free(rows);
    return code;
}

/* ---- what it may take ------------------------------------------------------------------------ */

int64_t bench_used_groups(const instance *made)
{
    int64_t used = 0;
    for (int64_t group = 0; group < made->groups; ++group)
        used += made->sizes[group] > 0;
    return used;
}

int64_t bench_most_rows(const instance *made)
{
    int64_t most = 0;
    for (int64_t group = 0; group < made->groups; ++group)
        most = made->sizes[group] > most ? made->sizes[group] : most;
    return most;
}

double bench_limit_us(const bench_shape *shape, const instance *made)
{
    const double n = (double)made->n, k = (double)made->k, rows = (double)made->owned_rows;
    const double weight = shape->problem.family == HALFBYTE_FAMILY_W4A8 ? 0.5 : 1;
    const double bytes = k * (n * weight * (double)bench_used_groups(made) + rows);
    const double reading = bytes / bytes_per_us, computing = 2 * rows * n * k / flops_per_us;
    if (shape->load.kind == BENCH_LOAD_NONE)
        return 0;
    return allowed * ((reading > computing ? reading : computing) + launch_us);
}
