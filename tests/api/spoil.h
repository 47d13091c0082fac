/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edits that spoil a valid call whose arguments, structs and buffers all lie in one struct, so that
 * a row of a table can change any of them by its offset, and one comparison of the whole struct
 * shows whether anything was written.
 */
#ifndef HALFBYTE_TESTS_API_SPOIL_H
#define HALFBYTE_TESTS_API_SPOIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "halfbyte.h"

enum { SPOIL_MOST_EDITS = 5 };

typedef struct spoil_edit {
    size_t offset, size; /* of an integer, enum or pointer; size 0: no edit */
    enum { SPOIL_SET, SPOIL_ADD, SPOIL_COPY } kind;
    int64_t value; /* COPY: the offset that it is copied from */
} spoil_edit;

typedef struct spoil_row {
    spoil_edit edits[SPOIL_MOST_EDITS]; /* the last one is the fault, the others lead up to it */
    halfbyte_status status;
    const char *message; /* part of the sentence: argument and value */
} spoil_row;

#define SPOIL_FIELD(type, field) offsetof(type, field), sizeof(((type *)0)->field)

static inline void spoil_apply(void *call, const spoil_edit *edit)
{
    unsigned char *at = (unsigned char *)call + edit->offset;
    int32_t narrow;
    int64_t wide;

    if (edit->kind == SPOIL_COPY) {
        memcpy(at, (unsigned char *)call + edit->value, edit->size);
    } else if (edit->size == sizeof narrow) {
        memcpy(&narrow, at, sizeof narrow);
        narrow = (int32_t)(edit->kind == SPOIL_SET ? edit->value : narrow + edit->value);
        memcpy(at, &narrow, sizeof narrow);
    } else if (edit->size == sizeof wide) {
        memcpy(&wide, at, sizeof wide);
        wide = edit->kind == SPOIL_SET ? edit->value : wide + edit->value;
        memcpy(at, &wide, sizeof wide);
    } else {
        assert_int_equal(edit->size, 0);
    }
}

/*
 * For each row: makes the call, spoils it, runs it; status and sentence must be the row's and no
 * byte of the struct may change.  Without its last edit the call must succeed.  make and run get
 * the struct of `bytes` bytes, which stays where it is, so it may point into itself.
 */
static inline void spoil_check(const spoil_row *rows, size_t count, void *call, size_t bytes,
                               void (*make)(void *call), halfbyte_status (*run)(void *call))
{
    unsigned char *before = malloc(bytes);
    assert_non_null(before);

    for (size_t i = 0; i < count; i++) {
        int edits = 0;
        while (edits < SPOIL_MOST_EDITS && rows[i].edits[edits].size != 0) {
            edits++;
        }
        assert_true(edits > 0);
        for (int last = edits - 1; last <= edits; last++) {
            make(call);
            for (int edit = 0; edit < last; edit++) {
                spoil_apply(call, &rows[i].edits[edit]);
            }
            memcpy(before, call, bytes);
            const halfbyte_status status = run(call);
            if (last < edits && status != HALFBYTE_SUCCESS) {
                fail_msg("row %zu: fails without its fault: %s", i, halfbyte_last_error());
            }
            if (last == edits && (status != rows[i].status ||
                                  strstr(halfbyte_last_error(), rows[i].message) == NULL)) {
                fail_msg("row %zu: status %d, not %d with '%s': %s", i, (int)status,
                         (int)rows[i].status, rows[i].message, halfbyte_last_error());
            }
            assert_true(last < edits || memcmp(before, call, bytes) == 0);
        }
    }
    free(before);
}

#endif
