/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor copies both ways: boxes in and out of bounds, every swizzle and element size, against
 * formulas by row and chunk; reductions; what a tensor map refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "emulator/emulator.h"
#include "emulator/unit/all_schedules.h"
#include "emulator/unit/draw.h"
#include "kernels/hopper/hopper.h"

enum { TENSOR_BYTES = 1 << 16, BOX_MAX = 1 << 15, SMEM_BYTES = BOX_MAX + 2048 };

typedef struct copy_params {
    tensor_map from, to;
    int32_t at[3];    /* of the load */
    int32_t to_at[3]; /* of the store */
    uint32_t rank, bytes, footprint;
    uint32_t add;
    uint32_t *image; /* of shared memory after the load */
} copy_params;

KERNEL(copy_kernel, copy_params, p, 64)
{
    const smem_addr base = smem_base();
    const smem_addr bar = base + BOX_MAX;
    uint32_t i;
    if (thread_index() == 0) {
        mbarrier_init(bar, 1);
        fence_mbarrier_init();
    }
    block_sync();
    if (thread_index() == 0) {
        mbarrier_arrive_expect_tx(bar, p->bytes);
        if (p->rank == 2) {
            tma_load_2d(base, &p->from, bar, p->at[0], p->at[1]);
        } else {
            tma_load_3d(base, &p->from, bar, p->at[0], p->at[1], p->at[2]);
        }
    }
    mbarrier_wait(bar, 0);
    for (i = thread_index(); i < p->footprint / 4; i += 64) {
        global_store_u32(p->image + i, smem_load_u32(base + i * 4u));
    }
    if (thread_index() == 0) {
        if (p->add) {
            tma_reduce_add_2d(&p->to, base, p->to_at[0], p->to_at[1]);
        } else if (p->rank == 2) {
            tma_store_2d(&p->to, base, p->to_at[0], p->to_at[1]);
        } else {
            tma_store_3d(&p->to, base, p->to_at[0], p->to_at[1], p->to_at[2]);
        }
        bulk_commit();
        bulk_wait(0);
    }
}

static _Alignas(128) uint8_t source[TENSOR_BYTES], target[TENSOR_BYTES], expected[TENSOR_BYTES];
static _Alignas(128) uint8_t image[BOX_MAX], expected_image[BOX_MAX];

typedef struct shape {
    uint32_t element, rank, swizzle;
    uint32_t dims[3], box[3];
    uint32_t strides[3]; /* bytes */
} shape;

static emu_tensor tensor_of(const shape *s, const void *data)
{
    emu_tensor tensor = {
        .data = data, .element_bytes = s->element, .rank = s->rank, .swizzle = s->swizzle};
    for (uint32_t i = 0; i < s->rank; i++) {
        tensor.dims[i] = s->dims[i];
        tensor.box[i] = s->box[i];
        tensor.strides_bytes[i] = s->strides[i];
    }
    return tensor;
}

/* Byte offset in the tensor of element (x, y, z), -1 if that is outside. */
static long tensor_offset(const shape *s, int x, int y, int z)
{
    if (x < 0 || y < 0 || z < 0 || x >= (int)s->dims[0] || y >= (int)s->dims[1] ||
        (s->rank == 3 && z >= (int)s->dims[2]) || (s->rank < 3 && z != 0)) {
        return -1;
    }
    return (long)x * (long)s->element + (long)y * (long)s->strides[1] +
           (s->rank == 3 ? (long)z * (long)s->strides[2] : 0);
}

static uint32_t box_planes(const shape *s)
{
    return s->rank == 3 ? s->box[2] : 1;
}

static uint32_t pitch_of(const shape *s)
{
    static const uint32_t spans[] = {0, 128, 64, 32};
    return s->swizzle != 0 ? spans[s->swizzle] : s->box[0] * s->element;
}

static uint32_t image_offset(const shape *s, uint32_t row, uint32_t byte)
{
    const uint32_t chunk = byte / 16;
    const uint32_t phase = s->swizzle == SWIZZLE_128B  ? row % 8
                           : s->swizzle == SWIZZLE_64B ? row / 2 % 4
                           : s->swizzle == SWIZZLE_32B ? row / 4 % 2
                                                       : 0;
    return row * pitch_of(s) + (chunk ^ phase) * 16 + byte % 16;
}

static void add_element(uint8_t *to, const uint8_t *from)
{
    float a, b;
    memcpy(&a, to, 4);
    memcpy(&b, from, 4);
    a += b;
    memcpy(to, &a, 4);
}

/* What the load makes of shared memory and the store of the target, a tensor of shape t. */
static void expect(const shape *s, const shape *t, const copy_params *p)
{
    memset(expected_image, 0xff, sizeof expected_image);
    memcpy(expected, target, sizeof expected);
    for (uint32_t z = 0; z < box_planes(s); z++) {
        for (uint32_t y = 0; y < s->box[1]; y++) {
            for (uint32_t x = 0; x < s->box[0]; x++) {
                uint8_t *cell = expected_image + image_offset(s, z * s->box[1] + y, x * s->element);
                const long from =
                    tensor_offset(s, p->at[0] + (int)x, p->at[1] + (int)y, p->at[2] + (int)z);
                const long to = tensor_offset(t, p->to_at[0] + (int)x, p->to_at[1] + (int)y,
                                              p->to_at[2] + (int)z);
                memset(cell, 0, s->element);
                if (from >= 0) {
                    memcpy(cell, source + from, s->element);
                }
                if (to >= 0 && p->add) {
                    add_element(expected + to, cell);
                } else if (to >= 0) {
                    memcpy(expected + to, cell, s->element);
                }
            }
        }
    }
}

static void draw_shape(uint64_t *random, shape *s, bool add)
{
    static const uint32_t spans[] = {256, 128, 64, 32};
    s->element = add ? 4 : 1u << draw_below(random, 4);
    s->rank = add ? 2 : 2 + draw_below(random, 2);
    s->swizzle = draw_below(random, 4);
    const uint32_t row_max = spans[s->swizzle] / 16;
    const uint32_t elements_max = 256 / (16 / (s->element > 16 ? 16 : s->element));
    uint32_t chunks = 1 + draw_below(random, row_max);
    if (chunks > elements_max) {
        chunks = elements_max;
    }
    s->box[0] = chunks * 16 / s->element;
    s->box[1] = 1 + draw_below(random, 20);
    s->box[2] = s->rank == 3 ? 1 + draw_below(random, 4) : 0;
    s->dims[0] = 1 + draw_below(random, 200 / s->element + 4);
    s->dims[1] = 1 + draw_below(random, 24);
    s->dims[2] = s->rank == 3 ? 1 + draw_below(random, 4) : 0;
    s->strides[1] = (s->dims[0] * s->element + 15) / 16 * 16 + 16 * draw_below(random, 3);
    s->strides[2] = s->strides[1] * (s->dims[1] + draw_below(random, 2));
}

/* A box inside, over either edge or quite outside; along rows at a multiple of 16 bytes.  That of a
 * store does not begin before the tensor. */
static void draw_place(uint64_t *random, const shape *s, bool store, int32_t at[3])
{
    const int32_t unit = (int32_t)(16 / s->element);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t box = i < s->rank ? s->box[i] : 0, dim = i < s->rank ? s->dims[i] : 0;
        at[i] = i < s->rank ? (int32_t)draw_below(random, box + dim + 2) - (int32_t)box - 1 : 0;
        at[i] = store && at[i] < 0 ? 0 : at[i];
    }
    at[0] = at[0] / unit * unit;
}

static void run_one(uint64_t *random, emu_memory *memory, emu_report *report, int index)
{
    shape s;
    copy_params p;
    const bool add = index % 5 == 4;
    memset(&p, 0, sizeof p);
    memset(&s, 0, sizeof s);
    draw_shape(random, &s, add);
    draw_place(random, &s, false, p.at);
    draw_place(random, &s, true, p.to_at);
    shape t = s; /* rows of a store's tensor are whole units of 16 bytes */
    t.dims[0] = (s.dims[0] * s.element + 15) / 16 * 16 / s.element;
    const emu_tensor from = tensor_of(&s, source), to = tensor_of(&t, target);
    assert_true(emu_tensor_map_encode(&p.from, &from));
    assert_true(emu_tensor_map_encode(&p.to, &to));
    p.rank = s.rank;
    p.bytes = s.box[0] * s.element * s.box[1] * box_planes(&s);
    p.footprint = pitch_of(&s) * s.box[1] * box_planes(&s);
    p.add = add;
    p.image = (uint32_t *)(void *)image;
    for (uint32_t i = 0; i < TENSOR_BYTES; i++) {
        const bool number = add && i % 4 >= 2; /* floats of moderate size */
        source[i] = number ? (uint8_t)(0x3f + i % 4) : (uint8_t)draw(random);
        target[i] = number ? (uint8_t)(0x3f + i % 4) : (uint8_t)draw(random);
    }
    expect(&s, &t, &p);
    const emu_launch launch = {"copy", copy_kernel, &p, sizeof p, 1, 1, 64, SMEM_BYTES, 0};
    const emu_config config = schedule_numbered(index % ALL_SCHEDULES, (uint64_t)index, NULL, 0);
    emu_report_clear(report);
    assert_int_equal(emu_run(&config, memory, &launch, 1, report), EMU_OK);
    emu_report_print(report, &config, stderr);
    assert_int_equal(emu_report_count(report), 0);
    assert_memory_equal(image, expected_image, p.footprint);
    assert_memory_equal(target, expected, sizeof target);
}

static void test_boxes(void **state)
{
    (void)state;
    emu_memory *memory = emu_memory_create();
    emu_report *report = emu_report_create();
    uint64_t random = 11;
    assert_true(emu_memory_add(memory, source, sizeof source, "source", EMU_READ_ONLY));
    assert_true(emu_memory_add(memory, target, sizeof target, "target", EMU_READ_WRITE));
    assert_true(emu_memory_add(memory, image, sizeof image, "image", EMU_READ_WRITE));
    for (int i = 0; i < 600; i++) {
        run_one(&random, memory, report, i);
    }
    emu_report_destroy(report);
    emu_memory_destroy(memory);
}

/* A row that ends inside a unit of 16 bytes is written beyond the tensor: a fault of the kernel. */
static void test_part_of_a_unit(void **state)
{
    (void)state;
    emu_memory *memory = emu_memory_create();
    emu_report *report = emu_report_create();
    assert_true(emu_memory_add(memory, source, sizeof source, "source", EMU_READ_ONLY));
    assert_true(emu_memory_add(memory, target, sizeof target, "target", EMU_READ_WRITE));
    assert_true(emu_memory_add(memory, image, sizeof image, "image", EMU_READ_WRITE));
    for (uint32_t columns = 1; columns <= 32; columns++) {
        const shape s = {1, 2, SWIZZLE_NONE, {columns, 4, 0}, {16, 4, 0}, {1, 32, 0}};
        const emu_tensor from = tensor_of(&s, source), to = tensor_of(&s, target);
        copy_params p = {
            .rank = 2, .bytes = 64, .footprint = 64, .image = (uint32_t *)(void *)image};
        p.to_at[0] = columns > 16 ? 16 : 0;
        assert_true(emu_tensor_map_encode(&p.from, &from) && emu_tensor_map_encode(&p.to, &to));
        const emu_launch launch = {"copy", copy_kernel, &p, sizeof p, 1, 1, 64, SMEM_BYTES, 0};
        const emu_config config = schedule_numbered(0, 1, NULL, 0);
        emu_report_clear(report);
        assert_int_equal(emu_run(&config, memory, &launch, 1, report), EMU_OK);
        assert_int_equal(emu_report_count(report), columns % 16 != 0);
    }
    emu_report_destroy(report);
    emu_memory_destroy(memory);
}

static void test_refusals(void **state)
{
    (void)state;
    const emu_tensor good = {source, 2, 2, {64, 16}, {0, 128}, {64, 8}, SWIZZLE_128B};
    tensor_map map, before;
    memset(&before, 0x3c, sizeof before);
    assert_true(emu_tensor_map_encode(&map, &good));
    emu_tensor bad[14];
    for (int i = 0; i < 14; i++) {
        bad[i] = good;
    }
    bad[0].data = source + 8;
    bad[1].element_bytes = 3;
    bad[2].rank = 0;
    bad[3].rank = 4;
    bad[4].dims[1] = 0;
    bad[5].dims[0] = ((uint64_t)1 << 32) + 1;
    bad[6].strides_bytes[1] = 136;
    bad[7].strides_bytes[1] = (uint64_t)1 << 40;
    bad[8].box[1] = 257;
    bad[9].box[0] = 0;
    bad[10].box[0] = 68; /* 136 bytes: no multiple of 16 */
    bad[11].box[0] = 72; /* 144 bytes: more than the swizzle's span */
    bad[12].swizzle = 4;
    bad[13].data = NULL;
    for (int i = 0; i < 14; i++) {
        map = before;
        assert_false(emu_tensor_map_encode(&map, &bad[i]));
        assert_memory_equal(&map, &before, sizeof map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_boxes),
                                       cmocka_unit_test(test_part_of_a_unit),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
