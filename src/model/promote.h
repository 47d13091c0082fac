/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promotion: partial sums of a block enter the fp32 running sums.  docs/numerics.md section 5.
 */
#ifndef HALFBYTE_MODEL_PROMOTE_H
#define HALFBYTE_MODEL_PROMOTE_H

#include "model/chain.h"

/* acc[c] = fma_rn(partial[c], scale[c], acc[c]) for the columns of a panel. */
typedef void promote_function(const float partial[CHAIN_COLUMNS], const float scale[CHAIN_COLUMNS],
                              float acc[CHAIN_COLUMNS]);

/* The fastest form that this CPU has; fma is exactly rounded in each, so the bits are the same. */
promote_function *promote_get(void);

#endif
