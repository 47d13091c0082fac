/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites: numbers for the records that kernels pass, and what the configuration does to some.
 *
 * A site is (file, line, instruction): records that agree in these, from several instances of one
 * kernel, share a number.
 */
#ifndef HALFBYTE_EMULATOR_SITE_H
#define HALFBYTE_EMULATOR_SITE_H

#include "emulator/api.h"

enum {
    SITES_MAX = 1 << 15,
    SITE_MUTATED = 1,
    SITE_DELAYED = 2,
};

/* Marks of each site under the configuration of the run. */
extern uint8_t site_marks[SITES_MAX];
extern emu_mutation site_mutation_now;

/* Gives the record its number. */
void site_register(emu_site *site);

/* Sets the marks of all sites, also of those met later in the run. */
void sites_configure(const emu_config *config);

/* The site with this number, 1 and up. */
const emu_site *site_numbered(uint32_t id);

/* The name that call sites of this file go by, if path ends in it; else path. */
const char *site_file_of(const char *path);

/* What the run's mutant makes of this instruction. */
static inline emu_mutation site_mutation(const emu_site *site)
{
    return site_marks[site->id] & SITE_MUTATED ? site_mutation_now : EMU_MUTATE_NOTHING;
}

static inline bool site_removed(const emu_site *site)
{
    return site_mutation(site) == EMU_MUTATE_REMOVE;
}

static inline bool site_delayed(const emu_site *site)
{
    return site_marks[site->id] & SITE_DELAYED;
}

/* A count under COUNT_LESS and COUNT_MORE. */
static inline uint32_t site_count(const emu_site *site, uint32_t count, uint32_t step)
{
    const emu_mutation mutation = site_mutation(site);
    if (mutation == EMU_MUTATE_COUNT_LESS) {
        return count > step ? count - step : 0;
    }
    return mutation == EMU_MUTATE_COUNT_MORE ? count + step : count;
}

#endif
