/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Hopper instruction layer: one PTX instruction, one name, two bodies.
 *
 * A kernel that reaches shared memory, the tensor core and the copy engine through these names
 * alone compiles twice from one source: by nvcc for sm_90a, where each name is one inline PTX
 * statement, and by gcc or clang, where it is a call into the emulator that runs the kernel on the
 * CPU and watches what its asynchronous operations may do (docs/emulator.md).
 *
 * LANGUAGE.  The intersection of C11 and what nvcc takes as C++: explicit casts from void *, no
 * designated initialisers, no variable-length arrays, no restrict, no templates or references.
 * Helpers are HB_DEVICE functions.  Loops over fragments are HB_UNROLL loops with constant bounds,
 * so that every fragment index is a constant.
 *
 * MEMORY.  Shared memory is addressed by smem_addr, a 32-bit byte address in the shared window (or
 * the cluster's window, from map_shared_rank), and touched only by the accessors of memory.h.
 * Global memory is touched by the global_ accessors.  Fragments (accumulators, register operands of
 * wgmma) are declared once, at role scope, by FRAGMENT_F32 and FRAGMENT_U32: the emulator takes
 * object identity for register identity.
 *
 * Section numbers in the device bodies are those of PTX ISA 9.1; they move between releases, the
 * titles do not.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_HOPPER_H
#define HALFBYTE_KERNELS_HOPPER_HOPPER_H

#include "kernels/hopper/types.h"

/* Swizzle of a shared-memory matrix: the value is the field of the wgmma descriptor (bits 62..63).
 * */
#define SWIZZLE_NONE 0u
#define SWIZZLE_128B 1u
#define SWIZZLE_64B 2u
#define SWIZZLE_32B 3u

#include "kernels/hopper/descriptor.h"

#if defined(__CUDACC__)
#include "kernels/hopper/device/language.h"

#include "kernels/hopper/device/arith.h"
#include "kernels/hopper/device/execution.h"
#include "kernels/hopper/device/fence.h"
#include "kernels/hopper/device/foreign.h"
#include "kernels/hopper/device/mbarrier.h"
#include "kernels/hopper/device/memory.h"
#include "kernels/hopper/device/tma.h"
#include "kernels/hopper/device/wgmma.h"
#else
#include "kernels/hopper/emulated/instructions.h"
#include "kernels/hopper/emulated/language.h"
#include "kernels/hopper/emulated/names.h"
#include "kernels/hopper/emulated/wgmma_generated.h"
#endif

#endif
