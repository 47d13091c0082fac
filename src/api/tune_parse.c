/* SPDX-License-Identifier: Apache-2.0 */
/* The text of tune files. */
#include "api/tune.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "api/error.h"
#include "cuda/kernel_table.h"

enum { TUNE_VERSION = 1, SHOWN_BYTES = 40 };

static const char magic[] = "halfbyte-tune";

/* ---- words ----------------------------------------------------------------------------------- */

/* A piece of the text. */
typedef struct piece {
    const char *at;
    size_t bytes;
} piece;

typedef struct reader {
    const char *name; /* of the file */
    int64_t line;     /* that is being read, from 1 */
    bool has_version;
    tune_table *table;
    size_t room; /* entries that the table has memory for */
} reader;

/* What a message shows of a piece: printable, and not all of a long one. */
typedef struct shown {
    char text[SHOWN_BYTES + 1];
} shown;

static shown show(piece word)
{
    shown result;
    size_t bytes = word.bytes < SHOWN_BYTES ? word.bytes : SHOWN_BYTES;
    for (size_t i = 0; i < bytes; i++) {
        result.text[i] = word.at[i] > ' ' && word.at[i] <= '~' ? word.at[i] : '?';
    }
    result.text[bytes] = '\0';
    return result;
}

#define REFUSE(state, format, ...)                                                                 \
    status_fail(HALFBYTE_ERR_INVALID_ARGUMENT, "tune file %s, line %lld: " format, (state)->name,  \
                (long long)(state)->line, __VA_ARGS__)

static bool is(piece word, const char *text)
{
    return strlen(text) == word.bytes && memcmp(text, word.at, word.bytes) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Takes the next word off the front of *rest; of 0 bytes where there is none. */
static piece next_word(piece *rest)
{
    while (rest->bytes > 0 && is_blank(*rest->at)) {
        rest->at++;
        rest->bytes--;
    }
    piece word = {rest->at, 0};
    while (word.bytes < rest->bytes && !is_blank(word.at[word.bytes])) {
        word.bytes++;
    }
    rest->at += word.bytes;
    rest->bytes -= word.bytes;
    return word;
}

/* The whole of `word` as a decimal number of [0, INT32_MAX]. */
static bool number(piece word, int64_t *value)
{
    int64_t sum = 0;
    if (word.bytes == 0 || word.bytes > 10) {
        return false;
    }
    for (size_t i = 0; i < word.bytes; i++) {
        if (word.at[i] < '0' || word.at[i] > '9') {
            return false;
        }
        sum = sum * 10 + (word.at[i] - '0');
    }
    *value = sum;
    return sum <= INT32_MAX;
}

/* ---- one entry ------------------------------------------------------------------------------- */

typedef enum field {
    FIELD_FAMILY,
    FIELD_GROUPING,
    FIELD_N,
    FIELD_K,
    FIELD_ROWS,
    FIELD_KERNEL,
    FIELD_GROUPS,
    FIELD_SMS,
    NUM_FIELDS,
    NUM_NEEDED = FIELD_GROUPS
} field;

static const char *const field_names[NUM_FIELDS] = {"family", "grouping", "n",      "k",
                                                    "rows",   "kernel",   "groups", "sms"};

static bool set_family(tune_entry *entry, piece value)
{
    entry->family = is(value, "fp8") ? HALFBYTE_FAMILY_FP8 : HALFBYTE_FAMILY_W4A8;
    return is(value, "fp8") || is(value, "w4a8");
}

static bool set_grouping(tune_entry *entry, piece value)
{
    static const char *const names[] = {[HALFBYTE_GROUPING_DENSE] = "dense",
                                        [HALFBYTE_GROUPING_RANGES] = "ranges",
                                        [HALFBYTE_GROUPING_MASKED] = "masked",
                                        [HALFBYTE_GROUPING_LABELS] = "labels"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is(value, names[i])) {
            entry->grouping = (halfbyte_grouping)i;
            return true;
        }
    }
    return false;
}

/* LOW..HIGH, or one number for both. */
static bool set_rows(tune_entry *entry, piece value)
{
    size_t low = 0;
    while (low < value.bytes && value.at[low] != '.') {
        low++;
    }
    if (!number((piece){value.at, low}, &entry->first_rows)) {
        return false;
    }
    entry->last_rows = entry->first_rows;
    if (low == value.bytes) {
        return true;
    }
    return value.bytes >= low + 2 && value.at[low + 1] == '.' &&
           number((piece){value.at + low + 2, value.bytes - low - 2}, &entry->last_rows) &&
           entry->first_rows <= entry->last_rows;
}

/* kernel stays KERNEL_COUNT for one that this library does not have; only the form is looked at. */
static bool set_kernel(tune_entry *entry, piece value)
{
    static const char prefix[] = "halfbyte_sm90_";
    for (size_t i = 0; i < value.bytes; i++) {
        const char c = value.at[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_') {
            return false;
        }
    }
    entry->kernel = KERNEL_COUNT;
    for (int i = 0; i < KERNEL_COUNT; i++) {
        if (is(value, kernel_table[i].name + sizeof prefix - 1)) {
            entry->kernel = i;
        }
    }
    return value.bytes > 0;
}

static halfbyte_status set_field(const reader *state, tune_entry *entry, field which, piece value)
{
    static const char *const accepted[NUM_FIELDS] = {
        "fp8 or w4a8",
        "dense, ranges, masked or labels",
        "a number up to 2147483647",
        "a number up to 2147483647",
        "LOW..HIGH, or a number up to 2147483647",
        "a name of letters, digits and underscores, without halfbyte_sm90_",
        "a number from 1",
        "a number from 1"};
    bool good = false;
    switch (which) {
    case FIELD_FAMILY: good = set_family(entry, value); break;
    case FIELD_GROUPING: good = set_grouping(entry, value); break;
    case FIELD_N: good = number(value, &entry->n); break;
    case FIELD_K: good = number(value, &entry->k); break;
    case FIELD_ROWS: good = set_rows(entry, value); break;
    case FIELD_KERNEL: good = set_kernel(entry, value); break;
    case FIELD_GROUPS: good = number(value, &entry->groups) && entry->groups > 0; break;
    default: good = number(value, &entry->sms) && entry->sms > 0; break;
    }
    return good ? HALFBYTE_SUCCESS
                : REFUSE(state, "%s=%s: accepted: %s", field_names[which], show(value).text,
                         accepted[which]);
}

static halfbyte_status read_word(const reader *state, tune_entry *entry, unsigned *seen, piece word)
{
    const char *equals = memchr(word.at, '=', word.bytes);
    piece name = {word.at, equals == NULL ? 0 : (size_t)(equals - word.at)};
    for (int i = 0; i < NUM_FIELDS; i++) {
        if (!is(name, field_names[i])) {
            continue;
        }
        if ((*seen >> i & 1) != 0) {
            return REFUSE(state, "%s stands there twice", field_names[i]);
        }
        *seen |= 1u << i;
        return set_field(state, entry, (field)i, (piece){equals + 1, word.bytes - name.bytes - 1});
    }
    return REFUSE(state,
                  "'%s': accepted: family=, grouping=, n=, k=, rows=, kernel=, groups=, sms=",
                  show(word).text);
}

static halfbyte_status keep(reader *state, const tune_entry *entry)
{
    tune_table *table = state->table;
    if (entry->kernel == KERNEL_COUNT) {
        table->passed_over++;
        return HALFBYTE_SUCCESS;
    }
    if (table->count == state->room) {
        const size_t room = state->room == 0 ? 64 : 2 * state->room;
        tune_entry *entries = realloc(table->entries, room * sizeof *entries);
        CHECK(entries != NULL, HALFBYTE_ERR_OUT_OF_MEMORY,
              "out of memory reading tune file %s (%zu entries)", state->name, room);
        table->entries = entries;
        state->room = room;
    }
    table->entries[table->count] = *entry;
    table->entries[table->count].position = table->count;
    table->count++;
    return HALFBYTE_SUCCESS;
}

static halfbyte_status read_entry(reader *state, piece line)
{
    tune_entry entry = {.kernel = KERNEL_COUNT};
    unsigned seen = 0;
    for (piece word = next_word(&line); word.bytes > 0; word = next_word(&line)) {
        CHECK_STATUS(read_word(state, &entry, &seen, word));
    }
    for (int i = 0; i < NUM_NEEDED; i++) {
        if ((seen >> i & 1) == 0) {
            return REFUSE(state, "no %s=", field_names[i]);
        }
    }
    return keep(state, &entry);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static halfbyte_status read_version(reader *state, piece line)
{
    int64_t version = 0;
    const piece name = next_word(&line), value = next_word(&line), more = next_word(&line);
    if (!is(name, magic) || !number(value, &version) || more.bytes != 0) {
        return REFUSE(state, "'%s': a tune file begins with '%s %d'", show(name).text, magic,
                      TUNE_VERSION);
    }
    if (version != TUNE_VERSION) {
        return REFUSE(state, "version %lld: accepted: %d", (long long)version, TUNE_VERSION);
    }
    state->has_version = true;
    return HALFBYTE_SUCCESS;
}

static halfbyte_status read_line(reader *state, piece line)
{
    const char *comment = memchr(line.at, '#', line.bytes);
    line.bytes = comment == NULL ? line.bytes : (size_t)(comment - line.at);
    piece rest = line;
    if (next_word(&rest).bytes == 0) {
        return HALFBYTE_SUCCESS;
    }
    return state->has_version ? read_entry(state, line) : read_version(state, line);
}

static halfbyte_status read_lines(reader *state, piece text)
{
    while (text.bytes > 0) {
        const char *end = memchr(text.at, '\n', text.bytes);
        const size_t bytes = end == NULL ? text.bytes : (size_t)(end - text.at);
        state->line++;
        CHECK_STATUS(read_line(state, (piece){text.at, bytes}));
        const size_t past = bytes + (end != NULL);
        text.at += past;
        text.bytes -= past;
    }
    CHECK_ARGUMENT(state->has_version, "tune file %s is empty: it begins with '%s %d'", state->name,
                   magic, TUNE_VERSION);
    return HALFBYTE_SUCCESS;
}

halfbyte_status tune_parse(const char *text, size_t bytes, const char *name, tune_table **table)
{
    reader state = {.name = name, .table = calloc(1, sizeof *state.table)};
    CHECK(state.table != NULL, HALFBYTE_ERR_OUT_OF_MEMORY, "out of memory reading tune file %s",
          name);
    const halfbyte_status status = read_lines(&state, (piece){text, bytes});
    if (status != HALFBYTE_SUCCESS) {
        tune_free(state.table);
        return status;
    }
    tune_sort(state.table);
    *table = state.table;
    return HALFBYTE_SUCCESS;
}
