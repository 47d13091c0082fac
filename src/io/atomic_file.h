/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_ATOMIC_FILE_H
#define HALFBYTE_IO_ATOMIC_FILE_H

/*
 * A file that appears under its final name whole or not at all: written as
 * `.NAME.PID-RANDOM.tmp` in the same directory, flushed with fsync, renamed over NAME, and the
 * directory flushed. A crash, a full disk or kill -9 leaves the old file or none.
 *
 * What a killed run leaves behind is that temporary alone; its name is never used again, so it
 * stops no later run, and it may be deleted as soon as the process PID in it is gone
 * (`rm .NAME.*.tmp`).
 *
 * An existing NAME is treated as cp does: a symbolic link is followed (a dangling one is refused),
 * a file that the caller may not write is refused, and the permission bits (and, where allowed, the
 * owner) are kept. A new file gets 0666 less the umask. What is not a regular file is refused. Two
 * writers of one NAME do not disturb each other; the last commit wins. Hard links to the old file
 * keep the old content.
 *
 * A writer that meets RLIMIT_FSIZE is killed by SIGXFSZ unless the program ignores that signal;
 * then it gets IO_SYSTEM (EFBIG). One atomic_file is for one thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "io/io_error.h"

typedef struct atomic_file atomic_file;

/* Creates the temporary. The directory must exist. On failure *file is NULL. */
io_status atomic_file_create(atomic_file **file, const char *path, io_error *error);

/* The path as given to create. */
const char *atomic_file_path(const atomic_file *file);

/* Asks the file system for `bytes` bytes of space now, so that a full disk is met before the work
 * and not after it. Succeeds where the file system cannot reserve. */
io_status atomic_file_reserve(atomic_file *file, uint64_t bytes, io_error *error);

/* Writes all of `data` at `offset`; loops over short writes and EINTR. After a failure only
 * atomic_file_abort is of use; atomic_file_commit then refuses. */
io_status atomic_file_write(atomic_file *file, uint64_t offset, const void *data, size_t bytes,
                            io_error *error);

/*
 * Flushes, renames, flushes the directory. Frees `file` whatever happens (the pointer is dead
 * afterwards). On failure the final name is untouched and the temporary removed, with one
 * exception: if only the flush of the directory fails, the new file is in place and the sentence
 * says so.
 */
io_status atomic_file_commit(atomic_file *file, io_error *error);

/* Removes the temporary and frees `file`. NULL is allowed. */
void atomic_file_abort(atomic_file *file);

/*
 * Removes the temporaries of all files that this process is writing (the first 64 of them). Safe
 * inside a signal handler: a program may call it for SIGINT and SIGTERM and then end itself by the
 * same signal. The files cannot be committed any more.
 */
void atomic_file_remove_pending(void);

#endif
