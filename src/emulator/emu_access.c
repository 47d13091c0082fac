/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ordinary accesses to shared and global memory.  PTX ISA 9.7.9.8, 9.7.9.11, 9.7.15 (ldmatrix).
 */
#include <string.h>

#include "emulator/copy.h"
#include "emulator/emu_mbarrier.h"
#include "emulator/emu_warp.h"
#include "emulator/stored.h"

smem_addr emu_smem_base(void)
{
    return (SMEM_START + 1023) / 1024 * 1024;
}

static bool shared_allowed(const thread *self, const emu_site *site, smem_addr addr, uint32_t bytes)
{
    const block *owner = self->block;
    if (addr >> SMEM_RANK_SHIFT != 0) {
        hazard(self, "p", site, NULL, "shared address 0x%x is of another block", addr);
        return false;
    }
    if (addr % bytes != 0 || addr < SMEM_START || addr + bytes > owner->smem_end) {
        hazard(self, "memory", site, NULL,
               "%u bytes at shared address 0x%x: misaligned, or outside [0x%x, 0x%x)", bytes, addr,
               (unsigned)SMEM_START, owner->smem_end);
        return false;
    }
    const mbarrier *hit = mbarrier_touched(owner, addr, bytes);
    if (hit != NULL) {
        hazard(self, "h", site, hit->init_site, "ordinary access to the bytes of a live mbarrier");
    }
    return true;
}

static void load(thread *self, const emu_site *site, smem_addr addr, void *value, uint32_t bytes)
{
    if (!shared_allowed(self, site, addr, bytes)) {
        memset(value, the_machine.config.poison, bytes);
        return;
    }
    const observer by = thread_observer(self, site);
    shadow_read(self->block, addr, bytes, &by);
    memcpy(value, self->block->smem + addr, bytes);
}

static void store(thread *self, const emu_site *site, smem_addr addr, const void *value,
                  uint32_t bytes)
{
    if (shared_allowed(self, site, addr, bytes)) {
        const observer by = thread_observer(self, site);
        shadow_write(self->block, addr, bytes, &by);
        memcpy(self->block->smem + addr, value, bytes);
        self->block->smem_version++;
    }
}

/* Kernels' memory may be a fragment in flight: a fault in the copy belongs to this site. */
void emu_smem_load(smem_addr addr, void *value, uint32_t bytes, emu_site *site)
{
    thread *self = thread_enter(site);
    uint8_t loaded[16];
    load(self, site, addr, loaded, bytes);
    the_machine.copying = site;
    memcpy(value, loaded, bytes);
    the_machine.copying = NULL;
}

void emu_smem_store(smem_addr addr, const void *value, uint32_t bytes, emu_site *site)
{
    thread *self = thread_enter(site);
    uint8_t stored[16];
    the_machine.copying = site;
    memcpy(stored, value, bytes);
    the_machine.copying = NULL;
    store(self, site, addr, stored, bytes);
}

/* Lane i gives the address of row i % 8 of matrix i / 8. */
static const uint64_t *row_addresses(thread *self, emu_site *site, smem_addr addr)
{
    const uint64_t *addresses = self->warp->exchange[self->warp->generation & 1];
    self->warp->exchange[self->warp->generation & 1][self->lane] = addr;
    if (warp_meet(self, site, MEETING_ALIGNED)) {
        warp_part(self->warp);
    }
    return addresses;
}

/* A lane holds elements 2 * (lane % 4) and the next of row lane / 4.  Each row is read by the lane
 * that gave its address; for the shadow the lane that gets the word stands in. */
void emu_ldmatrix(smem_addr addr, uint32_t *value, uint32_t matrices, emu_site *site)
{
    thread *self = thread_enter(site);
    const uint64_t *addresses = row_addresses(self, site, addr);
    uint32_t words[4];
    for (uint32_t m = 0; m < matrices; m++) {
        const smem_addr row = (smem_addr)addresses[m * 8 + self->lane / 4];
        if (row % 16 != 0) {
            hazard(self, "memory", site, NULL, "row address 0x%x is no multiple of 16", row);
        }
        load(self, site, row + self->lane % 4 * 4, &words[m], 4);
    }
    the_machine.copying = site;
    memcpy(value, words, matrices * sizeof words[0]);
    the_machine.copying = NULL;
}

void emu_stmatrix(smem_addr addr, const uint32_t *value, uint32_t matrices, emu_site *site)
{
    thread *self = thread_enter(site);
    uint32_t words[4];
    the_machine.copying = site;
    memcpy(words, value, matrices * sizeof words[0]);
    the_machine.copying = NULL;
    const uint64_t *addresses = row_addresses(self, site, addr);
    for (uint32_t m = 0; m < matrices; m++) {
        const smem_addr row = (smem_addr)addresses[m * 8 + self->lane / 4];
        if (row % 16 != 0) {
            hazard(self, "memory", site, NULL, "row address 0x%x is no multiple of 16", row);
        }
        store(self, site, row + self->lane % 4 * 4, &words[m], 4);
    }
}

/* As it falls into memory, a lane writes word lane % 4 of row lane / 4: elements of two lanes. */
void emu_stmatrix_x4_trans(smem_addr addr, const uint32_t *value, emu_site *site)
{
    thread *self = thread_enter(site);
    const uint32_t column = self->lane / 4, pair = self->lane % 4;
    uint32_t words[4];
    the_machine.copying = site;
    memcpy(words, value, sizeof words);
    the_machine.copying = NULL;
    for (uint32_t m = 0; m < 4; m++) {
        uint64_t *lanes = self->warp->exchange[self->warp->generation & 1];
        lanes[self->lane] = (uint64_t)words[m] << 32 | addr;
        if (warp_meet(self, site, MEETING_ALIGNED)) {
            warp_part(self->warp);
        }
        const smem_addr row = (smem_addr)lanes[m * 8 + column];
        const uint32_t shift = 32 + column % 2 * 16;
        const uint32_t low = (uint32_t)(lanes[pair * 8 + column / 2] >> shift) & 0xffffu;
        const uint32_t high = (uint32_t)(lanes[pair * 8 + 4 + column / 2] >> shift) & 0xffffu;
        const uint32_t word = low | high << 16;
        if (row % 16 != 0) {
            hazard(self, "memory", site, NULL, "row address 0x%x is no multiple of 16", row);
        }
        store(self, site, row + pair * 4, &word, 4);
    }
}

void emu_global_load(const void *address, void *value, uint32_t bytes, bool read_only,
                     emu_site *site)
{
    thread *self = thread_enter(site);
    uint8_t loaded[16];
    (void)read_only;
    memset(loaded, the_machine.config.poison, sizeof loaded);
    if ((uintptr_t)address % bytes != 0) {
        hazard(self, "memory", site, NULL, "load of %u bytes at %p: misaligned", bytes, address);
    } else if (global_allowed(self, site, address, bytes, false)) {
        stores_check_read(self, site, address, bytes);
        memcpy(loaded, address, bytes);
    }
    the_machine.copying = site;
    memcpy(value, loaded, bytes);
    the_machine.copying = NULL;
}

void emu_global_store(void *address, const void *value, uint32_t bytes, emu_site *site)
{
    thread *self = thread_enter(site);
    uint8_t stored[16];
    the_machine.copying = site;
    memcpy(stored, value, bytes);
    the_machine.copying = NULL;
    if ((uintptr_t)address % bytes != 0) {
        hazard(self, "memory", site, NULL, "store of %u bytes at %p: misaligned", bytes, address);
    } else if (global_allowed(self, site, address, bytes, true)) {
        memcpy(address, stored, bytes);
    }
}

void emu_prefetch_l2(const void *address, emu_site *site)
{
    thread_enter(site);
    (void)address; /* a hint: any address will do */
}
