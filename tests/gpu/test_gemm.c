/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels through the public API on random problems, bit for bit against the CPU model, guard
 * zones and the memory between rows included.
 */
#include <stdio.h>
#include <string.h>

#include "gpu/gemm_run.h"
#include "gpu/tests.h"
#include "oracle/gemm_case.h"

enum { GUARD = 256 };

/* A problem in host memory and the same on the GPU. */
typedef struct gemm_pair {
    halfbyte_problem problem;
    halfbyte_operands host, gpu;
    uint8_t *d, *got; /* image of D with its guards */
    cuda_pointer d_at;
    size_t d_bytes;
    void *owned[5];
    int owned_count;
} gemm_pair;

static void *pair_memory(gemm_pair *pair, size_t bytes)
{
    void *memory = session_host(bytes);
    pair->owned[pair->owned_count++] = memory;
    return memory;
}

static void pair_free(gemm_pair *pair)
{
    for (int i = 0; i < pair->owned_count; i++) {
        session_host_free(pair->owned[i]);
    }
}

static int64_t draw_from(struct random *r, const int64_t *list, int count, int64_t most)
{
    return random_percent(r, 55) ? list[random_below(r, count)] : random_between(r, 1, most);
}

#define DRAW(r, most, ...)                                                                         \
    draw_from(r, (const int64_t[]){__VA_ARGS__},                                                   \
              (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), most)

/* Around the edges of tiles, instructions (32), blocks of k (128) and rings.  most_m 0: any m. */
static void problem_draw(struct random *r, gemm_pair *pair, int index, int64_t most_m)
{
    int64_t m =
        DRAW(r, 300, 1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257);
    int64_t n =
        DRAW(r, 400, 1, 2, 3, 8, 9, 63, 64, 65, 127, 128, 129, 130, 191, 192, 193, 383, 384);
    int64_t k = DRAW(r, 900, 1, 15, 16, 17, 31, 32, 33, 96, 127, 128, 129, 255, 256, 257, 640, 641,
                     767, 768, 769, 896, 1408, 1536, 1537, 1664, 2048, 2816, 3000);
    if (index % 20 == 19) {
        k = 0;
    }
    if (index % 25 == 24) { /* more tiles than the GPU has SMs, in runs or not */
        m = random_between(r, 1500, 2600);
        n = random_between(r, 1500, 1900) * (most_m == 0 ? 1 : 8);
        k = random_between(r, 1, 512);
    }
    if (most_m != 0 && m > most_m) {
        m = random_percent(r, 30) ? most_m : random_between(r, 1, most_m);
    }
    pair->problem = gemm_fp8_problem(
        m, n, k, random_percent(r, 50) ? HALFBYTE_SCALE_MN_MAJOR : HALFBYTE_SCALE_K_MAJOR);
    if (random_percent(r, 50)) {
        pair->problem.b_scale.layout = HALFBYTE_SCALE_MN_MAJOR;
    }
    pair->problem.m_max = m + (most_m == 0 ? random_below(r, 100) : 0);
    pair->problem.num_sms = (int32_t)(random_percent(r, 70) ? 0 : random_between(r, 1, 140));
    pair->host = halfbyte_operands_init();
    pair->host.m = m;
    pair->gpu = pair->host;
}

static const struct case_options *character(int index)
{
    static const struct case_options finite = {.finite = true};
    static const struct case_options any = {.finite = false};
    return index % 2 == 0 ? &finite : &any;
}

static void matrix_make(session *s, struct random *r, gemm_pair *pair, int64_t rows, int index,
                        halfbyte_matrix_in *host, halfbyte_matrix_in *on_gpu)
{
    const int64_t k = pair->problem.k;
    const int64_t ld = (k + 15) / 16 * 16 + 16 * random_below(r, 4);
    const size_t bytes = (size_t)(rows * ld);
    const size_t skew = 16 * (size_t)random_below(r, 3);
    uint8_t *data = pair_memory(pair, bytes + skew);
    /* What lies between the rows must not matter: it gets NaN now and then, too. */
    case_fill_e4m3(r, data, (int64_t)(bytes + skew), character(index));
    const cuda_pointer at = session_upload(s, data, bytes + skew);
    *host = (halfbyte_matrix_in){data + skew, ld, 0};
    *on_gpu = (halfbyte_matrix_in){(uint8_t *)session_pointer(at) + skew, ld, 0};
}

static void scale_make(session *s, struct random *r, gemm_pair *pair, int64_t mn, int index,
                       halfbyte_scale_layout layout, halfbyte_scale_in *host,
                       halfbyte_scale_in *on_gpu)
{
    const int64_t kb = (pair->problem.k + 127) / 128;
    const bool k_major = layout == HALFBYTE_SCALE_K_MAJOR;
    const int64_t stride = (k_major ? kb : mn) + random_below(r, 2) * random_below(r, 9);
    const int64_t count = (k_major ? mn : kb) * stride;
    const size_t skew = 4 * (size_t)random_below(r, 4);
    uint8_t *data = pair_memory(pair, (size_t)count * 4 + skew);
    case_fill_values(r, data + skew, HALFBYTE_TYPE_F32, count, true, character(index));
    const cuda_pointer at = session_upload(s, data, (size_t)count * 4 + skew);
    *host = (halfbyte_scale_in){data + skew, k_major ? stride : 1, k_major ? 1 : stride, 0};
    *on_gpu = *host;
    on_gpu->data = (uint8_t *)session_pointer(at) + skew;
}

static void d_make(session *s, struct random *r, gemm_pair *pair)
{
    const int64_t n = pair->problem.n;
    const bool wide = random_below(r, 2) != 0; /* rows at multiples of 16 bytes */
    const int64_t gap = random_below(r, 2) * random_between(r, 1, 9);
    const int64_t ld = wide ? (n + gap + 7) / 8 * 8 : n + gap;
    const size_t at = GUARD + (wide ? 0 : 2 * (size_t)random_below(r, 4));
    pair->d_bytes = at + (size_t)((pair->host.m - 1) * ld + n) * 2 + GUARD;
    pair->d = pair_memory(pair, pair->d_bytes);
    pair->got = session_host(pair->d_bytes);
    case_poison(pair->d, pair->d_bytes);
    pair->d_at = session_upload(s, pair->d, pair->d_bytes);
    pair->host.d = (halfbyte_matrix_out){pair->d + at, ld, 0};
    pair->gpu.d = (halfbyte_matrix_out){(uint8_t *)session_pointer(pair->d_at) + at, ld, 0};
}

static void pair_compare(session *s, const gemm_pair *pair)
{
    const halfbyte_problem *p = &pair->problem;
    char what[160];
    snprintf(what, sizeof what, "m %lld n %lld k %lld ldd %lld, scales %d/%d, %d SMs",
             (long long)pair->host.m, (long long)p->n, (long long)p->k, (long long)pair->host.d.ld,
             (int)p->a_scale.layout, (int)p->b_scale.layout, (int)p->num_sms);
    session_download(s, pair->got, pair->d_at, pair->d_bytes);
    session_compare(s, what, pair->got, pair->d, 1, pair->d_bytes);
}

static void problem_test(session *s, struct random *r, halfbyte_device *const device[2], int index,
                         int64_t most_m)
{
    gemm_pair pair;
    memset(&pair, 0, sizeof pair);
    session_reset(s);
    problem_draw(r, &pair, index, most_m);
    halfbyte_operands *h = &pair.host;
    halfbyte_operands *g = &pair.gpu;
    matrix_make(s, r, &pair, h->m, index, &h->a, &g->a);
    matrix_make(s, r, &pair, pair.problem.n, index, &h->b, &g->b);
    scale_make(s, r, &pair, h->m, index, pair.problem.a_scale.layout, &h->a_scale, &g->a_scale);
    scale_make(s, r, &pair, (pair.problem.n + 127) / 128, index, pair.problem.b_scale.layout,
               &h->b_scale, &g->b_scale);
    d_make(s, r, &pair);
    if (gemm_run_once(s, device[0], &pair.problem, g) &&
        gemm_run_once(s, device[1], &pair.problem, h)) {
        pair_compare(s, &pair);
    }
    session_host_free(pair.got);
    pair_free(&pair);
}

/* By the library's own choice of kernels, then by each kernel alone as far as it reaches. */
void gpu_test_gemm_random(session *s)
{
    halfbyte_device *const device[2] = {gemm_device(HALFBYTE_EXECUTOR_GPU),
                                        gemm_device(HALFBYTE_EXECUTOR_MODEL)};
    struct random r = {s->seed * 77};
    const int problems = s->quick ? 50 : 400;
    int all = 0;
    for (int kernel = GEMM_ANY_KERNEL; kernel < KERNEL_COUNT; kernel++) {
        const int64_t before = s->different;
        const halfbyte_problem plain = gemm_fp8_problem(1, 1, 1, HALFBYTE_SCALE_MN_MAJOR);
        if (kernel != GEMM_ANY_KERNEL && !gemm_serves(kernel, &plain)) {
            continue;
        }
        gemm_choose(kernel);
        for (int i = 0; i < problems; i++) {
            problem_test(s, &r, device, i, 0);
        }
        printf("  %-44s %d problems, %lld elements differ\n",
               kernel == GEMM_ANY_KERNEL ? "chosen by the library" : kernel_table[kernel].name,
               problems, (long long)(s->different - before));
        all += problems;
    }
    session_figure(s, "problems", all);
    halfbyte_device_close(device[1]);
    halfbyte_device_close(device[0]);
}
