/* SPDX-License-Identifier: Apache-2.0 */
/* The variants that chain.c chooses from.  The x86 ones exist only in builds for x86-64. */
#ifndef HALFBYTE_MODEL_CHAIN_VARIANTS_H
#define HALFBYTE_MODEL_CHAIN_VARIANTS_H

#include "model/chain.h"

extern const chain_ops chain_ops_portable;
#ifdef __x86_64__
extern const chain_ops chain_ops_avx2;
extern const chain_ops chain_ops_avx512;
#endif

#endif
