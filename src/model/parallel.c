/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job at a time.  The caller that finds the pool idle publishes its job, wakes the workers and
 * takes tasks like one of them; a caller that finds it busy works alone.  Tasks are taken from a
 * shared counter one by one.  A worker that wakes after the job was closed goes back to sleep, so
 * the caller waits only for workers that hold a task, never for one that is yet to be scheduled.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "model/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "model/fp_env.h"

struct parallel_pool {
    pid_t owner;      /* process whose threads these are */
    int workers;      /* threads beside the caller */
    atomic_bool busy; /* a caller owns the job below */

    pthread_mutex_t lock;  /* guards what follows, but for next_task */
    pthread_cond_t posted; /* workers wait for `open` and a new job number, or for `ending` */
    pthread_cond_t idle;   /* the caller waits for active == 0 */
    bool ending;
    bool open;    /* workers may still join the job */
    uint64_t job; /* its number; a worker joins each job once */
    int active;   /* workers inside it */
    int64_t tasks;
    void (*body)(void *context, int64_t task);
    void *context;
    atomic_int_fast64_t next_task;

    pthread_t threads[];
};

/* Constant while a job is open, so it is read once, under the lock or by the thread that set it. */
static void tasks_run(parallel_pool *pool, int64_t tasks, void (*body)(void *, int64_t),
                      void *context)
{
    for (;;) {
        const int64_t task = atomic_fetch_add_explicit(&pool->next_task, 1, memory_order_relaxed);
        if (task >= tasks)
            return;
        body(context, task);
    }
}

static void *worker_main(void *argument)
{
    parallel_pool *pool = argument;
    uint64_t last_job = 0;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->ending && !(pool->open && pool->job != last_job))
            pthread_cond_wait(&pool->posted, &pool->lock);
        if (pool->ending)
            break;
        last_job = pool->job;
        const int64_t tasks = pool->tasks;
        void (*const body)(void *, int64_t) = pool->body;
        void *const context = pool->context;
        pool->active++;
        pthread_mutex_unlock(&pool->lock);

        fp_env_set();
        tasks_run(pool, tasks, body, context);

        pthread_mutex_lock(&pool->lock);
        if (--pool->active == 0)
            pthread_cond_signal(&pool->idle);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int cpus_available(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) /* fails beyond 1024 CPUs */
        return CPU_COUNT(&set);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < 4096 ? (int)online : 1;
}

/* Workers are started with every signal blocked: the host's handlers run on the host's threads. */
static void workers_start(parallel_pool *pool, int count)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->workers < count &&
           pthread_create(&pool->threads[pool->workers], NULL, worker_main, pool) == 0) {
        pool->workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

parallel_pool *parallel_pool_create(int threads)
{
    const int count = (threads > 0 ? threads : cpus_available()) - 1;
    parallel_pool *pool = calloc(1, sizeof *pool + (size_t)count * sizeof pool->threads[0]);
    if (!pool)
        return NULL;
    pool->owner = getpid();
    if (pthread_mutex_init(&pool->lock, NULL) != 0)
        goto no_mutex;
    if (pthread_cond_init(&pool->posted, NULL) != 0)
        goto no_posted;
    if (pthread_cond_init(&pool->idle, NULL) != 0)
        goto no_idle;
    workers_start(pool, count);
    return pool;

no_idle:
    pthread_cond_destroy(&pool->posted);
no_posted:
    pthread_mutex_destroy(&pool->lock);
no_mutex:
    free(pool);
    return NULL;
}

void parallel_pool_destroy(parallel_pool *pool)
{
    if (!pool)
        return;
    if (pool->owner == getpid()) { /* else the lock may be held by a thread that does not exist */
        pthread_mutex_lock(&pool->lock);
        pool->ending = true;
        pthread_cond_broadcast(&pool->posted);
        pthread_mutex_unlock(&pool->lock);
        for (int i = 0; i < pool->workers; i++)
            pthread_join(pool->threads[i], NULL);
        pthread_cond_destroy(&pool->idle);
        pthread_cond_destroy(&pool->posted);
        pthread_mutex_destroy(&pool->lock);
    }
    free(pool);
}

int parallel_pool_threads(const parallel_pool *pool)
{
    return pool && pool->owner == getpid() ? pool->workers + 1 : 1;
}

static void job_run(parallel_pool *pool, int64_t tasks, void (*body)(void *, int64_t),
                    void *context)
{
    pthread_mutex_lock(&pool->lock);
    pool->tasks = tasks;
    pool->body = body;
    pool->context = context;
    atomic_store_explicit(&pool->next_task, 0, memory_order_relaxed);
    pool->job++;
    pool->open = true;
    pthread_cond_broadcast(&pool->posted);
    pthread_mutex_unlock(&pool->lock);

    tasks_run(pool, tasks, body, context);

    pthread_mutex_lock(&pool->lock);
    pool->open = false;
    while (pool->active > 0)
        pthread_cond_wait(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void parallel_for(parallel_pool *pool, int64_t tasks, void (*body)(void *context, int64_t task),
                  void *context)
{
    const fp_env env = fp_env_save();
    fp_env_set();
    const bool shared = pool && tasks > 1 && pool->workers > 0 && pool->owner == getpid() &&
                        !atomic_exchange_explicit(&pool->busy, true, memory_order_acquire);
    if (shared) {
        job_run(pool, tasks, body, context);
        atomic_store_explicit(&pool->busy, false, memory_order_release);
    } else {
        for (int64_t task = 0; task < tasks; task++)
            body(context, task);
    }
    fp_env_restore(env);
}
