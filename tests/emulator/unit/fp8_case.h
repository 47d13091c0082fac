/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A problem for the first kernel: operands, the model's result, a run on the emulator.
 */
#ifndef HALFBYTE_TESTS_EMULATOR_UNIT_FP8_CASE_H
#define HALFBYTE_TESTS_EMULATOR_UNIT_FP8_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "emulator/emulator.h"
#include "kernels/gemm_params.h"

typedef struct fp8_case_shape {
    int m, n, k;
    int blocks;
    bool specials; /* NaN, extremes and odd scales among the data */
} fp8_case_shape;

typedef struct fp8_case {
    fp8_case_shape shape;
    gemm_params params;
    emu_memory *memory;
    uint8_t *a, *b;
    float *a_scale, *b_scale;
    uint16_t *d, *expected;
    size_t d_count; /* elements, guard rows and columns included */
    int ldd;
} fp8_case;

/* The kernel of an instance, by its number of stages: 3 or 6. */
typedef struct fp8_kernel {
    void (*entry)(const void *params);
    uint32_t stages, threads, smem_bytes, registers;
} fp8_kernel;

extern const fp8_kernel fp8_kernel_3, fp8_kernel_6;

/* Draws operands by seed and computes the expected result; fails the test if memory is out. */
void fp8_case_make(fp8_case *c, const fp8_case_shape *shape, uint64_t seed);
void fp8_case_free(fp8_case *c);

/* Poisons D and runs the kernel. */
emu_status fp8_case_run(fp8_case *c, const fp8_kernel *kernel, const emu_config *config,
                        emu_report *report);

/* Elements of D, guards included, that differ from the expected bits. */
size_t fp8_case_differences(const fp8_case *c);

#endif
