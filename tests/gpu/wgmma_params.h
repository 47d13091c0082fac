/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of the kernels in wgmma.cu: a chain of WGMMA_STEPS instructions a block.
 */
#ifndef HALFBYTE_TESTS_GPU_WGMMA_PARAMS_H
#define HALFBYTE_TESTS_GPU_WGMMA_PARAMS_H

#include "kernels/hopper/types.h"

enum {
    WGMMA_STEPS = 4,       /* instructions of a chain: 128 bytes of k */
    WGMMA_STEP_BYTES = 32, /* bytes of k an instruction */
    WGMMA_K_BYTES = WGMMA_STEPS * WGMMA_STEP_BYTES,
    WGMMA_ROWS = 64
};

/* A matrix in shared memory, as its descriptors say: offsets from smem_base(), in bytes. */
typedef struct wgmma_matrix {
    uint32_t start[WGMMA_STEPS]; /* of each step's 32 bytes of k */
    uint32_t leading, stride;
    uint32_t swizzle; /* SWIZZLE_* */
} wgmma_matrix;

typedef struct wgmma_params {
    const uint32_t *image; /* [blocks, image_words] what shared memory holds */
    const uint32_t *a;     /* [blocks, 64, 32] rows of 128 bytes, for A from registers */
    const float *c;        /* [blocks, 64, n] */
    float *d;              /* [blocks, 64, n] */
    wgmma_matrix at, bt;
    uint32_t image_words;
    uint32_t scale_d; /* of the first step: 0 leaves c out */
} wgmma_params;

#endif
