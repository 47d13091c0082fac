/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Oldest driver that knows everything used here (cuLaunchKernelEx, tensor maps): CUDA 12.3's. */
enum { OLDEST_DRIVER = 12030 };

const cuda_driver_symbols cuda_symbols = {
#define SYMBOL_(member, symbol, parameters) symbol,
    CUDA_DRIVER_FUNCTIONS(SYMBOL_)
#undef SYMBOL_
};

enum { TEXT_BYTES = 320 }; /* of a sentence, NUL included; longer ones are cut */

static _Thread_local char failure_text[TEXT_BYTES];

static cuda_driver loaded;
static halfbyte_status outcome;
static char outcome_text[TEXT_BYTES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

cuda_status cuda_ok(void)
{
    const cuda_status ok = {HALFBYTE_SUCCESS, ""};
    return ok;
}

cuda_status cuda_fail(halfbyte_status status, const char *format, ...)
{
    char text[TEXT_BYTES]; /* an argument may be the sentence of the failure before */
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0) {
        text[0] = '\0';
    }
    va_end(arguments);
    memcpy(failure_text, text, sizeof text);
    const cuda_status failed = {status, failure_text};
    return failed;
}

cuda_status cuda_call_failed(const cuda_driver *driver, const char *call, cuda_result result)
{
    const char *name = NULL;
    if (driver->error_name(result, &name) != 0 || name == NULL) {
        name = "an error without a name";
    }
    return cuda_fail(HALFBYTE_ERR_CUDA, "%s failed with %s (%d)", call, name, result);
}

/* dlsym returns an object pointer where a function pointer is meant; POSIX vouches for the copy. */
static int resolve(void *member, size_t member_bytes, const char *symbol)
{
    void *const address = dlsym(loaded.library, symbol);
    if (address == NULL) {
        return 0;
    }
    memcpy(member, &address, member_bytes);
    return 1;
}

static cuda_status load(void)
{
    loaded.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (loaded.library == NULL) {
        return cuda_fail(HALFBYTE_ERR_NO_DEVICE,
                         "no CUDA driver on this machine: libcuda.so.1 cannot be loaded");
    }
#define RESOLVE_(member, symbol, parameters)                                                       \
    if (!resolve(&loaded.member, sizeof loaded.member, symbol)) {                                  \
        return cuda_fail(HALFBYTE_ERR_NO_DEVICE,                                                   \
                         "the CUDA driver lacks %s: CUDA 12.3 or later is needed", symbol);        \
    }
    CUDA_DRIVER_FUNCTIONS(RESOLVE_)
#undef RESOLVE_
    const cuda_result result = loaded.init(0);
    if (result != 0) {
        const cuda_status failed = cuda_call_failed(&loaded, "cuInit", result);
        return cuda_fail(HALFBYTE_ERR_NO_DEVICE, "no usable CUDA device: %s", failed.text);
    }
    if (loaded.driver_version(&loaded.version) != 0 || loaded.version < OLDEST_DRIVER) {
        return cuda_fail(HALFBYTE_ERR_NO_DEVICE,
                         "the CUDA driver serves CUDA %d.%d: 12.3 or later is needed",
                         loaded.version / 1000, loaded.version % 1000 / 10);
    }
    return cuda_ok();
}

static void load_once(void)
{
    const cuda_status status = load();
    outcome = status.status;
    snprintf(outcome_text, sizeof outcome_text, "%s", status.text);
    if (outcome != HALFBYTE_SUCCESS && loaded.library != NULL) {
        dlclose(loaded.library);
        loaded.library = NULL;
    }
}

cuda_status cuda_driver_get(const cuda_driver **driver)
{
    pthread_once(&once, load_once);
    *driver = &loaded;
    const cuda_status status = {outcome, outcome_text};
    return status;
}
