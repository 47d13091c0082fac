/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wgmma: fence, issue, commit, wait.  PTX ISA 9.7.15.
 */
#include "emulator/emu_wgmma.h"

#include <stdlib.h>

#include "emulator/emu_warp.h"
#include "emulator/operation.h"
#include "emulator/schedule.h"

tensor_core *tensor_of(warp *w)
{
    if (w->tensor == NULL) {
        w->tensor = calloc(1, sizeof *w->tensor);
        if (w->tensor == NULL) {
            static tensor_core spare; /* the run ends at the next switch */
            abort_run("out of memory");
            w->tensor = &spare;
        }
        w->tensor->agent = agent_new(AGENT_TENSOR, w);
        w->tensor->vc = machine_clock();
        w->tensor->f = machine_clock();
    }
    return w->tensor;
}

void tensor_free(warp *w)
{
    if (w->tensor != NULL) {
        for (int i = 0; i < ACCUMULATORS_MAX; i++) {
            free(w->tensor->accumulators[i].values);
        }
        free(w->tensor->operands);
        free(w->tensor->ring);
        free(w->tensor);
        w->tensor = NULL;
    }
}

/* Groups 1 .. this are complete. */
static uint32_t completed(const tensor_core *tensor)
{
    return tensor->first != NULL ? tensor->first->wgmma.group - 1 : tensor->committed;
}

static void take_clocks(warp *w, tensor_core *tensor)
{
    const clock_table *clocks = &the_machine.clocks;
    clock_copy(clocks, tensor->vc, w->threads[0].vc);
    clock_copy(clocks, tensor->f, w->threads[0].f);
    for (int lane = 1; lane < LANES; lane++) {
        clock_join(clocks, tensor->vc, w->threads[lane].vc);
        clock_join(clocks, tensor->f, w->threads[lane].f);
    }
    for (int lane = 0; lane < LANES; lane++) {
        thread_release(&w->threads[lane]);
    }
}

void emu_wgmma_fence(emu_site *site)
{
    thread *self = thread_enter(site);
    if (site_removed(site) || !warp_meet(self, site, MEETING_ALIGNED)) {
        return;
    }
    tensor_core *tensor = tensor_of(self->warp);
    sequence_check(self, site, 0);
    take_clocks(self->warp, tensor);
    fragments_fence(self->warp);
    tensor->fences++;
    warp_part(self->warp);
}

void emu_wgmma_commit(emu_site *site)
{
    thread *self = thread_enter(site);
    if (site_removed(site) || !warp_meet(self, site, MEETING_ALIGNED)) {
        return;
    }
    tensor_core *tensor = tensor_of(self->warp);
    sequence_check(self, site, 0);
    tensor->committed++;
    tensor->open = 0;
    warp_part(self->warp);
}

/* The thread learns that its warp's groups up to this one are complete. */
static void learn(thread *self, const tensor_core *tensor, uint32_t group)
{
    if (self->vc[tensor->agent] < group) {
        self->vc[tensor->agent] = group;
    }
}

void emu_wgmma_wait(uint32_t pending, emu_site *site)
{
    thread *self = thread_enter(site);
    warp *w = self->warp;
    if (site_removed(site)) {
        return;
    }
    pending += site_mutation(site) == EMU_MUTATE_WEAKEN;
    if (warp_meet(self, site, MEETING_ALIGNED)) {
        sequence_check(self, site, pending);
        warp_part(w);
    }
    tensor_core *tensor = tensor_of(w);
    const uint32_t target = tensor->committed > pending ? tensor->committed - pending : 0;
    while (completed(tensor) < target) {
        thread_block(self, WAIT_WGMMA, w, target, &tensor->waiters);
    }
    if (tensor->waited < target) {
        tensor->waited = target;
        flight_deliver(self, site);
    }
    learn(self, tensor, target);
    if (the_machine.config.relaxed) {
        const uint32_t first = w->in_block / WARPS_A_GROUP * WARPS_A_GROUP;
        for (uint32_t i = first; i < first + WARPS_A_GROUP && i < self->block->warp_count; i++) {
            if (self->block->warps[i].tensor != NULL) {
                learn(self, self->block->warps[i].tensor, target);
            }
        }
    }
}

static bool first_of_warp(const operation *self)
{
    return self->wgmma.warp->tensor->first == self;
}

/* The operation that was behind it may go: DELAY_SITE and EARLIEST see to it at the next switch. */
static bool advance(operation *self)
{
    tensor_core *tensor = self->wgmma.warp->tensor;
    wgmma_advance(self);
    tensor->first = self->wgmma.next_of_warp;
    if (tensor->first == NULL) {
        tensor->last = NULL;
    }
    wait_list_wake(&tensor->waiters);
    return true;
}

static const operation_kind wgmma_kind = {"wgmma", advance, first_of_warp, NULL, false, false};

/* What the lanes must agree on: where their registers are, and the other operands. */
typedef struct lane_registers {
    bool is_fragment;
    fragment_place d, a;
} lane_registers;

static uint64_t agreement(const lane_registers *registers, bool from_registers, uint64_t desc_a,
                          uint64_t desc_b, uint32_t scale_d)
{
    uint64_t word = ((uint64_t)registers->d.fragment->index << 16 | registers->d.element) << 42;
    if (from_registers) {
        word |= ((uint64_t)registers->a.fragment->index << 16 | registers->a.element) << 20;
    }
    const uint64_t mixed =
        (desc_a * 0x9e3779b97f4a7c15ull ^ desc_b) * 0xbf58476d1ce4e5b9ull + (scale_d != 0);
    return word ^ mixed >> 44;
}

static lane_registers find_registers(const thread *self, const float *d, const uint32_t *a)
{
    lane_registers found = {.is_fragment =
                                fragment_locate(d, &found.d) && found.d.thread == self->index};
    if (a != NULL) {
        found.is_fragment &= fragment_locate(a, &found.a) && found.a.thread == self->index;
    }
    return found;
}

static void check_agreement(thread *self, const emu_site *site)
{
    const uint64_t *words = self->warp->exchange[self->warp->generation & 1];
    for (int lane = 1; lane < LANES; lane++) {
        if (words[lane] != words[0]) {
            hazard(self, "m", site, NULL,
                   "lanes 0 and %d of warp %u give different operands to one wgmma", lane,
                   self->warp->in_block);
            return;
        }
    }
}

/* By the last lane to come, for the warp. */
static void warp_issue(thread *self, const emu_site *site, const lane_registers *registers,
                       const wgmma_operation *operands)
{
    tensor_core *tensor = tensor_of(self->warp);
    const uint32_t group = tensor->committed + 1;
    tensor->last_site = site;
    tensor->open++;
    operation *issued = operation_new(&wgmma_kind, self, site);
    issued->wgmma = *operands;
    issued->wgmma.warp = self->warp;
    issued->wgmma.group = group;
    if (operands->from_registers) {
        operand_take(self, site, registers->a);
        issued->wgmma.a = fragment_words(registers->a.fragment, self->warp->threads[0].index) +
                          registers->a.element;
        issued->wgmma.a_stride = fragment_lane_stride(registers->a.fragment);
    }
    issued->wgmma.d = accumulator_take(self, site, registers->d, operands->n);
    wgmma_check_operands(issued, self);
    *(tensor->last != NULL ? &tensor->last->wgmma.next_of_warp : &tensor->first) = issued;
    tensor->last = issued;
    operation_issue(issued);
}

static void lane_issue(const float *d, const uint32_t *a, const wgmma_operation *operands,
                       uint32_t scale_d, emu_site *site)
{
    thread *self = thread_enter(site);
    const lane_registers registers = find_registers(self, d, a);
    if (!registers.is_fragment ||
        registers.d.element + operands->n / 2 > registers.d.fragment->count ||
        (a != NULL && registers.a.element + 4 > registers.a.fragment->count)) {
        hazard(self, "memory", site, NULL,
               "a register operand is not, or not whole, in a FRAGMENT of this thread");
        abort_run(NULL);
        return;
    }
    self->warp->exchange[self->warp->generation & 1][self->lane] =
        agreement(&registers, a != NULL, operands->desc_a, operands->desc_b, scale_d);
    if (!warp_meet(self, site, MEETING_ALIGNED)) {
        return;
    }
    check_agreement(self, site);
    sequence_check(self, site, operands->desc_a * 31 + operands->desc_b * 7 + (scale_d != 0));
    warp_issue(self, site, &registers, operands);
    warp_part(self->warp);
}

void emu_wgmma_ss(float *d, uint32_t n, emu_operand_type type, uint64_t desc_a, uint64_t desc_b,
                  uint32_t scale_d, emu_site *site)
{
    const wgmma_operation operands = {
        .n = n, .type = type, .desc_a = desc_a, .desc_b = desc_b, .accumulate = scale_d != 0};
    lane_issue(d, NULL, &operands, scale_d, site);
}

void emu_wgmma_rs(float *d, uint32_t n, emu_operand_type type, const uint32_t *a, uint64_t desc_b,
                  uint32_t scale_d, emu_site *site)
{
    const wgmma_operation operands = {
        .n = n, .type = type, .from_registers = true, .desc_b = desc_b, .accumulate = scale_d != 0};
    lane_issue(d, a, &operands, scale_d, site);
}

void wgmma_at_exit(thread *self)
{
    const tensor_core *tensor = self->warp->tensor;
    if (tensor != NULL && tensor->waited < tensor->committed + (tensor->open > 0)) {
        hazard(self, "m", tensor->last_site, NULL, "the thread returns, but %s",
               tensor->open > 0 ? "this wgmma was not committed"
                                : "the group of this wgmma was not waited for");
    }
}
