/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/expectation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK_BYTES = 32 };

/* The whole file as text; NULL if it cannot be read. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 65536);
    if (file != NULL && text != NULL && fread(text, 1, 65535, file) == 0) {
        free(text);
        text = NULL;
    }
    if (file != NULL) {
        fclose(file);
    } else {
        free(text);
        text = NULL;
    }
    return text;
}

/* Lines that end in the comment of that mark. */
static bool find_lines(const char *text, const char *mark, marked_lines *found)
{
    char comment[MARK_BYTES + 16];
    const size_t length = (size_t)snprintf(comment, sizeof comment, "/* %s */", mark);
    int line = 1;
    found->count = 0;
    for (; *text != '\0'; line++) {
        const char *end = strchr(text, '\n');
        if (end == NULL) {
            break;
        }
        if ((size_t)(end - text) > length && strncmp(end - length, comment, length) == 0 &&
            found->count < EXPECTATION_LINES) {
            found->lines[found->count++] = line;
        }
        text = end + 1;
    }
    return found->count > 0;
}

static bool parse_expect(expectations *read, const char *text, const char *line)
{
    char at[MARK_BYTES], other[MARK_BYTES] = "";
    expectation *one = &read->all[read->count];
    if (read->count == EXPECTATION_MAX ||
        sscanf(line, "%15s at %31[a-z_0-9], other %31[a-z_0-9]", one->hazard, at, other) < 2 ||
        !find_lines(text, at, &one->at)) {
        return false;
    }
    read->count++;
    one->other.count = 0;
    return other[0] == '\0' || find_lines(text, other, &one->other);
}

static bool parse_under(expectations *read, const char *line)
{
    char name[MARK_BYTES];
    int used = 0;
    uint32_t policies = 0, orders = 0;
    for (; sscanf(line, " %31[a-z-]%n", name, &used) == 1; line += used) {
        const uint32_t seen = policies + orders;
        for (int i = 0; i < EMU_POLICY_COUNT; i++) {
            policies |= strcmp(name, emu_policy_name((emu_policy)i)) == 0 ? 1u << i : 0;
        }
        for (int i = 0; i < EMU_ORDER_COUNT; i++) {
            orders |= strcmp(name, emu_order_name((emu_order)i)) == 0 ? 1u << i : 0;
        }
        if (policies + orders == seen) {
            return false;
        }
    }
    read->policies = policies != 0 ? policies : read->policies;
    read->orders = orders != 0 ? orders : read->orders;
    return policies + orders != 0;
}

bool expectations_read(expectations *read, const char *path)
{
    static const char expect[] = " * expect: ", under[] = " * under:";
    char *text = read_text(path);
    bool good = text != NULL;
    memset(read, 0, sizeof *read);
    read->policies = read->orders = UINT32_MAX;
    for (const char *line = text; good && line != NULL && *line != '\0';) {
        if (strncmp(line, expect, sizeof expect - 1) == 0) {
            good = parse_expect(read, text, line + sizeof expect - 1);
        } else if (strncmp(line, under, sizeof under - 1) == 0) {
            good = parse_under(read, line + sizeof under - 1);
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    free(text);
    if (!good || read->count == 0) {
        fprintf(stderr, "%s: no expectation, or one that cannot be read\n", path);
        return false;
    }
    return true;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool place_is(const emu_place *place, const char *path, const marked_lines *lines)
{
    if (place->file == NULL || strcmp(base_name(place->file), base_name(path)) != 0) {
        return false;
    }
    for (int i = 0; i < lines->count; i++) {
        if (lines->lines[i] == place->line) {
            return true;
        }
    }
    return false;
}

bool expectation_met(const expectation *wanted, const char *path, const emu_finding *finding)
{
    return strcmp(finding->hazard, wanted->hazard) == 0 &&
           place_is(&finding->place, path, &wanted->at) &&
           (wanted->other.count == 0 || place_is(&finding->other, path, &wanted->other));
}
