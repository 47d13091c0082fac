/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/buffers.h"

#include <stdlib.h>
#include <string.h>

emu_memory *emu_memory_create(void)
{
    return calloc(1, sizeof(emu_memory));
}

void emu_memory_destroy(emu_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    memory_unwatch(memory);
    for (size_t i = 0; i < memory->count; i++) {
        free(memory->buffers[i].name);
    }
    free(memory->buffers);
    free(memory);
}

bool emu_memory_add(emu_memory *memory, const void *data, size_t bytes, const char *name,
                    emu_access access)
{
    char *copy = malloc(strlen(name) + 1);
    if (memory->count == memory->capacity) {
        const size_t capacity = memory->capacity ? 2 * memory->capacity : 16;
        buffer *buffers = realloc(memory->buffers, capacity * sizeof *buffers);
        if (buffers != NULL) {
            memory->buffers = buffers;
            memory->capacity = capacity;
        }
    }
    if (copy == NULL || memory->count == memory->capacity) {
        free(copy);
        return false;
    }
    strcpy(copy, name);
    memory->buffers[memory->count++] = (buffer){data, bytes, copy, access == EMU_READ_WRITE, NULL};
    return true;
}

static bool holds(const buffer *candidate, uintptr_t address, size_t bytes)
{
    const uintptr_t start = (uintptr_t)candidate->data;
    return address >= start && bytes <= candidate->bytes &&
           address - start <= candidate->bytes - bytes;
}

buffer *memory_find(emu_memory *memory, const void *address, size_t bytes)
{
    const uintptr_t at = (uintptr_t)address;
    if (memory->last < memory->count && holds(&memory->buffers[memory->last], at, bytes)) {
        return &memory->buffers[memory->last];
    }
    for (size_t i = 0; i < memory->count; i++) {
        if (holds(&memory->buffers[i], at, bytes)) {
            memory->last = i;
            return &memory->buffers[i];
        }
    }
    return NULL;
}

const buffer *memory_nearest(const emu_memory *memory, const void *address, int64_t *distance)
{
    const buffer *nearest = NULL;
    const int64_t at = (int64_t)(uintptr_t)address;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < memory->count; i++) {
        const buffer *candidate = &memory->buffers[i];
        const int64_t start = (int64_t)(uintptr_t)candidate->data;
        const int64_t end = start + (int64_t)candidate->bytes;
        const int64_t off = at < start ? at - start : at - end;
        const uint64_t far = at >= start && at < end ? 0 : (uint64_t)(off < 0 ? -off : off);
        if (far < least) {
            least = far;
            nearest = candidate;
            *distance = off;
        }
    }
    return nearest;
}

bool memory_watch(emu_memory *memory)
{
    for (size_t i = 0; i < memory->count; i++) {
        buffer *watched = &memory->buffers[i];
        watched->cells = calloc(watched->bytes / 4 + 2, sizeof *watched->cells);
        if (watched->cells == NULL) {
            memory_unwatch(memory);
            return false;
        }
    }
    return true;
}

void memory_unwatch(emu_memory *memory)
{
    for (size_t i = 0; i < memory->count; i++) {
        free(memory->buffers[i].cells);
        memory->buffers[i].cells = NULL;
    }
}
