/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From program counters to file and line.
 */
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "emulator/report.h"
#include "emulator/report_private.h"
#include "emulator/site.h"
#include "emulator/text.h"

static Dwfl *debug_information_open(void)
{
    static char *debug_path; /* the default */
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .debuginfo_path = &debug_path,
    };
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (dwfl != NULL &&
        (dwfl_linux_proc_report(dwfl, getpid()) != 0 || dwfl_report_end(dwfl, NULL, NULL) != 0)) {
        dwfl_end(dwfl);
        return NULL;
    }
    return dwfl;
}

/* The line of a program counter by way of all compilation units: clang writes no index of their
 * addresses, which the direct way needs. */
static const char *search_units(Dwfl *dwfl, Dwarf_Addr pc, int *line)
{
    Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
    Dwarf_Addr bias = 0;
    for (Dwarf_Die *unit = NULL; module != NULL;) {
        unit = dwfl_module_nextcu(module, unit, &bias);
        if (unit == NULL) {
            break;
        }
        if (dwarf_haspc(unit, pc - bias) > 0) {
            Dwarf_Line *found = dwarf_getsrc_die(unit, pc - bias);
            return found != NULL && dwarf_lineno(found, line) == 0
                       ? dwarf_linesrc(found, NULL, NULL)
                       : NULL;
        }
    }
    return NULL;
}

static bool look_up(Dwfl *dwfl, const void *pc, emu_place *place)
{
    const Dwarf_Addr address = (Dwarf_Addr)(uintptr_t)pc;
    int line = 0;
    if (dwfl == NULL) {
        return false;
    }
    Dwfl_Line *found = dwfl_getsrc(dwfl, address);
    const char *file = found != NULL ? dwfl_lineinfo(found, NULL, &line, NULL, NULL, NULL)
                                     : search_units(dwfl, address, &line);
    if (file == NULL || (file = text_keep(site_file_of(file))) == NULL) {
        return false;
    }
    *place = (emu_place){file, line, NULL};
    return true;
}

/* Places found before, by program counter; the latest of those that share a slot. */
static struct {
    const void *pc;
    emu_place place;
} found_before[256];

static bool recall(const void *pc, emu_place *place)
{
    const size_t slot = (uintptr_t)pc % 251;
    *place = found_before[slot].place;
    return found_before[slot].pc == pc;
}

static void remember(const void *pc, const emu_place *place)
{
    const size_t slot = (uintptr_t)pc % 251;
    found_before[slot].pc = pc;
    found_before[slot].place = *place;
}

static bool equal_places(const emu_place *a, const emu_place *b)
{
    return a->line == b->line && (a->file == NULL) == (b->file == NULL) &&
           (a->file == NULL || strcmp(a->file, b->file) == 0);
}

/* Several instructions of one line become one finding. */
static void merge(emu_report *report)
{
    size_t kept = 0;
    for (size_t i = 0; i < report->count; i++) {
        const emu_finding *finding = &report->entries[i].finding;
        size_t j = 0;
        while (j < kept && !(finding->place.instruction == NULL &&
                             report->entries[j].finding.place.instruction == NULL &&
                             finding->hazard == report->entries[j].finding.hazard &&
                             equal_places(&finding->place, &report->entries[j].finding.place) &&
                             equal_places(&finding->other, &report->entries[j].finding.other))) {
            j++;
        }
        if (j < kept) {
            report->entries[j].finding.count += finding->count;
        } else {
            report->entries[kept++] = report->entries[i];
        }
    }
    report->count = kept;
}

void report_resolve(emu_report *report)
{
    Dwfl *dwfl = NULL;
    bool any = false, opened = false;
    for (size_t i = 0; i < report->count; i++) {
        report_entry *entry = &report->entries[i];
        if (entry->pc == NULL) {
            continue;
        }
        any = true;
        if (!recall(entry->pc, &entry->finding.place)) {
            if (!opened) {
                dwfl = debug_information_open();
                opened = true;
            }
            if (!look_up(dwfl, entry->pc, &entry->finding.place)) {
                continue;
            }
            remember(entry->pc, &entry->finding.place);
        }
        entry->pc = NULL;
    }
    if (any) {
        merge(report);
    }
    if (dwfl != NULL) {
        dwfl_end(dwfl);
    }
}
