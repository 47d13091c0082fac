/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensor core's side of a warp: groups, accumulators in flight, operands in registers.
 *
 * A wgmma of a warpgroup is four operations, one a warp: 16 rows of A, all of B, the accumulators
 * of 32 lanes.  Those of a warp complete in order.
 */
#ifndef HALFBYTE_EMULATOR_EMU_WGMMA_H
#define HALFBYTE_EMULATOR_EMU_WGMMA_H

#include "emulator/fragment.h"
#include "emulator/machine.h"

enum {
    WARP_ROWS = 16,
    ACCUMULATORS_MAX = 16, /* in flight a warp */
    SEQUENCE_LENGTH = 1024,
};

/* An accumulator in flight: its values are here, not in the fragment. */
typedef struct accumulator {
    fragment *fragment; /* NULL: this one is free */
    uint32_t element;   /* first, of n / 2 a lane */
    uint32_t n;
    uint32_t group; /* of the last operation on it */
    uint32_t fence; /* number of the warp's wgmma_fence before that */
    const emu_site *site;
    float *values; /* (16, n rounded up to 32) row by row */
} accumulator;

/* Registers that operations in flight read. */
typedef struct register_operand {
    fragment *fragment;
    uint32_t element; /* first of four */
    uint32_t group;
    const emu_site *site;
    bool reported;
    uint32_t words[LANES][4]; /* at issue */
} register_operand;

typedef struct tensor_core {
    uint32_t agent;
    uint32_t committed, waited; /* groups */
    uint32_t open;              /* operations of the group that is not committed */
    const emu_site *last_site;  /* of an operation */
    uint32_t fences;            /* wgmma_fence so far */
    uint32_t *vc, *f;           /* of the 32 lanes at the last one */
    operation *first, *last;    /* operations of the warp that are not complete */
    accumulator accumulators[ACCUMULATORS_MAX];
    register_operand *operands;
    uint32_t operand_count, operand_capacity;
    wait_list waiters;
    uint32_t sequence;          /* warpgroup instructions executed */
    struct sequence_ring *ring; /* of the first warp of a warpgroup */
} tensor_core;

typedef enum fragment_use { FRAGMENT_UNUSED, FRAGMENT_ACCUMULATOR, FRAGMENT_OPERAND } fragment_use;

/* What an access to an element collides with; site: of that operation. */
fragment_use wgmma_use_of(const warp *w, const fragment *f, uint32_t element, bool write,
                          const emu_site **site);

static inline bool tensor_used(const warp *w)
{
    return w->tensor != NULL && w->tensor->last_site != NULL;
}

/* The state of a warp, made at first use. */
tensor_core *tensor_of(warp *w);
void tensor_free(warp *w);

/* Block's end: groups that nobody waited for. */
void wgmma_at_exit(thread *self);

/* wgmma_flight.c: fragments in flight. */
accumulator *accumulator_take(thread *self, const emu_site *site, fragment_place place, uint32_t n);
bool operand_take(thread *self, const emu_site *site, fragment_place place);
/* Hands accumulators and operands of groups that were waited for back to the kernel. */
void flight_deliver(thread *self, const emu_site *site);

/* wgmma_math.c */
bool wgmma_advance(operation *self);
/* Checks the operands in shared memory, and keeps the reads. */
void wgmma_check_operands(const operation *self, thread *leader);

/* sequence.c: the four warps of a warpgroup execute the same. */
void sequence_check(thread *self, const emu_site *site, uint64_t operands);
void sequences_at_exit(block *owner);

#endif
