/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the comment of a case says must be found in it; case.h has the form.
 */
#ifndef HALFBYTE_TESTS_EMULATOR_EXPECTATION_H
#define HALFBYTE_TESTS_EMULATOR_EXPECTATION_H

#include "emulator/emulator.h"

enum { EXPECTATION_LINES = 8, EXPECTATION_MAX = 4 };

/* Lines that bear one mark. */
typedef struct marked_lines {
    int lines[EXPECTATION_LINES];
    int count;
} marked_lines;

typedef struct expectation {
    char hazard[16];
    marked_lines at;
    marked_lines other; /* count 0: whatever it is */
} expectation;

typedef struct expectations {
    expectation all[EXPECTATION_MAX];
    int count;
    uint32_t policies, orders; /* bits 1 << policy and order of those that must show it */
} expectations;

/* Reads them from the source file of a case.  False, with the reason on stderr, if it has none, an
 * unknown word, or a mark without a line. */
bool expectations_read(expectations *read, const char *path);

/* Does the finding, made in the file, meet the expectation? */
bool expectation_met(const expectation *wanted, const char *path, const emu_finding *finding);

#endif
