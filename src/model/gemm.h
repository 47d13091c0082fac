/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matrix products of docs/numerics.md on the CPU: both families, dense and grouped.
 */
#ifndef HALFBYTE_MODEL_GEMM_H
#define HALFBYTE_MODEL_GEMM_H

#include "halfbyte.h"
#include "model/chain.h"
#include "model/parallel.h"

/*
 * Computes D.  problem and operands must have passed the checks of halfbyte_plan_create() and
 * halfbyte_run(), with defaults resolved (groups >= 1, types set, k_splits >= 1).
 *   ops    code path of the chains; every one gives the same bits.
 *   pool   threads that share the work, NULL = the caller alone; does not change a bit.
 * Allocates nothing; uses about 150 KB of stack a thread.  Sets and restores the caller's
 * floating-point environment.
 */
void gemm_run(const halfbyte_problem *problem, const halfbyte_operands *operands,
              const chain_ops *ops, parallel_pool *pool);

#endif
