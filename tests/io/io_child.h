/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_TESTS_IO_IO_CHILD_H
#define HALFBYTE_TESTS_IO_IO_CHILD_H

/* Tests that need a process of their own: to lose rights, to hit a limit, to be killed. */

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_OK = 0, CHILD_SKIP = 77 };

/* In a child: says what is wrong and ends it with status 1. */
#define CHILD_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* Starts `body` in a child; its return value becomes the exit status. */
static inline pid_t child_start(int (*body)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* not cmocka's handler */
        _exit(body());
    }
    return pid;
}

/* The child's exit status, or 1000 + the signal that ended it. */
static inline int child_end(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#endif
