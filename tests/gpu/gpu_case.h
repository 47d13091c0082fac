/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random problems of tests/oracle/gemm_case.h on the GPU: the case's memory goes there as it
 * is, guard zones and gaps included, and the operands point to the copy.
 */
#ifndef HALFBYTE_TESTS_GPU_GPU_CASE_H
#define HALFBYTE_TESTS_GPU_GPU_CASE_H

#include "gpu/session.h"
#include "halfbyte.h"
#include "oracle/gemm_case.h"

typedef struct gpu_case {
    halfbyte_operands operands;                 /* with addresses on the GPU */
    cuda_pointer memory[CASE_BLOCKS_OF_MEMORY]; /* the copy of each of the case's blocks */
    cuda_pointer d;                             /* the image of D, c->d_bytes */
} gpu_case;

/* Takes the splits of k out of a problem that no kernel serves with them (weight groups of 32 and
 * 64). */
void gpu_case_make_served(struct gemm_case *c);

/* Into the arena, which must have room for it; what lies between the blocks is 0xff. */
void gpu_case_upload(session *s, const struct gemm_case *c, gpu_case *on_gpu);

/* The address on the GPU of one in the case's memory; 0 stays 0. */
cuda_pointer gpu_case_address(const struct gemm_case *c, const gpu_case *on_gpu, const void *host);

/* Uploads the block of the case's memory in which `host` lies again; NULL: nothing. */
void gpu_case_refresh(const session *s, const struct gemm_case *c, const gpu_case *on_gpu,
                      const void *host);

/* D and what surrounds it as before the first run. */
void gpu_case_restore_d(const session *s, const struct gemm_case *c, const gpu_case *on_gpu);

/* Workspace of the plan in the arena, full of NaN. */
cuda_pointer gpu_case_workspace(session *s, const halfbyte_plan *plan);

/* Runs the plan and waits.  Counts a failure, and returns false, if it does not succeed. */
bool gpu_case_run(session *s, const halfbyte_plan *plan, const gpu_case *on_gpu);

/* The CPU model's D into the case's own. */
bool gpu_case_model(session *s, const struct gemm_case *c, halfbyte_device *model);

/* D on the GPU and what surrounds it, byte by byte, with the case's own. */
void gpu_case_compare(session *s, const struct gemm_case *c, const gpu_case *on_gpu,
                      const char *what);

/* One line that says what the case is. */
enum { GPU_CASE_TEXT = 320 };
void gpu_case_text(const struct gemm_case *c, const char *kernel, char text[GPU_CASE_TEXT]);

#endif
