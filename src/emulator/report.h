/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings: one for each (hazard, place, other place), with a count.
 */
#ifndef HALFBYTE_EMULATOR_REPORT_H
#define HALFBYTE_EMULATOR_REPORT_H

#include "emulator/api.h"

/* Where and by whom; pc is for accesses of kernel code that no instruction of the layer made. */
typedef struct finding_key {
    const char *hazard;
    const emu_site *site; /* NULL: see pc */
    const void *pc;
    const emu_site *other; /* NULL: none */
    uint32_t block, thread;
} finding_key;

/* Counts the finding.  Returns where its message goes (sizeof ((emu_finding *)0)->message bytes) if
 * it is the first of its kind, else NULL. */
char *report_count(emu_report *report, const finding_key *key);

/* report_count(), and the message. */
__attribute__((format(printf, 3, 4))) void report_add(emu_report *report, const finding_key *key,
                                                      const char *format, ...);

/* Turns program counters into places, by the debug information of the running process. */
void report_resolve(emu_report *report);

#endif
