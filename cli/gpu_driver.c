/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gpu_driver.h"

#include <dlfcn.h>
#include <string.h>

#include "common.h"

int gpu_check(const gpu_driver *gpu, int result, const char *call)
{
    const char *name = NULL;
    if (result == 0)
        return CLI_OK;
    if (gpu->error_name == NULL || gpu->error_name(result, &name) != 0 || name == NULL)
        name = "an error without a name";
    return cli_fail(CLI_ENVIRONMENT, "the GPU: %s failed with %s (%d)", call, name, result);
}

/* dlsym returns an object pointer where a function pointer is meant; POSIX vouches for the copy. */
static bool resolve(const gpu_driver *gpu, void *member, size_t bytes, const char *symbol)
{
    void *const address = dlsym(gpu->library, symbol);
    if (address != NULL)
        memcpy(member, &address, bytes);
    return address != NULL;
}

static int load(gpu_driver *gpu)
{
    gpu->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (gpu->library == NULL)
        return cli_fail(CLI_NO_DEVICE, "no CUDA driver on this machine: libcuda.so.1 cannot be "
                                       "loaded");
#define RESOLVE_(member, symbol, parameters)                                                       \
    if (!resolve(gpu, &gpu->member, sizeof gpu->member, symbol))                                   \
        return cli_fail(CLI_NO_DEVICE, "the CUDA driver lacks %s: CUDA 12.3 or later is needed",   \
                        symbol);
    GPU_DRIVER_FUNCTIONS(RESOLVE_)
#undef RESOLVE_
    return CLI_OK;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ...": the first word of digits and
 * dots. */
static void read_version(char *version, size_t bytes)
{
    char line[256] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    if (file == NULL)
        return;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    for (char *word = strtok(line, " \t\n"); word != NULL; word = strtok(NULL, " \t\n")) {
        size_t length = strspn(word, "0123456789.");
        if (length > 0 && word[length] == '\0' && strchr(word, '.') != NULL && length < bytes) {
            memcpy(version, word, length + 1);
            return;
        }
    }
}

int gpu_driver_open(gpu_driver *gpu, int ordinal)
{
    memset(gpu, 0, sizeof *gpu);
    int code = load(gpu);
    if (code == CLI_OK && gpu->init(0) != 0)
        code = cli_fail(CLI_NO_DEVICE, "the CUDA driver finds no device that it can use");
    if (code == CLI_OK && gpu->device_get(&gpu->device, ordinal) != 0)
        code = cli_fail(CLI_NO_DEVICE, "no CUDA device %d", ordinal);
    if (code == CLI_OK)
        code = GPU_CALL(gpu, context_retain, (&gpu->context, gpu->device));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, context_set, (gpu->context));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, stream_create, (&gpu->stream, GPU_STREAM_NON_BLOCKING));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, device_attribute, (&gpu->sms, GPU_SM_COUNT, gpu->device));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, device_name, (gpu->name, (int)sizeof gpu->name, gpu->device));
    if (code == CLI_OK)
        code = GPU_CALL(gpu, driver_version, (&gpu->cuda));
    if (code == CLI_OK)
        read_version(gpu->version, sizeof gpu->version);
    return code;
}

void gpu_driver_close(gpu_driver *gpu)
{
    if (gpu->stream != NULL)
        gpu->stream_destroy(gpu->stream);
    if (gpu->context != NULL) {
        gpu->context_set(NULL);
        gpu->context_release(gpu->device);
    }
    /* The library may hold the driver too, so it stays loaded. */
    memset(gpu, 0, sizeof *gpu);
}

int gpu_take(const gpu_driver *gpu, uint64_t bytes, gpu_address *address)
{
    char text[24];
    *address = 0;
    if (gpu->memory_take(address, (size_t)(bytes < 16 ? 16 : bytes)) == 0)
        return CLI_OK;
    *address = 0;
    return cli_fail(CLI_ENVIRONMENT, "out of GPU memory: %s were asked for",
                    cli_format_bytes(bytes, text));
}

void gpu_give(const gpu_driver *gpu, gpu_address address)
{
    if (address != 0)
        gpu->memory_give(address);
}
