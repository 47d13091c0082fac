/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a caller is told when the driver or the GPU is not there, or fails: a status and a sentence
 * for each case, nothing kept, and AUTO falls back to the CPU model where no GPU can be opened.
 *
 * The driver is loaded once a process, so each case runs this program again with another
 * libcuda.so.1 in LD_LIBRARY_PATH.  arguments: the program itself (CTest gives none), or `child`.
 */
#define _POSIX_C_SOURCE 200809L

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/kernel_table.h"
#include "halfbyte.h"

typedef struct error_row {
    const char *folder;  /* of the libcuda.so.1 */
    const char *failing; /* FAKE_CUDA */
    const char *step;    /* that fails: open, plan, run; none */
    halfbyte_status status;
    const char *sentence; /* a part of it */
    const char *fallback; /* executor that AUTO takes */
} error_row;

static const error_row rows[] = {
    {"broken", "", "open", HALFBYTE_ERR_NO_DEVICE,
     "no CUDA driver on this machine: libcuda.so.1 cannot be loaded", "model"},
    {"lacking", "", "open", HALFBYTE_ERR_NO_DEVICE,
     "the CUDA driver lacks cuTensorMapEncodeTiled: CUDA 12.3 or later is needed", "model"},
    {"fake", "init", "open", HALFBYTE_ERR_NO_DEVICE,
     "no usable CUDA device: cuInit failed with CUDA_ERROR_UNKNOWN (999)", "model"},
    {"fake", "no_device", "open", HALFBYTE_ERR_NO_DEVICE,
     "no usable CUDA device: cuInit failed with CUDA_ERROR_NO_DEVICE (100)", "model"},
    {"fake", "old", "open", HALFBYTE_ERR_NO_DEVICE,
     "the CUDA driver serves CUDA 12.2: 12.3 or later is needed", "model"},
    {"fake", "count", "open", HALFBYTE_ERR_NO_DEVICE, "no CUDA device on this machine", "model"},
    {"fake", "ada", "open", HALFBYTE_ERR_NO_DEVICE,
     "Void 9000 has compute capability 8.9: 9.0 (Hopper) is needed", "model"},
    {"fake", "blackwell", "open", HALFBYTE_ERR_NO_DEVICE,
     "Void 9000 has compute capability 10.0: 9.0 (Hopper) is needed", "model"},
    {"fake", "context", "open", HALFBYTE_ERR_CUDA,
     "cuDevicePrimaryCtxRetain failed with CUDA_ERROR_OUT_OF_MEMORY (2)", "model"},
    {"fake", "module", "open", HALFBYTE_ERR_CUDA,
     "cuModuleLoadData failed with CUDA_ERROR_INVALID_IMAGE (200)", "model"},
    {"fake", "function", "open", HALFBYTE_ERR_CUDA,
     "cuModuleGetFunction failed with CUDA_ERROR_NOT_FOUND (500)", "model"},
    {"fake", "smem", "open", HALFBYTE_ERR_CUDA,
     "cuFuncSetAttribute failed with an error without a name (1)", "model"},
    {"fake", "map", "run", HALFBYTE_ERR_CUDA,
     "cuTensorMapEncodeTiled failed with an error without a name (1)", "gpu"},
    {"fake", "launch", "run", HALFBYTE_ERR_CUDA,
     "cuLaunchKernelEx failed with CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)", "gpu"},
    {"fake", "", "none", HALFBYTE_SUCCESS, "", "gpu"}};

/* ---- the child: a whole call sequence, and what came of it ---- */

typedef struct outcome {
    const char *step;
    halfbyte_status status;
    char sentence[512];
    char fallback[16];
    int balance; /* of what the driver gave and got back */
} outcome;

static bool went_well(outcome *o, const char *step, halfbyte_status status)
{
    o->step = status == HALFBYTE_SUCCESS ? "none" : step;
    o->status = status;
    if (status != HALFBYTE_SUCCESS) {
        snprintf(o->sentence, sizeof o->sentence, "%s", halfbyte_last_error());
    }
    return status == HALFBYTE_SUCCESS;
}

static void product_try(outcome *o, halfbyte_device *device)
{
    static _Alignas(256) unsigned char memory[1 << 16];
    halfbyte_plan *plan = NULL;
    halfbyte_problem problem = halfbyte_problem_init();
    halfbyte_operands operands = halfbyte_operands_init();
    problem.family = HALFBYTE_FAMILY_FP8;
    problem.m_max = problem.n = problem.k = 128;
    problem.d_type = HALFBYTE_TYPE_BF16;
    problem.a_scale.mode = HALFBYTE_SCALE_1X128;
    problem.b_scale.mode = HALFBYTE_SCALE_128X128;
    if (!went_well(o, "plan", halfbyte_plan_create(&plan, &problem, device))) {
        return;
    }
    operands.m = 4;
    operands.a = (halfbyte_matrix_in){memory, 128, 0};
    operands.b = (halfbyte_matrix_in){memory + 4096, 128, 0};
    operands.d = (halfbyte_matrix_out){memory + 32768, 128, 0};
    operands.a_scale = (halfbyte_scale_in){memory + 49152, 1, 4, 0};
    operands.b_scale = (halfbyte_scale_in){memory + 53248, 1, 1, 0};
    went_well(o, "run", halfbyte_run(plan, &operands, NULL, 0, NULL));
    halfbyte_plan_destroy(plan);
}

static void fallback_note(outcome *o)
{
    char text[HALFBYTE_TEXT_BYTES] = "";
    halfbyte_device *device = NULL;
    if (halfbyte_device_open(&device, NULL) == HALFBYTE_SUCCESS) {
        halfbyte_device_describe(device, text, sizeof text);
    }
    snprintf(o->fallback, sizeof o->fallback, "%s",
             strstr(text, "executor=gpu") != NULL     ? "gpu"
             : strstr(text, "executor=model") != NULL ? "model"
                                                      : "neither");
    halfbyte_device_close(device);
}

static int child(void)
{
    outcome o = {"none", HALFBYTE_SUCCESS, "", "", 0};
    halfbyte_device *device = NULL;
    halfbyte_device_options options = halfbyte_device_options_init();
    options.executor = HALFBYTE_EXECUTOR_GPU;
    if (went_well(&o, "open", halfbyte_device_open(&device, &options))) {
        product_try(&o, device);
    }
    halfbyte_device_close(device);
    fallback_note(&o);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL) {
        int (*balance)(void) = NULL;
        void *const address = dlsym(library, "fake_balance");
        memcpy(&balance, &address, sizeof balance);
        o.balance = balance != NULL ? balance() : -1;
    }
    printf("%s|%d|%d|%s|%s\n", o.step, (int)o.status, o.balance, o.fallback, o.sentence);
    return 0;
}

/* ---- the parent ---- */

static char self[4096];

static void row_check(const error_row *row)
{
    char command[8192];
    char line[1024] = "";
    char step[16] = "";
    char fallback[16] = "";
    int status = -1;
    int balance = -1;
    int sentence_at = 0;
    snprintf(command, sizeof command, "LD_LIBRARY_PATH='%s/%s' FAKE_CUDA=%s '%s' child",
             FAKE_DRIVERS, row->folder, row->failing, self);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(line, sizeof line, pipe));
    assert_int_equal(pclose(pipe), 0);
    print_message("%s %s: %s", row->folder, row->failing, line);
    assert_int_equal(
        sscanf(line, "%15[^|]|%d|%d|%15[^|]|%n", step, &status, &balance, fallback, &sentence_at),
        4);
    assert_string_equal(step, row->step);
    assert_int_equal(status, row->status);
    assert_int_equal(balance, 0);
    assert_string_equal(fallback, row->fallback);
    assert_true(sentence_at > 0);
    assert_non_null(strstr(line + sentence_at, row->sentence));
}

static void each_failure_has_its_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        row_check(&rows[i]);
    }
}

/* No two cases are told apart by nothing. */
static void sentences_differ(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(rows[i].sentence, rows[j].sentence);
        }
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_failure_has_its_sentence),
                                       cmocka_unit_test(sentences_differ)};
    if (count == 2 && strcmp(arguments[1], "child") == 0) {
        return child();
    }
    if (!kernel_table_is_built()) {
        return 77; /* no GPU executor in this build */
    }
    snprintf(self, sizeof self, "%s", arguments[0]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
