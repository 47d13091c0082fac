/* SPDX-License-Identifier: Apache-2.0 */
/* What halfbyte race prints of a run. */
#include <string.h>

#include "problem.h"
#include "race.h"

void race_command(const harness_kernel *kernel, const harness_problem *problem,
                  const emu_config *config, char *text)
{
    char stated[PROBLEM_TEXT_BYTES];
    char replay[EMU_CONFIG_TEXT_BYTES];
    problem_print(&problem->problem, stated);
    emu_config_format(config, replay, sizeof replay);
    snprintf(text, RACE_COMMAND_BYTES,
             "halfbyte race %s --problem %s --blocks %u --data %llu --replay \"%s\"", kernel->name,
             stated, problem->blocks, (unsigned long long)problem->draw, replay);
}

static json_t *json_place(const emu_place *place)
{
    if (place->file == NULL)
        return json_null();
    return json_pack("{s:o, s:i, s:o}", "file", cli_json_text(place->file), "line", place->line,
                     "instruction",
                     place->instruction != NULL ? cli_json_text(place->instruction) : json_null());
}

static int emit_finding(const harness_kernel *kernel, const harness_problem *problem,
                        const emu_config *config, const emu_finding *finding)
{
    char text[PROBLEM_TEXT_BYTES];
    char replay[EMU_CONFIG_TEXT_BYTES];
    problem_print(&problem->problem, text);
    emu_config_format(config, replay, sizeof replay);
    return cli_emit(json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:o, s:s, s:s, s:o, s:o, s:i, s:i, s:o, s:I}", "kind", "finding",
        "kernel", kernel->name, "problem", text, "blocks", (int)problem->blocks, "data",
        (json_int_t)problem->draw, "replay", cli_json_text(replay), "hazard", finding->hazard,
        "title", finding->title, "place", json_place(&finding->place), "other",
        json_place(&finding->other), "block", (int)finding->block, "thread", (int)finding->thread,
        "message", cli_json_text(finding->message), "count", (json_int_t)finding->count));
}

int race_print_findings(const harness_kernel *kernel, const harness_problem *problem,
                        const emu_config *config, const emu_report *report)
{
    if (!cli.json) {
        char again[RACE_COMMAND_BYTES];
        race_command(kernel, problem, config, again);
        emu_report_print(report, config, stdout);
        printf("  again: %s\n", again);
        return CLI_OK;
    }
    for (size_t i = 0; i < emu_report_count(report); ++i) {
        int code = emit_finding(kernel, problem, config, emu_report_finding(report, i));
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}
