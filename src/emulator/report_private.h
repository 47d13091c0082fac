/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of a report, for the two sources that make it.
 */
#ifndef HALFBYTE_EMULATOR_REPORT_PRIVATE_H
#define HALFBYTE_EMULATOR_REPORT_PRIVATE_H

#include "emulator/api.h"

typedef struct report_entry {
    emu_finding finding;
    const void *pc; /* until it is resolved */
} report_entry;

struct emu_report {
    report_entry *entries;
    size_t count, capacity;
};

#endif
