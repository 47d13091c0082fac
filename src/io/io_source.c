/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "io/io_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One pread never asks for more: Linux moves at most 2 GiB less a page a call. */
#define READ_CHUNK_BYTES ((size_t)1 << 30)

static int64_t file_read_at(void *context, uint64_t offset, void *buffer, size_t bytes)
{
    int fd = (int)(intptr_t)context;
    if (offset > (uint64_t)INT64_MAX - READ_CHUNK_BYTES) {
        errno = EOVERFLOW;
        return -1;
    }
    return pread(fd, buffer, bytes < READ_CHUNK_BYTES ? bytes : READ_CHUNK_BYTES, (off_t)offset);
}

static void file_close(void *context)
{
    close((int)(intptr_t)context);
}

static io_status set_label(io_source *source, const char *label, io_error *error)
{
    source->label = strdup(label);
    if (source->label == NULL)
        return io_error_out_of_memory(error, label, strlen(label) + 1);
    return IO_OK;
}

static const char *kind_name(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISCHR(mode)  ? "a character device"
           : S_ISBLK(mode)  ? "a block device"
                            : "of another kind";
}

io_status io_source_open_file(io_source *source, const char *path, io_error *error)
{
    memset(source, 0, sizeof *source);
    int fd;
    do {
        /* O_NONBLOCK: opening a FIFO must not wait for a writer. It means nothing for files. */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return io_error_set_system(error, errno, "%s: cannot be opened for reading",
                                   io_quote_path(path).text);
    struct stat status;
    io_status result;
    if (fstat(fd, &status) != 0)
        result = io_error_set_system(error, errno, "%s: its size cannot be read",
                                     io_quote_path(path).text);
    else if (!S_ISREG(status.st_mode))
        result = io_error_set(error, IO_UNSUPPORTED, "%s: is %s; a regular file is accepted",
                              io_quote_path(path).text, kind_name(status.st_mode));
    else
        result = set_label(source, path, error);
    if (result != IO_OK) {
        close(fd);
        return result;
    }
    source->read_at = file_read_at;
    source->close = file_close;
    source->context = (void *)(intptr_t)fd;
    source->size_bytes = (uint64_t)status.st_size;
    return IO_OK;
}

typedef struct memory_view {
    const unsigned char *data;
    size_t bytes;
} memory_view;

static int64_t memory_read_at(void *context, uint64_t offset, void *buffer, size_t bytes)
{
    const memory_view *view = context;
    if (offset >= view->bytes)
        return 0;
    size_t available = view->bytes - (size_t)offset;
    size_t count = bytes < available ? bytes : available;
    memcpy(buffer, view->data + offset, count);
    return (int64_t)count;
}

io_status io_source_open_memory(io_source *source, const void *data, size_t bytes,
                                const char *label, io_error *error)
{
    memset(source, 0, sizeof *source);
    memory_view *view = malloc(sizeof *view);
    if (view == NULL)
        return io_error_out_of_memory(error, label, sizeof *view);
    io_status status = set_label(source, label, error);
    if (status != IO_OK) {
        free(view);
        return status;
    }
    *view = (memory_view){data, bytes};
    source->read_at = memory_read_at;
    source->close = free;
    source->context = view;
    source->size_bytes = bytes;
    return IO_OK;
}

io_status io_source_read(const io_source *source, uint64_t offset, void *buffer, size_t bytes,
                         io_error *error)
{
    unsigned char *out = buffer;
    while (bytes > 0) {
        int64_t count = source->read_at(source->context, offset, out, bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return io_error_set_system(error, errno, "%s: reading at byte %" PRIu64 " failed",
                                       io_quote_path(source->label).text, offset);
        if (count == 0)
            return io_error_set(error, IO_MALFORMED,
                                "%s: ends at byte %" PRIu64 " but had %" PRIu64
                                " bytes when it was opened",
                                io_quote_path(source->label).text, offset, source->size_bytes);
        out += count;
        offset += (uint64_t)count;
        bytes -= (size_t)count;
    }
    return IO_OK;
}

void io_source_close(io_source *source)
{
    if (source->close != NULL)
        source->close(source->context);
    free(source->label);
    memset(source, 0, sizeof *source);
}
