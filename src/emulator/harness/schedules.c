/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/harness/schedules.h"

#include <string.h>

/* Instructions whose effect comes later than their issue. */
static bool is_asynchronous(const char *instruction)
{
    static const char *const names[] = {
        "tma_load",   "tma_store", "tma_reduce_add", "bulk_load",
        "bulk_store", "wgmma",     "cp_async",       "mbarrier_arrive_cluster",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(instruction, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The index-th line of the kernel that may be delayed, or NULL; *count of all if it is not NULL.
 * Sites of one line are delayed together. */
static const emu_site *delayable_at(const schedule_axes *axes, size_t index, size_t *count)
{
    const emu_site *found = NULL, *last = NULL;
    size_t lines = 0;
    for (size_t i = axes->first_site; i < emu_site_count(); i++) {
        const emu_site *site = emu_site_at(i);
        if (is_asynchronous(site->instruction) && !(last != NULL && last->line == site->line)) {
            found = lines == index ? site : found;
            last = site;
            lines++;
        }
    }
    if (count != NULL) {
        *count = lines;
    }
    return found;
}

static size_t delayable_count(const schedule_axes *axes)
{
    size_t count;
    delayable_at(axes, 0, &count);
    return count;
}

static void delay(const schedule_axes *axes, size_t index, emu_config *config)
{
    const emu_site *site = delayable_at(axes, index, NULL);
    if (site == NULL) {
        config->policy = EMU_EARLIEST;
        return;
    }
    config->delay_file = site->file;
    config->delay_line = site->line;
}

emu_config schedule_make(const schedule_axes *axes, emu_policy policy, emu_order order,
                         uint64_t seed)
{
    static const uint8_t poisons[] = {0xff, 0x00, 0x5a, 0x81};
    emu_config config = emu_config_default();
    const size_t sites = delayable_count(axes);
    config.policy = policy;
    config.order = order;
    config.seed = seed;
    config.poison = poisons[seed % sizeof poisons];
    config.starved_warp = (int)(seed % axes->warps);
    if (policy == EMU_DELAY_SITE) {
        delay(axes, sites == 0 ? 0 : seed % sites, &config);
    }
    return config;
}

/* EARLIEST, LATEST, LIFO, TORN, then a site each; LOW_FIRST, HIGH_FIRST, STARVE_WARP twice. */
enum { PLAIN_POLICIES = 4, PLAIN_ORDERS = 4 };

size_t schedule_count(const schedule_axes *axes)
{
    return (PLAIN_POLICIES + delayable_count(axes)) * PLAIN_ORDERS;
}

emu_config schedule_at(const schedule_axes *axes, size_t index)
{
    static const emu_policy policies[PLAIN_POLICIES] = {EMU_EARLIEST, EMU_LATEST, EMU_LIFO,
                                                        EMU_TORN};
    static const emu_order orders[PLAIN_ORDERS] = {EMU_LOW_FIRST, EMU_HIGH_FIRST, EMU_STARVE_WARP,
                                                   EMU_STARVE_WARP};
    const size_t policy = index / PLAIN_ORDERS, order = index % PLAIN_ORDERS;
    emu_config config = emu_config_default();
    config.policy = policy < PLAIN_POLICIES ? policies[policy] : EMU_DELAY_SITE;
    config.order = orders[order];
    config.starved_warp = order == PLAIN_ORDERS - 1 ? (int)axes->warps - 1 : 0;
    if (policy >= PLAIN_POLICIES) {
        delay(axes, policy - PLAIN_POLICIES, &config);
    }
    return config;
}

bool schedule_in_share(size_t index, size_t share)
{
    return index % (2 * PLAIN_ORDERS) == share % (2 * PLAIN_ORDERS);
}

emu_config schedule_draw(const schedule_axes *axes, uint64_t seed)
{
    uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    /* Half of the draws complete at random, half run shuffled. */
    const emu_policy policy = z & 1 ? EMU_RANDOM : (emu_policy)((z >> 8) % EMU_POLICY_COUNT);
    const emu_order order = z & 2 ? EMU_SHUFFLED : (emu_order)((z >> 16) % EMU_ORDER_COUNT);
    return schedule_make(axes, policy, order, z >> 24);
}
