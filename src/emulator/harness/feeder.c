/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/harness/feeder.h"

#include "kernels/hopper/hopper.h"

KERNEL(harness_feeder, feeder_params, p, FEEDER_THREADS)
{
    grid_launch_dependents();
    block_sync();
    for (int i = 0; i < p->pieces; i++) {
        const feeder_piece *piece = &p->piece[i];
        for (size_t at = thread_index(); at < piece->bytes; at += FEEDER_THREADS) {
            global_store_u8(piece->to + at, piece->from[at]);
        }
    }
}
