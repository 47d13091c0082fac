/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four warps of a warpgroup must execute the same warpgroup instructions in the same order.
 *
 * Each warp numbers its own; the first to reach a number writes down what it executes there, the
 * others compare.
 */
#include <stdlib.h>

#include "emulator/emu_wgmma.h"

struct sequence_ring {
    uint32_t reached; /* numbers written down */
    struct {
        const emu_site *site;
        uint64_t operands;
        uint32_t warp;
    } entries[SEQUENCE_LENGTH];
};

static warp *first_warp(const thread *self)
{
    return &self->block->warps[self->warp->in_block / WARPS_A_GROUP * WARPS_A_GROUP];
}

void sequence_check(thread *self, const emu_site *site, uint64_t operands)
{
    tensor_core *group = tensor_of(first_warp(self));
    const uint32_t number = tensor_of(self->warp)->sequence++;
    if (group->ring == NULL && (group->ring = calloc(1, sizeof *group->ring)) == NULL) {
        abort_run("out of memory");
        return;
    }
    struct sequence_ring *ring = group->ring;
    const uint32_t at = number % SEQUENCE_LENGTH;
    if (number >= ring->reached) {
        ring->reached = number + 1;
        ring->entries[at].site = site;
        ring->entries[at].operands = operands;
        ring->entries[at].warp = self->warp->in_block;
    } else if (ring->reached - number <= SEQUENCE_LENGTH &&
               (ring->entries[at].site->id != site->id || ring->entries[at].operands != operands)) {
        hazard(self, "m", site, ring->entries[at].site,
               "warps %u and %u of a warpgroup execute different %s", self->warp->in_block,
               ring->entries[at].warp,
               ring->entries[at].site->id != site->id ? "instructions"
                                                      : "operands of an instruction");
    }
}

void sequences_at_exit(block *owner)
{
    for (uint32_t w = 0; w < owner->warp_count; w++) {
        const warp *first = &owner->warps[w / WARPS_A_GROUP * WARPS_A_GROUP];
        const warp *own = &owner->warps[w];
        const uint32_t expected = first->tensor != NULL ? first->tensor->sequence : 0;
        const uint32_t executed = own->tensor != NULL ? own->tensor->sequence : 0;
        if (executed != expected) {
            const tensor_core *more = executed > expected ? own->tensor : first->tensor;
            hazard(&own->threads[0], "m", more->last_site, NULL,
                   "warps %u and %u of a warpgroup executed %u and %u warpgroup instructions",
                   first->in_block, own->in_block, expected, executed);
        }
    }
}
