/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels that pack int4 weights on the emulator: launched as a GPU would be, equal to the CPU
 * in every byte of the images, and nothing to report.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/weights.h"
#include "emulator/emulator.h"
#include "gpu/pack_case.h"

#define PACKER_ROW(name, threads, smem_bytes) void name(const void *params);
#include "api/pack_kernels.def"
#undef PACKER_ROW

typedef void kernel_function(const void *params);

enum { PACKERS = KERNEL_ALL - KERNEL_QUANTIZERS_END };

static kernel_function *const functions[PACKERS] = {
#define PACKER_ROW(name, threads, smem_bytes) name,
#include "api/pack_kernels.def"
#undef PACKER_ROW
};

static int launches_seen[PACKERS];
static uint32_t clusters_seen;
static int64_t bytes_compared;
static int rounds = 1; /* the program's argument */

/* ---- launches -------------------------------------------------------------------------------- */

typedef struct emulation {
    emu_config config;
    emu_memory *memory;
    emu_report *report;
} emulation;

static emulation emulation_start(int number)
{
    emulation e = {emu_config_default(), emu_memory_create(), emu_report_create()};
    assert_non_null(e.memory);
    assert_non_null(e.report);
    e.config.order = (emu_order)(number % EMU_ORDER_COUNT);
    e.config.policy = (emu_policy)(number % EMU_POLICY_COUNT);
    e.config.starved_warp = number % 4;
    e.config.seed = (uint64_t)number;
    return e;
}

static void emulation_end(emulation *e)
{
    if (emu_report_count(e->report) != 0) {
        emu_report_print(e->report, &e->config, stderr);
    }
    assert_int_equal(emu_report_count(e->report), 0);
    emu_report_destroy(e->report);
    emu_memory_destroy(e->memory);
}

static void launch_run(emulation *e, const pack_launch *one)
{
    const kernel_row *row = &kernel_table[one->kernel];
    const emu_launch launch = {.name = row->name,
                               .kernel = functions[one->kernel - KERNEL_QUANTIZERS_END],
                               .params = &one->params,
                               .params_bytes = sizeof one->params,
                               .blocks = one->blocks,
                               .cluster = one->cluster,
                               .threads = row->threads,
                               .smem_bytes = one->smem_bytes};
    assert_true(one->smem_bytes <= row->smem_bytes);
    assert_int_equal(one->blocks % one->cluster, 0);
    clusters_seen |= one->cluster;
    if (one->blocks > 0) {
        assert_int_equal(emu_run(&e->config, e->memory, &launch, 1, e->report), EMU_OK);
        launches_seen[one->kernel - KERNEL_QUANTIZERS_END]++;
    }
}

/* The tensors of a case as halfbyte_pack_weights() sees them. */
static pack_tensors tensors_of(const pack_case *c, uint8_t *plain, uint8_t *packed, bool unpack)
{
    weights_call call;
    assert_int_equal(weights_desc_check(&call, &c->desc, true), HALFBYTE_SUCCESS);
    if (unpack) {
        assert_int_equal(weights_headers_agree(&call, &c->header), HALFBYTE_SUCCESS);
    }
    assert_int_equal(weights_tensors_check(&call, plain, "plain", packed, SIZE_MAX, unpack),
                     HALFBYTE_SUCCESS);
    return weights_tensors(&call);
}

/* In place the first word is the flag's, as in weights_gpu.c. */
static bool flag_find(emulation *e, const pack_tensors *tensors)
{
    uint32_t *flag = (uint32_t *)(void *)tensors->packed;
    const uint32_t kept = *flag;
    const bool in_place = tensors->packed == tensors->plain;
    bool first = false;
    pack_launch scan;
    assert_int_equal(pack_launch_scan(tensors, flag, &scan), HALFBYTE_SUCCESS);
    *flag = 0;
    launch_run(e, &scan);
    bool found = *flag != 0;
    assert_true(*flag <= 1);
    if (in_place) {
        *flag = kept;
        int4_rows_hold_minus8(&kept, tensors->form, 4, 1, 8, &first);
        found = found || first;
    }
    return found;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void pack_check(const pack_case *c, int number)
{
    const pack_image *image = c->in_place ? &c->plain : &c->packed;
    emulation e = emulation_start(number);
    uint8_t *bytes = aligned_alloc(256, (image->size + 255) / 256 * 256);
    uint8_t *packed = bytes + image->data_at;
    pack_launch launch;
    assert_non_null(bytes);
    memcpy(bytes, image->bytes, image->size);
    uint8_t *plain = c->in_place ? packed : c->plain.bytes + c->plain.data_at;
    assert_true(emu_memory_add(e.memory, packed, image->data_size, "packed", EMU_READ_WRITE));
    if (!c->in_place) {
        assert_true(emu_memory_add(e.memory, plain, c->plain.data_size, "plain", EMU_READ_ONLY));
    }
    pack_tensors tensors = tensors_of(c, plain, packed, false);
    if (flag_find(&e, &tensors)) {
        tensors.shape.flags |= INT4_PACKED_HOLDS_MINUS8;
    }
    assert_int_equal(tensors.shape.flags, c->header.flags);
    assert_int_equal(pack_launch_make(&tensors, false, &launch), HALFBYTE_SUCCESS);
    launch_run(&e, &launch);
    assert_memory_equal(bytes, c->packed_expected, image->size);
    bytes_compared += (int64_t)image->data_size;
    emulation_end(&e);
    free(bytes);
}

static void unpack_check(const pack_case *c, int number)
{
    const pack_image *image = c->in_place ? &c->plain : &c->packed;
    emulation e = emulation_start(number);
    uint8_t *bytes = aligned_alloc(256, (c->plain.size + 255) / 256 * 256);
    uint8_t *plain = bytes + c->plain.data_at;
    pack_launch launch;
    assert_non_null(bytes);
    memset(bytes, PACK_POISON, c->plain.size);
    if (c->in_place) {
        memcpy(bytes, c->packed_expected, c->plain.size);
    }
    uint8_t *packed = c->in_place ? plain : c->packed_expected + image->data_at;
    assert_true(emu_memory_add(e.memory, plain, c->plain.data_size, "plain", EMU_READ_WRITE));
    if (!c->in_place) {
        assert_true(emu_memory_add(e.memory, packed, image->data_size, "packed", EMU_READ_ONLY));
    }
    const pack_tensors tensors = tensors_of(c, plain, packed, true);
    assert_int_equal(pack_launch_make(&tensors, true, &launch), HALFBYTE_SUCCESS);
    launch_run(&e, &launch);
    assert_memory_equal(bytes, c->plain_expected, c->plain.size);
    bytes_compared += (int64_t)c->plain.data_size;
    emulation_end(&e);
    free(bytes);
}

static void case_check(struct random *r, int number, pack_shape shape)
{
    pack_case c;
    pack_case_make(&c, r, (halfbyte_int4_layout)(number % 3),
                   (pack_minus8)(number / 3 % PACK_MINUS8_KINDS), shape);
    pack_check(&c, number);
    unpack_check(&c, number);
    pack_case_free(&c);
}

/* Every layout and kind, each time under another order, policy and seed. */
static void test_shapes(void **state)
{
    static const pack_shape shapes[] = {
        {1, 1, 1, 0, false, false, false},    {2, 65, 129, 0, false, false, false},
        {1, 64, 600, 96, false, true, false}, {2, 100, 520, 0, false, true, false},
        {3, 7, 250, 32, false, false, false}, {1, 80, 288, 64, true, true, false},
        {2, 32, 161, 0, true, false, false},
    };
    enum { SHAPES = sizeof shapes / sizeof shapes[0], KINDS = 3 * PACK_MINUS8_KINDS };
    struct random r = {5};
    (void)state;
    for (int i = 0; i < SHAPES * KINDS * rounds; i++) {
        case_check(&r, i, shapes[i / KINDS % SHAPES]);
    }
}

static void test_random(void **state)
{
    struct random r = {17};
    (void)state;
    for (int i = 0; i < 60 * rounds; i++) {
        case_check(&r, i, pack_shape_draw(&r, 130, 700));
    }
}

/* Panels that one block keeps, and two, four and eight; whole slots and not. */
static void test_in_place(void **state)
{
    static const pack_shape shapes[] = {
        {2, 128, 128, 0, false, true, true}, {1, 64, 1792, 0, false, true, true},
        {2, 64, 1920, 0, false, true, true}, {1, 64, 5248, 0, false, true, true},
        {1, 64, 7296, 0, false, true, true},
    };
    enum { SHAPES = sizeof shapes / sizeof shapes[0], KINDS = 3 * PACK_MINUS8_KINDS };
    struct random r = {7};
    (void)state;
    for (int i = 0; i < SHAPES * KINDS * rounds; i++) {
        case_check(&r, i, shapes[i % SHAPES]);
    }
    assert_int_equal(clusters_seen, 1 | 2 | 4 | 8);
}

/* Words that no packing makes are decoded alike. */
static void test_any_words(void **state)
{
    struct random r = {23};
    (void)state;
    for (int i = 0; i < 12; i++) {
        pack_case c;
        pack_case_make(&c, &r, (halfbyte_int4_layout)(i % 3), (pack_minus8)(i / 3 % 2),
                       (pack_shape){1, 64, 256, 0, false, true, false});
        uint8_t *packed = c.packed_expected + c.packed.data_at;
        for (size_t at = 0; at < c.packed.data_size; at++) {
            packed[at] = (uint8_t)random_bits(&r);
        }
        assert_int_equal(halfbyte_unpack_weights(NULL, &c.header, packed, c.packed.data_size,
                                                 &c.desc, c.plain_expected + c.plain.data_at, NULL),
                         HALFBYTE_SUCCESS);
        unpack_check(&c, i);
        pack_case_free(&c);
    }
}

/* In place nothing but the cluster's barrier keeps a block from writing what another has not read.
 * The emulator has no clocks for global memory, so that the bytes must show it: without either half
 * of the barrier they are wrong under some order. */
static int barrier_line(void)
{
    char line[256];
    int number = 1;
    FILE *file = fopen(PACK_WEIGHTS_H, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL && strstr(line, "cluster_sync();") == NULL) {
        number++;
    }
    assert_int_equal(fclose(file), 0);
    return number;
}

static bool mutant_shows(const pack_case *c, const char *instruction, int number)
{
    emulation e = emulation_start(number);
    uint8_t *bytes = aligned_alloc(256, (c->plain.size + 255) / 256 * 256);
    uint8_t *plain = bytes + c->plain.data_at;
    pack_launch launch;
    assert_non_null(bytes);
    memcpy(bytes, c->plain.bytes, c->plain.size);
    assert_true(emu_memory_add(e.memory, plain, c->plain.data_size, "plain", EMU_READ_WRITE));
    const pack_tensors tensors = tensors_of(c, plain, plain, false);
    assert_int_equal(pack_launch_make(&tensors, false, &launch), HALFBYTE_SUCCESS);
    e.config.mutate_file = PACK_WEIGHTS_H;
    e.config.mutate_line = barrier_line();
    e.config.mutate_instruction = instruction;
    e.config.mutation = EMU_MUTATE_REMOVE;
    launch_run(&e, &launch);
    const bool shows =
        emu_report_count(e.report) > 0 || memcmp(bytes, c->packed_expected, c->plain.size) != 0;
    emu_report_destroy(e.report);
    emu_memory_destroy(e.memory);
    free(bytes);
    return shows;
}

static void test_mutants(void **state)
{
    struct random r = {31};
    pack_case c;
    (void)state;
    pack_case_make(&c, &r, HALFBYTE_INT4_INT8_LOW_FIRST, PACK_MINUS8_NONE,
                   (pack_shape){1, 64, 2048, 0, false, true, true});
    int arrives = 0, waits = 0;
    for (int i = 0; i < (int)EMU_ORDER_COUNT; i++) {
        arrives += mutant_shows(&c, "cluster_arrive", i);
        waits += mutant_shows(&c, "cluster_wait", i);
    }
    assert_true(arrives > 0 && waits > 0);
    pack_case_free(&c);
}

/* An offset alone makes atoms, of zeros; a panel that no cluster keeps is refused. */
static void test_limits(void **state)
{
    struct random r = {29};
    pack_tensors tensors = {.shape = {1, 64, INT64_C(57344), 0, 0}, .row_bytes = 28672};
    pack_launch launch;
    (void)state;
    case_check(&r, 0, (pack_shape){1, 3, 0, 96, false, true, false});
    assert_int_equal(pack_launch_make(&tensors, false, &launch), HALFBYTE_SUCCESS);
    assert_true(launch.cluster == 8 && launch.smem_bytes == kernel_table[launch.kernel].smem_bytes);
    tensors.shape.k += 128;
    assert_int_equal(pack_launch_make(&tensors, true, &launch), HALFBYTE_ERR_UNSUPPORTED);
    assert_non_null(strstr(halfbyte_last_error(), "desc.k = 57472: in place"));
}

static void test_everything_ran(void **state)
{
    (void)state;
    for (int i = 0; i < PACKERS; i++) {
        assert_true(launches_seen[i] > 0);
    }
    assert_true(bytes_compared > 1000000);
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),         cmocka_unit_test(test_random),
        cmocka_unit_test(test_in_place),       cmocka_unit_test(test_any_words),
        cmocka_unit_test(test_mutants),        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_everything_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
