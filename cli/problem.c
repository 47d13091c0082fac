/* SPDX-License-Identifier: Apache-2.0 */
#include "problem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- words ----------------------------------------------------------------------------------- */

typedef struct word {
    const char *text;
    int value;
} word;

#define NUM_WORDS(table) (sizeof(table) / sizeof((table)[0]))

static const word groupings[] = {{"dense", HALFBYTE_GROUPING_DENSE},
                                 {"ranges", HALFBYTE_GROUPING_RANGES},
                                 {"masked", HALFBYTE_GROUPING_MASKED},
                                 {"labels", HALFBYTE_GROUPING_LABELS}};
static const word a_modes[] = {{"none", HALFBYTE_SCALE_NONE},
                               {"tensor", HALFBYTE_SCALE_TENSOR},
                               {"token", HALFBYTE_SCALE_OUTER},
                               {"1x128", HALFBYTE_SCALE_1X128}};
static const word b_modes[] = {{"none", HALFBYTE_SCALE_NONE},
                               {"tensor", HALFBYTE_SCALE_TENSOR},
                               {"channel", HALFBYTE_SCALE_OUTER},
                               {"1x128", HALFBYTE_SCALE_1X128},
                               {"128x128", HALFBYTE_SCALE_128X128}};
static const word k_groups[] = {{"kall", 0}, {"k32", 32}, {"k64", 64}, {"k128", 128}};
static const word types[] = {{"f32", HALFBYTE_TYPE_F32},
                             {"bf16", HALFBYTE_TYPE_BF16},
                             {"f16", HALFBYTE_TYPE_F16},
                             {"e4m3", HALFBYTE_TYPE_E4M3}};
static const word layouts[] = {{"mn", HALFBYTE_SCALE_MN_MAJOR},
                               {"k", HALFBYTE_SCALE_K_MAJOR},
                               {"i4", HALFBYTE_SCALE_INTERLEAVED4}};

/* A piece of the input. */
typedef struct span {
    const char *begin;
    const char *end;
} span;

static bool span_is(span piece, const char *text)
{
    size_t bytes = (size_t)(piece.end - piece.begin);
    return strlen(text) == bytes && memcmp(piece.begin, text, bytes) == 0;
}

static bool span_starts(span piece, const char *text)
{
    size_t bytes = strlen(text);
    return (size_t)(piece.end - piece.begin) >= bytes && memcmp(piece.begin, text, bytes) == 0;
}

static bool find_word(const word *table, size_t count, span piece, int *value)
{
    for (size_t i = 0; i < count; ++i) {
        if (span_is(piece, table[i].text)) {
            *value = table[i].value;
            return true;
        }
    }
    return false;
}

static const char *word_text(const word *table, size_t count, int value)
{
    for (size_t i = 0; i < count; ++i) {
        if (table[i].value == value)
            return table[i].text;
    }
    return "?";
}

/* ---- parsing --------------------------------------------------------------------------------- */

/* What was seen already; each may stand once. */
enum {
    SEEN_GROUPING = 1 << 0,
    SEEN_A = 1 << 1,
    SEEN_B = 1 << 2,
    SEEN_D = 1 << 3,
    SEEN_C = 1 << 4,
    SEEN_BIAS = 1 << 5,
    SEEN_ALPHA = 1 << 6,
    SEEN_CHANNEL_SCALE = 1 << 7,
    SEEN_PACKED = 1 << 8,
    SEEN_SPLIT = 1 << 9,
    SEEN_ZERO = 1 << 10,
    SEEN_I64 = 1 << 11
};

typedef struct parser {
    halfbyte_problem *problem;
    char *error;
    unsigned seen;
} parser;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static bool
fail(parser *state, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(state->error, PROBLEM_ERROR_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

/* At most this many bytes of the input stand in a message; others are shown as '?'. */
typedef struct shown {
    char text[40];
} shown;

static shown show(span piece)
{
    shown result;
    size_t used = 0;
    for (const char *at = piece.begin; at < piece.end && used < sizeof result.text - 1; ++at)
        result.text[used++] = *at >= ' ' && *at <= '~' ? *at : '?';
    result.text[used] = '\0';
    return result;
}

static bool once(parser *state, unsigned bit, span field)
{
    if (state->seen & bit)
        return fail(state, "'%s' says again what an earlier field said", show(field).text);
    state->seen |= bit;
    return true;
}

/* Digits at the start of *piece, which is moved past them. */
static bool take_int(span *piece, int64_t *value)
{
    int64_t result = 0;
    const char *at = piece->begin;
    for (; at < piece->end && *at >= '0' && *at <= '9'; ++at) {
        if (result > (INT64_MAX - 9) / 10)
            return false;
        result = result * 10 + (*at - '0');
    }
    bool any = at != piece->begin;
    piece->begin = at;
    *value = result;
    return any;
}

static bool whole_int(span piece, int64_t *value)
{
    return take_int(&piece, value) && piece.begin == piece.end;
}

/* Cuts *rest at the first `mark`: returns the piece before it, *rest is what follows. */
static span cut(span *rest, char mark)
{
    span piece = *rest;
    const char *at = memchr(rest->begin, mark, (size_t)(rest->end - rest->begin));
    if (at == NULL) {
        rest->begin = rest->end;
        return piece;
    }
    piece.end = at;
    rest->begin = at + 1;
    return piece;
}

static bool parse_sizes(parser *state, span piece)
{
    halfbyte_problem *problem = state->problem;
    int64_t *const targets[] = {&problem->m_max, &problem->n, &problem->k, &problem->groups};
    span rest = piece;
    for (int i = 0; i < 4; ++i) {
        if (i == 3 && rest.begin == rest.end) {
            problem->groups = 1;
            return true;
        }
        if (rest.begin == rest.end || *rest.begin != "mnkg"[i])
            return fail(state, "'%s' is no size; expected mMnNkK or mMnNkKgG, as in m16n4096k7168",
                        show(piece).text);
        ++rest.begin;
        if (!take_int(&rest, targets[i]))
            return fail(state, "'%s': %c needs a number", show(piece).text, "mnkg"[i]);
    }
    if (rest.begin != rest.end)
        return fail(state, "'%s': '%s' after the sizes", show(piece).text, show(rest).text);
    return true;
}

static bool parse_a(parser *state, span field)
{
    halfbyte_scale_spec *spec = &state->problem->a_scale;
    span rest = {field.begin + 1, field.end};
    bool has_layout = memchr(rest.begin, ',', (size_t)(rest.end - rest.begin)) != NULL;
    int value = 0;
    if (!find_word(a_modes, NUM_WORDS(a_modes), cut(&rest, ','), &value))
        return fail(state, "'%s': A scales are anone, atensor, atoken or a1x128", show(field).text);
    spec->mode = (halfbyte_scale_mode)value;
    if (!has_layout)
        return true;
    if (!find_word(layouts, NUM_WORDS(layouts), rest, &value) ||
        value == HALFBYTE_SCALE_INTERLEAVED4)
        return fail(state, "'%s': the layout of A scales is mn or k", show(field).text);
    spec->layout = (halfbyte_scale_layout)value;
    return true;
}

/* One part after a comma of the B field: type, layout or offset, each once. */
static bool parse_b_part(parser *state, span field, span part, unsigned *parts)
{
    enum { TYPE = 1, LAYOUT = 2, OFFSET = 4 };
    halfbyte_scale_spec *spec = &state->problem->b_scale;
    unsigned kind = 0;
    int value = 0;
    if (find_word(types, NUM_WORDS(types), part, &value)) {
        kind = TYPE;
        spec->type = value == HALFBYTE_TYPE_F32 ? HALFBYTE_TYPE_NONE : (halfbyte_type)value;
    } else if (find_word(layouts, NUM_WORDS(layouts), part, &value)) {
        kind = LAYOUT;
        spec->layout = (halfbyte_scale_layout)value;
    } else if (span_starts(part, "o")) {
        span number = {part.begin + 1, part.end};
        kind = whole_int(number, &state->problem->group_k_offset) ? OFFSET : 0;
    }
    if (kind == 0)
        return fail(
            state,
            "'%s': after the mode of B scales stand a type (f32, bf16, f16, e4m3), a layout "
            "(mn, k, i4) or an offset (o64)",
            show(field).text);
    if (*parts & kind)
        return fail(state, "'%s' says a part twice", show(field).text);
    *parts |= kind;
    return true;
}

static bool parse_b(parser *state, span field)
{
    halfbyte_problem *problem = state->problem;
    span rest = {field.begin + 1, field.end};
    unsigned parts = 0;
    int value = 0;
    bool more = memchr(rest.begin, ',', (size_t)(rest.end - rest.begin)) != NULL;
    span mode = cut(&rest, ',');
    if (find_word(k_groups, NUM_WORDS(k_groups), mode, &value)) {
        problem->b_scale.mode = HALFBYTE_SCALE_K_GROUP;
        problem->weight_group_size = value;
    } else if (find_word(b_modes, NUM_WORDS(b_modes), mode, &value)) {
        problem->b_scale.mode = (halfbyte_scale_mode)value;
    } else {
        return fail(state,
                    "'%s': B scales are bnone, btensor, bchannel, b1x128, b128x128, bk32, bk64, "
                    "bk128 or bkall",
                    show(field).text);
    }
    while (more) {
        more = memchr(rest.begin, ',', (size_t)(rest.end - rest.begin)) != NULL;
        if (!parse_b_part(state, field, cut(&rest, ','), &parts))
            return false;
    }
    return true;
}

static bool parse_type(parser *state, span field, size_t prefix, halfbyte_type *type)
{
    span rest = {field.begin + prefix, field.end};
    int value = 0;
    if (!find_word(types, NUM_WORDS(types), rest, &value))
        return fail(state, "'%s': the type is f32, bf16, f16 or e4m3", show(field).text);
    *type = (halfbyte_type)value;
    return true;
}

/* Fields that are one fixed word. Sets *known. */
static bool parse_word(parser *state, span field, bool *known)
{
    halfbyte_problem *problem = state->problem;
    int value = 0;
    *known = true;
    if (find_word(groupings, NUM_WORDS(groupings), field, &value)) {
        problem->grouping = (halfbyte_grouping)value;
        return once(state, SEEN_GROUPING, field);
    }
    if (span_is(field, "alpha")) {
        problem->alpha_mode = HALFBYTE_ALPHA_HOST;
        return once(state, SEEN_ALPHA, field);
    }
    if (span_is(field, "channelscale")) {
        problem->channel_scale_type = HALFBYTE_TYPE_F32;
        return once(state, SEEN_CHANNEL_SCALE, field);
    }
    if (span_is(field, "packed")) {
        problem->b_layout = HALFBYTE_B_PACKED;
        return once(state, SEEN_PACKED, field);
    }
    if (span_is(field, "zero")) {
        problem->flags |= HALFBYTE_ZERO_FILL_PADDING;
        return once(state, SEEN_ZERO, field);
    }
    if (span_is(field, "i64")) {
        problem->index_type = HALFBYTE_INDEX_INT64;
        return once(state, SEEN_I64, field);
    }
    *known = false;
    return true;
}

static bool parse_field(parser *state, span field)
{
    halfbyte_problem *problem = state->problem;
    bool known = false;
    bool ok = parse_word(state, field, &known);
    if (known)
        return ok;
    if (span_starts(field, "split")) {
        span number = {field.begin + 5, field.end};
        if (!whole_int(number, &problem->k_splits) || problem->k_splits < 1)
            return fail(state, "'%s': split needs a number from 1", show(field).text);
        return once(state, SEEN_SPLIT, field);
    }
    if (span_starts(field, "bias"))
        return parse_type(state, field, 4, &problem->bias_type) && once(state, SEEN_BIAS, field);
    if (span_starts(field, "a"))
        return parse_a(state, field) && once(state, SEEN_A, field);
    if (span_starts(field, "b"))
        return parse_b(state, field) && once(state, SEEN_B, field);
    if (span_starts(field, "c"))
        return parse_type(state, field, 1, &problem->c_type) && once(state, SEEN_C, field);
    if (span_starts(field, "d"))
        return parse_type(state, field, 1, &problem->d_type) && once(state, SEEN_D, field);
    return fail(state, "'%s' is no field; 'halfbyte help problem' lists them", show(field).text);
}

bool problem_parse(const char *text, halfbyte_problem *problem, char *error)
{
    span rest = {text, text + strlen(text)};
    parser state = {.problem = problem, .error = error, .seen = 0};
    *problem = halfbyte_problem_init();
    error[0] = '\0';
    problem->d_type = HALFBYTE_TYPE_BF16;
    span family = cut(&rest, ':');
    if (span_is(family, "fp8"))
        problem->family = HALFBYTE_FAMILY_FP8;
    else if (span_is(family, "w4a8"))
        problem->family = HALFBYTE_FAMILY_W4A8;
    else
        return fail(&state, "'%s' is no family; fp8 or w4a8 comes first, as in %s",
                    show(family).text, "w4a8:m16n4096k7168:a1x128:bk128");
    if (!parse_sizes(&state, cut(&rest, ':')))
        return false;
    bool more = rest.begin[-1] == ':';
    while (more) {
        const char *start = rest.begin;
        more = memchr(start, ':', (size_t)(rest.end - start)) != NULL;
        if (!parse_field(&state, cut(&rest, ':')))
            return false;
    }
    if (!(state.seen & SEEN_GROUPING) && problem->groups > 1)
        problem->grouping = HALFBYTE_GROUPING_RANGES;
    return true;
}

/* ---- printing -------------------------------------------------------------------------------- */

typedef struct printer {
    char *text;
    size_t used;
} printer;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
put(printer *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length =
        vsnprintf(out->text + out->used, PROBLEM_TEXT_BYTES - out->used, format, arguments);
    va_end(arguments);
    if (length > 0)
        out->used += (size_t)length;
    if (out->used >= PROBLEM_TEXT_BYTES)
        out->used = PROBLEM_TEXT_BYTES - 1;
}

static void put_b(printer *out, const halfbyte_problem *problem)
{
    const halfbyte_scale_spec *spec = &problem->b_scale;
    if (spec->mode == HALFBYTE_SCALE_K_GROUP)
        put(out, ":b%s", word_text(k_groups, NUM_WORDS(k_groups), (int)problem->weight_group_size));
    else
        put(out, ":b%s", word_text(b_modes, NUM_WORDS(b_modes), (int)spec->mode));
    if (spec->type != HALFBYTE_TYPE_NONE && spec->type != HALFBYTE_TYPE_F32)
        put(out, ",%s", word_text(types, NUM_WORDS(types), (int)spec->type));
    if (spec->layout != HALFBYTE_SCALE_MN_MAJOR)
        put(out, ",%s", word_text(layouts, NUM_WORDS(layouts), (int)spec->layout));
    if (problem->group_k_offset != 0)
        put(out, ",o%lld", (long long)problem->group_k_offset);
}

static void put_type(printer *out, const char *prefix, halfbyte_type type)
{
    if (type != HALFBYTE_TYPE_NONE)
        put(out, ":%s%s", prefix, word_text(types, NUM_WORDS(types), (int)type));
}

void problem_print(const halfbyte_problem *problem, char *text)
{
    printer out = {text, 0};
    put(&out, "%s:m%lldn%lldk%lld", problem->family == HALFBYTE_FAMILY_FP8 ? "fp8" : "w4a8",
        (long long)problem->m_max, (long long)problem->n, (long long)problem->k);
    if (problem->groups != 1)
        put(&out, "g%lld", (long long)problem->groups);
    if (problem->grouping != HALFBYTE_GROUPING_DENSE || problem->groups > 1)
        put(&out, ":%s", word_text(groupings, NUM_WORDS(groupings), (int)problem->grouping));
    put(&out, ":a%s", word_text(a_modes, NUM_WORDS(a_modes), (int)problem->a_scale.mode));
    if (problem->a_scale.layout != HALFBYTE_SCALE_MN_MAJOR)
        put(&out, ",%s", word_text(layouts, NUM_WORDS(layouts), (int)problem->a_scale.layout));
    put_b(&out, problem);
    put_type(&out, "d", problem->d_type);
    if (problem->b_layout == HALFBYTE_B_PACKED)
        put(&out, ":packed");
    if (problem->channel_scale_type != HALFBYTE_TYPE_NONE)
        put(&out, ":channelscale");
    if (problem->alpha_mode != HALFBYTE_ALPHA_NONE)
        put(&out, ":alpha");
    put_type(&out, "c", problem->c_type);
    put_type(&out, "bias", problem->bias_type);
    if (problem->k_splits > 0)
        put(&out, ":split%lld", (long long)problem->k_splits);
    if (problem->flags & HALFBYTE_ZERO_FILL_PADDING)
        put(&out, ":zero");
    if (problem->index_type == HALFBYTE_INDEX_INT64)
        put(&out, ":i64");
}
