/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel language, emulator side.
 */
#ifndef HALFBYTE_KERNELS_HOPPER_EMULATED_LANGUAGE_H
#define HALFBYTE_KERNELS_HOPPER_EMULATED_LANGUAGE_H

#define HB_DEVICE static inline
#define HB_UNROLL
#define HB_NO_UNROLL
#define HB_LIKELY(condition) ((condition) != 0)

/* The emulator starts every thread in `name` with a pointer to the launch's copy of the parameters.
 * */
#define KERNEL(name, params_type, p, threads) HB_KERNEL_(name, params_type, p)
#define KERNEL_SHARING(name, params_type, p, threads, blocks) HB_KERNEL_(name, params_type, p)
#define HB_KERNEL_(name, params_type, p)                                                           \
    static void name##_body(const params_type *p);                                                 \
    void name(const void *kernel_params);                                                          \
    void name(const void *kernel_params)                                                           \
    {                                                                                              \
        name##_body((const params_type *)kernel_params);                                           \
    }                                                                                              \
    static void name##_body(const params_type *p)

/* A fragment is an object of the emulator, with one copy a thread, each on pages of its own. */
#define FRAGMENT_F32(name, count)                                                                  \
    float *const name = emu_fragment_f32((count), #name, HB_SITE("fragment"))
#define FRAGMENT_U32(name, count)                                                                  \
    uint32_t *const name = emu_fragment_u32((count), #name, HB_SITE("fragment"))

#endif
