/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launches that make up one product, with their parameters: the part that a GPU and the
 * emulator share.  Nothing here touches a device; tensor maps are encoded by a callback.
 */
#ifndef HALFBYTE_API_GEMM_LAUNCH_H
#define HALFBYTE_API_GEMM_LAUNCH_H

#include <stdbool.h>

#include "api/gemm_select.h"
#include "cuda/gemm_map.h"
#include "halfbyte.h"
#include "kernels/gemm_params.h"
#include "kernels/group_params.h"
#include "kernels/pack_weights_params.h"

/* What launches are made for. */
typedef struct gemm_machine {
    int sm_count;
    halfbyte_status (*encode)(const void *context, const gemm_map *from, tensor_map *map);
    const void *context;
} gemm_machine;

typedef struct gemm_launch {
    int kernel; /* index into kernel_table */
    uint32_t blocks;
    uint32_t cluster;
    bool programmatic; /* may start before the stream's previous kernel has ended */
    size_t params_bytes;
    union {
        gemm_params gemm;
        group_bounds_params bounds;
        zero_padding_params padding;
        add_splits_params splits;
        pack_params pack;
    } params;
} gemm_launch;

/* In stream order: first clear_bytes zero bytes at `clear`, then the launches. */
typedef struct gemm_launches {
    void *clear;
    size_t clear_bytes;
    int count;
    gemm_launch launch[5];
} gemm_launches;

/* SMs that the problem may use. */
static inline int gemm_sms(const gemm_machine *machine, const halfbyte_problem *problem)
{
    return problem->num_sms > 0 && problem->num_sms < machine->sm_count ? problem->num_sms
                                                                        : machine->sm_count;
}

/* Does each run pack the weights first? */
bool gemm_packs_weights(const halfbyte_problem *problem);

/* Bytes of workspace, for any m <= m_max; SIZE_MAX if no size_t holds them. */
size_t gemm_workspace_bytes(const halfbyte_problem *problem);

/*
 * For checked operands, m and n not 0.  choice: from gemm_choice_for(), or one kernel that serves
 * the problem; two only of grouped problems with one range of k.  workspace: 256-byte aligned.
 * ERR_UNSUPPORTED: more tiles than a grid can count, which no memory holds; errors of encode().
 */
halfbyte_status gemm_launches_make(const gemm_machine *machine, const gemm_choice *choice,
                                   const halfbyte_problem *problem,
                                   const halfbyte_operands *operands, void *workspace,
                                   gemm_launches *launches);

/* The parameters of `kernel` for this product, apart from the tensor maps (gemm_params_fill.c). */
void gemm_params_fill(const halfbyte_problem *problem, const halfbyte_operands *operands,
                      gemm_params *params);

#endif
