/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the instruction layer, emulator side: each passes its call site on.  Signatures and
 * meaning are those of the bodies under device/.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_EMULATED_NAMES_H
#define HALFBYTE_KERNELS_HOPPER_EMULATED_NAMES_H

#include <string.h>

/* Identity */
#define thread_index() emu_thread_index()
#define thread_index_anew() emu_thread_index()
/* A shuffle on the device too: the whole warp must come. */
#define warp_index() emu_shuffle_u32(emu_thread_index() / 32, 0, HB_SITE("warp_index"))
#define lane_index() (emu_thread_index() % 32)
#define parameter_touch(value) ((void)(value))
#define block_index() emu_block_index()
#define block_count() emu_block_count()
#define cluster_rank() emu_cluster_rank()
#define cluster_size() emu_cluster_size()
#define smem_base() emu_smem_base()

/* Memory.  Loads of one word are expressions, as on the device. */
#define HB_LOADED_(type, call)                                                                     \
    __extension__({                                                                                \
        type hb_value_;                                                                            \
        call;                                                                                      \
        hb_value_;                                                                                 \
    })
#define HB_SMEM_LOAD_(type, addr, name)                                                            \
    HB_LOADED_(type, emu_smem_load((addr), &hb_value_, sizeof hb_value_, HB_SITE(name)))
#define HB_GLOBAL_LOAD_(type, address, read_only, name)                                            \
    HB_LOADED_(type, emu_global_load((address), &hb_value_, sizeof hb_value_, (read_only),         \
                                     HB_SITE(name)))
#define HB_STORED_(type, value, call)                                                              \
    do {                                                                                           \
        const type hb_stored_ = (value);                                                           \
        call;                                                                                      \
    } while (0)
#define HB_SMEM_STORE_(type, addr, value, name)                                                    \
    HB_STORED_(type, value, emu_smem_store((addr), &hb_stored_, sizeof hb_stored_, HB_SITE(name)))
#define HB_GLOBAL_STORE_(type, address, value, name)                                               \
    HB_STORED_(type, value,                                                                        \
               emu_global_store((address), &hb_stored_, sizeof hb_stored_, HB_SITE(name)))

#define smem_load_u32(addr) HB_SMEM_LOAD_(uint32_t, addr, "smem_load")
#define smem_load_f32(addr) HB_SMEM_LOAD_(float, addr, "smem_load")
#define smem_load_u32x2(addr, value) emu_smem_load((addr), (value), 8, HB_SITE("smem_load"))
#define smem_load_u32x4(addr, value) emu_smem_load((addr), (value), 16, HB_SITE("smem_load"))
#define smem_store_u32(addr, value) HB_SMEM_STORE_(uint32_t, addr, value, "smem_store")
#define smem_store_f32(addr, value) HB_SMEM_STORE_(float, addr, value, "smem_store")
#define smem_store_u32x2(addr, v0, v1)                                                             \
    do {                                                                                           \
        const uint32_t hb_words_[2] = {(v0), (v1)};                                                \
        emu_smem_store((addr), hb_words_, 8, HB_SITE("smem_store"));                               \
    } while (0)
#define smem_store_u32x4(addr, v0, v1, v2, v3)                                                     \
    do {                                                                                           \
        const uint32_t hb_words_[4] = {(v0), (v1), (v2), (v3)};                                    \
        emu_smem_store((addr), hb_words_, 16, HB_SITE("smem_store"));                              \
    } while (0)
#define ldmatrix_x2(addr, value) emu_ldmatrix((addr), (value), 2, HB_SITE("ldmatrix"))
#define ldmatrix_x4(addr, value) emu_ldmatrix((addr), (value), 4, HB_SITE("ldmatrix"))
#define stmatrix_x2(addr, v0, v1)                                                                  \
    do {                                                                                           \
        const uint32_t hb_words_[2] = {(v0), (v1)};                                                \
        emu_stmatrix((addr), hb_words_, 2, HB_SITE("stmatrix"));                                   \
    } while (0)
#define stmatrix_x4_trans(addr, v0, v1, v2, v3)                                                    \
    do {                                                                                           \
        const uint32_t hb_words_[4] = {(v0), (v1), (v2), (v3)};                                    \
        emu_stmatrix_x4_trans((addr), hb_words_, HB_SITE("stmatrix"));                             \
    } while (0)
#define stmatrix_x4(addr, v0, v1, v2, v3)                                                          \
    do {                                                                                           \
        const uint32_t hb_words_[4] = {(v0), (v1), (v2), (v3)};                                    \
        emu_stmatrix((addr), hb_words_, 4, HB_SITE("stmatrix"));                                   \
    } while (0)

#define global_load_f32(address) HB_GLOBAL_LOAD_(float, address, false, "global_load")
#define global_load_f32_nc(address) HB_GLOBAL_LOAD_(float, address, true, "global_load")
#define global_load_u32(address) HB_GLOBAL_LOAD_(uint32_t, address, false, "global_load")
#define global_load_u32_nc(address) HB_GLOBAL_LOAD_(uint32_t, address, true, "global_load")
#define global_load_u64(address) HB_GLOBAL_LOAD_(uint64_t, address, false, "global_load")
#define global_load_u64_nc(address) HB_GLOBAL_LOAD_(uint64_t, address, true, "global_load")
#define global_load_u16(address) HB_GLOBAL_LOAD_(uint16_t, address, false, "global_load")
#define global_load_u16_nc(address) HB_GLOBAL_LOAD_(uint16_t, address, true, "global_load")
#define global_load_u8_nc(address) HB_GLOBAL_LOAD_(uint8_t, address, true, "global_load")
#define global_load_u32x4_nc(address, value)                                                       \
    emu_global_load((address), (value), 16, true, HB_SITE("global_load"))
#define global_store_u8(address, value) HB_GLOBAL_STORE_(uint8_t, address, value, "global_store")
#define global_store_u16(address, value) HB_GLOBAL_STORE_(uint16_t, address, value, "global_store")
#define global_store_u32(address, value) HB_GLOBAL_STORE_(uint32_t, address, value, "global_store")
#define global_store_f32(address, value) HB_GLOBAL_STORE_(float, address, value, "global_store")
#define global_store_u32x4(address, v0, v1, v2, v3)                                                \
    do {                                                                                           \
        const uint32_t hb_words_[4] = {(v0), (v1), (v2), (v3)};                                    \
        emu_global_store((address), hb_words_, 16, HB_SITE("global_store"));                       \
    } while (0)
#define global_store_u32x2(address, v0, v1)                                                        \
    do {                                                                                           \
        const uint32_t hb_words_[2] = {(v0), (v1)};                                                \
        emu_global_store((address), hb_words_, 8, HB_SITE("global_store"));                        \
    } while (0)
#define global_load_u32_relaxed(address) HB_GLOBAL_LOAD_(uint32_t, address, false, "global_load")
#define global_store_u32_relaxed(address, value)                                                   \
    HB_GLOBAL_STORE_(uint32_t, address, value, "global_store")
/* No thread runs between the load and the store. */
#define global_raise_u32(address, value)                                                           \
    do {                                                                                           \
        uint32_t *const hb_raised_ = (address);                                                    \
        const uint32_t hb_least_ = (value);                                                        \
        if (HB_GLOBAL_LOAD_(uint32_t, hb_raised_, false, "global_raise") < hb_least_) {            \
            HB_GLOBAL_STORE_(uint32_t, hb_raised_, hb_least_, "global_raise");                     \
        }                                                                                          \
    } while (0)
#define prefetch_l2(address) emu_prefetch_l2((address), HB_SITE("prefetch_l2"))

/* mbarrier */
#define mbarrier_init(bar, count) emu_mbarrier_init((bar), (count), HB_SITE("mbarrier_init"))
#define mbarrier_inval(bar) emu_mbarrier_inval((bar), HB_SITE("mbarrier_inval"))
#define fence_mbarrier_init() emu_fence_mbarrier_init(HB_SITE("fence_mbarrier_init"))
#define mbarrier_arrive(bar) emu_mbarrier_arrive((bar), HB_SITE("mbarrier_arrive"))
#define mbarrier_expect_tx(bar, bytes)                                                             \
    emu_mbarrier_expect_tx((bar), (bytes), HB_SITE("mbarrier_expect_tx"))
#define mbarrier_arrive_expect_tx(bar, bytes)                                                      \
    emu_mbarrier_arrive_expect_tx((bar), (bytes), HB_SITE("mbarrier_arrive_expect_tx"))
#define mbarrier_arrive_cluster(bar)                                                               \
    emu_mbarrier_arrive_cluster((bar), HB_SITE("mbarrier_arrive_cluster"))
#define mbarrier_try_wait(bar, parity)                                                             \
    emu_mbarrier_try_wait((bar), (parity), HB_SITE("mbarrier_try_wait"))
#define mbarrier_wait(bar, parity) emu_mbarrier_wait((bar), (parity), HB_SITE("mbarrier_wait"))

/* Copies; cache policies change no bit. */
#define HB_TMA_2D_(dst, map, bar, x, y, mask)                                                      \
    do {                                                                                           \
        const int32_t hb_xy_[2] = {(x), (y)};                                                      \
        emu_tma_load((dst), (map), (bar), 2, hb_xy_, (mask), HB_SITE("tma_load"));                 \
    } while (0)
#define HB_TMA_3D_(dst, map, bar, x, y, z)                                                         \
    do {                                                                                           \
        const int32_t hb_xyz_[3] = {(x), (y), (z)};                                                \
        emu_tma_load((dst), (map), (bar), 3, hb_xyz_, 0, HB_SITE("tma_load"));                     \
    } while (0)
#define tma_prefetch_map(map) emu_tma_prefetch_map((map), HB_SITE("tma_prefetch_map"))
#define tma_load_2d(dst, map, bar, x, y) HB_TMA_2D_(dst, map, bar, x, y, 0)
#define tma_load_2d_hint(dst, map, bar, x, y, policy) HB_TMA_2D_(dst, map, bar, x, y, 0)
#define tma_load_3d(dst, map, bar, x, y, z) HB_TMA_3D_(dst, map, bar, x, y, z)
#define tma_load_3d_hint(dst, map, bar, x, y, z, policy) HB_TMA_3D_(dst, map, bar, x, y, z)
#define tma_load_2d_multicast(dst, map, bar, x, y, cta_mask)                                       \
    HB_TMA_2D_(dst, map, bar, x, y, cta_mask)
#define bulk_load(dst, src, bytes, bar)                                                            \
    emu_bulk_load((dst), (src), (bytes), (bar), 0, HB_SITE("bulk_load"))
#define bulk_load_hint(dst, src, bytes, bar, policy)                                               \
    emu_bulk_load((dst), (src), (bytes), (bar), 0, HB_SITE("bulk_load"))
#define bulk_load_multicast(dst, src, bytes, bar, cta_mask)                                        \
    emu_bulk_load((dst), (src), (bytes), (bar), (cta_mask), HB_SITE("bulk_load"))
#define tma_store_2d(map, src, x, y)                                                               \
    do {                                                                                           \
        const int32_t hb_xy_[2] = {(x), (y)};                                                      \
        emu_tma_store((map), (src), 2, hb_xy_, false, HB_SITE("tma_store"));                       \
    } while (0)
#define tma_store_3d(map, src, x, y, z)                                                            \
    do {                                                                                           \
        const int32_t hb_xyz_[3] = {(x), (y), (z)};                                                \
        emu_tma_store((map), (src), 3, hb_xyz_, false, HB_SITE("tma_store"));                      \
    } while (0)
#define tma_reduce_add_2d(map, src, x, y)                                                          \
    do {                                                                                           \
        const int32_t hb_xy_[2] = {(x), (y)};                                                      \
        emu_tma_store((map), (src), 2, hb_xy_, true, HB_SITE("tma_reduce_add"));                   \
    } while (0)
#define bulk_store(dst, src, bytes) emu_bulk_store((dst), (src), (bytes), HB_SITE("bulk_store"))
#define bulk_commit() emu_bulk_commit(HB_SITE("bulk_commit"))
#define bulk_wait(n) emu_bulk_wait((n), false, HB_SITE("bulk_wait"))
#define bulk_wait_read(n) emu_bulk_wait((n), true, HB_SITE("bulk_wait_read"))

/* Fences */
#define fence_proxy_async() emu_fence_proxy_async(HB_SITE("fence_proxy_async"))
#define fence_proxy_async_global() emu_fence_proxy_async_global(HB_SITE("fence_proxy_async_global"))
#define fence_proxy_tensormap_release()                                                            \
    emu_fence_proxy_tensormap_release(HB_SITE("fence_proxy_tensormap_release"))
#define fence_proxy_tensormap_acquire(map)                                                         \
    emu_fence_proxy_tensormap_acquire((map), HB_SITE("fence_proxy_tensormap_acquire"))

/* wgmma; its instructions are in wgmma.h.  The first is for the device's compiler alone. */
#define wgmma_operands_ready(a, count) ((void)(a), (void)(count))
#define wgmma_fence() emu_wgmma_fence(HB_SITE("wgmma_fence"))
#define wgmma_commit() emu_wgmma_commit(HB_SITE("wgmma_commit"))
#define wgmma_wait(n) emu_wgmma_wait((n), HB_SITE("wgmma_wait"))

/* Execution */
#define block_sync() emu_block_sync(HB_SITE("block_sync"))
#define barrier_sync(id, threads) emu_barrier_sync((id), (threads), HB_SITE("barrier_sync"))
#define barrier_arrive(id, threads) emu_barrier_arrive((id), (threads), HB_SITE("barrier_arrive"))
#define warp_sync() emu_warp_sync(HB_SITE("warp_sync"))
#define elect_one() emu_elect_one(HB_SITE("elect_one"))
#define shuffle_u32(value, lane) emu_shuffle_u32((value), (lane), HB_SITE("shuffle"))
#define shuffle_xor_u32(value, mask) emu_shuffle_xor_u32((value), (mask), HB_SITE("shuffle"))
#define vote_any(predicate) (emu_vote_count((predicate), HB_SITE("vote")) != 0)
#define vote_count(predicate) emu_vote_count((predicate), HB_SITE("vote"))
#define setmaxnreg_inc(n) emu_setmaxnreg((n), true, HB_SITE("setmaxnreg_inc"))
#define setmaxnreg_dec(n) emu_setmaxnreg((n), false, HB_SITE("setmaxnreg_dec"))
#define cluster_arrive() emu_cluster_arrive(HB_SITE("cluster_arrive"))
#define cluster_wait() emu_cluster_wait(HB_SITE("cluster_wait"))
#define cluster_sync() (cluster_arrive(), cluster_wait())
#define map_shared_rank(addr, rank) emu_map_shared_rank((addr), (rank), HB_SITE("map_shared_rank"))
#define grid_dependency_wait() emu_grid_dependency_wait(HB_SITE("grid_dependency_wait"))
#define grid_launch_dependents() emu_grid_launch_dependents(HB_SITE("grid_launch_dependents"))

/* Kernels of others */
#define cp_async_4(dst, src) emu_cp_async_4((dst), (src), HB_SITE("cp_async"))
#define cp_async_8(dst, src) emu_cp_async_8((dst), (src), HB_SITE("cp_async"))
#define cp_async_16(dst, src) emu_cp_async_16((dst), (src), HB_SITE("cp_async"))
#define cp_async_commit() emu_cp_async_commit(HB_SITE("cp_async_commit"))
#define cp_async_wait(n) emu_cp_async_wait((n), HB_SITE("cp_async_wait"))
#define cp_async_mbarrier_arrive_noinc(bar)                                                        \
    emu_cp_async_mbarrier_arrive_noinc((bar), HB_SITE("cp_async_mbarrier_arrive"))
#define tensormap_replace_global_address(map, address)                                             \
    emu_tensormap_replace_global_address((map), (address), HB_SITE("tensormap_replace"))
#define tensormap_replace_global_dim(map, ord, value)                                              \
    emu_tensormap_replace_global_dim((map), (ord), (value), HB_SITE("tensormap_replace"))
#define tensormap_replace_global_stride(map, ord, bytes)                                           \
    emu_tensormap_replace_global_stride((map), (ord), (bytes), HB_SITE("tensormap_replace"))

/* Arithmetic */
#define fma_rn(x, y, z) emu_fma_rn((x), (y), (z))
#define mul_rn(x, y) emu_mul_rn((x), (y))
#define add_rn(x, y) emu_add_rn((x), (y))
#define div_rn(x, y) emu_div_rn((x), (y))
#define rcp_rn(x) emu_div_rn(1.0f, (x))
#define max_nan(x, y) emu_max_nan((x), (y))
#define cvt_bf16(x) emu_cvt_bf16(x)
#define cvt_f16(x) emu_cvt_f16(x)
#define cvt_e4m3(x) emu_cvt_e4m3(x)
#define cvt_bf16x2(low, high) ((uint32_t)emu_cvt_bf16(low) | (uint32_t)emu_cvt_bf16(high) << 16)
#define cvt_f16x2(low, high) ((uint32_t)emu_cvt_f16(low) | (uint32_t)emu_cvt_f16(high) << 16)
#define cvt_e4m3x2(low, high)                                                                      \
    ((uint16_t)((uint32_t)emu_cvt_e4m3(low) | (uint32_t)emu_cvt_e4m3(high) << 8))
#define f32_of_f16(bits) emu_f32_of_f16(bits)

static inline uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float f32_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float f32_of_bf16(uint16_t bits)
{
    return f32_of_bits((uint32_t)bits << 16);
}

static inline float clamp_magnitude(float x, float limit)
{
    const uint32_t sign = bits_of_f32(x) & 0x80000000u;
    const uint32_t magnitude = bits_of_f32(x) & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return f32_of_bits(0x7fffffffu);
    }
    return magnitude < bits_of_f32(limit) ? x : f32_of_bits(sign | bits_of_f32(limit));
}

static inline uint32_t bits_select(uint32_t mask, uint32_t x, uint32_t y)
{
    return (mask & x) | (~mask & y);
}

static inline uint32_t bits_turn_right(uint32_t word, uint32_t count)
{
    return word >> count | word << (32 - count);
}

static inline uint32_t bytes_pick(uint32_t x, uint32_t y, uint32_t digits)
{
    const uint64_t bytes = (uint64_t)y << 32 | x;
    uint32_t result = 0;
    int i;
    for (i = 0; i < 4; i++) {
        result |= (uint32_t)(bytes >> (digits >> 4 * i & 7u) * 8 & 0xffu) << 8 * i;
    }
    return result;
}

#endif
