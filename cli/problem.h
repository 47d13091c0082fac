/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_PROBLEM_H
#define HALFBYTE_CLI_PROBLEM_H

/*
 * Problem strings: a halfbyte_problem on one line, parsed and printed alike.
 *
 *   problem = family ":" sizes { ":" field }
 *   family  = "fp8" | "w4a8"
 *   sizes   = "m" int "n" int "k" int [ "g" int ]
 *   field   = "dense" | "ranges" | "masked" | "labels"
 *           | "a" ( "none" | "tensor" | "token" | "1x128" ) [ ",mn" | ",k" ]
 *           | "b" ( "none" | "tensor" | "channel" | "1x128" | "128x128" | "k" ( "32" | "64" | "128"
 *             | "all" ) ) { "," ( type | "mn" | "k" | "i4" | "o" int ) }
 *           | "d" type | "c" type | "bias" type | "alpha" | "channelscale" | "packed"
 *           | "split" int | "zero" | "i64"
 *   type    = "f32" | "bf16" | "f16" | "e4m3"
 *
 * Each field and part stands at most once. Absent: one group, "dense" ("ranges" if g > 1), no
 * scales, scale type f32, layout mn (MN_MAJOR; k is K_MAJOR, i4 INTERLEAVED4), d bf16. "o" is
 * group_k_offset, "split" k_splits, "zero" ZERO_FILL_PADDING, "i64" 64-bit group sizes. The parser
 * knows the form only; what fits together is for halfbyte_plan_create() to say.
 */

#include <stdbool.h>
#include <stddef.h>

#include "halfbyte.h"

enum { PROBLEM_TEXT_BYTES = 512, PROBLEM_ERROR_BYTES = 256 };

/* On failure false; `error` (PROBLEM_ERROR_BYTES) gets a sentence and *problem is undefined. */
bool problem_parse(const char *text, halfbyte_problem *problem, char *error);

/*
 * The canonical string, into PROBLEM_TEXT_BYTES. It says all that the grammar can say, so parsing
 * it gives the same problem again; other fields of the struct are left out.
 */
void problem_print(const halfbyte_problem *problem, char *text);

#endif
