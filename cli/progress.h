/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_PROGRESS_H
#define HALFBYTE_CLI_PROGRESS_H

/*
 * One progress bar on stderr, drawn only on a terminal and without -q and --json.
 * `label` must live until progress_end, which clears the line. Before anything else is written to
 * the terminal while a bar stands, progress_clear must be called.
 */

#include <stdint.h>

void progress_begin(const char *label, uint64_t total_bytes);
void progress_add(uint64_t bytes);
void progress_clear(void);
void progress_end(void);

#endif
