/* SPDX-License-Identifier: Apache-2.0 */
/* One plan, many threads at once, pools of several sizes; the sentence is each thread's own. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/call.h"

enum { THREADS = 8, RUNS = 20 };

typedef struct job {
    const halfbyte_plan *plan;
    halfbyte_operands operands;
    const unsigned char *expected;
    int number;
    int wrong;
    int compared;
    _Alignas(64) unsigned char d[CALL_D_BYTES];
} job;

static void *job_run(void *argument)
{
    job *j = argument;
    char sentence[64];
    (void)snprintf(sentence, sizeof sentence, "operands.m = %d: must be", 100 + j->number);
    j->operands.d.data = j->d;
    for (int i = 0; i < RUNS; i++) {
        memset(j->d, CALL_POISON, sizeof j->d);
        const halfbyte_status status = halfbyte_run(j->plan, &j->operands, NULL, 0, NULL);
        j->wrong += !(status == HALFBYTE_SUCCESS && memcmp(j->d, j->expected, sizeof j->d) == 0);

        halfbyte_operands bad = j->operands;
        bad.m = 100 + j->number;
        const halfbyte_status refused = halfbyte_run(j->plan, &bad, NULL, 0, NULL);
        j->wrong += !(refused == HALFBYTE_ERR_INVALID_ARGUMENT &&
                      strncmp(halfbyte_last_error(), sentence, strlen(sentence)) == 0);
        j->compared++;
    }
    return NULL;
}

static void one_plan_many_threads(void **state)
{
    (void)state;
    static call made;
    static unsigned char expected[CALL_D_BYTES];
    static job jobs[THREADS];
    static const int32_t pools[] = {1, 2, 7};
    int compared = 0;
    for (call_base base = 0; base < CALL_BASES; base++) {
        call_make(&made, base);
        call_run(&made);
        memcpy(expected, call_d(), sizeof expected);
        for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
            halfbyte_device *device;
            halfbyte_plan *plan;
            pthread_t threads[THREADS];
            made.options.threads = pools[i];
            assert_int_equal(halfbyte_device_open(&device, &made.options), HALFBYTE_SUCCESS);
            assert_int_equal(halfbyte_plan_create(&plan, &made.problem, device), HALFBYTE_SUCCESS);
            for (int t = 0; t < THREADS; t++) {
                jobs[t] = (job){
                    .plan = plan, .operands = made.operands, .expected = expected, .number = t};
                assert_int_equal(pthread_create(&threads[t], NULL, job_run, &jobs[t]), 0);
            }
            for (int t = 0; t < THREADS; t++) {
                assert_int_equal(pthread_join(threads[t], NULL), 0);
                assert_int_equal(jobs[t].wrong, 0);
                compared += jobs[t].compared;
            }
            halfbyte_plan_destroy(plan);
            halfbyte_device_close(device);
        }
    }
    assert_int_equal(compared, CALL_BASES * 3 * THREADS * RUNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_plan_many_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
