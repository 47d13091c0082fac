/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel language, device side.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DEVICE_LANGUAGE_H
#define HALFBYTE_KERNELS_HOPPER_DEVICE_LANGUAGE_H

#define HB_DEVICE static __device__ __forceinline__
#define HB_UNROLL _Pragma("unroll")
#define HB_NO_UNROLL _Pragma("unroll 1")

/* A condition that mostly holds: what depends on it comes next in the machine code. */
#define HB_LIKELY(condition) __builtin_expect((condition) != 0, 1)

/*
 * KERNEL(name, params_type, p, threads) { body }   with p of type const params_type *.
 * One block of `threads` threads an SM; parameters, tensor maps among them, travel by value.
 * KERNEL_SHARING: with so few registers that `blocks` blocks fit on an SM.
 */
#define KERNEL(name, params_type, p, threads) HB_KERNEL_(name, params_type, p, threads, 1)
#define KERNEL_SHARING(name, params_type, p, threads, blocks)                                      \
    HB_KERNEL_(name, params_type, p, threads, blocks)
#define HB_KERNEL_(name, params_type, p, threads, blocks)                                          \
    static __device__ __forceinline__ void name##_body(const params_type *p);                      \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        name(const __grid_constant__ params_type kernel_params)                                    \
    {                                                                                              \
        name##_body(&kernel_params);                                                               \
    }                                                                                              \
    static __device__ __forceinline__ void name##_body(const params_type *p)

#define FRAGMENT_F32(name, count) float name[count]
#define FRAGMENT_U32(name, count) uint32_t name[count]

#endif
