/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/report_private.h"

emu_report *emu_report_create(void)
{
    return calloc(1, sizeof(emu_report));
}

void emu_report_clear(emu_report *report)
{
    report->count = 0;
}

void emu_report_destroy(emu_report *report)
{
    if (report != NULL) {
        free(report->entries);
        free(report);
    }
}

size_t emu_report_count(const emu_report *report)
{
    return report->count;
}

const emu_finding *emu_report_finding(const emu_report *report, size_t index)
{
    return index < report->count ? &report->entries[index].finding : NULL;
}

static const char *title_of(const char *hazard)
{
    static const struct {
        const char *hazard, *title;
    } titles[] = {
        {"a", "accumulator touched before its wgmma was waited for"},
        {"b", "register A operand changed while wgmma reads it"},
        {"c", "shared memory reused before its readers were done"},
        {"c2", "shared memory reused on the wait of another warpgroup than the reader's"},
        {"d", "asynchronous copy and its mbarrier phase"},
        {"e", "ordinary access not ordered before an asynchronous one"},
        {"f", "wgmma_fence missing"},
        {"g", "bulk store not waited for"},
        {"h", "mbarrier not initialised, not published, or overwritten"},
        {"i", "lifetime of a cluster's block"},
        {"j", "data of the preceding grid used without grid_dependency_wait"},
        {"k", "named barrier misused"},
        {"l", "tensor map edited while in use, or used without its fences"},
        {"m", "divergence, or groups not committed or not waited for"},
        {"n", "setmaxnreg"},
        {"p", "shared memory of another block"},
        {"race", "ordinary accesses of two threads without order"},
        {"memory", "memory access out of bounds or not allowed"},
    };
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        if (strcmp(hazard, titles[i].hazard) == 0) {
            return titles[i].title;
        }
    }
    return "";
}

static emu_place place_of(const emu_site *site)
{
    if (site == NULL) {
        return (emu_place){NULL, 0, NULL};
    }
    return (emu_place){site->file, site->line, site->instruction};
}

static bool same_place(const emu_place *place, const emu_site *site)
{
    if (site == NULL) {
        return place->file == NULL;
    }
    return place->file != NULL && place->line == site->line &&
           strcmp(place->instruction, site->instruction) == 0 &&
           strcmp(place->file, site->file) == 0;
}

static report_entry *find(emu_report *report, const finding_key *key)
{
    for (size_t i = 0; i < report->count; i++) {
        report_entry *entry = &report->entries[i];
        if (entry->pc == key->pc && strcmp(entry->finding.hazard, key->hazard) == 0 &&
            same_place(&entry->finding.place, key->site) &&
            same_place(&entry->finding.other, key->other)) {
            return entry;
        }
    }
    return NULL;
}

char *report_count(emu_report *report, const finding_key *key)
{
    report_entry *entry = find(report, key);
    if (entry != NULL) {
        entry->finding.count++;
        return NULL;
    }
    if (report->count == report->capacity) {
        const size_t capacity = report->capacity ? 2 * report->capacity : 64;
        report_entry *entries = realloc(report->entries, capacity * sizeof *entries);
        if (entries == NULL) {
            return NULL;
        }
        report->entries = entries;
        report->capacity = capacity;
    }
    entry = &report->entries[report->count++];
    memset(entry, 0, sizeof *entry);
    entry->pc = key->pc;
    entry->finding.hazard = key->hazard;
    entry->finding.title = title_of(key->hazard);
    entry->finding.place = place_of(key->site);
    entry->finding.other = place_of(key->other);
    entry->finding.block = key->block;
    entry->finding.thread = key->thread;
    entry->finding.count = 1;
    return entry->finding.message;
}

void report_add(emu_report *report, const finding_key *key, const char *format, ...)
{
    char *message = report_count(report, key);
    if (message != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(message, sizeof((emu_finding *)0)->message, format, arguments);
        va_end(arguments);
    }
}

static void write_text(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void write_text(FILE *stream, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length > 0) {
        fwrite(text, 1, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1, stream);
    }
}

void emu_report_print(const emu_report *report, const emu_config *config, FILE *stream)
{
    char replay[EMU_CONFIG_TEXT_BYTES];
    emu_config_format(config, replay, sizeof replay);
    for (size_t i = 0; i < report->count; i++) {
        const emu_finding *finding = &report->entries[i].finding;
        const emu_place *place = &finding->place;
        const emu_place *other = &finding->other;
        write_text(stream, "%s: %s\n", finding->hazard, finding->title);
        write_text(stream, "  %s:%d: %s\n", place->file != NULL ? place->file : "?", place->line,
                   place->instruction != NULL ? place->instruction : "ordinary access");
        if (other->file != NULL) {
            write_text(stream, "  %s:%d: %s\n", other->file, other->line, other->instruction);
        }
        write_text(stream, "  block %u, thread %u (warp %u, lane %u): %s\n", finding->block,
                   finding->thread, finding->thread / 32, finding->thread % 32, finding->message);
        write_text(stream, "  %llu time%s; --replay \"%s\"\n", (unsigned long long)finding->count,
                   finding->count == 1 ? "" : "s", replay);
    }
}
