/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel language, device side.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_DEVICE_LANGUAGE_H
#define HALFBYTE_KERNELS_HOPPER_DEVICE_LANGUAGE_H

#define HB_DEVICE static __device__ __forceinline__
#define HB_UNROLL _Pragma("unroll")
#define HB_NO_UNROLL _Pragma("unroll 1")

/*
 * KERNEL(name, params_type, p, threads) { body }   with p of type const params_type *.
 * One block of `threads` threads an SM; parameters, tensor maps among them, travel by value.
 */
#define KERNEL(name, params_type, p, threads) HB_KERNEL_(name, params_type, p, threads)
#define HB_KERNEL_(name, params_type, p, threads)                                                  \
    static __device__ __forceinline__ void name##_body(const params_type *p);                      \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                       \
        name(const __grid_constant__ params_type kernel_params)                                    \
    {                                                                                              \
        name##_body(&kernel_params);                                                               \
    }                                                                                              \
    static __device__ __forceinline__ void name##_body(const params_type *p)

#define FRAGMENT_F32(name, count) float name[count]
#define FRAGMENT_U32(name, count) uint32_t name[count]

#endif
