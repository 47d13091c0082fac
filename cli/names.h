/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_CLI_NAMES_H
#define HALFBYTE_CLI_NAMES_H

/* Tensor names: suffixes, what they say about a layer, near misses. */

#include <stdbool.h>
#include <stddef.h>

#include "io/safetensors.h"

bool name_ends_with(const char *name, const char *suffix);

/* `base` and `suffix` joined; NULL if memory is short. The caller frees it. */
char *name_join(const char *base, size_t base_bytes, const char *suffix);

/*
 * Why public checkpoints leave a weight of this name unquantised ("embedding", "norm", "output
 * head", "router"), NULL for a name that says nothing of the kind.
 */
const char *name_skip_reason(const char *name);

/* Shell pattern match over the whole name; '*' matches dots and slashes too. */
bool name_matches(const char *pattern, const char *name);

/* The tensor whose name is nearest to `name`, NULL if none is near enough to be worth a mention. */
const char *name_suggest(const safetensors_model *model, const char *name);

/* `pattern` with "{e}" replaced by `expert`; NULL if memory is short. The caller frees it. */
char *name_expand(const char *pattern, long long expert);

#endif
