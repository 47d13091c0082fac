/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one kernel of a case on its data.
 */
#ifndef HALFBYTE_TESTS_EMULATOR_CASE_RUN_H
#define HALFBYTE_TESTS_EMULATOR_CASE_RUN_H

#include "emulator/case.h"
#include "emulator/emulator.h"

typedef struct case_data case_data;

/* The data of all cases; NULL if memory is out. */
case_data *case_data_create(void);
void case_data_destroy(case_data *data);

/* Runs it on fresh data; findings are added to report.  *digest is a hash of all that it may have
 * written. */
emu_status case_run(case_data *data, const race_case *run, const emu_config *config,
                    emu_report *report, uint64_t *digest);

/* The digest of data that nothing has written. */
uint64_t case_data_untouched(case_data *data);

#endif
