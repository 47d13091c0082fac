/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_PROGRESS_H
#define HALFBYTE_CLI_PROGRESS_H

/*
 * One progress bar on stderr, drawn only on a terminal and without -q and --json.
 * `label` and `unit` must live until
 * progress_end, which clears the line. Steps are bytes if `unit` is NULL. Before anything else is
 * written to the terminal while a bar stands, progress_clear must be called.
 */

#include <stdint.h>

void progress_begin(const char *label, uint64_t total, const char *unit);
void progress_add(uint64_t steps);
void progress_clear(void);
void progress_end(void);

#endif
