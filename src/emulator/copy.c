/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/copy.h"

#include "emulator/buffers.h"
#include "emulator/stored.h"

static void outside_report(const thread *self, const emu_site *site, const void *address,
                           size_t bytes, bool write)
{
    int64_t distance = 0;
    const buffer *nearest = memory_nearest(the_machine.memory, address, &distance);
    const char *verb = write ? "write" : "read";
    if (nearest == NULL) {
        hazard(self, "memory", site, NULL,
               "%s of %zu bytes of global memory, but there is no buffer", verb, bytes);
    } else if (distance < 0 && (uint8_t *)(uintptr_t)address < nearest->data) {
        hazard(self, "memory", site, NULL,
               "%s of %zu bytes that begins %lld bytes before buffer '%s'", verb, bytes,
               (long long)-distance, nearest->name);
    } else if (distance < 0) {
        hazard(self, "memory", site, NULL,
               "%s of %zu bytes that runs past the end of buffer '%s' by "
               "%lld bytes",
               verb, bytes, nearest->name, (long long)distance + (long long)bytes);
    } else {
        hazard(self, "memory", site, NULL,
               "%s of %zu bytes that begins %lld bytes past the end of "
               "buffer '%s'",
               verb, bytes, (long long)distance, nearest->name);
    }
}

static void grid_report(const thread *self, const emu_site *site, uint16_t other, const char *what)
{
    hazard(self, "j", site, site_numbered(other), "%s, with no grid_dependency_wait in between",
           what);
}

/* Two grids: the second may touch what the first writes only after its wait. */
static void check_grids(const thread *self, const emu_site *site, buffer *b, size_t offset,
                        size_t bytes, bool write)
{
    const bool early = self->vc[the_machine.grid_agent] == 0;
    const uint16_t id = (uint16_t)site->id;
    for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; i++) {
        grid_cell *cell = &b->cells[i];
        if (self->block->grid == 0) {
            *(write ? &cell->first_write : &cell->first_read) = id;
            if (write && cell->early_read != 0) {
                grid_report(self, site, cell->early_read, "writes what the next grid has read");
            } else if (cell->early_write != 0) {
                grid_report(self, site, cell->early_write,
                            "touches what the next grid has written");
            }
        } else if (early) {
            *(write ? &cell->early_write : &cell->early_read) = id;
            if (cell->first_write != 0) {
                grid_report(self, site, cell->first_write,
                            "touches what the preceding grid has written");
            } else if (write && cell->first_read != 0) {
                grid_report(self, site, cell->first_read,
                            "writes what the preceding grid has read");
            }
        }
    }
}

bool global_allowed(const thread *self, const emu_site *site, const void *address, size_t bytes,
                    bool write)
{
    buffer *b = memory_find(the_machine.memory, address, bytes);
    if (b == NULL) {
        outside_report(self, site, address, bytes, write);
        return false;
    }
    if (write && !b->writable) {
        hazard(self, "memory", site, NULL,
               "write of %zu bytes to read-only buffer '%s' at byte %zu", bytes, b->name,
               (size_t)((const uint8_t *)address - b->data));
        return false;
    }
    if (b->cells != NULL) {
        check_grids(self, site, b, (size_t)((const uint8_t *)address - b->data), bytes, write);
    }
    return true;
}

bool memory_readable(uint64_t address, size_t bytes)
{
    return memory_find(the_machine.memory, (const void *)(uintptr_t)address, bytes) != NULL;
}

bool tensor_map_check(const thread *self, const emu_site *site, const tensor_map *map,
                      uint32_t dims, tensor_shape *shape)
{
    if ((uintptr_t)map % 64 != 0 || !tensor_map_decode(map, shape)) {
        hazard(self, "memory", site, NULL, "%p is no tensor map, or not aligned to 64 bytes",
               (const void *)map);
        return false;
    }
    if (dims != 0 && shape->rank != dims) {
        hazard(self, "memory", site, NULL, "%u coordinates for a tensor map of %u dimensions", dims,
               shape->rank);
        return false;
    }
    return true;
}

/* What the copy engine answers with an illegal instruction, read off an H200. */
static bool box_begins_well(const thread *self, const emu_site *site, const tensor_shape *shape,
                            const int32_t at[3], bool write)
{
    const int64_t byte = (int64_t)at[0] * shape->element_bytes;
    if (byte % 16 != 0) {
        hazard(self, "memory", site, NULL, "box at byte %lld of its rows: must be a multiple of 16",
               (long long)byte);
        return false;
    }
    for (uint32_t i = 0; write && i < shape->rank; i++) {
        if (at[i] < 0) {
            hazard(self, "memory", site, NULL,
                   "box of a store at %d in dimension %u: must not begin before the tensor",
                   (int)at[i], (unsigned)i);
            return false;
        }
    }
    return true;
}

bool box_allowed(const thread *self, const emu_site *site, const tensor_shape *shape,
                 const int32_t at[3], bool write)
{
    bool allowed = box_begins_well(self, site, shape, at, write);
    bool whole = true;
    for (uint32_t row = 0; row < box_rows(shape); row++) {
        const box_row part = box_row_at(shape, at, row);
        if (part.count != 0) {
            whole &= !write || part.count % 16 == 0;
            const void *from = (const void *)(uintptr_t)part.source;
            allowed &= global_allowed(self, site, from, part.count, write);
            if (!write) {
                stores_check_read(self, site, from, part.count);
            }
        }
    }
    if (!whole) { /* read off an H200, as above */
        hazard(self, "memory", site, NULL,
               "rows of a store end inside a unit of 16 bytes, which is written whole: past the "
               "tensor's last column");
    }
    return allowed && whole;
}
