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
#include "emulator/schedule.h"
#include "model/fp_env.h"

enum {
    STACK_BYTES = 64 * 1024,
    SMEM_MAX = 232448, /* dynamic shared memory of a block */
    THREADS_MAX = 1024,
    CLUSTER_MAX = 16,
    AGENTS_MAX = 1 << 16,
};

/* What one run holds besides the machine. */
typedef struct run_memory {
    void *stacks;
    void *params[2];
} run_memory;

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
    return launch_valid(&launches[0]) && (count == 1 || launch_valid(&launches[1]));
}

/* Blocks of a launch that are live at a time. */
static uint32_t live_blocks(size_t launch_count, const emu_launch *launch)
{
    return launch_count == 1 ? launch->cluster : launch->blocks;
}

static void count_parts(machine *m)
{
    for (size_t i = 0; i < m->launch_count; i++) {
        const emu_launch *launch = &m->launches[i];
        const uint32_t blocks = live_blocks(m->launch_count, launch);
        m->block_count += blocks;
        m->cluster_count += blocks / launch->cluster;
        m->thread_count += blocks * launch->threads;
    }
    m->warp_count = m->thread_count / LANES;
    m->ready_words = (m->thread_count + 63) / 64;
}

/* Agents: threads, warps, the grid before; then barriers and the threads' copies, as they come. */
static bool allocate_clocks(machine *m)
{
    uint64_t agents = 1 + 4 * (uint64_t)m->thread_count + m->warp_count + 256 * m->block_count;
    agents = agents > AGENTS_MAX ? AGENTS_MAX : agents;
    const uint64_t vectors = 2 * (uint64_t)m->thread_count + 2 * (uint64_t)m->warp_count +
                             (uint64_t)m->block_count * 1200 + 4096;
    m->agents = calloc(agents + CLOCK_LANES, sizeof *m->agents);
    return m->agents != NULL && clock_table_create(&m->clocks, (uint32_t)vectors, (uint32_t)agents);
}

static bool allocate(machine *m, run_memory *own)
{
    count_parts(m);
    m->threads = calloc(m->thread_count, sizeof *m->threads);
    m->warps = calloc(m->warp_count, sizeof *m->warps);
    m->blocks = calloc(m->block_count, sizeof *m->blocks);
    m->clusters = calloc(m->cluster_count, sizeof *m->clusters);
    m->ready = calloc(m->ready_words, sizeof *m->ready);
    own->stacks = fiber_stacks_create(m->thread_count, STACK_BYTES);
    if (m->threads == NULL || m->warps == NULL || m->blocks == NULL || m->clusters == NULL ||
        m->ready == NULL || own->stacks == NULL || !allocate_clocks(m) ||
        !fragments_begin(m->thread_count)) {
        return false;
    }
    for (size_t i = 0; i < m->launch_count; i++) {
        const size_t bytes = (m->launches[i].params_bytes + 64) / 64 * 64;
        own->params[i] = aligned_alloc(64, bytes);
        if (own->params[i] == NULL) {
            return false;
        }
        memset(own->params[i], 0, bytes);
        if (m->launches[i].params_bytes > 0) {
            memcpy(own->params[i], m->launches[i].params, m->launches[i].params_bytes);
        }
    }
    return m->launch_count == 1 || memory_watch(m->memory);
}

/* Fixes the parts' places in each other, once for all clusters; blocks of both launches in order.
 */
static bool connect(machine *m)
{
    uint32_t block_at = 0, thread_at = 0, cluster_at = 0;
    for (size_t i = 0; i < m->launch_count; i++) {
        const emu_launch *launch = &m->launches[i];
        const uint32_t blocks = live_blocks(m->launch_count, launch);
        for (uint32_t b = 0; b < blocks; b++, block_at++) {
            block *made = &m->blocks[block_at];
            if (b % launch->cluster == 0) {
                m->clusters[cluster_at].blocks = made;
                m->clusters[cluster_at++].block_count = launch->cluster;
            }
            made->grid = (uint32_t)i;
            made->launch = launch;
            made->rank = b % launch->cluster;
            made->cluster = &m->clusters[cluster_at - 1];
            made->threads = &m->threads[thread_at];
            made->warps = &m->warps[thread_at / LANES];
            made->thread_count = launch->threads;
            made->warp_count = launch->threads / LANES;
            made->smem_end = SMEM_START + launch->smem_bytes;
            made->smem = malloc(made->smem_end + 16);
            made->barrier_at = calloc(made->smem_end / 8 + 2, sizeof *made->barrier_at);
            if (made->smem == NULL || made->barrier_at == NULL ||
                !shadow_create(&made->shadow, made->smem_end + 16)) {
                return false;
            }
            thread_at += launch->threads;
        }
    }
    return true;
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

static const void *params_of[2];

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
    self->block->launch->kernel(params_of[self->block->grid]);
    thread_exit(self);
}

static void thread_begin(machine *m, run_memory *own, block *owner, uint32_t in_block)
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
    fiber_prepare(&self->fiber, own->stacks, index, STACK_BYTES, thread_main, self);
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
static void begin(machine *m, run_memory *own, uint32_t first)
{
    clock_table_reset(&m->clocks);
    m->spare_count = 0;
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
            thread_begin(m, own, owner, t);
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
    tensormaps_forget();
}

static void release(machine *m, run_memory *own)
{
    for (uint32_t b = 0; m->blocks != NULL && b < m->block_count; b++) {
        free(m->blocks[b].smem);
        free(m->blocks[b].barrier_at);
        shadow_destroy(&m->blocks[b].shadow);
    }
    while (m->free_operations != NULL) {
        operation *one = m->free_operations;
        m->free_operations = one->next;
        free(one);
    }
    fiber_stacks_destroy(own->stacks, m->thread_count, STACK_BYTES);
    clock_table_destroy(&m->clocks);
    memory_unwatch(m->memory);
    free(m->agents);
    free(m->threads);
    free(m->warps);
    free(m->blocks);
    free(m->clusters);
    free(m->ready);
    free(own->params[0]);
    free(own->params[1]);
}

static void run_clusters(machine *m, run_memory *own)
{
    const uint32_t step = m->launch_count == 1 ? m->launches[0].cluster : m->launches[0].blocks;
    for (uint32_t first = 0; first < m->launches[0].blocks && !m->stopped; first += step) {
        begin(m, own, first);
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
    run_memory own = {0};
    emu_status status = EMU_OUT_OF_MEMORY;
    memset(m, 0, sizeof *m);
    m->config = *config;
    m->memory = memory;
    m->report = report;
    m->launches = launches;
    m->launch_count = count;
    m->random = config->seed;
    sites_configure(config);
    if (allocate(m, &own) && connect(m) && faults_begin()) {
        const fp_env env = fp_env_save();
        fp_env_set();
        params_of[0] = own.params[0];
        params_of[1] = own.params[1];
        run_clusters(m, &own);
        fp_env_restore(env);
        faults_end();
        report_resolve(report);
        status = m->stopped ? EMU_STOPPED : EMU_OK;
    }
    release(m, &own);
    return status;
}
