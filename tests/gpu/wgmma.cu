/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every wgmma of the instruction layer once: a warpgroup fills shared memory with a given image, makes a
 * chain of four instructions on given accumulators and stores them by the layout that wgmma.h states.
 *
 * wgmma_cases.inc is made by CMake from the generated wrappers: no n can be forgotten.
 */
#include "gpu/wgmma_params.h"
#include "kernels/hopper/hopper.h"

HB_DEVICE void image_load(const wgmma_params *p, smem_addr base)
{
    const uint32_t *image = p->image + (size_t)block_index() * p->image_words;
    uint32_t i;
    for (i = thread_index(); i < p->image_words; i += 128u) {
        smem_store_u32(base + i * 4u, global_load_u32_nc(image + i));
    }
    fence_proxy_async();
    block_sync();
}

HB_DEVICE uint32_t first_row(void)
{
    return thread_index() / 32u * 16u + thread_index() % 32u / 4u;
}

/* Register i of a step: row + 8 (i & 1), bytes 16 (i >> 1) + 4 (thread % 4) of the step's 32. */
HB_DEVICE void a_load(const wgmma_params *p, uint32_t *a)
{
    const uint32_t *first = p->a +
                            ((size_t)block_index() * WGMMA_ROWS + first_row()) * (WGMMA_K_BYTES / 4) +
                            thread_index() % 4u;
    int i;
    HB_UNROLL
    for (i = 0; i < WGMMA_STEPS * 4; i++) {
        const int row = (i & 1) * 8;
        const int word = i / 4 * 8 + (i & 2) * 2;
        a[i] = global_load_u32_nc(first + row * (WGMMA_K_BYTES / 4) + word);
    }
}

/* Element 0 of the thread's accumulators in [blocks, 64, n], and how far element i is from it. */
HB_DEVICE size_t first_element(uint32_t n)
{
    return ((size_t)block_index() * WGMMA_ROWS + first_row()) * n + thread_index() % 4u * 2u;
}

HB_DEVICE int element_offset(int i, int n)
{
    return i / 2 % 2 * 8 * n + i / 4 * 8 + i % 2;
}

HB_DEVICE uint64_t descriptor(const wgmma_matrix *m, smem_addr base, int step)
{
    return wgmma_desc(base + m->start[step], m->leading, m->stride, m->swizzle);
}

#define ISSUE_ss(kind, n, d, a, desc_a, desc_b, scale)                                             \
    wgmma_##kind##_ss_n##n(d, desc_a, desc_b, scale)
#define ISSUE_rs(kind, n, d, a, desc_a, desc_b, scale) wgmma_##kind##_rs_n##n(d, a, desc_b, scale)

#define WGMMA_CASE(kind, source, n)                                                                \
    KERNEL(wgmma_test_##kind##_##source##_n##n, wgmma_params, p, 128)                              \
    {                                                                                              \
        FRAGMENT_F32(d, n / 2);                                                                    \
        FRAGMENT_U32(a, WGMMA_STEPS * 4);                                                          \
        const smem_addr base = smem_base();                                                        \
        const float *c = p->c + first_element(n);                                                  \
        float *stored = p->d + first_element(n);                                                   \
        int i;                                                                                     \
        image_load(p, base);                                                                       \
        a_load(p, a);                                                                              \
        HB_UNROLL                                                                                  \
        for (i = 0; i < n / 2; i++) {                                                              \
            d[i] = global_load_f32_nc(c + element_offset(i, n));                                   \
        }                                                                                          \
        wgmma_fence();                                                                             \
        HB_UNROLL                                                                                  \
        for (i = 0; i < WGMMA_STEPS; i++) {                                                        \
            ISSUE_##source(kind, n, d, a + i * 4, descriptor(&p->at, base, i),                     \
                           descriptor(&p->bt, base, i), i != 0 ? 1u : p->scale_d);                 \
        }                                                                                          \
        wgmma_commit();                                                                            \
        wgmma_wait(0);                                                                             \
        HB_UNROLL                                                                                  \
        for (i = 0; i < n / 2; i++) {                                                              \
            global_store_f32(stored + element_offset(i, n), d[i]);                                 \
        }                                                                                          \
    }

#include "wgmma_cases.inc"
