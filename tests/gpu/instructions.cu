/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, barriers and moves of the instruction layer, one kernel a group; test_instructions.c and
 * test_copies.c compute on the CPU what each must show.
 */
#include "gpu/instructions.h"
#include "kernels/hopper/hopper.h"

#define BARRIER_AT COPY_BYTES /* byte offset of the barrier behind the copied bytes */

/* False if the phase does not complete in reasonable time. */
HB_DEVICE bool wait_bounded(smem_addr bar, uint32_t parity)
{
    uint32_t tries;
    for (tries = 0; tries < 20000u; tries++) {
        if (mbarrier_try_wait(bar, parity)) {
            return true;
        }
    }
    return false;
}

HB_DEVICE void image_load(smem_addr base, const uint32_t *image, uint32_t words, uint32_t threads)
{
    uint32_t i;
    for (i = thread_index(); i < words; i += threads) {
        smem_store_u32(base + i * 4u, global_load_u32_nc(image + i));
    }
}

HB_DEVICE void image_dump(smem_addr base, uint32_t *dump, uint32_t words, uint32_t threads)
{
    uint32_t i;
    for (i = thread_index(); i < words; i += threads) {
        global_store_u32(dump + i, smem_load_u32(base + i * 4u));
    }
}

KERNEL(test_matrices, matrix_params, p, 32)
{
    const smem_addr base = smem_base();
    const uint32_t lane = lane_index();
    uint32_t four[4], two[2], v[6];
    int i;
    image_load(base, p->image, MATRIX_BYTES / 4, 32);
    block_sync();
    ldmatrix_x4(base + global_load_u32_nc(p->rows + lane), four);
    ldmatrix_x2(base + global_load_u32_nc(p->rows + 32 + lane), two);
    HB_UNROLL
    for (i = 0; i < 6; i++) {
        global_store_u32(p->loaded + i * 32 + (int)lane, i < 4 ? four[i & 3] : two[i & 1]);
        v[i] = global_load_u32_nc(p->stored + i * 32 + (int)lane);
    }
    block_sync();
    stmatrix_x4(base + global_load_u32_nc(p->rows + 64 + lane), v[0], v[1], v[2], v[3]);
    block_sync();
    stmatrix_x2(base + global_load_u32_nc(p->rows + 96 + lane), v[4], v[5]);
    block_sync();
    image_dump(base, p->dump, MATRIX_BYTES / 4, 32);
}

HB_DEVICE void load_issue(const load_params *p, smem_addr dst, smem_addr bar)
{
    switch (p->form) {
    case COPY_TMA_2D: tma_load_2d(dst, &p->map, bar, p->at[0], p->at[1]); break;
    case COPY_TMA_2D_FIRST:
        tma_load_2d_hint(dst, &p->map, bar, p->at[0], p->at[1], L2_EVICT_FIRST);
        break;
    case COPY_TMA_2D_LAST:
        tma_load_2d_hint(dst, &p->map, bar, p->at[0], p->at[1], L2_EVICT_LAST);
        break;
    case COPY_TMA_3D: tma_load_3d(dst, &p->map, bar, p->at[0], p->at[1], p->at[2]); break;
    case COPY_TMA_3D_NORMAL:
        tma_load_3d_hint(dst, &p->map, bar, p->at[0], p->at[1], p->at[2], L2_EVICT_NORMAL);
        break;
    case COPY_BULK: bulk_load(dst, p->source, p->bytes, bar); break;
    default: bulk_load_hint(dst, p->source, p->bytes, bar, L2_EVICT_FIRST); break;
    }
}

KERNEL(test_load, load_params, p, 128)
{
    const smem_addr base = smem_base();
    const smem_addr bar = base + BARRIER_AT;
    bool arrived;
    if (thread_index() == 0) {
        if (p->form < COPY_BULK) {
            tma_prefetch_map(&p->map);
        }
        mbarrier_init(bar, 1);
        fence_mbarrier_init();
    }
    image_load(base, p->image, COPY_BYTES / 4, 128);
    fence_proxy_async();
    block_sync();
    if (thread_index() == 0) {
        mbarrier_arrive_expect_tx(bar, p->bytes);
        load_issue(p, base + p->destination, bar);
    }
    arrived = wait_bounded(bar, 0);
    if (thread_index() == 0) {
        global_store_u32(p->arrived, arrived ? 1u : 0u);
    }
    image_dump(base, p->dump, COPY_BYTES / 4, 128);
}

KERNEL(test_store, store_params, p, 128)
{
    const smem_addr base = smem_base();
    const smem_addr source = base + p->source;
    image_load(base, p->image, COPY_BYTES / 4, 128);
    fence_proxy_async();
    block_sync();
    if (thread_index() == 0) {
        switch (p->form) {
        case STORE_TMA_2D: tma_store_2d(&p->map, source, p->at[0], p->at[1]); break;
        case STORE_TMA_3D: tma_store_3d(&p->map, source, p->at[0], p->at[1], p->at[2]); break;
        case STORE_REDUCE: tma_reduce_add_2d(&p->map, source, p->at[0], p->at[1]); break;
        default: bulk_store(p->target, source, p->bytes); break;
        }
        bulk_commit();
        bulk_wait_read(0);
        bulk_wait(0);
    }
}

/* Each block fetches one half of what both receive. */
KERNEL(test_cluster, cluster_params, p, 128)
{
    const smem_addr base = smem_base();
    const smem_addr bar = base + BARRIER_AT;
    const smem_addr flags = bar + 8;
    const uint32_t rank = cluster_rank();
    bool arrived, signalled;
    if (thread_index() == 0) {
        mbarrier_init(bar, 1);
        mbarrier_init(flags, 32);
        fence_mbarrier_init();
    }
    image_load(base, p->image, COPY_BYTES / 4, 128);
    fence_proxy_async();
    cluster_sync();
    if (thread_index() == 0) {
        mbarrier_arrive_expect_tx(bar, 2 * p->bytes);
        if (p->bulk) {
            bulk_load_multicast(base + rank * p->bytes, p->source + rank * p->bytes, p->bytes, bar, 3);
        } else {
            tma_load_2d_multicast(base + rank * p->bytes, &p->map, bar, p->at[0],
                                  p->at[1] + (int32_t)rank * 8, 3);
        }
    }
    if (warp_index() == 1) {
        mbarrier_arrive_cluster(map_shared_rank(flags, rank ^ 1u));
    }
    arrived = wait_bounded(bar, 0);
    signalled = wait_bounded(flags, 0);
    if (thread_index() == 0) {
        global_store_u32(p->arrived + block_index(), arrived ? 1u : 0u);
        global_store_u32(p->ranks + block_index() * 3, rank);
        global_store_u32(p->ranks + block_index() * 3 + 1, cluster_size());
        global_store_u32(p->ranks + block_index() * 3 + 2, signalled ? 1u : 0u);
    }
    image_dump(base, p->dump + block_index() * (COPY_BYTES / 4), COPY_BYTES / 4, 128);
    cluster_sync();
}

KERNEL(test_barrier, barrier_params, p, 32)
{
    const smem_addr data = smem_base();
    const smem_addr bar = data + 64;
    uint32_t i = 0;
    if (thread_index() != 0) {
        return;
    }
    mbarrier_init(bar, 2);
    global_store_u32(p->answers + i++, mbarrier_try_wait(bar, 1)); /* 1: before the first phase */
    global_store_u32(p->answers + i++, mbarrier_try_wait(bar, 0)); /* 0 */
    mbarrier_arrive(bar);
    global_store_u32(p->answers + i++, mbarrier_try_wait(bar, 0)); /* 0: one of two */
    mbarrier_arrive(bar);
    global_store_u32(p->answers + i++, wait_bounded(bar, 0));      /* 1 */
    global_store_u32(p->answers + i++, mbarrier_try_wait(bar, 1)); /* 0: the second phase */
    mbarrier_expect_tx(bar, 32);
    mbarrier_arrive_expect_tx(bar, 32);
    mbarrier_arrive(bar);
    global_store_u32(p->answers + i++, mbarrier_try_wait(bar, 1)); /* 0: the bytes are missing */
    bulk_load(data, p->source, 32, bar);
    global_store_u32(p->answers + i++, mbarrier_try_wait(bar, 1)); /* 0: half of them */
    bulk_load(data + 32, p->source + 32, 32, bar);
    global_store_u32(p->answers + i++, wait_bounded(bar, 1));      /* 1 */
    global_store_u32(p->answers + i++, mbarrier_try_wait(bar, 0)); /* 0: the third phase */
    mbarrier_inval(bar);
    mbarrier_init(bar, 1);
    mbarrier_arrive(bar);
    global_store_u32(p->answers + i++, wait_bounded(bar, 0)); /* 1 */
    global_store_u32(p->answers + i++, smem_load_u32(data));
    global_store_u32(p->answers + i++, smem_load_u32(data + 60));
}

/* Barrier 1: written; barrier 2: read.  Each side arrives at one and waits at the other. */
KERNEL(test_named, named_params, p, 128)
{
    const smem_addr base = smem_base();
    const uint32_t thread = thread_index();
    uint32_t round;
    for (round = 0; round < NAMED_ROUNDS; round++) {
        if (thread < 64) {
            smem_store_u32(base + thread * 4u, round * 1000u + thread);
            barrier_arrive(1, 128);
            barrier_sync(2, 128);
        } else {
            barrier_sync(1, 128);
            global_store_u32(p->seen + round * 64u + thread - 64u,
                             smem_load_u32(base + (127u - thread) * 4u));
            barrier_arrive(2, 128);
        }
    }
}

KERNEL(test_execution, execution_params, p, 384)
{
    uint32_t *out = p->out + (block_index() * 384u + thread_index()) * 8u;
    const uint32_t lane = lane_index();
    if (warp_index() / 4u == 0) {
        setmaxnreg_dec(40);
    } else {
        setmaxnreg_inc(232);
    }
    global_store_u32(out + 0, block_index() * 65536u + block_count());
    global_store_u32(out + 1, warp_index());
    global_store_u32(out + 2, lane);
    global_store_u32(out + 3, elect_one() ? 1u : 0u);
    global_store_u32(out + 4, shuffle_u32(lane * 7u, (lane + 5u) % 32u));
    global_store_u32(out + 5, shuffle_xor_u32(lane * 7u, 12u));
    global_store_u32(out + 6, vote_any(lane == warp_index()) ? 1u : 0u);
    global_store_u32(out + 7, vote_any(lane == 40u) ? 1u : 0u);
}

KERNEL(test_convert, convert_params, p, 256)
{
    uint64_t i = (uint64_t)block_index() * 256u + thread_index();
    for (; i < p->count; i += (uint64_t)block_count() * 256u) {
        const float x = global_load_f32_nc(p->x + i);
        const float next = global_load_f32_nc(p->x + i + 1);
        global_store_u16(p->bf16 + i, cvt_bf16(x));
        global_store_u32(p->bf16_pair + i, cvt_bf16x2(x, next));
        global_store_u16(p->f16 + i, cvt_f16(x));
        global_store_u32(p->f16_pair + i, cvt_f16x2(x, next));
        global_store_u8(p->e4m3 + i, cvt_e4m3(x));
    }
}

KERNEL(test_arith, arith_params, p, 256)
{
    uint64_t i = (uint64_t)block_index() * 256u + thread_index();
    for (; i < p->count; i += (uint64_t)block_count() * 256u) {
        const float x = global_load_f32_nc(p->x + i);
        const float y = global_load_f32_nc(p->y + i);
        const float z = global_load_f32_nc(p->z + i);
        global_store_f32(p->fma + i, fma_rn(x, y, z));
        global_store_f32(p->mul + i, mul_rn(x, y));
        global_store_f32(p->add + i, add_rn(x, y));
        global_store_f32(p->div + i, div_rn(x, y));
        global_store_f32(p->max + i, max_nan(x, y));
    }
}

KERNEL(test_widen, widen_params, p, 256)
{
    const uint32_t code = block_index() * 256u + thread_index();
    global_store_f32(p->bf16 + code, f32_of_bf16((uint16_t)code));
    global_store_f32(p->f16 + code, f32_of_f16((uint16_t)code));
}

/* The first grid lets the second start, and writes only then; the second waits before it reads. */
KERNEL(test_dependent, dependent_params, p, 128)
{
    const uint32_t i = block_index() * 128u + thread_index();
    if (p->second) {
        grid_dependency_wait();
        global_store_u32(p->copy + i, global_load_u32(p->data + i));
    } else {
        uint32_t x = i, round;
        grid_launch_dependents();
        HB_NO_UNROLL
        for (round = 0; round < 20000u; round++) {
            x = x * 1664525u + 1013904223u;
        }
        global_store_u32(p->data + i, x);
    }
}

KERNEL(test_cp_async, cp_async_params, p, 128)
{
    const smem_addr base = smem_base();
    const smem_addr bar = base + 4096;
    const uint32_t at = thread_index() * 16u;
    bool arrived;
    if (thread_index() == 0) {
        mbarrier_init(bar, 128);
    }
    block_sync();
    cp_async_16(base + at, p->source + at);
    cp_async_commit();
    cp_async_8(base + 2048u + at, p->source + 2048u + at);
    cp_async_8(base + 2056u + at, p->source + 2056u + at);
    cp_async_mbarrier_arrive_noinc(bar);
    arrived = wait_bounded(bar, 0);
    cp_async_wait(0);
    block_sync();
    image_dump(base, p->dump, 1024, 128);
    if (thread_index() == 0) {
        global_store_u32(p->arrived, arrived ? 1u : 0u);
    }
}

KERNEL(test_edit, edit_params, p, 32)
{
    const smem_addr base = smem_base();
    const smem_addr bar = base + BARRIER_AT;
    bool arrived;
    if (thread_index() == 0) {
        mbarrier_init(bar, 1);
        fence_mbarrier_init();
        tensormap_replace_global_address(p->map, p->address);
        tensormap_replace_global_dim(p->map, 0, p->width);
        tensormap_replace_global_stride(p->map, 0, p->stride);
        fence_proxy_tensormap_release();
        fence_proxy_tensormap_acquire(p->map);
        mbarrier_arrive_expect_tx(bar, p->bytes);
        tma_load_2d(base, p->map, bar, 0, 0);
    }
    block_sync();
    arrived = wait_bounded(bar, 0);
    if (thread_index() == 0) {
        global_store_u32(p->arrived, arrived ? 1u : 0u);
    }
    image_dump(base, p->dump, p->bytes / 4, 32);
}
