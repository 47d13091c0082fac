/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the emulator offers to kernel source: one function an instruction, the call site last.
 *
 * names.h maps the names of the instruction layer to these; src/emulator implements them.  Meaning
 * and arguments are those of the device bodies.  All of them may only be called by a thread of a
 * kernel that emu_run() is running.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_EMULATED_INSTRUCTIONS_H
#define HALFBYTE_KERNELS_HOPPER_EMULATED_INSTRUCTIONS_H

#include "kernels/hopper/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One call of an instruction in the source; identity for reports, delays and mutants. */
typedef struct emu_site {
    const char *file;
    int line;
    const char *instruction; /* "mbarrier_arrive", ... */
    uint32_t id;             /* 0 until the emulator meets it first */
} emu_site;

/* The site of this very call.  Each expansion has a record of its own. */
#define HB_SITE(instruction_name)                                                                  \
    __extension__({                                                                                \
        static emu_site hb_site_ = {__FILE__, __LINE__, instruction_name, 0};                      \
        &hb_site_;                                                                                 \
    })

/* Identity */
uint32_t emu_thread_index(void);
uint32_t emu_block_index(void);
uint32_t emu_block_count(void);
uint32_t emu_cluster_rank(void);
uint32_t emu_cluster_size(void);

/* Fragments: count elements for the calling thread; the same object for every execution of the
 * site. */
float *emu_fragment_f32(uint32_t count, const char *name, emu_site *site);
uint32_t *emu_fragment_u32(uint32_t count, const char *name, emu_site *site);

/* Shared memory: `bytes` of 4, 8 or 16 at addr, naturally aligned. */
smem_addr emu_smem_base(void);
void emu_smem_load(smem_addr addr, void *value, uint32_t bytes, emu_site *site);
void emu_smem_store(smem_addr addr, const void *value, uint32_t bytes, emu_site *site);
void emu_ldmatrix(smem_addr addr, uint32_t *value, uint32_t matrices, emu_site *site);
void emu_stmatrix(smem_addr addr, const uint32_t *value, uint32_t matrices, emu_site *site);
void emu_stmatrix_x4_trans(smem_addr addr, const uint32_t *value, emu_site *site);

/* Global memory: `bytes` of 1, 2, 4, 8 or 16.  read_only: the _nc forms. */
void emu_global_load(const void *address, void *value, uint32_t bytes, bool read_only,
                     emu_site *site);
void emu_global_store(void *address, const void *value, uint32_t bytes, emu_site *site);
void emu_prefetch_l2(const void *address, emu_site *site);

/* mbarrier */
void emu_mbarrier_init(smem_addr bar, uint32_t count, emu_site *site);
void emu_mbarrier_inval(smem_addr bar, emu_site *site);
void emu_fence_mbarrier_init(emu_site *site);
void emu_mbarrier_arrive(smem_addr bar, emu_site *site);
void emu_mbarrier_expect_tx(smem_addr bar, uint32_t bytes, emu_site *site);
void emu_mbarrier_arrive_expect_tx(smem_addr bar, uint32_t bytes, emu_site *site);
void emu_mbarrier_arrive_cluster(smem_addr bar, emu_site *site);
bool emu_mbarrier_try_wait(smem_addr bar, uint32_t parity, emu_site *site);
void emu_mbarrier_wait(smem_addr bar, uint32_t parity, emu_site *site);

/* Copies.  cta_mask 0: this block alone.  dims 2 or 3; coordinates innermost first. */
void emu_tma_prefetch_map(const tensor_map *map, emu_site *site);
void emu_tma_load(smem_addr dst, const tensor_map *map, smem_addr bar, uint32_t dims,
                  const int32_t *coordinates, uint16_t cta_mask, emu_site *site);
void emu_bulk_load(smem_addr dst, const void *src, uint32_t bytes, smem_addr bar, uint16_t cta_mask,
                   emu_site *site);
void emu_tma_store(const tensor_map *map, smem_addr src, uint32_t dims, const int32_t *coordinates,
                   bool add, emu_site *site);
void emu_bulk_store(void *dst, smem_addr src, uint32_t bytes, emu_site *site);
void emu_bulk_commit(emu_site *site);
void emu_bulk_wait(uint32_t pending, bool read, emu_site *site);

/* Fences */
void emu_fence_proxy_async(emu_site *site);
void emu_fence_proxy_async_global(emu_site *site);
void emu_fence_proxy_tensormap_release(emu_site *site);
void emu_fence_proxy_tensormap_acquire(const tensor_map *map, emu_site *site);

/* wgmma */
typedef enum emu_operand_type { EMU_E4M3, EMU_BF16 } emu_operand_type;
void emu_wgmma_fence(emu_site *site);
void emu_wgmma_commit(emu_site *site);
void emu_wgmma_wait(uint32_t pending, emu_site *site);
void emu_wgmma_ss(float *d, uint32_t n, emu_operand_type type, uint64_t desc_a, uint64_t desc_b,
                  uint32_t scale_d, emu_site *site);
void emu_wgmma_rs(float *d, uint32_t n, emu_operand_type type, const uint32_t *a, uint64_t desc_b,
                  uint32_t scale_d, emu_site *site);

/* Execution */
void emu_block_sync(emu_site *site);
void emu_barrier_sync(uint32_t id, uint32_t threads, emu_site *site);
void emu_barrier_arrive(uint32_t id, uint32_t threads, emu_site *site);
void emu_warp_sync(emu_site *site);
bool emu_elect_one(emu_site *site);
uint32_t emu_shuffle_u32(uint32_t value, uint32_t lane, emu_site *site);
uint32_t emu_shuffle_xor_u32(uint32_t value, uint32_t mask, emu_site *site);
uint32_t emu_vote_count(bool predicate, emu_site *site);
void emu_setmaxnreg(uint32_t registers, bool increase, emu_site *site);
void emu_cluster_arrive(emu_site *site);
void emu_cluster_wait(emu_site *site);
smem_addr emu_map_shared_rank(smem_addr addr, uint32_t rank, emu_site *site);
void emu_grid_dependency_wait(emu_site *site);
void emu_grid_launch_dependents(emu_site *site);

/* Kernels of others */
void emu_cp_async_4(smem_addr dst, const void *src, emu_site *site);
void emu_cp_async_8(smem_addr dst, const void *src, emu_site *site);
void emu_cp_async_16(smem_addr dst, const void *src, emu_site *site);
void emu_cp_async_commit(emu_site *site);
void emu_cp_async_wait(uint32_t pending, emu_site *site);
void emu_cp_async_mbarrier_arrive_noinc(smem_addr bar, emu_site *site);
void emu_tensormap_replace_global_address(tensor_map *map, const void *address, emu_site *site);
void emu_tensormap_replace_global_dim(tensor_map *map, uint32_t ord, uint32_t value,
                                      emu_site *site);
void emu_tensormap_replace_global_stride(tensor_map *map, uint32_t ord, uint64_t bytes,
                                         emu_site *site);

/* fp32 arithmetic of docs/numerics.md section 1; pure, not watched. */
float emu_fma_rn(float x, float y, float z);
float emu_mul_rn(float x, float y);
float emu_add_rn(float x, float y);
float emu_div_rn(float x, float y);
float emu_max_nan(float x, float y);
uint16_t emu_cvt_bf16(float x);
uint16_t emu_cvt_f16(float x);
uint8_t emu_cvt_e4m3(float x);
float emu_f32_of_f16(uint16_t bits);

#ifdef __cplusplus
}
#endif

#endif
