/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small kernel of somebody else, on the emulator: multiplies rows of 256 floats by a scale each.
 * Rows come by bulk copies into two buffers, are scaled, and go out by bulk copies from a third.
 *
 *     scale_rows           runs it under every schedule
 *
 * With -DFORGET_WAIT the staging buffer is filled again although the copy out of it may not have
 * read it; then the emulator says so, and the exit status is 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <halfbyte/emulator.h>
#include <halfbyte/hopper.h>

typedef struct scale_params {
    const float *in;    /* [rows, 256] */
    const float *scale; /* [rows] */
    float *out;         /* [rows, 256] */
    int32_t rows;
} scale_params;

#define ROW_BYTES 1024u
#define IN(s, row) ((s) + ((uint32_t)(row)&1u) * ROW_BYTES)
#define STAGING(s) ((s) + 2u * ROW_BYTES)
#define FULL(s, row) ((s) + 3u * ROW_BYTES + ((uint32_t)(row)&1u) * 8u)

/* By thread 0: asks for a row. */
HB_DEVICE void fetch(const scale_params *p, smem_addr s, int32_t row)
{
    mbarrier_arrive_expect_tx(FULL(s, row), ROW_BYTES);
    bulk_load(IN(s, row), p->in + row * 256, ROW_BYTES, FULL(s, row));
}

KERNEL(scale_rows, scale_params, p, 256)
{
    const smem_addr s = smem_base();
    const uint32_t mine = thread_index() * 4u;
    int32_t row;
    if (thread_index() == 0) {
        mbarrier_init(FULL(s, 0), 1);
        mbarrier_init(FULL(s, 1), 1);
        fence_mbarrier_init();
        fetch(p, s, 0);
    }
    block_sync();
    for (row = 0; row < p->rows; row++) {
        float value;
        if (thread_index() == 0 && row + 1 < p->rows) {
            fetch(p, s, row + 1); /* its buffer was read before the last block_sync */
        }
        mbarrier_wait(FULL(s, row), (uint32_t)row >> 1 & 1u);
        value = mul_rn(smem_load_f32(IN(s, row) + mine), global_load_f32_nc(p->scale + row));
#ifndef FORGET_WAIT
        if (thread_index() == 0) {
            bulk_wait_read(0); /* the copy of the row before has read the staging buffer ... */
        }
#endif
        block_sync(); /* ... and everybody knows */
        smem_store_f32(STAGING(s) + mine, value);
        fence_proxy_async(); /* before the copies below read it, and the next fetch overwrites IN */
        block_sync();
        if (thread_index() == 0) {
            bulk_store(p->out + row * 256, STAGING(s), ROW_BYTES);
            bulk_commit();
        }
    }
    if (thread_index() == 0) {
        bulk_wait(0);
    }
}

enum { ROWS = 6, ELEMENTS = ROWS * 256 };

/* Runs it; the number of findings, printed as they come, or -1. */
static int run(emu_memory *memory, const scale_params *params, emu_policy policy, emu_order order)
{
    const emu_launch launch = {.name = "scale_rows",
                               .kernel = scale_rows,
                               .params = params,
                               .params_bytes = sizeof *params,
                               .blocks = 1,
                               .cluster = 1,
                               .threads = 256,
                               .smem_bytes = 3 * ROW_BYTES + 16 + 1024};
    emu_config config = emu_config_default();
    config.policy = policy;
    config.order = order;
    config.seed = 1;
    emu_report *report = emu_report_create();
    if (report == NULL || emu_run(&config, memory, &launch, 1, report) != EMU_OK) {
        return -1;
    }
    const int findings = (int)emu_report_count(report);
    emu_report_print(report, &config, stdout);
    emu_report_destroy(report);
    return findings;
}

int main(void)
{
    static _Alignas(128) float in[ELEMENTS], scale[ROWS], out[ELEMENTS];
    const scale_params params = {in, scale, out, ROWS};
    emu_memory *memory = emu_memory_create();
    int schedules = 0, wrong = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        in[i] = (float)(i % 100);
        const int row = i / 256;
        scale[row] = (float)(row + 1);
    }
    if (memory == NULL || !emu_memory_add(memory, in, sizeof in, "in", EMU_READ_ONLY) ||
        !emu_memory_add(memory, scale, sizeof scale, "scale", EMU_READ_ONLY) ||
        !emu_memory_add(memory, out, sizeof out, "out", EMU_READ_WRITE)) {
        fputs("out of memory\n", stderr);
        return 2;
    }
    for (int policy = 0; policy < EMU_POLICY_COUNT; policy++) {
        for (int order = 0; order < EMU_ORDER_COUNT; order++) {
            if (policy == EMU_DELAY_SITE) {
                continue; /* takes a site */
            }
            memset(out, 0xff, sizeof out);
            const int findings = run(memory, &params, (emu_policy)policy, (emu_order)order);
            if (findings != 0) {
                return findings < 0 ? 2 : 1;
            }
            schedules++;
            for (int i = 0; i < ELEMENTS; i++) {
                wrong += !(out[i] == in[i] * scale[i / 256]);
            }
        }
    }
    emu_memory_destroy(memory);
    printf("%d schedules, no findings, %d wrong elements\n", schedules, wrong);
    return wrong != 0;
}
