/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/site.h"

#include <string.h>

uint8_t site_marks[SITES_MAX];
emu_mutation site_mutation_now;

static const emu_site *sites[SITES_MAX]; /* [0] unused */
static uint32_t sites_met = 1;
static emu_config marking; /* configuration that the marks follow */

/* One of both names ends in the other, at a '/'. */
static bool same_file(const char *a, const char *b)
{
    const size_t a_bytes = strlen(a);
    const size_t b_bytes = strlen(b);
    const char *longer = a_bytes > b_bytes ? a : b;
    const char *shorter = a_bytes > b_bytes ? b : a;
    const char *tail = longer + (a_bytes > b_bytes ? a_bytes - b_bytes : b_bytes - a_bytes);
    return strcmp(tail, shorter) == 0 && (tail == longer || tail[-1] == '/');
}

static void mark(uint32_t id)
{
    const emu_site *site = sites[id];
    site_marks[id] = 0;
    if (marking.mutate_file != NULL && site->line == marking.mutate_line &&
        same_file(site->file, marking.mutate_file) &&
        (marking.mutate_instruction == NULL ||
         strcmp(site->instruction, marking.mutate_instruction) == 0)) {
        site_marks[id] |= SITE_MUTATED;
    }
    if (marking.policy == EMU_DELAY_SITE && marking.delay_file != NULL &&
        site->line == marking.delay_line && same_file(site->file, marking.delay_file)) {
        site_marks[id] |= SITE_DELAYED;
    }
}

void site_register(emu_site *site)
{
    for (uint32_t id = 1; id < sites_met; id++) {
        if (sites[id]->line == site->line &&
            strcmp(sites[id]->instruction, site->instruction) == 0 &&
            strcmp(sites[id]->file, site->file) == 0) {
            site->id = id;
            return;
        }
    }
    if (sites_met < SITES_MAX) {
        sites[sites_met++] = site;
    }
    site->id = sites_met - 1; /* past the last number, sites share it */
    mark(site->id);
}

void sites_configure(const emu_config *config)
{
    marking = *config;
    site_mutation_now = config->mutation;
    for (uint32_t id = 1; id < sites_met; id++) {
        mark(id);
    }
}

const emu_site *site_numbered(uint32_t id)
{
    return id < sites_met ? sites[id] : NULL;
}

const char *site_file_of(const char *path)
{
    for (uint32_t id = 1; id < sites_met; id++) {
        if (strlen(sites[id]->file) <= strlen(path) && same_file(path, sites[id]->file)) {
            return sites[id]->file;
        }
    }
    return path;
}

size_t emu_site_count(void)
{
    return sites_met - 1;
}

const emu_site *emu_site_at(size_t index)
{
    return index < emu_site_count() ? sites[index + 1] : NULL;
}

uint32_t emu_mutation_kinds(const emu_site *site)
{
    enum {
        REMOVE = 1 << EMU_MUTATE_REMOVE,
        WEAKEN = 1 << EMU_MUTATE_WEAKEN,
        COUNTS = 1 << EMU_MUTATE_COUNT_LESS | 1 << EMU_MUTATE_COUNT_MORE,
        PARITY = 1 << EMU_MUTATE_FLIP_PARITY,
    };
    static const struct {
        const char *instruction;
        uint32_t kinds;
    } table[] = {
        {"mbarrier_init", COUNTS},
        {"fence_mbarrier_init", REMOVE},
        {"mbarrier_arrive", REMOVE},
        {"mbarrier_expect_tx", REMOVE | COUNTS},
        {"mbarrier_arrive_expect_tx", REMOVE | COUNTS},
        {"mbarrier_arrive_cluster", REMOVE},
        {"mbarrier_try_wait", REMOVE | PARITY},
        {"mbarrier_wait", REMOVE | PARITY},
        {"bulk_commit", REMOVE},
        {"bulk_wait", REMOVE | WEAKEN},
        {"bulk_wait_read", REMOVE | WEAKEN},
        {"fence_proxy_async", REMOVE},
        {"fence_proxy_async_global", REMOVE},
        {"fence_proxy_tensormap_release", REMOVE},
        {"fence_proxy_tensormap_acquire", REMOVE},
        {"wgmma_fence", REMOVE},
        {"wgmma_commit", REMOVE},
        {"wgmma_wait", REMOVE | WEAKEN},
        {"block_sync", REMOVE},
        {"barrier_sync", REMOVE | COUNTS},
        {"barrier_arrive", REMOVE | COUNTS},
        {"warp_sync", REMOVE},
        {"cluster_arrive", REMOVE},
        {"cluster_wait", REMOVE},
        {"grid_dependency_wait", REMOVE},
        {"cp_async_commit", REMOVE},
        {"cp_async_wait", REMOVE | WEAKEN},
        {"cp_async_mbarrier_arrive", REMOVE},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(site->instruction, table[i].instruction) == 0) {
            return table[i].kinds;
        }
    }
    return 0;
}
