/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/stored.h"

#include "emulator/tensor_map.h"

enum { STORES_KEPT = 256 };

typedef struct stored {
    uint64_t low, high; /* addresses that it may write: [low, high) */
    bool tile;
    tensor_shape shape;
    int32_t at[3];
    uint32_t done_agent, group;
    const emu_site *site;
    const thread *issuer;
} stored;

static stored kept[STORES_KEPT];
static uint32_t kept_ever;
static uint64_t all_low, all_high; /* of all that are kept */

void stores_forget(void)
{
    kept_ever = 0;
}

void stores_keep(const thread *self, const emu_site *site, const store_operation *store,
                 uint32_t done_agent, uint32_t group)
{
    stored *one = &kept[kept_ever++ % STORES_KEPT];
    *one = (stored){.tile = store->map != NULL,
                    .at = {store->at[0], store->at[1], store->at[2]},
                    .done_agent = done_agent,
                    .group = group,
                    .site = site,
                    .issuer = self};
    one->low = (uint64_t)(uintptr_t)store->target;
    one->high = one->low + store->bytes;
    if (one->tile && tensor_map_decode(store->map, &one->shape)) {
        one->low = UINT64_MAX;
        one->high = 0;
        for (uint32_t row = 0; row < box_rows(&one->shape); row++) {
            const box_row part = box_row_at(&one->shape, one->at, row);
            if (part.count != 0) {
                one->low = part.source < one->low ? part.source : one->low;
                one->high =
                    part.source + part.count > one->high ? part.source + part.count : one->high;
            }
        }
    }
    if (kept_ever == 1) {
        all_low = one->low;
        all_high = one->high;
    }
    all_low = one->low < all_low ? one->low : all_low;
    all_high = one->high > all_high ? one->high : all_high;
}

static bool writes(const stored *one, uint64_t address, size_t bytes)
{
    if (address >= one->high || address + bytes <= one->low) {
        return false;
    }
    for (uint32_t row = 0; one->tile && row < box_rows(&one->shape); row++) {
        const box_row part = box_row_at(&one->shape, one->at, row);
        if (part.count != 0 && address < part.source + part.count &&
            part.source < address + bytes) {
            return true;
        }
    }
    return !one->tile;
}

void stores_check_read(const thread *self, const emu_site *site, const void *address, size_t bytes)
{
    const uint64_t at = (uint64_t)(uintptr_t)address;
    if (kept_ever == 0 || at >= all_high || at + bytes <= all_low) {
        return;
    }
    const uint32_t count = kept_ever < STORES_KEPT ? kept_ever : STORES_KEPT;
    for (uint32_t i = 0; i < count; i++) {
        const stored *one = &kept[i];
        if (self->vc[one->done_agent] < one->group && writes(one, at, bytes)) {
            hazard(self, "g", site, one->site,
                   "reads global memory that a bulk store of thread %u writes; nothing on the way "
                   "here has waited for the store's completion",
                   one->issuer->in_block);
        }
    }
}
