/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves between registers and shared memory, barriers, execution: what the emulator assumes of
 * them.
 */
#include <string.h>

#include "gpu/images.h"
#include "gpu/instructions.h"
#include "gpu/tests.h"
#include "oracle/splitmix.h"

static cuda_function kernel_of(const session *s, const char *name, unsigned smem_bytes)
{
    return session_function(s, session_module(s, kernel_image_instructions), name, smem_bytes);
}

static void bytes_draw(struct random *r, void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        ((uint8_t *)data)[i] = (uint8_t)random_bits(r);
    }
}

static cuda_pointer poisoned(session *s, size_t bytes)
{
    const cuda_pointer memory = session_memory(s, bytes);
    session_check(s, s->set_bytes(memory, 0xa5, bytes), "cuMemsetD8");
    return memory;
}

/* ---- ldmatrix, stmatrix ---- */

typedef struct matrix_case {
    uint32_t image[MATRIX_BYTES / 4];
    uint32_t rows[4][32], stored[6][32], loaded[6][32];
} matrix_case;

/* Rows at any multiple of 16; those of a store do not overlap each other. */
static void matrix_case_draw(struct random *r, matrix_case *c)
{
    bytes_draw(r, c->image, sizeof c->image);
    bytes_draw(r, c->stored, sizeof c->stored);
    for (int form = 0; form < 4; form++) {
        const uint32_t twist = (uint32_t)random_below(r, MATRIX_BYTES / 16);
        for (uint32_t lane = 0; lane < 32; lane++) {
            const uint32_t unit = form < 2 ? (uint32_t)random_below(r, MATRIX_BYTES / 16)
                                           : (lane * 37 + twist) % (MATRIX_BYTES / 16);
            c->rows[form][lane] = unit * 16;
        }
    }
}

/* Register i of lane t: word t % 4 of row t / 4 of matrix i, whose address lane 8 i + t / 4 gave.
 */
static void matrix_case_expect(matrix_case *c)
{
    for (uint32_t i = 0; i < 6; i++) {
        for (uint32_t lane = 0; lane < 32; lane++) {
            const uint32_t *rows = c->rows[i < 4 ? 0 : 1];
            c->loaded[i][lane] = c->image[rows[i % 4 * 8 + lane / 4] / 4 + lane % 4];
        }
    }
    for (uint32_t i = 0; i < 6; i++) {
        for (uint32_t lane = 0; lane < 32; lane++) {
            const uint32_t *rows = c->rows[i < 4 ? 2 : 3];
            c->image[rows[i % 4 * 8 + lane / 4] / 4 + lane % 4] = c->stored[i][lane];
        }
    }
}

void gpu_test_matrices(session *s)
{
    const cuda_function function = kernel_of(s, "test_matrices", 1024 + MATRIX_BYTES);
    struct random r = {s->seed};
    for (int round = 0; round < (s->quick ? 20 : 200); round++) {
        static matrix_case c;
        static uint32_t loaded[6][32], dump[MATRIX_BYTES / 4];
        session_reset(s);
        matrix_case_draw(&r, &c);
        const cuda_pointer loaded_at = poisoned(s, sizeof loaded);
        const cuda_pointer dump_at = poisoned(s, sizeof dump);
        matrix_params params = {session_pointer(session_upload(s, c.image, sizeof c.image)),
                                session_pointer(session_upload(s, c.rows, sizeof c.rows)),
                                session_pointer(session_upload(s, c.stored, sizeof c.stored)),
                                session_pointer(loaded_at), session_pointer(dump_at)};
        session_launch(s, function, 1, 32, 1024 + MATRIX_BYTES, 1, &params);
        session_download(s, loaded, loaded_at, sizeof loaded);
        session_download(s, dump, dump_at, sizeof dump);
        matrix_case_expect(&c);
        session_compare(s, "ldmatrix", loaded, c.loaded, 4, 6 * 32);
        session_compare(s, "stmatrix", dump, c.image, 4, MATRIX_BYTES / 4);
    }
}

/* ---- barriers ---- */

static void barrier_life(session *s)
{
    static const uint32_t expected[BARRIER_ANSWERS] = {1, 0, 0, 1, 0,          0,
                                                       0, 1, 0, 1, 0x03020100, 0x3f3e3d3c};
    uint32_t answers[BARRIER_ANSWERS];
    uint8_t source[64];
    for (int i = 0; i < 64; i++) {
        source[i] = (uint8_t)i;
    }
    const cuda_pointer at = poisoned(s, sizeof answers);
    barrier_params params = {session_pointer(session_upload(s, source, sizeof source)),
                             session_pointer(at)};
    session_launch(s, kernel_of(s, "test_barrier", 2048), 1, 32, 2048, 1, &params);
    session_download(s, answers, at, sizeof answers);
    session_compare(s, "answers of an mbarrier", answers, expected, 4, BARRIER_ANSWERS);
}

static void barriers_named(session *s)
{
    static uint32_t seen[NAMED_ROUNDS][64], expected[NAMED_ROUNDS][64];
    const cuda_pointer at = poisoned(s, sizeof seen);
    named_params params = {session_pointer(at)};
    for (uint32_t round = 0; round < NAMED_ROUNDS; round++) {
        for (uint32_t i = 0; i < 64; i++) {
            expected[round][i] = round * 1000 + 63 - i;
        }
    }
    session_launch(s, kernel_of(s, "test_named", 2048), 1, 128, 2048, 1, &params);
    session_download(s, seen, at, sizeof seen);
    session_compare(s, "values behind named barriers", seen, expected, 4, NAMED_ROUNDS * 64);
}

void gpu_test_barriers(session *s)
{
    barrier_life(s);
    barriers_named(s);
}

/* ---- execution ---- */

enum { EXECUTION_BLOCKS = 200 };

static void execution_expect(session *s, const uint32_t *out)
{
    uint32_t elected = 0;
    for (uint32_t i = 0; i < EXECUTION_BLOCKS * 384; i++, out += 8) {
        const uint32_t block = i / 384, warp = i % 384 / 32, lane = i % 32;
        const uint32_t expected[7] = {block * 65536 + EXECUTION_BLOCKS,
                                      warp,
                                      lane,
                                      (lane + 5) % 32 * 7,
                                      (lane ^ 12) * 7,
                                      1,
                                      0};
        const uint32_t got[7] = {out[0], out[1], out[2], out[4], out[5], out[6], out[7]};
        session_compare(s, "identity, shuffles, votes", got, expected, 4, 7);
        elected += out[3];
        if (lane == 31) {
            session_expect(s, "elect_one elects one lane of the warp", elected == 1);
            elected = 0;
        }
    }
}

void gpu_test_execution(session *s)
{
    const size_t bytes = (size_t)EXECUTION_BLOCKS * 384 * 8 * 4;
    uint32_t *out = session_host(bytes);
    const cuda_pointer at = poisoned(s, bytes);
    execution_params params = {session_pointer(at)};
    session_launch(s, kernel_of(s, "test_execution", 0), EXECUTION_BLOCKS, 384, 0, 1, &params);
    session_download(s, out, at, bytes);
    execution_expect(s, out);
}

/* ---- dependent grids ---- */

enum { DEPENDENT_BLOCKS = 264 };

void gpu_test_dependent(session *s)
{
    enum { COUNT = DEPENDENT_BLOCKS * 128 };
    static uint32_t got[COUNT], expected[COUNT];
    const cuda_function function = kernel_of(s, "test_dependent", 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        expected[i] = i;
        for (int round = 0; round < 20000; round++) {
            expected[i] = expected[i] * 1664525u + 1013904223u;
        }
    }
    for (int round = 0; round < (s->quick ? 5 : 50); round++) {
        session_reset(s);
        const cuda_pointer data = poisoned(s, sizeof got);
        const cuda_pointer copy = poisoned(s, sizeof got);
        for (uint32_t second = 0; second < 2; second++) {
            dependent_params params = {session_pointer(data), session_pointer(copy), second};
            const gpu_launch launch = {function, DEPENDENT_BLOCKS, 128, 0, 1, (int)second, NULL};
            const cuda_status status = gpu_launch_kernel(s->device, &launch, &params);
            session_expect(s, status.text, status.status == HALFBYTE_SUCCESS);
        }
        session_wait(s);
        session_download(s, got, copy, sizeof got);
        session_compare(s, "what the second grid read", got, expected, 4, COUNT);
    }
}

/* ---- cp.async ---- */

void gpu_test_cp_async(session *s)
{
    static uint8_t source[4096], dump[4096];
    const cuda_function function = kernel_of(s, "test_cp_async", 8192);
    struct random r = {s->seed};
    for (int round = 0; round < 20; round++) {
        uint32_t arrived = 0;
        session_reset(s);
        bytes_draw(&r, source, sizeof source);
        const cuda_pointer dump_at = poisoned(s, sizeof dump);
        const cuda_pointer arrived_at = poisoned(s, 4);
        cp_async_params params = {session_pointer(session_upload(s, source, sizeof source)),
                                  session_pointer(dump_at), session_pointer(arrived_at)};
        session_launch(s, function, 1, 128, 8192, 1, &params);
        session_download(s, dump, dump_at, sizeof dump);
        session_download(s, &arrived, arrived_at, 4);
        session_compare(s, "cp.async", dump, source, 1, sizeof dump);
        session_expect(s, "cp.async arrives on its barrier", arrived == 1);
    }
}
