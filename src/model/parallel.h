/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A persistent pool of POSIX threads and a parallel for.
 *
 * Results never depend on the number of threads: a task is one call of the body, and which thread
 * makes it is all that varies.  Any number of threads may use one pool at once, and a body may
 * call parallel_for again, on the same pool too: a pool that is already at work makes the later
 * caller run its own tasks, so nothing can wait for itself.
 *
 * fork: the child has none of the threads.  A pool that was made before the fork stays usable
 * there, but only the calling thread works, and destroying it frees nothing but memory.
 */
#ifndef HALFBYTE_MODEL_PARALLEL_H
#define HALFBYTE_MODEL_PARALLEL_H

#include <stdint.h>

typedef struct parallel_pool parallel_pool;

/*
 * A pool in which `threads` threads work, the caller of parallel_for being one of them: it owns
 * threads - 1.  0 means one per CPU that the calling thread may run on (affinity mask).  Threads
 * that the system refuses are done without; the workers take no signals.
 *
 * Returns NULL only when memory is out; NULL is also a valid pool, of no threads but the caller.
 * Free with parallel_pool_destroy.
 */
parallel_pool *parallel_pool_create(int threads);

/* Ends the threads and frees the pool.  No parallel_for may be running on it.  NULL is ignored. */
void parallel_pool_destroy(parallel_pool *pool);

/* Threads that work on a parallel_for, the caller included: at least 1, also for NULL. */
int parallel_pool_threads(const parallel_pool *pool);

/*
 * Calls body(context, task) once for every task in [0, tasks), in any order, on any thread of the
 * pool and on the calling one, and returns when all calls have returned.  What they wrote is then
 * visible to the caller.  Every call sees the floating-point environment of fp_env.h.  Allocates
 * nothing.  A body must not end its thread, and must not leave by longjmp.
 */
void parallel_for(parallel_pool *pool, int64_t tasks, void (*body)(void *context, int64_t task),
                  void *context);

#endif
