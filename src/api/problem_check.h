/* SPDX-License-Identifier: Apache-2.0 */
/* What a problem may say, and what its defaults stand for. */
#ifndef HALFBYTE_API_PROBLEM_CHECK_H
#define HALFBYTE_API_PROBLEM_CHECK_H

#include "halfbyte.h"

/*
 * Checks a problem for a device of this profile; its struct_size has been dealt with.
 * ERR_INVALID_ARGUMENT or ERR_UNSUPPORTED with a sentence that names field, value and what is
 * accepted.
 */
halfbyte_status problem_check(const halfbyte_problem *problem, halfbyte_profile profile);

/*
 * Puts values in place of the defaults of a problem that problem_check() passed, so that nobody
 * after it needs to know them: groups and k_splits at least 1; a_type and b_type set; the type of
 * every scale that is present set; alignments at least the profile's minimum.
 */
void problem_resolve(halfbyte_problem *problem, halfbyte_profile profile);

/* Groups of weights along k that K_GROUP scales cover: the extent of b_scale along k. */
int64_t problem_k_groups(const halfbyte_problem *problem);

/* Bytes of one element: 1 for int4 too, which has no address of its own. */
int64_t type_bytes(halfbyte_type type);

#endif
