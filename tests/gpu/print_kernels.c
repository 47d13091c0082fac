/* SPDX-License-Identifier: Apache-2.0 */
/* Prints name, threads and shared memory of every kernel of the library. */
#include <stdio.h>

#include "cuda/kernel_table.h"

int main(void)
{
    for (const kernel_row *row = kernel_table; row->name != NULL; row++) {
        printf("%s %u %u\n", row->name, (unsigned)row->threads, (unsigned)row->smem_bytes);
    }
    return 0;
}
