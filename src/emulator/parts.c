/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/parts.h"

#include <stdlib.h>
#include <string.h>

#include "emulator/fragment.h"
#include "emulator/operation.h"

enum { AGENTS_MAX = 1 << 16 };

/*
 * The parts of a machine, kept for the next run of the same shape: mapping them anew costs more
 * than a small kernel's run.
 */
static struct parts {
    emu_launch launches[2]; /* that they were made for */
    size_t launch_count;
    thread *threads;
    warp *warps;
    block *blocks;
    cluster *clusters;
    uint64_t *ready;
    agent_info *agents;
    clock_table clocks;
    void *stacks;
    uint32_t thread_count, warp_count, block_count, cluster_count;
} parts;

static void *params_of[2]; /* of the run's launches: copies */

void *parts_stacks(void)
{
    return parts.stacks;
}

const void *parts_params(uint32_t grid)
{
    return params_of[grid];
}

/* Blocks of a launch that are live at a time. */
static uint32_t live_blocks(size_t launch_count, const emu_launch *launch)
{
    return launch_count == 1 ? launch->cluster : launch->blocks;
}

static bool same_shape(const emu_launch *launches, size_t count)
{
    bool same = parts.launch_count == count;
    for (size_t i = 0; i < count && same; i++) {
        const emu_launch *had = &parts.launches[i], *wanted = &launches[i];
        same = had->threads == wanted->threads && had->smem_bytes == wanted->smem_bytes &&
               had->cluster == wanted->cluster &&
               live_blocks(count, had) == live_blocks(count, wanted);
    }
    return same;
}

static void parts_free(void)
{
    for (uint32_t b = 0; parts.blocks != NULL && b < parts.block_count; b++) {
        free(parts.blocks[b].smem);
        free(parts.blocks[b].barrier_at);
        shadow_destroy(&parts.blocks[b].shadow);
    }
    fiber_stacks_destroy(parts.stacks, parts.thread_count, PARTS_STACK_BYTES);
    clock_table_destroy(&parts.clocks);
    free(parts.agents);
    free(parts.threads);
    free(parts.warps);
    free(parts.blocks);
    free(parts.clusters);
    free(parts.ready);
    memset(&parts, 0, sizeof parts);
}

/* Agents: threads, warps, the grid before; then barriers and the threads' copies, as they come. */
static bool make_clocks(void)
{
    uint64_t agents =
        1 + 4 * (uint64_t)parts.thread_count + parts.warp_count + 256 * (uint64_t)parts.block_count;
    agents = agents > AGENTS_MAX ? AGENTS_MAX : agents;
    const uint64_t vectors = 2 * (uint64_t)parts.thread_count + 2 * (uint64_t)parts.warp_count +
                             (uint64_t)parts.block_count * 1200 + 4096;
    parts.agents = calloc(agents + CLOCK_LANES, sizeof *parts.agents);
    return parts.agents != NULL &&
           clock_table_create(&parts.clocks, (uint32_t)vectors, (uint32_t)agents);
}

/* One block's own memory, and its place among the parts. */
static bool make_block(block *made, const emu_launch *launch, uint32_t thread_at)
{
    made->threads = &parts.threads[thread_at];
    made->warps = &parts.warps[thread_at / LANES];
    made->thread_count = launch->threads;
    made->warp_count = launch->threads / LANES;
    made->smem_end = SMEM_START + launch->smem_bytes;
    made->smem = malloc(made->smem_end + 16);
    made->barrier_at = calloc(made->smem_end / 8 + 2, sizeof *made->barrier_at);
    return made->smem != NULL && made->barrier_at != NULL &&
           shadow_create(&made->shadow, made->smem_end + 16);
}

/* Blocks of both launches in order. */
static bool make_blocks(void)
{
    uint32_t block_at = 0, thread_at = 0, cluster_at = 0;
    for (size_t i = 0; i < parts.launch_count; i++) {
        const emu_launch *launch = &parts.launches[i];
        const uint32_t blocks = live_blocks(parts.launch_count, launch);
        for (uint32_t b = 0; b < blocks; b++, block_at++) {
            block *made = &parts.blocks[block_at];
            if (b % launch->cluster == 0) {
                parts.clusters[cluster_at].blocks = made;
                parts.clusters[cluster_at++].block_count = launch->cluster;
            }
            made->grid = (uint32_t)i;
            made->rank = b % launch->cluster;
            made->cluster = &parts.clusters[cluster_at - 1];
            if (!make_block(made, launch, thread_at)) {
                return false;
            }
            thread_at += launch->threads;
        }
    }
    return true;
}

static bool parts_make(const emu_launch *launches, size_t count)
{
    parts.launch_count = count;
    for (size_t i = 0; i < count; i++) {
        const uint32_t blocks = live_blocks(count, &launches[i]);
        parts.launches[i] = launches[i];
        parts.block_count += blocks;
        parts.cluster_count += blocks / launches[i].cluster;
        parts.thread_count += blocks * launches[i].threads;
    }
    parts.warp_count = parts.thread_count / LANES;
    parts.threads = calloc(parts.thread_count, sizeof *parts.threads);
    parts.warps = calloc(parts.warp_count, sizeof *parts.warps);
    parts.blocks = calloc(parts.block_count, sizeof *parts.blocks);
    parts.clusters = calloc(parts.cluster_count, sizeof *parts.clusters);
    parts.ready = calloc((parts.thread_count + 63) / 64, sizeof *parts.ready);
    parts.stacks = fiber_stacks_create(parts.thread_count, PARTS_STACK_BYTES);
    return parts.threads != NULL && parts.warps != NULL && parts.blocks != NULL &&
           parts.clusters != NULL && parts.ready != NULL && parts.stacks != NULL && make_clocks() &&
           make_blocks();
}

static bool copy_params(const emu_launch *launches, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = (launches[i].params_bytes + 64) / 64 * 64;
        params_of[i] = aligned_alloc(64, bytes);
        if (params_of[i] == NULL) {
            return false;
        }
        memset(params_of[i], 0, bytes);
        if (launches[i].params_bytes > 0) {
            memcpy(params_of[i], launches[i].params, launches[i].params_bytes);
        }
    }
    return true;
}

bool parts_assemble(machine *m)
{
    if (!same_shape(m->launches, m->launch_count)) {
        parts_free();
        if (!parts_make(m->launches, m->launch_count)) {
            parts_free();
            return false;
        }
    }
    m->threads = parts.threads;
    m->warps = parts.warps;
    m->blocks = parts.blocks;
    m->clusters = parts.clusters;
    m->ready = parts.ready;
    m->agents = parts.agents;
    m->clocks = parts.clocks;
    m->thread_count = parts.thread_count;
    m->warp_count = parts.warp_count;
    m->block_count = parts.block_count;
    m->cluster_count = parts.cluster_count;
    m->ready_words = (m->thread_count + 63) / 64;
    for (uint32_t b = 0; b < m->block_count; b++) {
        m->blocks[b].launch = &m->launches[m->blocks[b].grid];
    }
    return copy_params(m->launches, m->launch_count) && fragments_begin(m->thread_count) &&
           (m->launch_count == 1 || memory_watch(m->memory));
}

void parts_take_apart(machine *m)
{
    parts.clocks = m->clocks;
    while (m->free_operations != NULL) {
        operation *one = m->free_operations;
        m->free_operations = one->next;
        free(one);
    }
    memory_unwatch(m->memory);
    for (int i = 0; i < 2; i++) {
        free(params_of[i]);
        params_of[i] = NULL;
    }
}
