/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programmatic dependent launch, and who a thread is.  PTX ISA 9.7.13.13.
 */
#include "emulator/operation.h"
#include "emulator/schedule.h"

uint32_t emu_thread_index(void)
{
    return the_machine.running->in_block;
}

uint32_t emu_block_index(void)
{
    return the_machine.running->block->index;
}

uint32_t emu_block_count(void)
{
    return the_machine.running->block->launch->blocks;
}

uint32_t emu_cluster_rank(void)
{
    return the_machine.running->block->rank;
}

uint32_t emu_cluster_size(void)
{
    return the_machine.running->block->cluster->block_count;
}

/* The first grid has ended: every thread has returned, and what they issued is complete. */
static bool first_grid_ended(void)
{
    return the_machine.grid_live[0] == 0 && !operations_of_grid(0);
}

void emu_grid_dependency_wait(emu_site *site)
{
    thread *self = thread_enter(site);
    if (site_removed(site) || self->block->grid == 0) {
        return; /* nothing before it */
    }
    while (!first_grid_ended()) {
        thread_block(self, WAIT_GRID, NULL, 0, &the_machine.grid_waiters);
    }
    self->vc[the_machine.grid_agent] = 1;
    self->f[the_machine.grid_agent] = 1;
}

bool grid_may_start_second(void)
{
    for (uint32_t i = 0; i < the_machine.block_count; i++) {
        const block *b = &the_machine.blocks[i];
        if (b->grid == 0 && b->live > 0 && !b->launched_dependents) {
            return false;
        }
    }
    return true;
}

void grid_check_start(void)
{
    if (the_machine.launch_waiters.first != NULL && grid_may_start_second()) {
        wait_list_wake(&the_machine.launch_waiters);
    }
    if (the_machine.grid_waiters.first != NULL && first_grid_ended()) {
        wait_list_wake(&the_machine.grid_waiters);
    }
}

void emu_grid_launch_dependents(emu_site *site)
{
    thread *self = thread_enter(site);
    self->block->launched_dependents = true;
    grid_check_start();
}
