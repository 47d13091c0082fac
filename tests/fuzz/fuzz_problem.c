/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Problem strings of the command line tool: any bytes are parsed or refused with a sentence; what
 * is parsed prints as a string that parses to the same problem and prints the same again.
 */
#include <stdint.h>

#include "../../cli/problem.h"
#include "fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    halfbyte_problem problem;
    halfbyte_problem again;
    char error[PROBLEM_ERROR_BYTES];
    char printed[PROBLEM_TEXT_BYTES];
    char reprinted[PROBLEM_TEXT_BYTES];
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (problem_parse(text, &problem, error)) {
        problem_print(&problem, printed);
        FUZZ_CHECK(strlen(printed) < PROBLEM_TEXT_BYTES - 1);
        FUZZ_CHECK(problem_parse(printed, &again, error));
        FUZZ_CHECK(memcmp(&problem, &again, sizeof problem) == 0);
        problem_print(&again, reprinted);
        FUZZ_CHECK(strcmp(printed, reprinted) == 0);
    } else {
        FUZZ_CHECK(error[0] != '\0' && strlen(error) < PROBLEM_ERROR_BYTES);
    }
    free(text);
    return 0;
}
