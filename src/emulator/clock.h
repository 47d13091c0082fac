/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vector clocks: dense vectors of 32-bit clocks, one component an agent (machine.h).
 *
 * All vectors of a machine lie in one table.  It reserves room for more agents than are met and
 * works on those that are, so joins cost what is in use.
 */
#ifndef HALFBYTE_EMULATOR_CLOCK_H
#define HALFBYTE_EMULATOR_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLOCK_LANES = 16 }; /* agents in use are rounded up to a multiple of this */

typedef struct clock_table {
    uint32_t *words;
    size_t bytes;
    uint32_t stride; /* agents a vector has room for */
    uint32_t used;   /* agents in use, rounded up */
    uint32_t agents; /* agents in use */
    uint32_t count;  /* vectors in use */
    uint32_t capacity;
} clock_table;

bool clock_table_create(clock_table *table, uint32_t vectors, uint32_t agents);
void clock_table_destroy(clock_table *table);

/* Forgets all vectors and agents. */
void clock_table_reset(clock_table *table);

/* A vector of zeros, valid until the reset; NULL if there is no room. */
uint32_t *clock_new(clock_table *table);

/* The next agent's number; UINT32_MAX if there is no room. */
uint32_t clock_new_agent(clock_table *table);

/* into := component-wise maximum of both. */
void clock_join(const clock_table *table, uint32_t *into, const uint32_t *from);
void clock_copy(const clock_table *table, uint32_t *into, const uint32_t *from);
void clock_clear(const clock_table *table, uint32_t *vector);

#endif
