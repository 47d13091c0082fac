/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: every task once, many callers, nesting, fork, and the environment of a body. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host_fp.h"
#include "model/parallel.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif

enum { TASKS = 1000 };

/* Without atomics: a task that ran twice at once would be a race that the sanitizer sees. */
struct counted {
    int runs[TASKS];
};

static void count_body(void *context, int64_t task)
{
    struct counted *counted = context;
    counted->runs[task]++;
}

static void assert_each_once(const struct counted *counted, int64_t tasks)
{
    for (int64_t i = 0; i < TASKS; i++)
        assert_int_equal(counted->runs[i], i < tasks);
}

static void test_each_task_once(void **state)
{
    static const int thread_counts[] = {0, 1, 2, 3, 7};
    static const int64_t task_counts[] = {0, 1, 2, 3, 6, 64, TASKS};
    (void)state;

    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        parallel_pool *pool = parallel_pool_create(thread_counts[i]);
        assert_non_null(pool);
        if (thread_counts[i] > 0)
            assert_int_equal(parallel_pool_threads(pool), thread_counts[i]);
        assert_true(parallel_pool_threads(pool) >= 1);
        for (int round = 0; round < 50; round++) {
            for (size_t j = 0; j < sizeof task_counts / sizeof task_counts[0]; j++) {
                struct counted counted = {{0}};
                parallel_for(pool, task_counts[j], count_body, &counted);
                assert_each_once(&counted, task_counts[j]);
            }
        }
        parallel_pool_destroy(pool);
    }
}

static void test_no_pool(void **state)
{
    struct counted counted = {{0}};
    (void)state;
    parallel_for(NULL, TASKS, count_body, &counted);
    assert_each_once(&counted, TASKS);
    assert_int_equal(parallel_pool_threads(NULL), 1);
    parallel_pool_destroy(NULL);
}

/* Two tasks that each wait for the other one to start: only two threads can finish them. */
static void meet_body(void *context, int64_t task)
{
    atomic_int *arrived = context;
    (void)task;
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < 2)
        sched_yield();
}

static void test_tasks_overlap(void **state)
{
    parallel_pool *pool = parallel_pool_create(2);
    (void)state;
    assert_int_equal(parallel_pool_threads(pool), 2);
    for (int round = 0; round < 200; round++) {
        atomic_int arrived = 0;
        parallel_for(pool, 2, meet_body, &arrived);
        assert_int_equal(atomic_load(&arrived), 2);
    }
    parallel_pool_destroy(pool);
}

enum { CALLERS = 6, CALLS = 100 };

static void *caller_main(void *pool)
{
    intptr_t wrong = 0;
    for (int call = 0; call < CALLS; call++) {
        struct counted counted = {{0}};
        parallel_for(pool, TASKS, count_body, &counted);
        for (int i = 0; i < TASKS; i++)
            wrong += counted.runs[i] != 1;
    }
    return (void *)wrong;
}

static void test_many_callers(void **state)
{
    pthread_t callers[CALLERS];
    parallel_pool *pool = parallel_pool_create(3);
    (void)state;
    assert_non_null(pool);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, caller_main, pool), 0);
    for (int i = 0; i < CALLERS; i++) {
        void *wrong;
        assert_int_equal(pthread_join(callers[i], &wrong), 0);
        assert_null(wrong);
    }
    parallel_pool_destroy(pool);
}

struct nested {
    parallel_pool *pool;
    struct counted inner[16];
};

static void nested_body(void *context, int64_t task)
{
    struct nested *nested = context;
    parallel_for(nested->pool, TASKS, count_body, &nested->inner[task]);
}

static void test_nested(void **state)
{
    static struct nested nested;
    (void)state;
    nested.pool = parallel_pool_create(3);
    for (int round = 0; round < 20; round++) {
        memset(nested.inner, 0, sizeof nested.inner);
        parallel_for(nested.pool, 16, nested_body, &nested);
        for (int i = 0; i < 16; i++)
            assert_each_once(&nested.inner[i], TASKS);
    }
    parallel_pool_destroy(nested.pool);
}

struct environment {
    atomic_int exact;
    atomic_int arrived;
};

/* Both tasks overlap, so the caller and a worker see one each. */
static void environment_body(void *context, int64_t task)
{
    struct environment *seen = context;
    meet_body(&seen->arrived, task);
    atomic_fetch_add(&seen->exact, host_fp_is_exact());
    host_fp_set_hostile(); /* what a body leaves behind must not reach the next job */
}

static void test_environment(void **state)
{
    (void)state;
    const fp_env before = fp_env_save();
    host_fp_set_hostile(); /* also what new threads inherit */
    const int rounding = fegetround();
    parallel_pool *pool = parallel_pool_create(2);
    int exact = 0, calls = 0, restored = 0;
    for (int round = 0; round < 20; round++) {
        struct environment seen = {0, 0};
        parallel_for(pool, 2, environment_body, &seen);
        exact += atomic_load(&seen.exact);
        calls += 2;
        restored += !host_fp_is_exact() && fegetround() == rounding;
    }
    struct environment alone = {0, 1}; /* run in the caller: as if another had arrived */
    parallel_for(NULL, 1, environment_body, &alone);
    exact += atomic_load(&alone.exact);
    calls++;
    fp_env_restore(before);
    parallel_pool_destroy(pool);

    assert_int_equal(exact, calls);
    assert_int_equal(restored, 20);
}

static void test_fork(void **state)
{
    (void)state;
#ifdef THREAD_SANITIZER
    skip(); /* the sanitizer ends a child of a threaded process */
#endif
    parallel_pool *pool = parallel_pool_create(3);
    struct counted counted = {{0}};
    int status;

    parallel_for(pool, TASKS, count_body, &counted);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct counted mine = {{0}};
        int wrong = parallel_pool_threads(pool) != 1;
        parallel_for(pool, TASKS, count_body, &mine);
        for (int i = 0; i < TASKS; i++)
            wrong += mine.runs[i] != 1;
        parallel_pool_destroy(pool);
        _exit(wrong != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    parallel_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_task_once), cmocka_unit_test(test_no_pool),
        cmocka_unit_test(test_tasks_overlap),  cmocka_unit_test(test_many_callers),
        cmocka_unit_test(test_nested),         cmocka_unit_test(test_environment),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
