/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/harness/harness.h"

#include <stdlib.h>
#include <string.h>

#define KERNEL_ROW(name, ...) void name(const void *params);
#include "api/kernels.def"
#undef KERNEL_ROW

static const harness_kernel kernels[] = {
#define KERNEL_ROW(name, threads, smem_bytes, tile_m, tile_n, cluster_m, cluster_n, box_m, box_n,  \
                   block_ns, tile_ns, accepts)                                                     \
    {#name,                                                                                        \
     name,                                                                                         \
     threads,                                                                                      \
     smem_bytes,                                                                                   \
     tile_m,                                                                                       \
     tile_n,                                                                                       \
     KERNEL_INDEX_##name,                                                                          \
     (cluster_m) * (cluster_n),                                                                    \
     &family_of_##accepts},
#include "api/kernels.def"
#undef KERNEL_ROW
};

const harness_kernel *harness_all(size_t *count)
{
    *count = sizeof kernels / sizeof kernels[0];
    return kernels;
}

const harness_kernel *harness_find(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i].name, name) == 0) {
            return &kernels[i];
        }
    }
    return NULL;
}

/* The number behind the last such letter of a kernel's name. */
static int64_t number_behind(const char *name, char letter)
{
    const char *at = strrchr(name, letter);
    return at != NULL ? strtoll(at + 1, NULL, 10) : 0;
}

harness_problem harness_grid(const harness_kernel *kernel, int index)
{
    const int64_t m = kernel->tile_m, n = kernel->tile_n;
    const int64_t k = number_behind(kernel->name, 'k'), stages = number_behind(kernel->name, 's');
    const harness_problem grid[HARNESS_GRID] = {
        {m / 2 + 5, n / 2 + 8, 0, 2, 1},          {1, 8, k, 0, 1},
        {m, n, (stages - 1) * k, 8, 1},           {m / 2 + 1, n - 28, stages * k, 3, 1},
        {m / 2, 27, (stages + 1) * k - 80, 2, 1}, {2 * m + 5, n - 32, 4 * k, 8, 1},
        {m - 1, n, (2 * stages + 1) * k, 8, 1},   {2 * m + 4, n + 1, 3 * k, 3, 2},
    };
    return grid[index];
}
