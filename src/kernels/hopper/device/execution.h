/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who runs, and barriers among threads.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DEVICE_EXECUTION_H
#define HALFBYTE_KERNELS_HOPPER_DEVICE_EXECUTION_H

HB_DEVICE uint32_t thread_index(void)
{
    return threadIdx.x;
}

/* The same, read anew: what is computed from it takes no registers before. */
HB_DEVICE uint32_t thread_index_anew(void)
{
    uint32_t index;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
    return index;
}

/* Reads a kernel parameter that is needed later into the multiprocessor's constant cache, while
 * there is time.  Nothing depends on the value: the instruction that seems to changes nothing. */
HB_DEVICE void parameter_touch(uint32_t value)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.eq.u32 p, %0, 0x7ff10001;\n"
                 "@p nanosleep.u32 0;\n"
                 "}\n" ::"r"(value));
}

/* Warp of the block, as a value that is uniform to the compiler too: roles are chosen by it. */
HB_DEVICE uint32_t warp_index(void)
{
    return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
}

HB_DEVICE uint32_t lane_index(void)
{
    return threadIdx.x % 32;
}

HB_DEVICE uint32_t block_index(void)
{
    return blockIdx.x;
}

HB_DEVICE uint32_t block_count(void)
{
    return gridDim.x;
}

/* Rank in the cluster and its size.  10: %cluster_ctarank, %cluster_nctarank */
HB_DEVICE uint32_t cluster_rank(void)
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

HB_DEVICE uint32_t cluster_size(void)
{
    uint32_t size;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}

/* All threads of the block.  9.7.13.1 barrier */
HB_DEVICE void block_sync(void)
{
    asm volatile("bar.sync 0;" ::: "memory");
}

/* Named barrier 1 .. 15: waits until `threads` (a multiple of 32) have come, by this or by arrive.
 * */
HB_DEVICE void barrier_sync(uint32_t id, uint32_t threads)
{
    asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

HB_DEVICE void barrier_arrive(uint32_t id, uint32_t threads)
{
    asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Converges the warp and orders its lanes' memory accesses.  9.7.13.2 bar.warp.sync */
HB_DEVICE void warp_sync(void)
{
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

/* True in one lane of the (converged) warp.  9.7.13.14 elect.sync */
HB_DEVICE bool elect_one(void)
{
    uint32_t elected;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(elected)::"memory");
    return elected != 0;
}

/* 9.7.9.6 shfl.sync, 9.7.13.9 vote.sync: the whole warp takes part. */
HB_DEVICE uint32_t shuffle_u32(uint32_t value, uint32_t lane)
{
    return __shfl_sync(0xffffffffu, value, (int)lane);
}

HB_DEVICE uint32_t shuffle_xor_u32(uint32_t value, uint32_t mask)
{
    return __shfl_xor_sync(0xffffffffu, value, (int)mask);
}

HB_DEVICE bool vote_any(bool predicate)
{
    return __any_sync(0xffffffffu, predicate);
}

/* Lanes whose predicate holds. */
HB_DEVICE uint32_t vote_count(bool predicate)
{
    return (uint32_t)__popc(__ballot_sync(0xffffffffu, predicate));
}

/* Registers a thread of this warpgroup: n a multiple of 8 in 24 .. 256, a compile-time constant;
 * all four warps execute it.  inc waits for the block's pool.  9.7.19.5 */
#define setmaxnreg_inc(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))
#define setmaxnreg_dec(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))

/* Cluster barrier, release and acquire.  9.7.13.3 barrier.cluster */
HB_DEVICE void cluster_arrive(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

HB_DEVICE void cluster_wait(void)
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

HB_DEVICE void cluster_sync(void)
{
    cluster_arrive();
    cluster_wait();
}

/* The cluster-window address of `addr` in the block of this rank.  9.7.9.23 mapa */
HB_DEVICE smem_addr map_shared_rank(smem_addr addr, uint32_t rank)
{
    smem_addr mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(addr), "r"(rank));
    return mapped;
}

/* Waits until the grids this one depends on have ended and their memory is visible.  9.7.13.13 */
HB_DEVICE void grid_dependency_wait(void)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* The grids that depend on this one may start when all its blocks have said so or ended. */
HB_DEVICE void grid_launch_dependents(void)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

#endif
