/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations and their text form.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/api.h"
#include "emulator/text.h"

static const char *const policies[EMU_POLICY_COUNT] = {
    [EMU_EARLIEST] = "earliest", [EMU_LATEST] = "latest",    [EMU_LIFO] = "lifo",
    [EMU_TORN] = "torn",         [EMU_DELAY_SITE] = "delay", [EMU_RANDOM] = "random",
};
static const char *const orders[EMU_ORDER_COUNT] = {
    [EMU_LOW_FIRST] = "low-first",
    [EMU_HIGH_FIRST] = "high-first",
    [EMU_STARVE_WARP] = "starve",
    [EMU_SHUFFLED] = "shuffled",
};
static const char *const mutations[EMU_MUTATION_COUNT] = {
    [EMU_MUTATE_NOTHING] = "nothing",       [EMU_MUTATE_REMOVE] = "remove",
    [EMU_MUTATE_WEAKEN] = "weaken",         [EMU_MUTATE_COUNT_LESS] = "count-less",
    [EMU_MUTATE_COUNT_MORE] = "count-more", [EMU_MUTATE_FLIP_PARITY] = "flip-parity",
};

emu_config emu_config_default(void)
{
    return (emu_config){.policy = EMU_EARLIEST, .order = EMU_LOW_FIRST, .poison = 0xff};
}

const char *emu_policy_name(emu_policy policy)
{
    return (unsigned)policy < EMU_POLICY_COUNT ? policies[policy] : "?";
}

const char *emu_order_name(emu_order order)
{
    return (unsigned)order < EMU_ORDER_COUNT ? orders[order] : "?";
}

const char *emu_mutation_name(emu_mutation mutation)
{
    return (unsigned)mutation < EMU_MUTATION_COUNT ? mutations[mutation] : "?";
}

void emu_config_format(const emu_config *config, char *text, size_t text_bytes)
{
    text_writer to = {text, text_bytes, 0};
    text_append(&to, "policy=%s,order=%s", emu_policy_name(config->policy),
                emu_order_name(config->order));
    if (config->seed != 0) {
        text_append(&to, ",seed=%" PRIu64, config->seed);
    }
    if (config->poison != 0xff) {
        text_append(&to, ",poison=%02x", config->poison);
    }
    if (config->order == EMU_STARVE_WARP) {
        text_append(&to, ",warp=%d", config->starved_warp);
    }
    if (config->delay_file != NULL) {
        text_append(&to, ",delay=%s:%d", config->delay_file, config->delay_line);
    }
    if (config->mutate_file != NULL) {
        text_append(&to, ",mutate=%s:%d:%s:%s", config->mutate_file, config->mutate_line,
                    config->mutate_instruction != NULL ? config->mutate_instruction : "",
                    emu_mutation_name(config->mutation));
    }
    text_append(&to, "%s%s%s", config->relaxed ? ",relaxed" : "",
                config->no_clocks ? ",no-clocks" : "", config->no_guards ? ",no-guards" : "");
    if (config->max_steps != 0) {
        text_append(&to, ",steps=%" PRIu64, config->max_steps);
    }
}

static int index_of(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static bool parse_number(const char *text, int base, uint64_t limit, uint64_t *value)
{
    char *end;
    if (*text < '0' || (base == 10 && *text > '9')) {
        return false;
    }
    *value = strtoull(text, &end, base);
    return *end == '\0' && *value <= limit;
}

/* Cuts "file:line" at its last colon. */
static bool parse_place(char *text, const char **file, int *line)
{
    char *colon = strrchr(text, ':');
    uint64_t number;
    if (colon == NULL || !parse_number(colon + 1, 10, INT32_MAX, &number)) {
        return false;
    }
    *colon = '\0';
    *line = (int)number;
    *file = text_keep(text);
    return *file != NULL;
}

static bool parse_mutant(emu_config *config, char *text)
{
    char *kind = strrchr(text, ':');
    if (kind == NULL) {
        return false;
    }
    *kind++ = '\0';
    char *instruction = strrchr(text, ':');
    const int mutation = index_of(mutations, EMU_MUTATION_COUNT, kind);
    if (instruction == NULL || mutation < 0) {
        return false;
    }
    *instruction++ = '\0';
    config->mutation = (emu_mutation)mutation;
    config->mutate_instruction = *instruction == '\0' ? NULL : text_keep(instruction);
    return parse_place(text, &config->mutate_file, &config->mutate_line);
}

static bool parse_flag(emu_config *config, const char *name)
{
    bool *flag = strcmp(name, "relaxed") == 0     ? &config->relaxed
                 : strcmp(name, "no-clocks") == 0 ? &config->no_clocks
                 : strcmp(name, "no-guards") == 0 ? &config->no_guards
                                                  : NULL;
    if (flag == NULL) {
        return false;
    }
    *flag = true;
    return true;
}

static bool parse_setting(emu_config *config, const char *name, char *value)
{
    uint64_t number = 0;
    int index;
    if (strcmp(name, "policy") == 0) {
        index = index_of(policies, EMU_POLICY_COUNT, value);
        config->policy = (emu_policy)(index < 0 ? 0 : index);
        return index >= 0;
    }
    if (strcmp(name, "order") == 0) {
        index = index_of(orders, EMU_ORDER_COUNT, value);
        config->order = (emu_order)(index < 0 ? 0 : index);
        return index >= 0;
    }
    if (strcmp(name, "seed") == 0) {
        return parse_number(value, 10, UINT64_MAX, &config->seed);
    }
    if (strcmp(name, "steps") == 0) {
        return parse_number(value, 10, UINT64_MAX, &config->max_steps);
    }
    if (strcmp(name, "poison") == 0 && parse_number(value, 16, 0xff, &number)) {
        config->poison = (uint8_t)number;
        return true;
    }
    if (strcmp(name, "warp") == 0 && parse_number(value, 10, 31, &number)) {
        config->starved_warp = (int)number;
        return true;
    }
    if (strcmp(name, "delay") == 0) {
        return parse_place(value, &config->delay_file, &config->delay_line);
    }
    return strcmp(name, "mutate") == 0 && parse_mutant(config, value);
}

bool emu_config_parse(emu_config *config, const char *text)
{
    char copy[EMU_CONFIG_TEXT_BYTES];
    emu_config parsed = emu_config_default();
    if (strlen(text) >= sizeof copy) {
        return false;
    }
    strcpy(copy, text);
    for (char *next = copy, *setting; next != NULL && *next != '\0';) {
        setting = next;
        next = strchr(setting, ',');
        if (next != NULL) {
            *next++ = '\0';
        }
        char *value = strchr(setting, '=');
        if (value != NULL) {
            *value++ = '\0';
        }
        if (!(value != NULL ? parse_setting(&parsed, setting, value)
                            : parse_flag(&parsed, setting))) {
            return false;
        }
    }
    *config = parsed;
    return true;
}
