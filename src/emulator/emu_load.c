/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies into shared memory that complete on an mbarrier: TMA tiles and bulk copies.
 * PTX ISA 9.7.9.25, 9.7.9.27.
 */
#include <string.h>

#include "emulator/copy.h"
#include "emulator/edited_map.h"
#include "emulator/emu_mbarrier.h"
#include "emulator/operation.h"
#include "emulator/stored.h"

/* The shared memory that a box takes, in pieces: rows, or all of it if rows touch. */
typedef struct extent {
    uint32_t pieces, bytes, pitch;
} extent;

static extent extent_of(const tensor_shape *shape, uint32_t linear_bytes)
{
    if (shape == NULL) {
        return (extent){1, linear_bytes, linear_bytes};
    }
    /* With a row narrower than its span the swizzle may move it anywhere in the span. */
    return (extent){1, box_pitch(shape) * box_rows(shape), 0};
}

static void copy_box(const load_operation *load, const tensor_shape *shape, uint32_t first_row,
                     uint32_t end_row)
{
    uint8_t *smem = load->target->smem;
    const uint32_t row_bytes = box_row_bytes(shape);
    uint8_t bytes[2048]; /* 256 elements of 8 bytes */
    for (uint32_t row = first_row; row < end_row; row++) {
        const box_row part = box_row_at(shape, load->at, row);
        if (part.count != row_bytes) {
            memset(bytes, 0, row_bytes);
        }
        if (part.count != 0 && memory_readable(part.source, part.count)) {
            memcpy(bytes + part.first, (const void *)(uintptr_t)part.source, part.count);
        }
        const uint32_t address = load->address + row * box_pitch(shape);
        for (uint32_t i = 0; i < row_bytes; i += 16) {
            memcpy(smem + swizzled(address + i, shape->swizzle), bytes + i, 16);
        }
    }
}

static void copy_linear(const load_operation *load, uint32_t first, uint32_t end)
{
    if (memory_readable((uint64_t)(uintptr_t)load->source + first, end - first)) {
        memcpy(load->target->smem + load->address + first, load->source + first, end - first);
    }
}

static void copy_half(const operation *self, uint32_t half)
{
    const load_operation *load = &self->load;
    load->target->smem_version++;
    if (load->map == NULL) {
        const uint32_t middle = load->bytes / 32 * 16;
        copy_linear(load, half ? middle : 0, half ? load->bytes : middle);
    } else {
        const uint32_t rows = box_rows(&self->shape);
        copy_box(load, &self->shape, half ? rows / 2 : 0, half ? rows : rows / 2);
    }
}

/* The map is read when the data is, not at issue: one that was edited too early shows. */
static bool advance(operation *self)
{
    const load_operation *load = &self->load;
    if (self->stage == 0) {
        if (load->map != NULL) {
            tensor_map_decode(load->map, &self->shape);
            bulk_map_was_read(self->issuer);
        }
        copy_half(self, 0);
        return false;
    }
    copy_half(self, 1);
    const extent where = extent_of(load->map != NULL ? &self->shape : NULL, load->bytes);
    const uint32_t clock = mbarrier_complete_tx(load->barrier, self->site, load->bytes);
    shadow_complete(load->target, load->address, where.bytes, load->mark,
                    touch_make(load->barrier->agent, clock, self->site->id, true));
    edited_map_read_complete(load->map, load->barrier->agent, clock, load->mark);
    return true;
}

static const operation_kind load_kind = {"copy", advance, NULL, NULL, true, true};

/* True if the destination is usable; then target and offset. */
static bool resolve(thread *self, const emu_site *site, smem_addr dst, uint32_t bytes,
                    uint32_t alignment, block **target, uint32_t *offset)
{
    *target = smem_resolve(self, dst, offset);
    if (*target == NULL || *offset % alignment != 0 || *offset < SMEM_START ||
        *offset + bytes > (*target)->smem_end) {
        hazard(self, "memory", site, NULL,
               "copy of %u bytes to shared address 0x%x: outside, or no multiple of %u", bytes, dst,
               alignment);
        return false;
    }
    return true;
}

/* One destination of a copy: marks it in flight, and hands the operation over. */
static void issue_to(thread *self, const emu_site *site, const load_operation *copy,
                     const extent *where, smem_addr dst, smem_addr bar, uint32_t alignment)
{
    block *target;
    uint32_t offset;
    mbarrier *b = mbarrier_use(self, bar, site);
    if (b == NULL || !resolve(self, site, dst, where->bytes, alignment, &target, &offset) ||
        !remote_allowed(self, site, target)) {
        return;
    }
    if (b->block != target) {
        hazard(self, "p", site, b->init_site, "destination and mbarrier are in different blocks");
        return;
    }
    const mbarrier *hit = mbarrier_touched(target, offset, where->bytes);
    if (hit != NULL) {
        hazard(self, "h", site, hit->init_site, "the copy overwrites a live mbarrier at 0x%x",
               hit->address);
    }
    operation *issued = operation_new(&load_kind, self, site);
    issued->load = *copy;
    issued->load.target = target;
    issued->load.address = offset;
    issued->load.barrier = b;
    issued->load.mark = touch_make(b->agent, TOUCH_IN_FLIGHT, site->id, true);
    const observer by = {self->vc, self->f, self, site, issued->load.mark, true};
    shadow_write(target, offset, where->bytes, &by);
    memset(target->smem + offset, the_machine.config.poison, where->bytes);
    target->smem_version++;
    if (edited_map_watched(copy->map)) {
        issued->load.map_group = bulk_current_group(self);
        edited_map_use(self, site, copy->map, issued->load.mark,
                       bulk_read_touch(self, issued->load.map_group, site));
    }
    operation_issue(issued);
}

static void issue(thread *self, const emu_site *site, const load_operation *copy,
                  const extent *where, smem_addr dst, smem_addr bar, uint16_t mask,
                  uint32_t alignment)
{
    if (mask == 0) {
        issue_to(self, site, copy, where, dst, bar, alignment);
        return;
    }
    const uint32_t local = ((uint32_t)1 << SMEM_RANK_SHIFT) - 1;
    for (uint32_t rank = 0; rank < 16; rank++) {
        const uint32_t window = (rank + 1) << SMEM_RANK_SHIFT;
        if (mask >> rank & 1) {
            issue_to(self, site, copy, where, (dst & local) | window, (bar & local) | window,
                     alignment);
        }
    }
}

void emu_tma_load(smem_addr dst, const tensor_map *map, smem_addr bar, uint32_t dims,
                  const int32_t *coordinates, uint16_t cta_mask, emu_site *site)
{
    thread *self = thread_enter(site);
    tensor_shape shape;
    if (!tensor_map_check(self, site, map, dims, &shape)) {
        return;
    }
    load_operation copy = {.map = map, .bytes = box_row_bytes(&shape) * box_rows(&shape)};
    memcpy(copy.at, coordinates, dims * sizeof copy.at[0]);
    box_allowed(self, site, &shape, copy.at, false); /* what is not readable stays poisoned */
    const extent where = extent_of(&shape, 0);
    issue(self, site, &copy, &where, dst, bar, cta_mask, 128);
}

void emu_bulk_load(smem_addr dst, const void *src, uint32_t bytes, smem_addr bar, uint16_t cta_mask,
                   emu_site *site)
{
    thread *self = thread_enter(site);
    if (bytes % 16 != 0 || bytes == 0 || (uintptr_t)src % 16 != 0) {
        hazard(self, "memory", site, NULL, "bulk copy of %u bytes from %p: no multiples of 16",
               bytes, src);
        return;
    }
    global_allowed(self, site, src, bytes, false);
    stores_check_read(self, site, src, bytes);
    const load_operation copy = {.source = src, .bytes = bytes};
    const extent where = extent_of(NULL, bytes);
    issue(self, site, &copy, &where, dst, bar, cta_mask, 16);
}

void emu_tma_prefetch_map(const tensor_map *map, emu_site *site)
{
    thread *self = thread_enter(site);
    tensor_shape shape;
    if (!tensor_map_decode(map, &shape)) {
        hazard(self, "memory", site, NULL, "%p is no tensor map", (const void *)map);
    }
}
