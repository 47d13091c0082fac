/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver, loaded on first use.  The library links to nothing of CUDA.
 */
#ifndef HALFBYTE_CUDA_DRIVER_H
#define HALFBYTE_CUDA_DRIVER_H

#include <stddef.h>

#include "cuda/driver_types.h"
#include "halfbyte.h"

/*
 * What a function of src/cuda returns: a status and the sentence that goes with it.  api/ turns it
 * into the caller's error; src/cuda knows nothing of it.  The sentence is the thread's own and
 * stands until its next failure.
 */
typedef struct cuda_status {
    halfbyte_status status;
    const char *text;
} cuda_status;

/* A success, and a failure with its sentence. */
cuda_status cuda_ok(void);
cuda_status cuda_fail(halfbyte_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Loads and initialises the driver once a process; later calls return the first outcome.
 * Thread-safe. ERR_NO_DEVICE: no libcuda.so.1, no device, a driver that lacks a function or that
 * cannot be initialised: the sentence says which.
 */
cuda_status cuda_driver_get(const cuda_driver **driver);

/* The name that the driver exports of each member of cuda_driver, for messages. */
typedef struct cuda_driver_symbols {
#define CUDA_DRIVER_SYMBOL_(member, symbol, parameters) const char *member;
    CUDA_DRIVER_FUNCTIONS(CUDA_DRIVER_SYMBOL_)
#undef CUDA_DRIVER_SYMBOL_
} cuda_driver_symbols;

extern const cuda_driver_symbols cuda_symbols;

/* A failure that names the call and the driver's own name of the error. */
cuda_status cuda_call_failed(const cuda_driver *driver, const char *call, cuda_result result);

#endif
