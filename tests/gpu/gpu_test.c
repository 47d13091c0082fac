/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the GPU with the CPU: instructions, the oracle, the kernels through the public API, and
 * what racing code does.  One program that needs a driver and nothing else, to be carried to a
 * machine with a GPU.
 *
 * Each test runs in a process of its own, so that a hang or a fault on the device ends that test
 * alone.
 */
#define _POSIX_C_SOURCE 200809L

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/gemm_run.h"
#include "gpu/tests.h"

typedef struct options {
    const char *json;
    const char *only;
    const char *skip;
    const char *commit;
    uint64_t seed;
    unsigned seconds; /* that a test may take */
    bool quick;
} options;

static const gpu_test_row tests[] = {
#define GPU_TEST_ROW_(name) {#name, gpu_test_##name},
    GPU_TESTS(GPU_TEST_ROW_)
#undef GPU_TEST_ROW_
};

enum { TESTS = sizeof tests / sizeof tests[0] };

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void json_write(const options *o, const session *s, const char *name, bool passed,
                       double seconds)
{
    char date[32] = "";
    const time_t now = time(NULL);
    struct tm utc;
    if (o->json == NULL) {
        return;
    }
    FILE *file = fopen(o->json, "a");
    if (file == NULL) {
        session_die("cannot write %s", o->json);
    }
    if (gmtime_r(&now, &utc) != NULL) {
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    fprintf(file,
            "{\"test\": \"%s\", \"passed\": %s, \"compared\": %lld, \"different\": %lld, "
            "\"seconds\": %.3f, \"quick\": %s, \"seed\": %llu, \"device\": \"%s\", "
            "\"driver\": %d, \"date\": \"%s\", \"commit\": \"%s\"%s}\n",
            name, passed ? "true" : "false", (long long)s->compared, (long long)s->different,
            seconds, s->quick ? "true" : "false", (unsigned long long)s->seed, s->device->name,
            s->driver->version, date, o->commit, s->figures);
    fclose(file);
}

/* Tests of products whose family no kernel of the library serves are left out. */
static bool is_served(const gpu_test_row *row)
{
    return strstr(row->name, "gemm_w4a8") == NULL || gemm_serves_w4a8(HALFBYTE_B_PACKED);
}

/* The child's whole life.  A test that compared nothing has failed. */
static _Noreturn void test_run(const options *o, const gpu_test_row *row)
{
    static session s;
    const double start = seconds_now();
    s.quick = o->quick;
    s.seed = o->seed;
    alarm(o->seconds);
    session_open(&s);
    row->run(&s);
    session_wait(&s);
    const double seconds = seconds_now() - start;
    const bool passed = s.compared > 0 && s.different == 0;
    printf("%-6s %-22s %13lld compared %9lld different %7.2f s %s\n", passed ? "ok" : "FAILED",
           row->name, (long long)s.compared, (long long)s.different, seconds,
           s.figures[0] != '\0' ? s.figures + 2 : "");
    json_write(o, &s, row->name, passed, seconds);
    fflush(stdout);
    _Exit(passed ? 0 : 1);
}

/* Not even a driver call is made in this process: a child could not use CUDA after it. */
static bool test_passes(const options *o, const gpu_test_row *row)
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        test_run(o, row);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        printf("FAILED %s: no process\n", row->name);
        return false;
    }
    if (WIFSIGNALED(status)) {
        printf("FAILED %s: ended by signal %d%s\n", row->name, WTERMSIG(status),
               WTERMSIG(status) == SIGALRM ? " (took too long)" : "");
    } else if (WEXITSTATUS(status) > 1) {
        printf("FAILED %s\n", row->name);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool options_read(options *o, int count, char **arguments)
{
    static const struct option known[] = {
        {"json", required_argument, NULL, 'j'},    {"quick", no_argument, NULL, 'q'},
        {"only", required_argument, NULL, 'o'},    {"seed", required_argument, NULL, 's'},
        {"skip", required_argument, NULL, 'x'},    {"commit", required_argument, NULL, 'c'},
        {"seconds", required_argument, NULL, 't'}, {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(count, arguments, "", known, NULL)) != -1) {
        switch (option) {
        case 'j': o->json = optarg; break;
        case 'q': o->quick = true; break;
        case 'o': o->only = optarg; break;
        case 'x': o->skip = optarg; break;
        case 's': o->seed = strtoull(optarg, NULL, 0); break;
        case 'c': o->commit = optarg; break;
        case 't': o->seconds = (unsigned)strtoul(optarg, NULL, 0); break;
        default: return false;
        }
    }
    return optind == count;
}

int main(int count, char **arguments)
{
    options o = {NULL, NULL, NULL, "", 1, 150, false};
    int passed = 0;
    int failed = 0;
    if (!options_read(&o, count, arguments)) {
        fputs(
            "usage: gpu_test [--quick] [--only PART_OF_A_NAME] [--skip PART_OF_A_NAME] [--seed N] "
            "[--json FILE] [--commit ID] [--seconds N]\n",
            stderr);
        return 2;
    }
    for (int i = 0; i < TESTS; i++) {
        if ((o.only != NULL && strstr(tests[i].name, o.only) == NULL) ||
            (o.skip != NULL && strstr(tests[i].name, o.skip) != NULL) || !is_served(&tests[i])) {
            continue;
        }
        if (test_passes(&o, &tests[i])) {
            passed++;
        } else {
            failed++;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}
