/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* fallocate */
#define _FILE_OFFSET_BITS 64

#include "io/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 256 /* NAME_MAX of Linux and the NUL */
#define WRITE_CHUNK_BYTES ((size_t)1 << 30)

/* ---- what atomic_file_remove_pending finds -------------------------------------------------- */

enum { SLOT_FREE, SLOT_CLAIMED, SLOT_LIVE };

typedef struct pending_slot {
    atomic_int state;
    int dir_fd;
    pid_t pid; /* a child made by fork must not remove its parent's files */
    char name[NAME_BYTES];
} pending_slot;

static pending_slot pending_slots[64];

static pending_slot *pending_add(int dir_fd, const char *name)
{
    for (size_t i = 0; i < sizeof pending_slots / sizeof pending_slots[0]; i++) {
        pending_slot *slot = &pending_slots[i];
        int expected = SLOT_FREE;
        if (!atomic_compare_exchange_strong(&slot->state, &expected, SLOT_CLAIMED))
            continue;
        slot->dir_fd = dir_fd;
        slot->pid = getpid();
        snprintf(slot->name, sizeof slot->name, "%s", name);
        atomic_store(&slot->state, SLOT_LIVE);
        return slot;
    }
    return NULL;
}

static void pending_remove(pending_slot *slot)
{
    if (slot != NULL)
        atomic_store(&slot->state, SLOT_FREE);
}

void atomic_file_remove_pending(void)
{
    int saved_errno = errno;
    for (size_t i = 0; i < sizeof pending_slots / sizeof pending_slots[0]; i++) {
        pending_slot *slot = &pending_slots[i];
        if (atomic_load(&slot->state) == SLOT_LIVE && slot->pid == getpid())
            unlinkat(slot->dir_fd, slot->name, 0);
    }
    errno = saved_errno;
}

/* ---- creation ------------------------------------------------------------------------------- */

struct atomic_file {
    char *path;       /* as given */
    char *target;     /* path with links resolved */
    const char *base; /* last component, inside target */
    int dir_fd;
    int fd;
    bool replaces; /* the target exists; old describes it */
    struct stat old;
    char temporary[NAME_BYTES];
    pending_slot *slot;
    bool failed;
};

static void file_free(atomic_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->dir_fd >= 0)
        close(file->dir_fd);
    free(file->target);
    free(file->path);
    free(file);
}

/* Follows links, as cp does, and looks at what is there. */
static io_status target_resolve(atomic_file *file, io_error *error)
{
    const char *path = file->path;
    struct stat status;
    bool exists = lstat(path, &status) == 0;
    if (!exists && errno != ENOENT)
        return io_error_set_system(error, errno, "%s: cannot be written", io_quote_path(path).text);
    if (exists && S_ISLNK(status.st_mode)) {
        file->target = realpath(path, NULL);
        if (file->target == NULL)
            return io_error_set_system(error, errno, "%s: is a symbolic link that leads nowhere",
                                       io_quote_path(path).text);
    } else {
        file->target = strdup(path);
        if (file->target == NULL)
            return io_error_out_of_memory(error, path, strlen(path) + 1);
    }
    char *slash = strrchr(file->target, '/');
    file->base = slash != NULL ? slash + 1 : file->target;
    if (exists) {
        if (stat(file->target, &file->old) != 0)
            return io_error_set_system(error, errno, "%s: cannot be examined",
                                       io_quote_path(path).text);
        if (!S_ISREG(file->old.st_mode))
            return io_error_set(error, IO_UNSUPPORTED,
                                "%s: exists and is %s; a new name or a regular file is accepted",
                                io_quote_path(path).text,
                                S_ISDIR(file->old.st_mode) ? "a directory" : "not a regular file");
        if (faccessat(AT_FDCWD, file->target, W_OK, AT_EACCESS) != 0)
            return io_error_set_system(error, errno, "%s: exists and may not be written",
                                       io_quote_path(path).text);
        file->replaces = true;
    }
    if (file->base[0] == '\0')
        return io_error_set(error, IO_ARGUMENT, "%s: is not the name of a file",
                            io_quote_path(path).text);
    return IO_OK;
}

static io_status directory_open(atomic_file *file, io_error *error)
{
    size_t length = (size_t)(file->base - file->target);
    char *directory = length == 0 ? strdup(".") : strndup(file->target, length);
    if (directory == NULL)
        return io_error_out_of_memory(error, file->path, length + 1);
    io_status status = IO_OK;
    file->dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->dir_fd < 0)
        status = io_error_set_system(error, errno, "%s: the directory %s cannot be opened",
                                     io_quote_path(file->path).text, io_quote_path(directory).text);
    free(directory);
    return status;
}

/* A replaced file keeps its permissions and, as far as the caller may, its owner. */
static void copy_ownership(const atomic_file *file)
{
    if (fchown(file->fd, file->old.st_uid, file->old.st_gid) != 0 &&
        fchown(file->fd, (uid_t)-1, file->old.st_gid) != 0) {
        /* Not the owner: the new file is the caller's, as with any tool that replaces. */
    }
    if (fchmod(file->fd, file->old.st_mode & 0777) != 0) {
        /* A file system without permissions. The file stays private to its owner. */
    }
}

static io_status temporary_create(atomic_file *file, io_error *error)
{
    for (int attempt = 0; attempt < 16; attempt++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return io_error_set_system(error, errno, "%s: no random number for a temporary name",
                                       io_quote_path(file->path).text);
        snprintf(file->temporary, sizeof file->temporary, ".%.200s.%ld-%016" PRIx64 ".tmp",
                 file->base, (long)getpid(), number);
        /* Registered before it exists, so that a signal in between leaves nothing behind. */
        file->slot = pending_add(file->dir_fd, file->temporary);
        file->fd = openat(file->dir_fd, file->temporary,
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                          file->replaces ? 0600 : 0666);
        if (file->fd >= 0) {
            if (file->replaces)
                copy_ownership(file);
            return IO_OK;
        }
        int failure = errno;
        pending_remove(file->slot);
        file->slot = NULL;
        if (failure != EEXIST && failure != EINTR)
            return io_error_set_system(error, failure,
                                       "%s: a temporary file beside it cannot be created",
                                       io_quote_path(file->path).text);
    }
    return io_error_set_system(error, EEXIST, "%s: no free name for a temporary file beside it",
                               io_quote_path(file->path).text);
}

io_status atomic_file_create(atomic_file **result, const char *path, io_error *error)
{
    *result = NULL;
    atomic_file *file = calloc(1, sizeof *file);
    char *copy = strdup(path);
    if (file == NULL || copy == NULL) {
        free(file);
        free(copy);
        return io_error_out_of_memory(error, path, sizeof *file);
    }
    file->path = copy;
    file->fd = -1;
    file->dir_fd = -1;
    io_status status = target_resolve(file, error);
    if (status == IO_OK)
        status = directory_open(file, error);
    if (status == IO_OK)
        status = temporary_create(file, error);
    if (status != IO_OK) {
        file_free(file);
        return status;
    }
    *result = file;
    return IO_OK;
}

const char *atomic_file_path(const atomic_file *file)
{
    return file->path;
}

/* ---- writing -------------------------------------------------------------------------------- */

io_status atomic_file_reserve(atomic_file *file, uint64_t bytes, io_error *error)
{
    if (bytes == 0)
        return IO_OK;
    if (bytes > (uint64_t)INT64_MAX)
        return io_error_set(error, IO_TOO_LARGE, "%s: %" PRIu64 " bytes are more than a file holds",
                            io_quote_path(file->path).text, bytes);
    while (fallocate(file->fd, 0, 0, (off_t)bytes) != 0) {
        if (errno == EINTR)
            continue;
        if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO)
            return io_error_set_system(error, errno, "%s: no space for %" PRIu64 " bytes",
                                       io_quote_path(file->path).text, bytes);
        break; /* the file system cannot reserve */
    }
    return IO_OK;
}

io_status atomic_file_write(atomic_file *file, uint64_t offset, const void *data, size_t bytes,
                            io_error *error)
{
    const char *from = data;
    if (offset > (uint64_t)INT64_MAX || bytes > (uint64_t)INT64_MAX - offset) {
        file->failed = true;
        return io_error_set(error, IO_TOO_LARGE, "%s: a write at byte %" PRIu64 " is out of range",
                            io_quote_path(file->path).text, offset);
    }
    while (bytes > 0) {
        size_t chunk = bytes < WRITE_CHUNK_BYTES ? bytes : WRITE_CHUNK_BYTES;
        ssize_t count = pwrite(file->fd, from, chunk, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            file->failed = true;
            return io_error_set_system(error, count < 0 ? errno : EIO,
                                       "%s: writing at byte %" PRIu64 " failed",
                                       io_quote_path(file->path).text, offset);
        }
        from += count;
        offset += (uint64_t)count;
        bytes -= (size_t)count;
    }
    return IO_OK;
}

/* ---- end ------------------------------------------------------------------------------------ */

static int sync_retry(int fd)
{
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

/* Everything up to the rename; on failure the temporary still stands. */
static io_status commit_rename(atomic_file *file, io_error *error)
{
    io_quoted name = io_quote_path(file->path);
    if (file->failed)
        return io_error_set(error, IO_ARGUMENT, "%s: not put in place: a write to it had failed",
                            name.text);
    if (sync_retry(file->fd) != 0)
        return io_error_set_system(error, errno, "%s: flushing it to disk failed", name.text);
    int closed = close(file->fd);
    int failure = errno;
    file->fd = -1;
    if (closed != 0 && failure != EINTR)
        return io_error_set_system(error, failure, "%s: closing it failed", name.text);
    if (renameat(file->dir_fd, file->temporary, file->dir_fd, file->base) != 0)
        return io_error_set_system(
            error, errno, "%s: the finished temporary file cannot be renamed to it", name.text);
    return IO_OK;
}

io_status atomic_file_commit(atomic_file *file, io_error *error)
{
    io_status status = commit_rename(file, error);
    if (status != IO_OK) {
        atomic_file_abort(file);
        return status;
    }
    pending_remove(file->slot);
    /* EINVAL: a file system whose directories cannot be flushed. */
    if (sync_retry(file->dir_fd) != 0 && errno != EINVAL)
        status =
            io_error_set_system(error, errno, "%s: is in place, but flushing its directory failed",
                                io_quote_path(file->path).text);
    file_free(file);
    return status;
}

void atomic_file_abort(atomic_file *file)
{
    if (file == NULL)
        return;
    unlinkat(file->dir_fd, file->temporary, 0);
    pending_remove(file->slot);
    file_free(file);
}
