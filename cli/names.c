/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "names.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool name_ends_with(const char *name, const char *suffix)
{
    size_t name_bytes = strlen(name);
    size_t suffix_bytes = strlen(suffix);
    return name_bytes >= suffix_bytes && strcmp(name + name_bytes - suffix_bytes, suffix) == 0;
}

char *name_join(const char *base, size_t base_bytes, const char *suffix)
{
    size_t suffix_bytes = strlen(suffix);
    char *joined = malloc(base_bytes + suffix_bytes + 1);
    if (joined == NULL)
        return NULL;
    memcpy(joined, base, base_bytes);
    memcpy(joined + base_bytes, suffix, suffix_bytes + 1);
    return joined;
}

bool name_matches(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, 0) == 0;
}

const char *name_skip_reason(const char *name)
{
    static const struct {
        const char *pattern;
        const char *reason;
    } rules[] = {
        {"*embed*", "embedding"},
        {"*wte.weight", "embedding"},
        {"*wpe.weight", "embedding"},
        {"*norm*", "norm"},
        {"*ln_*", "norm"},
        {"*.ln[0-9]*", "norm"},
        {"*lm_head*", "output head"},
        {"output.weight", "output head"},
        {"*.gate.weight", "router"},
        {"*router*", "router"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
        if (fnmatch(rules[i].pattern, name, FNM_CASEFOLD) == 0)
            return rules[i].reason;
    }
    return NULL;
}

/* ---- near misses ----------------------------------------------------------------------------- */

enum { SUGGEST_NAME_BYTES = 255, SUGGEST_TENSORS = 20000 };

/* Edits (insert, delete, replace a byte) between two names of at most SUGGEST_NAME_BYTES. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[SUGGEST_NAME_BYTES + 1];
    size_t b_bytes = strlen(b);
    for (size_t j = 0; j <= b_bytes; ++j)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; ++i) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b_bytes; ++j) {
            size_t best = diagonal + (a[i] != b[j]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j + 1] + 1 < best)
                best = row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[b_bytes];
}

/* First tensor whose name contains `part`, for users who give the end or the middle of a name. */
static const char *find_containing(const safetensors_model *model, const char *part)
{
    for (size_t i = 0; part[0] != '\0' && i < safetensors_model_count(model); ++i) {
        const char *name = safetensors_model_at(model, i)->name;
        if (strcasestr(name, part) != NULL)
            return name;
    }
    return NULL;
}

/* Distance to a tensor's name, or to the layer's if that is nearer (users leave ".weight" out). */
static size_t name_distance(const char *candidate, const char *name)
{
    char layer[SUGGEST_NAME_BYTES + 1];
    size_t distance = edit_distance(candidate, name);
    if (name_ends_with(candidate, ".weight")) {
        size_t bytes = strlen(candidate) - strlen(".weight");
        memcpy(layer, candidate, bytes);
        layer[bytes] = '\0';
        size_t to_layer = edit_distance(layer, name);
        distance = to_layer < distance ? to_layer : distance;
    }
    return distance;
}

const char *name_suggest(const safetensors_model *model, const char *name)
{
    const char *best_name = NULL;
    size_t wanted_bytes = strlen(name);
    size_t best = wanted_bytes / 4 > 3 ? wanted_bytes / 4 : 3;
    size_t count = safetensors_model_count(model);
    if (wanted_bytes > SUGGEST_NAME_BYTES)
        return NULL;
    for (size_t i = 0; i < count && i < SUGGEST_TENSORS; ++i) {
        const char *candidate = safetensors_model_at(model, i)->name;
        size_t bytes = strlen(candidate);
        size_t gap = bytes > wanted_bytes ? bytes - wanted_bytes : wanted_bytes - bytes;
        if (bytes > SUGGEST_NAME_BYTES || gap > best + strlen(".weight"))
            continue;
        size_t distance = name_distance(candidate, name);
        if (distance < best || (distance == best && best_name == NULL)) {
            best = distance;
            best_name = candidate;
        }
    }
    return best_name != NULL ? best_name : find_containing(model, name);
}

char *name_expand(const char *pattern, long long expert)
{
    const char *mark = strstr(pattern, "{e}");
    char *name = NULL;
    if (mark == NULL)
        return strdup(pattern);
    int head = (int)(mark - pattern);
    if (asprintf(&name, "%.*s%lld%s", head, pattern, expert, mark + 3) < 0)
        return NULL;
    return name;
}
