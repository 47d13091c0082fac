/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/harness/harness.h"

#include <string.h>

static const harness_kernel *const kernels[] = {&harness_fp8_block};

const harness_kernel *const *harness_all(size_t *count)
{
    *count = sizeof kernels / sizeof kernels[0];
    return kernels;
}

const harness_kernel *harness_find(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i]->name, name) == 0) {
            return kernels[i];
        }
    }
    return NULL;
}
