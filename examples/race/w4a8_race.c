/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fault that went into production: sums are scaled while the tensor core still adds to them
 * (sgl-project/sglang#10572).  On a GPU it failed for some shapes and drivers only, tests with
 * tolerances passed, compiler and sanitizers were silent.  The emulator names the line.
 *
 *     w4a8_race            the two faulty loops and the corrected one, under every schedule
 *
 * Exit status 0 if the faulty ones are reported and the corrected one is clean and exact.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <halfbyte/emulator.h>

/* In the steady state of the original: the wait leaves three of the four groups pending. */
#define W4A8_NAME w4a8_wait_3
#define W4A8_WAIT(tile) wgmma_wait(3)
#include "w4a8_loop.h"

/* In its first tile: no wait at all. */
#define W4A8_NAME w4a8_first_tile
#define W4A8_WAIT(tile)                                                                            \
    if ((tile) != 0)                                                                               \
    wgmma_wait(0)
#include "w4a8_loop.h"

#define W4A8_NAME w4a8_correct
#define W4A8_WAIT(tile) wgmma_wait(0)
#include "w4a8_loop.h"

enum { TILES = 5, CHANNELS = 64, TOKENS = 8, K = TILES * 128 };

typedef struct example {
    int weight[CHANNELS][K]; /* -7 .. 7 */
    int token[TOKENS][K];    /* -4 .. 4 */
    uint8_t *x;              /* token as e4m3 */
    uint32_t *w;             /* weight as the kernel wants it */
    float *w_scale;
    float *d;
    emu_memory *memory;
    w4a8_params params;
} example;

/* e4m3 of an integer 0 .. 4 */
static const uint8_t e4m3_small[5] = {0x00, 0x38, 0x40, 0x44, 0x48};

static void fill(example *e)
{
    uint32_t state = 1;
    for (int i = 0; i < CHANNELS * K; i++) {
        state = state * 1664525u + 1013904223u;
        e->weight[i / K][i % K] = (int)(state >> 24) % 15 - 7;
    }
    for (int i = 0; i < TOKENS * K; i++) {
        state = state * 1664525u + 1013904223u;
        const int value = (int)(state >> 24) % 9 - 4;
        e->token[i / K][i % K] = value;
        e->x[i] = (uint8_t)(value < 0 ? 0x80 | e4m3_small[-value] : e4m3_small[value]);
    }
    for (int i = 0; i < TILES * CHANNELS; i++) {
        e->w_scale[i] = i % 3 == 0 ? 512.0f : 256.0f; /* 512 makes up for the 2^-9 */
    }
}

/* Word `word` of k step `step` for `thread`: registers 2 * word (low nibbles) and 2 * word + 1
 * (high nibbles) of the wgmma's A fragment. */
static uint32_t pack_word(const example *e, int tile, int thread, int step, int word)
{
    uint32_t packed = 0;
    for (int half = 0; half < 2; half++) {
        for (int byte = 0; byte < 4; byte++) {
            const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * half;
            const int k = tile * 128 + step * 32 + word * 16 + thread % 4 * 4 + byte;
            const int value = e->weight[row][k];
            const uint32_t nibble = value < 0 ? 8u | (uint32_t)-value : (uint32_t)value;
            packed |= nibble << (8 * byte + 4 * half);
        }
    }
    return packed;
}

static void pack(example *e)
{
    for (int i = 0; i < TILES * 1024; i++) {
        e->w[i] = pack_word(e, i / 1024, i % 1024 / 8, i % 8 / 2, i % 2);
    }
}

static int prepare(example *e)
{
    e->x = aligned_alloc(128, TOKENS * K);
    e->w = aligned_alloc(128, TILES * W_BYTES);
    e->w_scale = aligned_alloc(128, TILES * CHANNELS * sizeof(float));
    e->d = aligned_alloc(128, CHANNELS * TOKENS * sizeof(float));
    e->memory = emu_memory_create();
    if (!e->x || !e->w || !e->w_scale || !e->d || !e->memory) {
        return 0;
    }
    fill(e);
    pack(e);
    e->params.w = e->w;
    e->params.w_scale = e->w_scale;
    e->params.d = e->d;
    e->params.tiles = TILES;
    const emu_tensor x = {.data = e->x,
                          .element_bytes = 1,
                          .rank = 2,
                          .dims = {K, TOKENS},
                          .strides_bytes = {0, K},
                          .box = {128, TOKENS},
                          .swizzle = SWIZZLE_128B};
    return emu_tensor_map_encode(&e->params.x, &x) &&
           emu_memory_add(e->memory, e->x, TOKENS * K, "x", EMU_READ_ONLY) &&
           emu_memory_add(e->memory, e->w, TILES * W_BYTES, "w", EMU_READ_ONLY) &&
           emu_memory_add(e->memory, e->w_scale, TILES * CHANNELS * sizeof(float), "w_scale",
                          EMU_READ_ONLY) &&
           emu_memory_add(e->memory, e->d, CHANNELS * TOKENS * sizeof(float), "d", EMU_READ_WRITE);
}

/* Elements of d that are not the exact sums; all values here are small multiples of 1/2. */
static int wrong_elements(const example *e)
{
    int wrong = 0;
    for (int i = 0; i < CHANNELS * TOKENS; i++) {
        const int row = i / TOKENS, token = i % TOKENS;
        float sum = 0.0f;
        for (int k = 0; k < K; k++) {
            sum += e->w_scale[k / 128 * CHANNELS + row] / 512.0f *
                   (float)(e->weight[row][k] * e->token[token][k]);
        }
        wrong += !(e->d[i] == sum);
    }
    return wrong;
}

/* Runs a kernel under every policy and order, prints the first report; 1 if all is as it should be.
 */
static int examine(example *e, const char *what, void (*kernel)(const void *), int faulty)
{
    int schedules = 0, reported = 0, inexact = 0;
    emu_report *report = emu_report_create();
    if (report == NULL) {
        return 0;
    }
    printf("%s\n", what);
    for (int policy = 0; policy < EMU_POLICY_COUNT; policy++) {
        for (int order = 0; order < EMU_ORDER_COUNT; order++) {
            const emu_launch launch = {
                what, kernel, &e->params, sizeof e->params, 1, 1, W4A8_THREADS, W4A8_SMEM_BYTES, 0};
            emu_config config = emu_config_default();
            config.policy = (emu_policy)policy;
            config.order = (emu_order)order;
            config.starved_warp = 4;
            config.seed = 1;
            if (config.policy == EMU_DELAY_SITE) {
                continue; /* that takes a site; halfbyte race goes through all */
            }
            emu_report_clear(report);
            memset(e->d, 0xff, CHANNELS * TOKENS * sizeof(float));
            const emu_status status = emu_run(&config, e->memory, &launch, 1, report);
            schedules++;
            inexact += status != EMU_OK || wrong_elements(e) != 0;
            if (emu_report_count(report) > 0 && reported++ == 0) {
                emu_report_print(report, &config, stdout);
            }
        }
    }
    emu_report_destroy(report);
    printf("reported under %d of %d schedules\n\n", reported, schedules);
    if (faulty) {
        return reported == schedules;
    }
    printf("results of the corrected loop that are not exact: %d\n", inexact);
    return reported == 0 && inexact == 0;
}

int main(void)
{
    static example e;
    if (!prepare(&e)) {
        fputs("out of memory\n", stderr);
        return 2;
    }
    int good = 1;
    good &= examine(&e, "scaled after wgmma_wait(3) instead of wgmma_wait(0)", w4a8_wait_3, 1);
    good &= examine(&e, "scaled without a wait in the first tile", w4a8_first_tile, 1);
    good &= examine(&e, "corrected", w4a8_correct, 0);
    emu_memory_destroy(e.memory);
    free(e.x);
    free(e.w);
    free(e.w_scale);
    free(e.d);
    return good ? 0 : 1;
}
