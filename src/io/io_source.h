/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_IO_IO_SOURCE_H
#define HALFBYTE_IO_IO_SOURCE_H

/*
 * Where bytes come from: a regular file read with pread, or memory (tests, fuzzing). The readers
 * see only this. Files are not mapped: memory stays bounded, and a file that another process
 * truncates gives an error instead of SIGBUS.
 */

#include <stddef.h>
#include <stdint.h>

#include "io/io_error.h"

/* Reads at least 1 and at most `bytes` bytes at `offset`; returns how many, 0 at the end of the
 * data, -1 with errno set on failure. May be called from many threads at once. */
typedef int64_t (*io_read_at)(void *context, uint64_t offset, void *buffer, size_t bytes);

typedef struct io_source {
    io_read_at read_at;
    void (*close)(void *context); /* may be NULL */
    void *context;
    uint64_t size_bytes;
    char *label; /* the path as given, for messages; owned */
} io_source;

/*
 * Opens a regular file (links are followed). Directories, pipes, sockets and devices are refused
 * with IO_UNSUPPORTED; a FIFO does not block. On failure *source is zeroed and needs no closing.
 */
io_status io_source_open_file(io_source *source, const char *path, io_error *error);

/* Over caller's memory, which must outlive the source. `label` is copied. */
io_status io_source_open_memory(io_source *source, const void *data, size_t bytes,
                                const char *label, io_error *error);

/* Exactly `bytes` bytes at `offset`: loops over short reads and EINTR. IO_MALFORMED if the data
 * end before (a file that shrank after it was opened). */
io_status io_source_read(const io_source *source, uint64_t offset, void *buffer, size_t bytes,
                         io_error *error);

/* Also accepts a zeroed source. */
void io_source_close(io_source *source);

#endif
