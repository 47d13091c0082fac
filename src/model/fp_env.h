/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floating-point environment that the model needs: round to nearest even, subnormals kept
 * (no flush-to-zero, no denormals-are-zero), no trap.  A host program may have set another one
 * (PyTorch's set_flush_denormal does), so every entry point and every worker thread writes
 *
 *     const fp_env env = fp_env_save();
 *     fp_env_set();
 *     ...
 *     fp_env_restore(env);
 *
 * Exception flags raised in between are dropped: the caller's come back as they were.
 */
#ifndef HALFBYTE_MODEL_FP_ENV_H
#define HALFBYTE_MODEL_FP_ENV_H

#include <stdint.h>

#if defined(__x86_64__) || (defined(__i386__) && defined(__SSE2__))

#include <xmmintrin.h>

typedef uint32_t fp_env; /* MXCSR */

static inline fp_env fp_env_save(void)
{
    return _mm_getcsr();
}

static inline void fp_env_restore(fp_env env)
{
    _mm_setcsr(env);
}

/* All six exceptions masked (bits 7..12); rounding, FTZ, DAZ and the flags are 0. */
static inline void fp_env_set(void)
{
    _mm_setcsr(0x1f80);
}

#elif defined(__aarch64__)

typedef uint64_t fp_env; /* FPCR */

static inline fp_env fp_env_save(void)
{
    uint64_t fpcr;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(fpcr) : : "memory");
    return fpcr;
}

static inline void fp_env_restore(fp_env env)
{
    __asm__ __volatile__("msr fpcr, %0" : : "r"(env) : "memory");
}

/* Zero is nearest rounding, FZ, FZ16, AH, FIZ and DN off, no trap. */
static inline void fp_env_set(void)
{
    fp_env_restore(0);
}

#else

#include <fenv.h>

typedef fenv_t fp_env;

static inline fp_env fp_env_save(void)
{
    fenv_t env;
    fegetenv(&env);
    return env;
}

static inline void fp_env_restore(fp_env env)
{
    fesetenv(&env);
}

static inline void fp_env_set(void)
{
    fesetenv(FE_DFL_ENV);
}

#endif

#endif
