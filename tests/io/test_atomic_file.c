/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic files: what is kept, what is refused, limits and full disks. */
#define _GNU_SOURCE /* unshare, mount */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/atomic_file.h"
#include "io/io_child.h"
#include "io/io_fixture.h"

static io_status write_whole(const char *path, const char *text, io_error *error)
{
    atomic_file *file;
    io_status status = atomic_file_create(&file, path, error);
    if (status != IO_OK) {
        assert_null(file);
        return status;
    }
    status = atomic_file_write(file, 0, text, strlen(text), error);
    if (status != IO_OK) {
        atomic_file_abort(file);
        return status;
    }
    return atomic_file_commit(file, error);
}

static void check_content(const char *name, const char *text)
{
    size_t bytes;
    unsigned char *data = fixture_read(name, &bytes);
    assert_int_equal(bytes, strlen(text));
    assert_memory_equal(data, text, bytes);
    free(data);
}

static void must_write(const char *path, const char *text)
{
    io_error error;
    if (write_whole(path, text, &error) != IO_OK)
        fail_msg("%s", error.text);
}

/* The sentence about `path` is its quoted form and `tail`; nothing but `files` is in the folder. */
static void check_refused(const char *path, io_status want, const char *tail, size_t files)
{
    io_error error;
    char text[512];
    snprintf(text, sizeof text, "%s: %s", io_quote_path(path).text, tail);
    check_error(write_whole(path, "new", &error), &error, want, text);
    assert_int_equal(fixture_count(""), files);
}

static mode_t mode_of(const char *name)
{
    struct stat status;
    assert_int_equal(stat(fixture_path(name), &status), 0);
    return status.st_mode & 07777;
}

static void test_create_and_replace(void **state)
{
    (void)state;
    fixture_clear();
    const char *path = fixture_path("a file");
    io_error error;
    atomic_file *file;
    assert_int_equal(atomic_file_create(&file, path, &error), IO_OK);
    assert_string_equal(atomic_file_path(file), path);
    assert_int_equal(atomic_file_write(file, 6, "world", 5, &error), IO_OK);
    assert_false(fixture_exists("a file"));
    assert_int_equal(fixture_count(".a file."), 1);
    assert_int_equal(atomic_file_write(file, 0, "hello ", 6, &error), IO_OK);
    assert_int_equal(atomic_file_commit(file, &error), IO_OK);
    check_content("a file", "hello world");
    must_write(path, "two");
    check_content("a file", "two");
    assert_int_equal(atomic_file_create(&file, path, &error), IO_OK);
    assert_int_equal(atomic_file_write(file, 0, "three", 5, &error), IO_OK);
    atomic_file_abort(file);
    atomic_file_abort(NULL);
    check_content("a file", "two");
    assert_int_equal(fixture_count(""), 1);
}

static void test_relative_paths(void **state)
{
    (void)state;
    fixture_clear();
    char here[1024];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(fixture_path("")), 0);
    io_error error;
    atomic_file *file;
    assert_int_equal(atomic_file_create(&file, "plain", &error), IO_OK);
    /* A change of the current folder does not lead the file astray. */
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(atomic_file_write(file, 0, "x", 1, &error), IO_OK);
    assert_int_equal(atomic_file_commit(file, &error), IO_OK);
    assert_int_equal(chdir(here), 0);
    check_content("plain", "x");
    assert_int_equal(fixture_count(""), 1);
}

static void test_permissions(void **state)
{
    (void)state;
    fixture_clear();
    mode_t old = umask(027);
    must_write(fixture_path("new"), "1");
    assert_int_equal(mode_of("new"), 0640);
    umask(0);
    must_write(fixture_path("open"), "1");
    assert_int_equal(mode_of("open"), 0666);
    /* A replaced file keeps its bits, whatever the umask; the temporary never has more. */
    static const mode_t modes[] = {0600, 0644, 0666, 0755, 0777, 0700};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        umask(i % 2 == 0 ? 0 : 077);
        assert_int_equal(chmod(fixture_path("new"), modes[i]), 0);
        must_write(fixture_path("new"), "2");
        assert_int_equal(mode_of("new"), modes[i]);
    }
    umask(old);
}

/* Only root can give files away, so only root can see that the owner is kept. */
static void test_owner(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    fixture_clear();
    must_write(fixture_path("x"), "1");
    assert_int_equal(chown(fixture_path("x"), 12345, 23456), 0);
    assert_int_equal(chmod(fixture_path("x"), 0640), 0);
    must_write(fixture_path("x"), "2");
    struct stat status;
    assert_int_equal(stat(fixture_path("x"), &status), 0);
    assert_int_equal(status.st_uid, 12345);
    assert_int_equal(status.st_gid, 23456);
    assert_int_equal(status.st_mode & 07777, 0640);
}

static void test_links(void **state)
{
    (void)state;
    fixture_clear();
    must_write(fixture_path("target"), "1");
    assert_int_equal(symlink("target", fixture_path("link")), 0);
    assert_int_equal(link(fixture_path("target"), fixture_path("hard")), 0);
    must_write(fixture_path("link"), "2");
    struct stat status;
    assert_int_equal(lstat(fixture_path("link"), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    check_content("target", "2");
    check_content("link", "2");
    check_content("hard", "1");
    assert_int_equal(symlink("nowhere", fixture_path("dangling")), 0);
    check_refused(fixture_path("dangling"), IO_NOT_FOUND,
                  "is a symbolic link that leads nowhere: No such file or directory", 4);
    assert_int_equal(symlink("loop", fixture_path("loop")), 0);
    check_refused(fixture_path("loop"), IO_SYSTEM,
                  "is a symbolic link that leads nowhere: Too many levels of symbolic links", 5);
    /* A link to a directory is a directory. */
    assert_int_equal(symlink(".", fixture_path("here")), 0);
    check_refused(fixture_path("here"), IO_UNSUPPORTED,
                  "exists and is a directory; a new name or a regular file is accepted", 6);
}

static void test_refused_targets(void **state)
{
    (void)state;
    fixture_clear();
    check_refused(fixture_path(""), IO_UNSUPPORTED,
                  "exists and is a directory; a new name or a regular file is accepted", 0);
    check_refused("/dev/full", IO_UNSUPPORTED,
                  "exists and is not a regular file; a new name or a regular file is accepted", 0);
    check_refused("", IO_ARGUMENT, "is not the name of a file", 0);
    check_refused(fixture_path("none/"), IO_ARGUMENT, "is not the name of a file", 0);
    assert_int_equal(mkfifo(fixture_path("pipe"), 0600), 0);
    check_refused(fixture_path("pipe"), IO_UNSUPPORTED,
                  "exists and is not a regular file; a new name or a regular file is accepted", 1);
    check_refused(fixture_path("pipe/x"), IO_SYSTEM, "cannot be written: Not a directory", 1);
    char longest[300];
    memset(longest, 'x', 256);
    longest[256] = '\0';
    check_refused(fixture_path(longest), IO_SYSTEM, "cannot be written: File name too long", 1);
    longest[255] = '\0';
    must_write(fixture_path(longest), "1");
    check_content(longest, "1");

    io_error error;
    char want[512];
    snprintf(want, sizeof want, "%s: the directory %s cannot be opened: No such file or directory",
             io_quote_path(fixture_path("no/x")).text, io_quote_path(fixture_path("no/")).text);
    check_error(write_whole(fixture_path("no/x"), "1", &error), &error, IO_NOT_FOUND, want);
}

static void test_range(void **state)
{
    (void)state;
    fixture_clear();
    io_error error;
    atomic_file *file;
    assert_int_equal(atomic_file_create(&file, fixture_path("x"), &error), IO_OK);
    assert_int_equal(atomic_file_reserve(file, 0, &error), IO_OK);
    assert_int_equal(atomic_file_reserve(file, UINT64_MAX, &error), IO_TOO_LARGE);
    assert_int_equal(atomic_file_write(file, UINT64_MAX, "x", 1, &error), IO_TOO_LARGE);
    /* After a failed write there is nothing to commit. */
    assert_int_equal(atomic_file_commit(file, &error), IO_ARGUMENT);
    assert_int_equal(fixture_count(""), 0);
    assert_int_equal(atomic_file_create(&file, fixture_path("x"), &error), IO_OK);
    assert_int_equal(atomic_file_write(file, INT64_MAX, "xx", 2, &error), IO_TOO_LARGE);
    atomic_file_abort(file);
}

/* ---- what needs a child --------------------------------------------------------------------- */

static void check_child(int (*body)(void))
{
    int result = child_end(child_start(body));
    if (result == CHILD_SKIP) {
        print_message("skipped: this machine does not allow it\n");
        skip();
    }
    assert_int_equal(result, CHILD_OK);
}

static int without_privilege(void)
{
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return CHILD_SKIP;
    io_error error;
    CHILD_CHECK(write_whole(fixture_path("readonly"), "2", &error) == IO_SYSTEM);
    CHILD_CHECK(error.system_errno == EACCES);
    CHILD_CHECK(strstr(error.text, ": exists and may not be written: Permission denied") != NULL);
    CHILD_CHECK(write_whole(fixture_path("closed/x"), "2", &error) == IO_SYSTEM);
    CHILD_CHECK(error.system_errno == EACCES);
    CHILD_CHECK(strstr(error.text, "a temporary file beside it cannot be created: Permission "
                                   "denied") != NULL);
    return CHILD_OK;
}

static void test_permission_denied(void **state)
{
    (void)state;
    fixture_clear();
    must_write(fixture_path("readonly"), "1");
    assert_int_equal(chmod(fixture_path("readonly"), 0444), 0);
    assert_int_equal(mkdir(fixture_path("closed"), 0555), 0);
    assert_int_equal(chmod(fixture_path(""), 0777), 0);
    check_child(without_privilege);
    check_content("readonly", "1");
    assert_int_equal(fixture_count(""), 2);
}

static int with_small_files(void)
{
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = {1000, 1000};
    CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    io_error error;
    atomic_file *file;
    char data[1500] = {0};
    CHILD_CHECK(atomic_file_create(&file, fixture_path("x"), &error) == IO_OK);
    CHILD_CHECK(atomic_file_reserve(file, 1500, &error) == IO_SYSTEM);
    CHILD_CHECK(error.system_errno == EFBIG);
    /* The write begins well and is cut short in its middle. */
    CHILD_CHECK(atomic_file_write(file, 0, data, sizeof data, &error) == IO_SYSTEM);
    CHILD_CHECK(error.system_errno == EFBIG);
    CHILD_CHECK(strstr(error.text, ": writing at byte 1000 failed: File too large") != NULL);
    CHILD_CHECK(atomic_file_commit(file, &error) == IO_ARGUMENT);
    return CHILD_OK;
}

static void test_file_size_limit(void **state)
{
    (void)state;
    fixture_clear();
    must_write(fixture_path("x"), "old");
    check_child(with_small_files);
    check_content("x", "old");
    assert_int_equal(fixture_count(""), 1);
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* A mount of 256 KiB that only this child sees. */
static bool mount_small(const char *path)
{
    char map[64];
    snprintf(map, sizeof map, "0 %ld 1", (long)getuid());
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !write_text("/proc/self/uid_map", map))
            return false;
    }
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", path, "tmpfs", 0, "size=262144") == 0;
}

static int on_full_disk(void)
{
    const char *path = fixture_path("small/x");
    if (!mount_small(fixture_path("small")))
        return CHILD_SKIP;
    io_error error;
    atomic_file *file;
    CHILD_CHECK(write_whole(path, "old", &error) == IO_OK);
    CHILD_CHECK(atomic_file_create(&file, path, &error) == IO_OK);
    CHILD_CHECK(atomic_file_reserve(file, 1000000, &error) == IO_SYSTEM);
    CHILD_CHECK(error.system_errno == ENOSPC);
    CHILD_CHECK(strstr(error.text, ": no space for 1000000 bytes: No space left on device") !=
                NULL);
    static const char data[1000000];
    CHILD_CHECK(atomic_file_write(file, 0, data, sizeof data, &error) == IO_SYSTEM);
    CHILD_CHECK(error.system_errno == ENOSPC);
    CHILD_CHECK(atomic_file_commit(file, &error) == IO_ARGUMENT);
    /* The old file stands, and the room that the temporary took is free again. */
    char text[8] = {0};
    int fd = open(path, O_RDONLY);
    CHILD_CHECK(read(fd, text, sizeof text) == 3 && strcmp(text, "old") == 0);
    close(fd);
    CHILD_CHECK(atomic_file_create(&file, path, &error) == IO_OK);
    CHILD_CHECK(atomic_file_write(file, 0, data, 200000, &error) == IO_OK);
    CHILD_CHECK(atomic_file_commit(file, &error) == IO_OK);
    return CHILD_OK;
}

static void test_full_disk(void **state)
{
    (void)state;
    fixture_clear();
    assert_int_equal(mkdir(fixture_path("small"), 0777), 0);
    check_child(on_full_disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_and_replace),
        cmocka_unit_test(test_relative_paths),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_owner),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_refused_targets),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_permission_denied),
        cmocka_unit_test(test_file_size_limit),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
