/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy engine: tensor loads and stores with every swizzle and over every edge, reductions, bulk
 * copies, multicast in a cluster, tensor maps edited on the device.
 */
#include <stdio.h>
#include <string.h>

#include "gpu/images.h"
#include "gpu/instructions.h"
#include "gpu/operand_layout.h"
#include "gpu/tests.h"
#include "gpu/tma_case.h"

enum { SMEM_BYTES = 1024 + COPY_BYTES + 64, TENSOR_BYTES = 1 << 20 };

/* Shared memory before (and, as expected, after), global memory before, and what came back. */
static uint8_t image[2 * COPY_BYTES], dump[2 * COPY_BYTES];
static uint8_t tensor[TENSOR_BYTES], result[TENSOR_BYTES];

static cuda_function kernel_of(const session *s, const char *name)
{
    return session_function(s, session_module(s, kernel_image_instructions), name, SMEM_BYTES);
}

static void bytes_draw(struct random *r, uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        const uint64_t bits = random_bits(r);
        memcpy(data + i, &bits, 8);
    }
}

/* ---- loads ---- */

static void load_run(session *s, cuda_function function, load_params *params, const char *what)
{
    uint32_t arrived = 2;
    const cuda_pointer dump_at = session_memory(s, COPY_BYTES);
    const cuda_pointer arrived_at = session_upload(s, &arrived, 4);
    params->dump = session_pointer(dump_at);
    params->arrived = session_pointer(arrived_at);
    session_launch(s, function, 1, 128, SMEM_BYTES, 1, params);
    session_download(s, dump, dump_at, COPY_BYTES);
    session_download(s, &arrived, arrived_at, 4);
    session_expect(s, what, arrived == 1);
}

typedef struct element_copy {
    const tma_case *c;
} element_copy;

static void element_load(void *context, uint32_t shared, int64_t global)
{
    const tma_case *c = ((const element_copy *)context)->c;
    if (global < 0) {
        memset(image + shared, 0, c->element);
    } else {
        memcpy(image + shared, tensor + global, c->element);
    }
}

static void tensor_load(session *s, struct random *r, cuda_function function, bool narrow)
{
    tma_case c;
    load_params params;
    char what[TMA_CASE_TEXT];
    const uint32_t rank = (uint32_t)random_between(r, 2, 3);
    memset(&params, 0, sizeof params);
    session_reset(s);
    tma_case_draw(r, &c, rank, narrow, -1);
    bytes_draw(r, tensor, c.bytes);
    bytes_draw(r, image, COPY_BYTES);
    params.map = tma_case_encode(s, &c, session_upload(s, tensor, c.bytes));
    params.image = session_pointer(session_upload(s, image, COPY_BYTES));
    memcpy(params.at, c.at, sizeof c.at);
    params.bytes = tma_case_box_bytes(&c);
    params.destination = c.shared;
    params.form = (uint32_t)(rank == 2 ? random_between(r, COPY_TMA_2D, COPY_TMA_2D_LAST)
                                       : random_between(r, COPY_TMA_3D, COPY_TMA_3D_NORMAL));
    tma_case_text(&c, what);
    session_doing(what);
    load_run(s, function, &params, what);
    element_copy copy = {&c};
    tma_case_walk(&c, element_load, &copy);
    session_compare(s, what, dump, image, 1, COPY_BYTES);
}

void gpu_test_tma_load(session *s)
{
    const cuda_function function = kernel_of(s, "test_load");
    struct random r = {s->seed};
    for (int i = 0; i < (s->quick ? 60 : 600); i++) {
        tensor_load(s, &r, function, false);
    }
}

void gpu_test_tma_narrow(session *s)
{
    const cuda_function function = kernel_of(s, "test_load");
    struct random r = {s->seed};
    for (int i = 0; i < (s->quick ? 20 : 200); i++) {
        tensor_load(s, &r, function, true);
    }
}

/* ---- stores ---- */

static void element_store(void *context, uint32_t shared, int64_t global)
{
    const tma_case *c = ((const element_copy *)context)->c;
    if (global >= 0) {
        memcpy(tensor + global, image + shared, c->element);
    }
}

static void element_add(void *context, uint32_t shared, int64_t global)
{
    float sum = 0;
    float term = 0;
    (void)context;
    if (global >= 0) {
        memcpy(&sum, tensor + global, 4);
        memcpy(&term, image + shared, 4);
        sum += term;
        memcpy(tensor + global, &sum, 4);
    }
}

/* Small whole numbers: every sum is exact. */
static void floats_draw(struct random *r, uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
        const float value = (float)random_between(r, -1000, 1000);
        memcpy(data + i, &value, 4);
    }
}

/*
 * What a store does not take, unlike a load: a box that begins before the tensor in any dimension
 * is an illegal instruction, and rows are written in whole units of 16 bytes, so they must consist
 * of them.
 */
static void store_limits(tma_case *c)
{
    const uint64_t unit = 16 / c->element;
    for (int i = 0; i < 3; i++) {
        c->at[i] = c->at[i] < 0 ? 0 : c->at[i];
    }
    c->dims[0] = c->dims[0] < unit ? unit : c->dims[0] / unit * unit;
}

static void tensor_store(session *s, struct random *r, cuda_function function, uint32_t form)
{
    tma_case c;
    store_params params;
    char what[TMA_CASE_TEXT];
    memset(&params, 0, sizeof params);
    session_reset(s);
    tma_case_draw(r, &c, form == STORE_TMA_3D ? 3 : 2, false,
                  form == STORE_REDUCE ? CUDA_TENSOR_FLOAT32 : -1);
    store_limits(&c);
    void (*draw)(struct random *, uint8_t *, size_t) =
        form == STORE_REDUCE ? floats_draw : bytes_draw;
    draw(r, tensor, c.bytes);
    draw(r, image, COPY_BYTES);
    const cuda_pointer target = session_upload(s, tensor, c.bytes);
    params.map = tma_case_encode(s, &c, target);
    params.image = session_pointer(session_upload(s, image, COPY_BYTES));
    memcpy(params.at, c.at, sizeof c.at);
    params.source = c.shared;
    params.form = form;
    tma_case_text(&c, what);
    session_doing(what);
    session_launch(s, function, 1, 128, SMEM_BYTES, 1, &params);
    session_download(s, result, target, c.bytes);
    element_copy copy = {&c};
    tma_case_walk(&c, form == STORE_REDUCE ? element_add : element_store, &copy);
    session_compare(s, what, result, tensor, 1, c.bytes);
}

static void stores(session *s, uint32_t form)
{
    const cuda_function function = kernel_of(s, "test_store");
    struct random r = {s->seed};
    for (int i = 0; i < (s->quick ? 40 : 400); i++) {
        tensor_store(s, &r, function, form);
    }
}

void gpu_test_tma_store_2d(session *s)
{
    stores(s, STORE_TMA_2D);
}

void gpu_test_tma_store_3d(session *s)
{
    stores(s, STORE_TMA_3D);
}

void gpu_test_tma_reduce(session *s)
{
    stores(s, STORE_REDUCE);
}

/* ---- bulk copies ---- */

static void bulk_load_once(session *s, struct random *r, cuda_function function)
{
    load_params params;
    memset(&params, 0, sizeof params);
    session_reset(s);
    const uint32_t skew = 16 * (uint32_t)random_below(r, 8);
    params.bytes = 16 * (uint32_t)random_between(r, 1, 2000);
    params.destination = 16 * (uint32_t)random_below(r, 2000);
    params.form = (uint32_t)random_between(r, COPY_BULK, COPY_BULK_HINT);
    bytes_draw(r, tensor, params.bytes + skew + 16);
    bytes_draw(r, image, COPY_BYTES);
    params.source =
        (uint8_t *)session_pointer(session_upload(s, tensor, params.bytes + skew)) + skew;
    params.image = session_pointer(session_upload(s, image, COPY_BYTES));
    load_run(s, function, &params, "a bulk copy arrives");
    memcpy(image + params.destination, tensor + skew, params.bytes);
    session_compare(s, "bulk load", dump, image, 1, COPY_BYTES);
}

static void bulk_store_once(session *s, struct random *r, cuda_function function)
{
    store_params params;
    memset(&params, 0, sizeof params);
    session_reset(s);
    const uint32_t skew = 16 * (uint32_t)random_below(r, 8);
    params.bytes = 16 * (uint32_t)random_between(r, 1, 2000);
    params.source = 16 * (uint32_t)random_below(r, 2000);
    params.form = STORE_BULK;
    bytes_draw(r, tensor, COPY_BYTES);
    bytes_draw(r, image, COPY_BYTES);
    const cuda_pointer target = session_upload(s, tensor, COPY_BYTES);
    params.target = (uint8_t *)session_pointer(target) + skew;
    params.image = session_pointer(session_upload(s, image, COPY_BYTES));
    session_launch(s, function, 1, 128, SMEM_BYTES, 1, &params);
    session_download(s, result, target, COPY_BYTES);
    memcpy(tensor + skew, image + params.source, params.bytes);
    session_compare(s, "bulk store", result, tensor, 1, COPY_BYTES);
}

void gpu_test_bulk(session *s)
{
    const cuda_function load = kernel_of(s, "test_load");
    const cuda_function store = kernel_of(s, "test_store");
    struct random r = {s->seed};
    for (int i = 0; i < (s->quick ? 20 : 200); i++) {
        bulk_load_once(s, &r, load);
        bulk_store_once(s, &r, store);
    }
}

/* ---- multicast ---- */

enum { CAST_BYTES = 8 * 128, CAST_COLUMNS = 256, CAST_ROWS = 40 };

/* Both blocks of each cluster get both halves: one box of 8 rows by each. */
static void multicast_once(session *s, struct random *r, cuda_function function, uint32_t bulk)
{
    enum { BLOCKS = 2 };
    static const uint32_t ranks_expected[BLOCKS * 3] = {0, 2, 1, 1, 2, 1};
    static const uint32_t arrived_expected[BLOCKS] = {1, 1};
    uint32_t ranks[BLOCKS * 3], arrived[BLOCKS];
    cluster_params params;
    tma_case c;
    memset(&params, 0, sizeof params);
    memset(&c, 0, sizeof c);
    session_reset(s);
    c = (tma_case){.type = CUDA_TENSOR_UINT8,
                   .element = 1,
                   .rank = 2,
                   .span = 128,
                   .dims = {CAST_COLUMNS, CAST_ROWS, 1},
                   .strides = {0, CAST_COLUMNS, 0},
                   .box = {128, 8, 1},
                   .bytes = CAST_COLUMNS * CAST_ROWS};
    c.at[0] = 16 * (int32_t)random_between(r, -2, (CAST_COLUMNS - 100) / 16);
    c.at[1] = (int32_t)random_between(r, -4, CAST_ROWS - 6);
    bytes_draw(r, tensor, c.bytes);
    bytes_draw(r, image, COPY_BYTES);
    const cuda_pointer source = session_upload(s, tensor, c.bytes);
    const cuda_pointer dump_at = session_memory(s, 2 * COPY_BYTES);
    const cuda_pointer ranks_at = session_memory(s, sizeof ranks);
    const cuda_pointer arrived_at = session_memory(s, sizeof arrived);
    params.map = tma_case_encode(s, &c, source);
    params.source = session_pointer(source);
    params.image = session_pointer(session_upload(s, image, COPY_BYTES));
    params.dump = session_pointer(dump_at);
    params.ranks = session_pointer(ranks_at);
    params.arrived = session_pointer(arrived_at);
    memcpy(params.at, c.at, sizeof params.at);
    params.bytes = CAST_BYTES;
    params.bulk = bulk;
    session_launch(s, function, BLOCKS, 128, SMEM_BYTES, 2, &params);
    session_download(s, dump, dump_at, 2 * COPY_BYTES);
    session_download(s, ranks, ranks_at, sizeof ranks);
    session_download(s, arrived, arrived_at, sizeof arrived);
    for (int half = 0; half < 2 && !bulk; half++, c.at[1] += 8, c.shared += CAST_BYTES) {
        element_copy copy = {&c};
        tma_case_walk(&c, element_load, &copy);
    }
    if (bulk) {
        memcpy(image, tensor, 2 * CAST_BYTES);
    }
    memcpy(image + COPY_BYTES, image, COPY_BYTES);
    session_compare(s, "multicast", dump, image, 1, 2 * COPY_BYTES);
    session_compare(s, "rank, size, remote arrival", ranks, ranks_expected, 4, BLOCKS * 3);
    session_compare(s, "both halves arrived", arrived, arrived_expected, 4, BLOCKS);
}

void gpu_test_multicast(session *s)
{
    const cuda_function function = kernel_of(s, "test_cluster");
    struct random r = {s->seed};
    for (uint32_t i = 0; i < (s->quick ? 20u : 200u); i++) {
        multicast_once(s, &r, function, i % 2);
    }
}

/* ---- a tensor map edited on the device ---- */

void gpu_test_tensormap_edit(session *s)
{
    enum { ROWS = 8, BOX = 64, BYTES = ROWS * BOX };
    const cuda_function function = kernel_of(s, "test_edit");
    struct random r = {s->seed};
    for (int i = 0; i < 20; i++) {
        uint32_t arrived = 2;
        edit_params params;
        memset(&params, 0, sizeof params);
        session_reset(s);
        tma_case c = {.type = CUDA_TENSOR_UINT8,
                      .element = 1,
                      .rank = 2,
                      .dims = {BOX, ROWS, 1},
                      .strides = {0, BOX, 0},
                      .box = {BOX, ROWS, 1},
                      .bytes = BYTES};
        const tensor_map map = tma_case_encode(s, &c, session_memory(s, BYTES));
        c.dims[0] = (uint64_t)random_between(&r, 1, 100);
        c.strides[1] = 112 + 16 * (uint64_t)random_below(&r, 10);
        c.bytes = (size_t)c.strides[1] * ROWS;
        bytes_draw(&r, tensor, c.bytes);
        const cuda_pointer dump_at = session_memory(s, BYTES);
        const cuda_pointer arrived_at = session_upload(s, &arrived, 4);
        params.map = session_pointer(session_upload(s, &map, sizeof map));
        params.address = session_pointer(session_upload(s, tensor, c.bytes));
        params.dump = session_pointer(dump_at);
        params.arrived = session_pointer(arrived_at);
        params.stride = c.strides[1];
        params.width = (uint32_t)c.dims[0];
        params.bytes = BYTES;
        session_launch(s, function, 1, 32, SMEM_BYTES, 1, &params);
        session_download(s, dump, dump_at, BYTES);
        session_download(s, &arrived, arrived_at, 4);
        session_expect(s, "a copy by an edited map arrives", arrived == 1);
        element_copy copy = {&c};
        tma_case_walk(&c, element_load, &copy);
        session_compare(s, "edited map", dump, image, 1, BYTES);
    }
}
