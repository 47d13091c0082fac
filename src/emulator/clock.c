/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "emulator/clock.h"

#include <string.h>
#include <sys/mman.h>

/* Clocks stay below 2^31, so that signed comparison serves. */
typedef int32_t four_clocks __attribute__((vector_size(16), may_alias));

bool clock_table_create(clock_table *table, uint32_t vectors, uint32_t agents)
{
    const uint32_t stride = (agents + CLOCK_LANES - 1) / CLOCK_LANES * CLOCK_LANES;
    const size_t bytes = (size_t)vectors * stride * sizeof(uint32_t);
    void *words = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *table = (clock_table){.stride = stride, .capacity = vectors, .bytes = bytes};
    if (words == MAP_FAILED) {
        return false;
    }
    table->words = words;
    return true;
}

void clock_table_destroy(clock_table *table)
{
    if (table->words != NULL) {
        munmap(table->words, table->bytes);
        table->words = NULL;
    }
}

void clock_table_reset(clock_table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        clock_clear(table, table->words + (size_t)i * table->stride);
    }
    table->count = 0;
    table->agents = 0;
    table->used = 0;
}

uint32_t *clock_new(clock_table *table)
{
    if (table->count == table->capacity) {
        return NULL;
    }
    return table->words + (size_t)table->count++ * table->stride;
}

uint32_t clock_new_agent(clock_table *table)
{
    if (table->agents == table->stride) {
        return UINT32_MAX;
    }
    const uint32_t agent = table->agents++;
    table->used = (table->agents + CLOCK_LANES - 1) / CLOCK_LANES * CLOCK_LANES;
    return agent;
}

void clock_join(const clock_table *table, uint32_t *into, const uint32_t *from)
{
    four_clocks *a = (four_clocks *)(void *)into;
    const four_clocks *b = (const four_clocks *)(const void *)from;
    for (uint32_t i = 0; i < table->used / 4; i++) {
        const four_clocks larger = a[i] > b[i];
        a[i] = (a[i] & larger) | (b[i] & ~larger);
    }
}

void clock_copy(const clock_table *table, uint32_t *into, const uint32_t *from)
{
    memcpy(into, from, table->used * sizeof *into);
}

void clock_clear(const clock_table *table, uint32_t *vector)
{
    memset(vector, 0, table->used * sizeof *vector);
}
