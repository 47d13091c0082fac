/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of shared-memory stages between a producer and consumers.
 *
 *   full[s]    the producer's arrival (with expect_tx) and its copies' bytes, and where a warp
 *              fetches scales, an arrival of each of its lanes; consumers wait
 *   empty[s]   one arrival of each consumer warp, after its own wgmma_wait(); the producer waits
 *
 * Both sides walk the stages in the same order for the whole life of the block, across tiles, and
 * keep the parity of the pass they are in.  The producer's first pass finds every stage empty:
 * waiting for the parity before the first phase returns at once.
 */
#ifndef HALFBYTE_KERNELS_TILE_RING_H
#define HALFBYTE_KERNELS_TILE_RING_H

#include "kernels/hopper/hopper.h"

typedef struct ring {
    smem_addr full;  /* `stages` barriers of 8 bytes */
    smem_addr empty; /* the same */
    uint32_t stages;
    uint32_t stage;  /* the one this side works on next */
    uint32_t parity; /* of this side's pass over the ring: 0 in the first */
} ring;

/* Bytes of the barriers. */
#define RING_BYTES(stages) ((stages)*16u)

HB_DEVICE ring ring_at(smem_addr barriers, uint32_t stages)
{
    ring r;
    r.full = barriers;
    r.empty = barriers + stages * 8u;
    r.stages = stages;
    r.stage = 0;
    r.parity = 0;
    return r;
}

/* By one thread, before a block barrier makes the barriers known to the others. */
HB_DEVICE void ring_init(const ring *r, uint32_t producers, uint32_t consumer_warps)
{
    uint32_t s;
    for (s = 0; s < r->stages; s++) {
        mbarrier_init(r->full + s * 8u, producers);
        mbarrier_init(r->empty + s * 8u, consumer_warps);
    }
    fence_mbarrier_init();
}

HB_DEVICE void ring_advance(ring *r)
{
    r->stage++;
    if (r->stage == r->stages) {
        r->stage = 0;
        r->parity ^= 1u;
    }
}

/* Passes over `count` stages; `stages`, a constant, of the ring. */
HB_DEVICE void ring_pass(ring *r, uint32_t count, uint32_t stages)
{
    const uint32_t passes = (r->stage + count) / stages;
    r->stage += count - passes * stages;
    r->parity ^= passes & 1u;
}

/* Any producer: waits until the stage is free. */
HB_DEVICE void ring_wait_empty(const ring *r)
{
    mbarrier_wait(r->empty + r->stage * 8u, r->parity ^ 1u);
}

/* Producer: waits for the stage, announces `bytes`; returns the barrier for the copies. */
HB_DEVICE smem_addr ring_acquire(const ring *r, uint32_t bytes)
{
    const smem_addr full = r->full + r->stage * 8u;
    ring_wait_empty(r);
    mbarrier_arrive_expect_tx(full, bytes);
    return full;
}

/* Consumer: waits for the stage's data. */
HB_DEVICE void ring_wait_full(const ring *r)
{
    mbarrier_wait(r->full + r->stage * 8u, r->parity);
}

/* Consumer: this warp is done with stage `stage`.  One lane arrives for the warp: what the other
 * lanes read of the stage by wgmma is complete for all of them, and they read it by nothing else.
 * */
HB_DEVICE void ring_release(const ring *r, uint32_t stage)
{
    if (elect_one()) {
        mbarrier_arrive(r->empty + stage * 8u);
    }
}

/* The same for a warp whose lanes have also loaded from the stage: the one that arrives speaks for
 * the others only after they have met. */
HB_DEVICE void ring_release_loaded(const ring *r, uint32_t stage)
{
    warp_sync();
    ring_release(r, stage);
}

#endif
