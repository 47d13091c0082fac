/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/session.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PRINTED = 5 };

/* The process' own: one test. */
static char doing[200];

void session_doing(const char *what)
{
    snprintf(doing, sizeof doing, "%s", what);
}

_Noreturn void session_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("  ", stdout);
    vprintf(format, arguments);
    printf("%s%s\n", doing[0] != '\0' ? " at: " : "", doing);
    va_end(arguments);
    fflush(stdout);
    _Exit(2);
}

void session_check(const session *s, cuda_result result, const char *what)
{
    if (result != 0) {
        const cuda_status status = cuda_call_failed(s->driver, what, result);
        session_die("%s", status.text);
    }
}

static void functions_resolve(session *s)
{
#define SESSION_RESOLVE_(member, symbol, parameters)                                               \
    do {                                                                                           \
        void *const address = dlsym(s->driver->library, symbol);                                   \
        if (address == NULL) {                                                                     \
            session_die("the driver lacks %s", symbol);                                            \
        }                                                                                          \
        memcpy(&s->member, &address, sizeof s->member);                                            \
    } while (0);
    SESSION_FUNCTIONS(SESSION_RESOLVE_)
#undef SESSION_RESOLVE_
}

void session_open(session *s)
{
    cuda_status status = gpu_open(&s->device, 0);
    if (status.status == HALFBYTE_SUCCESS) {
        status = gpu_enter(s->device);
    }
    if (status.status != HALFBYTE_SUCCESS) {
        session_die("%s: %s", halfbyte_status_name(status.status), status.text);
    }
    s->driver = s->device->driver;
    functions_resolve(s);
    s->pool = parallel_pool_create(0);
    s->arena_bytes = SESSION_ARENA_BYTES;
    s->arena = session_allocate(s, s->arena_bytes);
}

cuda_pointer session_allocate(const session *s, size_t bytes)
{
    cuda_pointer memory = 0;
    session_check(s, s->mem_alloc(&memory, bytes), "cuMemAlloc");
    return memory;
}

void session_free(const session *s, cuda_pointer memory)
{
    session_check(s, s->mem_free(memory), "cuMemFree");
}

cuda_pointer session_memory(session *s, size_t bytes)
{
    const size_t taken = (bytes + 255) / 256 * 256;
    if (taken > s->arena_bytes - s->arena_used) {
        session_die("the test asks for more than %zu bytes of the arena", s->arena_bytes);
    }
    const cuda_pointer memory = s->arena + s->arena_used;
    s->arena_used += taken;
    return memory;
}

cuda_pointer session_upload(session *s, const void *data, size_t bytes)
{
    const cuda_pointer memory = session_memory(s, bytes);
    if (bytes > 0) {
        session_check(s, s->to_device(memory, data, bytes), "cuMemcpyHtoD");
    }
    return memory;
}

void session_reset(session *s)
{
    s->arena_used = 0;
}

void session_download(const session *s, void *dst, cuda_pointer src, size_t bytes)
{
    if (bytes > 0) {
        session_check(s, s->to_host(dst, src, bytes), "cuMemcpyDtoH");
    }
}

cuda_module session_module(const session *s, const void *image)
{
    cuda_module module = NULL;
    session_check(s, s->driver->module_load(&module, image), "cuModuleLoadData");
    return module;
}

cuda_function session_function(const session *s, cuda_module module, const char *name,
                               unsigned smem_bytes)
{
    cuda_function function = NULL;
    session_check(s, s->driver->module_function(&function, module, name), name);
    if (smem_bytes > 0) {
        session_check(
            s, s->driver->function_set(function, CUDA_FUNCTION_MAX_DYNAMIC_SMEM, (int)smem_bytes),
            name);
    }
    return function;
}

void session_launch(const session *s, cuda_function function, unsigned blocks, unsigned threads,
                    unsigned smem_bytes, unsigned cluster, void *params)
{
    const gpu_launch launch = {function, blocks, threads, smem_bytes, cluster, 0, NULL};
    const cuda_status status = gpu_launch_kernel(s->device, &launch, params);
    if (status.status != HALFBYTE_SUCCESS) {
        session_die("%s", status.text);
    }
    session_wait(s);
}

void session_start(const session *s, cuda_function function, unsigned blocks, unsigned threads,
                   void **parameters)
{
    cuda_launch_config config = {blocks, 1, 1, threads, 1, 1, 0, NULL, NULL, 0};
    session_check(s, s->driver->launch(&config, function, parameters, NULL), "cuLaunchKernelEx");
}

void session_wait(const session *s)
{
    session_check(s, s->synchronize(), "cuCtxSynchronize");
}

static void element_print(const uint8_t *element, size_t bytes)
{
    for (size_t i = bytes; i-- > 0;) {
        printf("%02x", element[i]);
    }
}

void session_compare(session *s, const char *what, const void *got, const void *expected,
                     size_t bytes, size_t count)
{
    const uint8_t *x = got;
    const uint8_t *y = expected;
    int64_t equal = 0;
    for (size_t i = 0; i < count; i++) {
        if (memcmp(x + i * bytes, y + i * bytes, bytes) == 0) {
            equal++;
        } else if (s->different + (int64_t)i - equal < MOST_PRINTED) {
            printf("  %s: element %zu is 0x", what, i);
            element_print(x + i * bytes, bytes);
            printf(", expected 0x");
            element_print(y + i * bytes, bytes);
            putchar('\n');
        }
    }
    s->compared += (int64_t)count;
    s->different += (int64_t)count - equal;
}

void session_expect(session *s, const char *what, bool holds)
{
    s->compared++;
    if (!holds) {
        if (s->different < MOST_PRINTED) {
            printf("  not so: %s\n", what);
        }
        s->different++;
    }
}

void session_figure(session *s, const char *name, double value)
{
    const size_t used = strlen(s->figures);
    snprintf(s->figures + used, sizeof s->figures - used, ", \"%s\": %.15g", name, value);
}

void *session_host(size_t bytes)
{
    void *memory = calloc(bytes + (bytes == 0), 1);
    if (memory == NULL) {
        session_die("no memory: %zu bytes", bytes);
    }
    return memory;
}

void session_host_free(void *memory)
{
    free(memory);
}
