/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers in flight: accumulators between the first wgmma on them and the wait that covers the
 * last one, and A operands.
 */
#include <stdlib.h>
#include <string.h>

#include "emulator/emu_wgmma.h"
#include "emulator/operation.h"

/* Row of the warp's 16 and column of a lane's accumulator element. */
static size_t value_index(const accumulator *d, uint32_t lane, uint32_t element)
{
    const uint32_t row = lane / 4 + 8 * (element >> 1 & 1);
    const uint32_t column = element / 4 * 8 + lane % 4 * 2 + (element & 1);
    return (size_t)row * ((d->n + 31) / 32 * 32) + column;
}

static uint32_t *lane_words(const warp *w, const accumulator *d, uint32_t lane)
{
    return fragment_words(d->fragment, w->threads[0].index) +
           lane * fragment_lane_stride(d->fragment) + d->element;
}

static void values_from_registers(const warp *w, accumulator *d)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint32_t *words = lane_words(w, d, lane);
        for (uint32_t i = 0; i < d->n / 2; i++) {
            memcpy(&d->values[value_index(d, lane, i)], &words[i], sizeof words[i]);
            words[i] = FRAGMENT_POISON;
        }
    }
}

static bool values_to_registers(const warp *w, const accumulator *d)
{
    bool intact = true;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint32_t *words = lane_words(w, d, lane);
        for (uint32_t i = 0; i < d->n / 2; i++) {
            intact &= words[i] == FRAGMENT_POISON;
            memcpy(&words[i], &d->values[value_index(d, lane, i)], sizeof words[i]);
        }
    }
    return intact;
}

/* Closes or opens the fragment's pages as what is in flight demands. */
static void update_guard(warp *w, const fragment *f)
{
    const tensor_core *tensor = w->tensor;
    page_guard guard = GUARD_OPEN;
    for (uint32_t i = 0; i < tensor->operand_count; i++) {
        if (tensor->operands[i].fragment == f) {
            guard = GUARD_READ_ONLY;
        }
    }
    for (uint32_t i = 0; i < ACCUMULATORS_MAX; i++) {
        if (tensor->accumulators[i].fragment == f) {
            guard = GUARD_CLOSED;
        }
    }
    fragment_guard(f, w, guard);
}

static void check_fence(thread *self, const emu_site *site, const fragment_place *place,
                        uint32_t count, const char *role)
{
    const fragment *f = place->fragment;
    const char *why = NULL;
    if (fragment_of_warp(f, self->warp)->needs_fence) {
        why = "was not followed by wgmma_fence after its ordinary accesses";
    } else if (fragment_changed_since_fence(f, self->warp, place->element, count)) {
        why = "was written after the last wgmma_fence";
    }
    if (why != NULL) {
        hazard(self, "f", site, f->site, "%s fragment '%s' %s", role, f->name, why);
    }
}

/* Another shape on registers in flight: what was there comes first. */
static void finish_other_shape(thread *self, const emu_site *site, accumulator *other)
{
    tensor_core *tensor = self->warp->tensor;
    if (other->fence == tensor->fences) {
        hazard(self, "f", site, other->site,
               "fragment '%s' is in flight as an accumulator of another shape or place, and no "
               "wgmma_fence lies between",
               other->fragment->name);
    }
    while (tensor->first != NULL) {
        operation_complete(tensor->first);
    }
    values_to_registers(self->warp, other);
    other->fragment = NULL;
}

accumulator *accumulator_take(thread *self, const emu_site *site, fragment_place place, uint32_t n)
{
    tensor_core *tensor = self->warp->tensor;
    accumulator *spare = NULL;
    bool flown = false; /* its elements are in flight already */
    for (uint32_t i = 0; i < ACCUMULATORS_MAX; i++) {
        accumulator *d = &tensor->accumulators[i];
        if (d->fragment == place.fragment && d->element < place.element + n / 2 &&
            place.element < d->element + d->n / 2) {
            if (d->element == place.element && d->n == n) {
                d->group = tensor->committed + 1;
                d->fence = tensor->fences;
                d->site = site;
                return d;
            }
            finish_other_shape(self, site, d);
            flown = true;
        }
        spare = d->fragment == NULL ? d : spare;
    }
    if (spare == NULL ||
        (spare->values == NULL &&
         (spare->values = aligned_alloc(64, WARP_ROWS * 256 * sizeof(float))) == NULL)) {
        abort_run("too many accumulators in flight");
        spare = &tensor->accumulators[0];
    }
    if (!flown) {
        check_fence(self, site, &place, n / 2, "accumulator");
    }
    spare->fragment = place.fragment;
    spare->element = place.element;
    spare->n = n;
    spare->group = tensor->committed + 1;
    spare->fence = tensor->fences;
    spare->site = site;
    values_from_registers(self->warp, spare);
    update_guard(self->warp, place.fragment);
    return spare;
}

bool operand_take(thread *self, const emu_site *site, fragment_place place)
{
    tensor_core *tensor = self->warp->tensor;
    if (tensor->operand_count == tensor->operand_capacity) {
        const uint32_t capacity = tensor->operand_capacity ? 2 * tensor->operand_capacity : 16;
        register_operand *operands = realloc(tensor->operands, capacity * sizeof *operands);
        if (operands == NULL) {
            abort_run("out of memory");
            return false;
        }
        tensor->operands = operands;
        tensor->operand_capacity = capacity;
    }
    check_fence(self, site, &place, 4, "A operand");
    register_operand *operand = &tensor->operands[tensor->operand_count++];
    *operand = (register_operand){place.fragment, place.element, tensor->committed + 1,
                                  site,           false,         {{0}}};
    for (uint32_t lane = 0; lane < LANES; lane++) {
        memcpy(operand->words[lane],
               fragment_words(place.fragment, self->warp->threads[lane].index) + place.element,
               sizeof operand->words[lane]);
    }
    update_guard(self->warp, place.fragment);
    return true;
}

static void check_operand(thread *self, const emu_site *site, const register_operand *operand)
{
    for (uint32_t lane = 0; lane < LANES && !operand->reported; lane++) {
        const thread *owner = &self->warp->threads[lane];
        const uint32_t *words = fragment_words(operand->fragment, owner->index) + operand->element;
        if (memcmp(words, operand->words[lane], sizeof operand->words[lane]) != 0) {
            hazard(owner, "b", operand->site, site,
                   "fragment '%s' was written between this wgmma and the wait that covers it",
                   operand->fragment->name);
            return;
        }
    }
}

void flight_deliver(thread *self, const emu_site *site)
{
    warp *w = self->warp;
    tensor_core *tensor = w->tensor;
    for (uint32_t i = 0; i < ACCUMULATORS_MAX; i++) {
        accumulator *d = &tensor->accumulators[i];
        fragment *f = d->fragment;
        if (f == NULL || d->group > tensor->waited) {
            continue;
        }
        if (!values_to_registers(w, d) && the_machine.config.no_guards) {
            hazard(self, "a", d->site, site,
                   "fragment '%s' was written between this wgmma and the wait that covers it",
                   f->name);
        }
        d->fragment = NULL;
        fragment_of_warp(f, w)->needs_fence = true;
        update_guard(w, f);
    }
    uint32_t kept = 0;
    const uint32_t count = tensor->operand_count;
    for (uint32_t i = 0; i < count; i++) {
        if (tensor->operands[i].group > tensor->waited) {
            tensor->operands[kept++] = tensor->operands[i];
        } else {
            check_operand(self, site, &tensor->operands[i]);
            fragment_of_warp(tensor->operands[i].fragment, w)->needs_fence = true;
        }
    }
    tensor->operand_count = kept;
    for (uint32_t i = 0; kept < count && i < fragment_count(); i++) {
        if (fragment_of_warp(fragment_at(i), w)->guard == GUARD_READ_ONLY) {
            update_guard(w, fragment_at(i));
        }
    }
}

fragment_use wgmma_use_of(const warp *w, const fragment *f, uint32_t element, bool write,
                          const emu_site **site)
{
    tensor_core *tensor = w->tensor;
    if (tensor == NULL) {
        return FRAGMENT_UNUSED;
    }
    for (uint32_t i = 0; i < ACCUMULATORS_MAX; i++) {
        const accumulator *d = &tensor->accumulators[i];
        if (d->fragment == f && element >= d->element && element < d->element + d->n / 2) {
            *site = d->site;
            return FRAGMENT_ACCUMULATOR;
        }
    }
    for (uint32_t i = 0; i < tensor->operand_count && write; i++) {
        register_operand *operand = &tensor->operands[i];
        if (operand->fragment == f && element >= operand->element &&
            element < operand->element + 4) {
            operand->reported = true;
            *site = operand->site;
            return FRAGMENT_OPERAND;
        }
    }
    return FRAGMENT_UNUSED;
}
