/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_run(): builds the machine, runs cluster after cluster, takes it down.
 */
#include <stdlib.h>
#include <string.h>

#include "emulator/copy.h"
#include "emulator/edited_map.h"
#include "emulator/emu_mbarrier.h"
#include "emulator/emu_warp.h"
#include "emulator/emu_wgmma.h"
#include "emulator/operation.h"
#include "emulator/parts.h"
#include "emulator/schedule.h"
#include "emulator/stored.h"
#include "model/fp_env.h"

enum {
    SMEM_MAX = 232448, /* dynamic shared memory of a block */
    THREADS_MAX = 1024,
    CLUSTER_MAX = 16,
    LIVE_THREADS_MAX = 8192,
};

static bool launch_valid(const emu_launch *launch)
{
    return launch->kernel != NULL && launch->blocks > 0 && launch->cluster > 0 &&
           launch->cluster <= CLUSTER_MAX && launch->blocks % launch->cluster == 0 &&
           launch->threads > 0 && launch->threads <= THREADS_MAX && launch->threads % LANES == 0 &&
           launch->smem_bytes <= SMEM_MAX && (launch->params != NULL || launch->params_bytes == 0);
}

static bool arguments_valid(const emu_config *config, const emu_memory *memory,
                            const emu_launch *launches, size_t count, const emu_report *report)
{
    if (config == NULL || memory == NULL || launches == NULL || report == NULL || count < 1 ||
        count > 2 || (unsigned)config->policy >= EMU_POLICY_COUNT ||
        (unsigned)config->order >= EMU_ORDER_COUNT) {
        return false;
    }
    uint64_t live = 0;
    for (size_t i = 0; i < count; i++) {
        if (!launch_valid(&launches[i])) {
            return false;
        }
        live +=
            (uint64_t)launches[i].threads * (count == 1 ? launches[i].cluster : launches[i].blocks);
    }
    return live <= LIVE_THREADS_MAX;
}

static void block_exit(block *owner)
{
    const operation *flying = operation_into(owner);
    if (flying != NULL) {
        hazard(flying->issuer, owner->cluster->block_count > 1 ? "i" : "d", flying->site, NULL,
               "block %u ends while this copy into its shared memory is in flight", owner->index);
    }
    mbarriers_at_exit(owner);
    remotes_at_exit(owner);
    sequences_at_exit(owner);
}

static void thread_exit(thread *self)
{
    bulk_at_exit(self);
    cp_async_at_exit(self);
    wgmma_at_exit(self);
    warp_lane_exits(self);
    cluster_thread_exits(self);
    the_machine.grid_live[self->block->grid]--;
    self->block->live--;
    if (self->block->live == 0) {
        block_exit(self->block);
    }
    grid_check_start();
    thread_finish(self);
}

static void thread_main(void *argument)
{
    thread *self = argument;
    if (self->block->grid == 1) {
        static emu_site start = {__FILE__, __LINE__, "start of the dependent grid", 0};
        thread_enter(&start);
        while (!grid_may_start_second()) {
            thread_block(self, WAIT_LAUNCH, NULL, 0, &the_machine.launch_waiters);
        }
    }
    self->block->launch->kernel(parts_params(self->block->grid));
    thread_exit(self);
}

static void thread_begin(machine *m, block *owner, uint32_t in_block)
{
    thread *self = &owner->threads[in_block];
    const uint32_t index = (uint32_t)(self - m->threads);
    memset(self, 0, sizeof *self);
    self->block = owner;
    self->warp = &owner->warps[in_block / LANES];
    self->index = index;
    self->in_block = in_block;
    self->lane = in_block % LANES;
    self->vc = machine_clock();
    self->f = machine_clock();
    agent_new(AGENT_THREAD, self);
    fiber_prepare(&self->fiber, parts_stacks(), index, PARTS_STACK_BYTES, thread_main, self);
    thread_make_ready(self);
}

static void block_begin(machine *m, block *owner, uint32_t index)
{
    owner->index = index;
    owner->live = owner->thread_count;
    owner->launched_dependents = false;
    owner->barrier_count = 0;
    owner->register_waiters.first = NULL;
    owner->free_registers = 0;
    memset(owner->named, 0, sizeof owner->named);
    memset(owner->barrier_at, 0, (owner->smem_end / 8 + 2) * sizeof *owner->barrier_at);
    memset(owner->smem, m->config.poison, owner->smem_end + 16);
    owner->smem_version++;
    for (uint32_t w = 0; w < owner->warp_count; w++) {
        warp *made = &owner->warps[w];
        memset(made, 0, sizeof *made);
        made->block = owner;
        made->index = (uint32_t)(made - m->warps);
        made->in_block = w;
        made->threads = &owner->threads[w * LANES];
        made->registers = owner->launch->registers;
    }
}

/* Every part as at the start of a cluster; first: block index of its first block. */
static void begin(machine *m, uint32_t first)
{
    clock_table_reset(&m->clocks);
    m->spare_clock = NULL;
    m->live = m->thread_count;
    m->grid_live[0] = m->grid_live[1] = 0;
    m->grid_waiters.first = m->launch_waiters.first = NULL;
    uint32_t index = first;
    for (uint32_t b = 0; b < m->block_count; b++) {
        block *owner = &m->blocks[b];
        if (b > 0 && owner->grid != m->blocks[b - 1].grid) {
            index = 0;
        }
        block_begin(m, owner, index++);
        m->grid_live[owner->grid] += owner->thread_count;
        for (uint32_t t = 0; t < owner->thread_count; t++) {
            thread_begin(m, owner, t);
        }
    }
    for (uint32_t t = 0; t < m->thread_count; t++) {
        m->threads[t].vc[t] = 1;
    }
    m->grid_agent = agent_new(AGENT_GRID, NULL);
    for (uint32_t c = 0; c < m->cluster_count; c++) {
        cluster *made = &m->clusters[c];
        *made = (cluster){.blocks = made->blocks, .block_count = made->block_count};
        made->live = made->block_count * made->blocks[0].thread_count;
    }
}

static void block_end(block *owner)
{
    for (uint32_t i = 0; i < owner->barrier_count; i++) {
        free(owner->barriers[i]->seen);
        free(owner->barriers[i]);
    }
    owner->barrier_count = 0;
    while (owner->remote != NULL) {
        remote_access *one = owner->remote;
        owner->remote = one->next;
        free(one);
    }
    for (uint32_t w = 0; w < owner->warp_count; w++) {
        tensor_free(&owner->warps[w]);
    }
    shadow_clear(&owner->shadow);
}

static void end(machine *m)
{
    operations_discard();
    for (uint32_t t = 0; t < m->thread_count; t++) {
        bulk_free(&m->threads[t]);
        cp_async_free(&m->threads[t]);
        fiber_release(&m->threads[t].fiber);
    }
    for (uint32_t b = 0; b < m->block_count; b++) {
        block_end(&m->blocks[b]);
    }
    memset(m->ready, 0, m->ready_words * sizeof *m->ready);
    fragments_forget();
    edited_maps_forget();
    stores_forget();
}

static void run_clusters(machine *m)
{
    const uint32_t step = m->launch_count == 1 ? m->launches[0].cluster : m->launches[0].blocks;
    for (uint32_t first = 0; first < m->launches[0].blocks && !m->stopped; first += step) {
        begin(m, first);
        schedule_run();
        end(m);
    }
}

emu_status emu_run(const emu_config *config, emu_memory *memory, const emu_launch *launches,
                   size_t count, emu_report *report)
{
    if (!arguments_valid(config, memory, launches, count, report)) {
        return EMU_BAD_ARGUMENT;
    }
    machine *m = &the_machine;
    emu_status status = EMU_OUT_OF_MEMORY;
    memset(m, 0, sizeof *m);
    m->config = *config;
    m->memory = memory;
    m->report = report;
    m->launches = launches;
    m->launch_count = count;
    m->random = config->seed;
    sites_configure(config);
    if (parts_assemble(m) && faults_begin()) {
        const fp_env env = fp_env_save();
        fp_env_set();
        run_clusters(m);
        fp_env_restore(env);
        faults_end();
        report_resolve(report);
        status = m->stopped ? EMU_STOPPED : EMU_OK;
    }
    parts_take_apart(m);
    return status;
}
