/* SPDX-License-Identifier: Apache-2.0 */
/* A grid that writes what the next one reads: it copies byte by byte, long after it has allowed the
 * next grid to start. */
#ifndef HALFBYTE_EMULATOR_HARNESS_FEEDER_H
#define HALFBYTE_EMULATOR_HARNESS_FEEDER_H

#include <stddef.h>

enum { FEEDER_THREADS = 128, FEEDER_PIECES = 20 };

typedef struct feeder_piece {
    unsigned char *to;
    const unsigned char *from; /* memory that kernels do not see */
    size_t bytes;
} feeder_piece;

typedef struct feeder_params {
    feeder_piece piece[FEEDER_PIECES];
    int pieces;
} feeder_params;

void harness_feeder(const void *params);

#endif
