/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic files under several writers, signals and kill -9. */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE /* usleep */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/atomic_file.h"
#include "io/io_child.h"
#include "io/io_fixture.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"

static void check_content(const char *name, const char *text)
{
    size_t bytes;
    unsigned char *data = fixture_read(name, &bytes);
    assert_int_equal(bytes, strlen(text));
    assert_memory_equal(data, text, bytes);
    free(data);
}

static void test_two_writers_in_turn(void **state)
{
    (void)state;
    fixture_clear();
    io_error error;
    atomic_file *first, *second;
    assert_int_equal(atomic_file_create(&first, fixture_path("x"), &error), IO_OK);
    assert_int_equal(atomic_file_create(&second, fixture_path("x"), &error), IO_OK);
    assert_int_equal(atomic_file_write(first, 0, "first", 5, &error), IO_OK);
    assert_int_equal(atomic_file_write(second, 0, "second", 6, &error), IO_OK);
    assert_int_equal(atomic_file_commit(second, &error), IO_OK);
    check_content("x", "second");
    assert_int_equal(atomic_file_commit(first, &error), IO_OK);
    check_content("x", "first");
    assert_int_equal(fixture_count(""), 1);
}

/* Writes the letter of the child many times over, 50 rounds. */
static int write_rounds(char letter)
{
    char data[20000];
    memset(data, letter, sizeof data);
    for (int round = 0; round < 50; round++) {
        io_error error;
        atomic_file *file;
        CHILD_CHECK(atomic_file_create(&file, fixture_path("x"), &error) == IO_OK);
        for (size_t at = 0; at < sizeof data; at += 4000)
            CHILD_CHECK(atomic_file_write(file, at, data + at, 4000, &error) == IO_OK);
        CHILD_CHECK(atomic_file_commit(file, &error) == IO_OK);
    }
    return CHILD_OK;
}

static void test_concurrent_writers(void **state)
{
    (void)state;
    fixture_clear();
    fflush(NULL);
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            _exit(write_rounds((char)('a' + i)));
    }
    /* Whenever the file is there, it is one child's work, whole. */
    int running = 4;
    size_t seen = 0;
    while (running > 0) {
        int status;
        pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended > 0) {
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            running--;
        }
        if (!fixture_exists("x"))
            continue;
        size_t bytes;
        unsigned char *data = fixture_read("x", &bytes);
        assert_int_equal(bytes, 20000);
        for (size_t i = 1; i < bytes; i++)
            assert_true(data[i] == data[0]);
        free(data);
        seen++;
        usleep(1000);
    }
    assert_true(seen > 0);
    assert_int_equal(fixture_count(""), 1);
}

/* ---- signals -------------------------------------------------------------------------------- */

static void remove_and_end(int number)
{
    /* NOLINTNEXTLINE(bugprone-signal-handler): its declaration promises that it is safe here */
    atomic_file_remove_pending();
    signal(number, SIG_DFL);
    raise(number);
}

static int interrupted(void)
{
    signal(SIGTERM, remove_and_end);
    io_error error;
    atomic_file *one, *two, *done;
    CHILD_CHECK(atomic_file_create(&done, fixture_path("done"), &error) == IO_OK);
    CHILD_CHECK(atomic_file_create(&one, fixture_path("one"), &error) == IO_OK);
    CHILD_CHECK(atomic_file_create(&two, fixture_path("two"), &error) == IO_OK);
    CHILD_CHECK(atomic_file_commit(done, &error) == IO_OK);
    CHILD_CHECK(fixture_count(".tmp") == 2);
    raise(SIGTERM);
    return 1;
}

static void test_signal_handler(void **state)
{
    (void)state;
    fixture_clear();
    assert_int_equal(child_end(child_start(interrupted)), 1000 + SIGTERM);
    assert_true(fixture_exists("done"));
    assert_int_equal(fixture_count(""), 1);
}

static int child_of_writer(void)
{
    atomic_file_remove_pending();
    return CHILD_OK;
}

static void test_child_leaves_parents_files(void **state)
{
    (void)state;
    fixture_clear();
    io_error error;
    atomic_file *file;
    assert_int_equal(atomic_file_create(&file, fixture_path("x"), &error), IO_OK);
    assert_int_equal(child_end(child_start(child_of_writer)), CHILD_OK);
    assert_int_equal(atomic_file_commit(file, &error), IO_OK);
    assert_true(fixture_exists("x"));
    /* Removed by the process itself, it cannot be committed. */
    assert_int_equal(atomic_file_create(&file, fixture_path("y"), &error), IO_OK);
    atomic_file_remove_pending();
    assert_int_equal(atomic_file_commit(file, &error), IO_NOT_FOUND);
    assert_non_null(strstr(error.text, "the finished temporary file cannot be renamed to it"));
    assert_int_equal(fixture_count(""), 1);
}

/* More files at once than are registered for the handler: all work. */
static void test_many_at_once(void **state)
{
    (void)state;
    fixture_clear();
    atomic_file *files[100];
    io_error error;
    char name[16];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(atomic_file_create(&files[i], fixture_path(name), &error), IO_OK);
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(atomic_file_commit(files[i], &error), IO_OK);
    assert_int_equal(fixture_count(".tmp"), 0);
    assert_int_equal(fixture_count("f"), 100);
}

/* ---- kill -9 -------------------------------------------------------------------------------- */

#define KILLED_BYTES ((size_t)300000)

/* Writes files of one value each over and over: the value is the number of the round. */
static int write_until_killed(void)
{
    static unsigned char data[KILLED_BYTES];
    for (unsigned round = 0;; round++) {
        safetensors_writer *writer;
        io_error error;
        const int64_t elems = KILLED_BYTES;
        memset(data, (int)(round & 0xff), sizeof data);
        CHILD_CHECK(safetensors_writer_create(&writer, &error) == IO_OK);
        CHILD_CHECK(safetensors_writer_add_tensor(writer, "w", TENSOR_U8, 1, &elems, NULL,
                                                  &error) == IO_OK);
        CHILD_CHECK(safetensors_writer_begin(writer, fixture_path("x"), &error) == IO_OK);
        for (size_t at = 0; at < KILLED_BYTES; at += 10000)
            CHILD_CHECK(safetensors_writer_append(writer, 0, data + at, 10000, &error) == IO_OK);
        CHILD_CHECK(safetensors_writer_commit(writer, &error) == IO_OK);
        safetensors_writer_destroy(writer);
    }
}

/* The file, if it is there, is whole and of one round. */
static bool check_whole(void)
{
    if (!fixture_exists("x"))
        return false;
    safetensors_file *file;
    io_error error;
    if (safetensors_open(&file, fixture_path("x"), &error) != IO_OK)
        fail_msg("%s", error.text);
    static unsigned char data[KILLED_BYTES];
    assert_int_equal(safetensors_read(file, safetensors_at(file, 0), 0, data, KILLED_BYTES, &error),
                     IO_OK);
    size_t same = 0;
    for (size_t i = 0; i < KILLED_BYTES; i++)
        same += data[i] == data[0];
    assert_int_equal(same, KILLED_BYTES);
    safetensors_close(file);
    return true;
}

static void write_one(void)
{
    static unsigned char data[KILLED_BYTES];
    const int64_t elems = KILLED_BYTES;
    safetensors_writer *writer;
    io_error error;
    assert_int_equal(safetensors_writer_create(&writer, &error), IO_OK);
    assert_int_equal(safetensors_writer_add_tensor(writer, "w", TENSOR_U8, 1, &elems, NULL, &error),
                     IO_OK);
    assert_int_equal(safetensors_writer_begin(writer, fixture_path("x"), &error), IO_OK);
    assert_int_equal(safetensors_writer_append(writer, 0, data, KILLED_BYTES, &error), IO_OK);
    assert_int_equal(safetensors_writer_commit(writer, &error), IO_OK);
    safetensors_writer_destroy(writer);
}

static void test_killed_at_any_moment(void **state)
{
    (void)state;
    unsigned seed = (unsigned)fixture_number("HALFBYTE_TEST_SEED", (unsigned long)time(NULL));
    unsigned rounds = (unsigned)fixture_number("HALFBYTE_TEST_KILLS", 40);
    print_message("seed %u (HALFBYTE_TEST_SEED)\n", seed);
    srand(seed);
    size_t old = 0, none = 0, cut = 0;
    for (unsigned i = 0; i < rounds; i++) {
        fixture_clear();
        if (i % 2 == 1)
            write_one();
        pid_t pid = child_start(write_until_killed);
        usleep((useconds_t)(rand() % 20000));
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(child_end(pid), 1000 + SIGKILL);
        bool there = check_whole();
        assert_true(there || i % 2 == 0);
        old += there;
        none += !there;
        /* At most the one temporary that was being written; it hinders no later run. */
        size_t left = fixture_count(".tmp");
        assert_true(left <= 1);
        cut += left;
        assert_int_equal(fixture_count(""), (size_t)there + left);
        write_one();
        assert_true(check_whole());
        assert_int_equal(fixture_count(".tmp"), left);
    }
    print_message("%zu times a whole file, %zu times none; %zu were killed while writing\n", old,
                  none, cut);
    /* The test has shown something only if some were killed in the middle. */
    assert_true(rounds < 20 || cut > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_writers_in_turn),
        cmocka_unit_test(test_concurrent_writers),
        cmocka_unit_test(test_signal_handler),
        cmocka_unit_test(test_child_leaves_parents_files),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_killed_at_any_moment),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
