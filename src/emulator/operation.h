/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous operations: from issue, stage by stage, to completion, when the policy says so.
 */
#ifndef HALFBYTE_EMULATOR_OPERATION_H
#define HALFBYTE_EMULATOR_OPERATION_H

#include "emulator/machine.h"
#include "emulator/tensor_map.h"

typedef struct operation_kind {
    const char *name;
    /* Does the next stage; true after the last one. */
    bool (*advance)(operation *self);
    /* Whether it may advance now; NULL = always. */
    bool (*free_to_go)(const operation *self);
    /* Gives back what it holds, when the run ends before it; NULL = nothing. */
    void (*discard)(operation *self);
    bool into_block; /* a load_operation */
    bool halves;     /* its first stage moves the first half of the data */
} operation_kind;

/* A copy into shared memory of one block: TMA tile, bulk, or cp.async. */
typedef struct load_operation {
    const tensor_map *map; /* NULL: linear */
    const uint8_t *source; /* linear */
    int32_t at[3];         /* coordinates */
    uint32_t bytes;        /* counted; linear: copied */
    block *target;
    uint32_t address;
    mbarrier *barrier;  /* cp.async: NULL */
    uint32_t map_group; /* of the issuer's bulk groups, which the reading of the map belongs to; 0:
                           none */
    touch mark;         /* of the destination while in flight */
    operation *next_of_thread; /* cp.async: of the issuer, not complete */
} load_operation;

/* A copy out of shared memory. */
typedef struct store_operation {
    const tensor_map *map; /* NULL: linear */
    uint8_t *target;       /* linear */
    int32_t at[3];
    bool add;
    uint32_t address;
    uint32_t bytes;
    uint8_t *taken; /* the source, as read */
    uint32_t group;
    bool read; /* the source was read */
    operation *next_of_thread;
} store_operation;

/* A warp's share of a wgmma: its 16 rows. */
typedef struct wgmma_operation {
    warp *warp;
    struct accumulator *d;
    uint32_t n;
    emu_operand_type type;
    bool from_registers;
    uint64_t desc_a, desc_b;
    const uint32_t *a; /* lane 0's registers; the other lanes' lie `a_stride` words apart */
    size_t a_stride;
    bool accumulate;
    uint32_t group;
    operation *next_of_warp;
} wgmma_operation;

/* An arrival that takes its time: at another block's mbarrier, or after cp.async. */
typedef struct arrive_operation {
    mbarrier *barrier;
    uint32_t *vc, *f;      /* what it publishes; from the machine's spare clocks */
    uint32_t after_copies; /* cp.async: copies of the issuer that must be complete */
} arrive_operation;

struct operation {
    operation *next, *previous;
    const operation_kind *kind;
    uint64_t sequence;
    thread *issuer;
    const emu_site *site;
    uint32_t stage;
    tensor_shape shape; /* of its map, once that was read: in the first stage */
    union {
        load_operation load;
        store_operation store;
        wgmma_operation wgmma;
        arrive_operation arrive;
    };
};

/* A new operation of the running instruction; fill in the kind's part, then operation_issue(). */
operation *operation_new(const operation_kind *kind, thread *issuer, const emu_site *site);

/* Hands it to the policy.  It may be complete, and gone, on return. */
void operation_issue(operation *self);

/* At every switch of threads: RANDOM lets something happen. */
void operations_tick(void);

/* When nobody can run: one stage of one operation; false if none is pending. */
bool operations_advance_one(void);

/* Advances one operation to its end; it must be free to go. */
void operation_complete(operation *self);

/* Whether an operation issued by this grid is pending. */
bool operations_of_grid(uint32_t grid);

/* A copy into the block's memory that is in flight, NULL if none. */
const operation *operation_into(const block *target);

/* Forgets all that is pending. */
void operations_discard(void);

#endif
