/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine: threads, warps and blocks that are live, and what they share.
 *
 * One cluster at a time is live; under programmatic dependent launch, all clusters of both grids.
 * docs/emulator.md describes the objects and the edges between them.
 */
#ifndef HALFBYTE_EMULATOR_MACHINE_H
#define HALFBYTE_EMULATOR_MACHINE_H

#include "emulator/api.h"
#include "emulator/buffers.h"
#include "emulator/clock.h"
#include "emulator/fiber.h"
#include "emulator/report.h"
#include "emulator/shadow.h"
#include "emulator/site.h"

enum {
    LANES = 32,
    WARPS_A_GROUP = 4,
    NAMED_BARRIERS = 16,
    MBARRIERS_A_BLOCK = 1024,
    /* First byte of dynamic shared memory: past the reserved kilobyte, and no multiple of 1,024. */
    SMEM_START = 1040,
    /* Cluster addresses carry the block's rank plus one above this bit; 0 there = the own block. */
    SMEM_RANK_SHIFT = 24,
};

typedef struct machine machine;
typedef struct block block;
typedef struct warp warp;
typedef struct thread thread;
typedef struct operation operation;
typedef struct mbarrier mbarrier;

typedef enum wait_kind {
    WAIT_NOTHING,
    WAIT_WARP,      /* lanes of the warp */
    WAIT_MBARRIER,  /* a phase; object: mbarrier, value: parity */
    WAIT_WGMMA,     /* groups; object: warp, value: group */
    WAIT_BULK,      /* bulk groups; value: group */
    WAIT_NAMED,     /* object: named_barrier */
    WAIT_CLUSTER,   /* object: cluster */
    WAIT_REGISTERS, /* object: block, value: registers a thread */
    WAIT_GRID,      /* the first grid's end */
    WAIT_CP_ASYNC,  /* value: number of the copy */
    WAIT_LAUNCH     /* a thread of the second grid before it may start */
} wait_kind;

typedef struct wait_list {
    thread *first;
} wait_list;

struct thread {
    fiber fiber;
    block *block;
    warp *warp;
    uint32_t index;    /* in the machine: its agent, its bit of the ready set */
    uint32_t in_block; /* threadIdx.x */
    uint32_t lane;
    uint32_t *vc, *f;
    emu_site *site; /* the instruction it entered last */
    bool exited;

    /* While it waits. */
    wait_kind wait;
    const void *wait_object;
    uint64_t wait_value;
    wait_list *wait_on;
    thread *wait_next;
    bool timed; /* a wait that may give up: mbarrier_try_wait */
    bool timed_out;

    struct bulk_groups *bulk;    /* of a thread that stored; NULL before */
    struct copy_groups *copies;  /* of a thread that used cp.async */
    uint32_t arrivals_under_way; /* at the barriers of other blocks */
    bool cluster_arrived;        /* and not waited since */
    uint32_t cluster_generation; /* that it arrived in */
    bool grid_waited;
};

/* The wgmma state of a warp is in wgmma.h. */
struct warp {
    block *block;
    uint32_t index;    /* in the machine */
    uint32_t in_block; /* warp of the block */
    thread *threads;   /* 32 */

    /* Rendezvous of its lanes. */
    uint32_t present; /* lanes that have come */
    uint32_t exited;  /* lanes that have returned */
    uint32_t generation;
    emu_site *meeting;
    wait_list lanes;
    uint64_t exchange[2][LANES]; /* by parity of the generation */

    uint32_t registers; /* a thread */
    struct tensor_core *tensor;
};

typedef struct named_barrier {
    uint32_t id;
    uint32_t expected, arrived; /* threads */
    uint32_t *vc, *f;           /* joined by arrivals of this generation; made at first use */
    emu_site *site;             /* first arrival of the generation */
    uint32_t came[1024 / 32];   /* threads that arrived in it */
    wait_list waiters;
} named_barrier;

typedef struct cluster {
    block *blocks;
    uint32_t block_count;
    uint32_t live, arrived; /* threads */
    uint32_t generation;
    uint32_t *vc, *f;
    uint32_t *done_vc[2], *done_f[2]; /* by parity of the generation that completed */
    wait_list waiters;
} cluster;

/* An access to a block's memory from another block of the cluster. */
typedef struct remote_access {
    touch by;
    struct remote_access *next;
} remote_access;

struct block {
    uint32_t index, rank; /* blockIdx.x; rank in its cluster */
    uint32_t grid;        /* 0, 1: which launch */
    const emu_launch *launch;
    cluster *cluster;
    thread *threads;
    warp *warps;
    uint32_t thread_count, warp_count, live; /* live: threads that have not returned */
    uint8_t *smem;                           /* from address 0 */
    uint32_t smem_end;                       /* address past the last byte */
    uint64_t smem_version;                   /* counts writes */
    shadow shadow;
    uint16_t *barrier_at; /* by address / 8: index into barriers plus one, 0 = none */
    mbarrier *barriers[MBARRIERS_A_BLOCK];
    uint32_t barrier_count;
    named_barrier named[NAMED_BARRIERS];
    int64_t free_registers; /* of the pool; whole numbers of registers */
    wait_list register_waiters;
    remote_access *remote;
    bool launched_dependents;
};

typedef enum agent_kind {
    AGENT_THREAD,
    AGENT_TENSOR,     /* a warp's wgmma */
    AGENT_COPY,       /* copies that complete on an mbarrier */
    AGENT_STORE_READ, /* bulk stores of a thread: reading the source */
    AGENT_STORE_DONE, /* ... writing the destination */
    AGENT_CP_ASYNC,   /* cp.async of a thread */
    AGENT_GRID        /* the grid before */
} agent_kind;

typedef struct agent_info {
    agent_kind kind;
    const void *owner; /* thread, warp or mbarrier */
} agent_info;

struct machine {
    emu_config config;
    emu_memory *memory;
    emu_report *report;
    const emu_launch *launches;
    size_t launch_count;
    uint64_t random;
    bool stopped; /* ended by a finding that leaves nothing to run */

    thread *threads;
    warp *warps;
    block *blocks;
    cluster *clusters;
    uint32_t thread_count, warp_count, block_count, cluster_count;
    uint32_t live; /* threads */
    clock_table clocks;
    agent_info *agents;
    uint32_t grid_agent;
    uint32_t grid_live[2]; /* threads of each launch */
    wait_list grid_waiters, launch_waiters;

    /* Scheduling. */
    fiber main_fiber;
    thread *running;
    uint64_t *ready; /* a bit a thread */
    uint32_t ready_words;
    uint64_t steps;
    emu_site *volatile copying; /* the instruction that copies to or from kernel memory now, for
                                   faults */

    uint32_t *spare_clock; /* the first of a list; NULL: none */

    /* Operations, oldest first. */
    operation *first, *last, *free_operations;
    uint64_t issued; /* operations ever */
    uint32_t pending;
    uint64_t progress; /* counts everything that may let a thread go on */
};

/* The one machine of the process. */
extern machine the_machine;

/* Entry of every instruction: the thread that executes it. */
static inline thread *thread_enter(emu_site *site)
{
    thread *self = the_machine.running;
    if (site->id == 0) {
        site_register(site);
    }
    self->site = site;
    return self;
}

static inline uint32_t thread_clock(const thread *self)
{
    return self->vc[self->index];
}

/* emu_cluster.c: what the thread has under way to other blocks comes before what it releases. */
void arrivals_complete(thread *self);

/* After others may have taken over the thread's clocks: what it does from now on is later. */
static inline void thread_release(thread *self)
{
    if (self->arrivals_under_way > 0) {
        arrivals_complete(self);
    }
    self->vc[self->index]++;
}

/* The thread takes over clocks. */
static inline void thread_acquire(thread *self, const uint32_t *vc, const uint32_t *f)
{
    clock_join(&the_machine.clocks, self->vc, vc);
    clock_join(&the_machine.clocks, self->f, f);
}

/* What a thread does at this moment by an ordinary access. */
static inline observer thread_observer(const thread *self, const emu_site *site)
{
    return (observer){
        self->vc, self->f, self, site, touch_make(self->index, thread_clock(self), site->id, false),
        false};
}

/* A new agent; stops the run and returns some agent if there is no room. */
uint32_t agent_new(agent_kind kind, const void *owner);
uint32_t *machine_clock(void);

/* A pair of cleared vectors for an operation, and back. */
void spare_clocks_take(uint32_t **vc, uint32_t **f);
void spare_clocks_return(uint32_t *vc, uint32_t *f);

/* grid.c: lets the second grid's threads go on when what they wait for has come. */
bool grid_may_start_second(void);
void grid_check_start(void);

/* emu_cluster.c: a thread has returned. */
void cluster_thread_exits(thread *self);

/* A random number below limit, of the run's sequence. */
uint32_t machine_random(uint32_t limit);

/* Ends the run as soon as the running thread waits. */
void abort_run(const char *why);

/* Reports what a thread does at a site; other may be NULL. */
__attribute__((format(printf, 5, 6))) void hazard(const thread *self, const char *class_letter,
                                                  const emu_site *site, const emu_site *other,
                                                  const char *format, ...);

#endif
