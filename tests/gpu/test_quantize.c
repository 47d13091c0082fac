/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halfbyte_quantize_activations() on the GPU against the CPU: every mode, type, layout and flag
 * over ragged, shifted and gapped tensors with all kinds of values, guards and gaps included;
 * replays of a captured graph; and the rate, beside that of a copy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/quantize_case.h"
#include "gpu/tests.h"

static const halfbyte_type types[] = {HALFBYTE_TYPE_F32, HALFBYTE_TYPE_BF16, HALFBYTE_TYPE_F16};
enum { TYPES = 3 };

static const char *const form_names[QUANTIZE_FORMS] = {"static", "tensor", "outer", "1x128 mn",
                                                       "1x128 k"};

static halfbyte_device *device_open(halfbyte_executor executor)
{
    halfbyte_device_options options = halfbyte_device_options_init();
    halfbyte_device *device = NULL;
    options.executor = executor;
    if (halfbyte_device_open(&device, &options) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    return device;
}

static void quantize(session *s, halfbyte_device *device, const halfbyte_activation_quantization *a,
                     cuda_stream stream)
{
    if (halfbyte_quantize_activations(device, a, stream) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    (void)s;
}

/* ---- equality -------------------------------------------------------------------------------- */

/* Images of a case on the device. */
typedef struct images {
    cuda_pointer src, dst, scale;
} images;

static images images_upload(session *s, const quantize_case *c)
{
    session_reset(s);
    return (images){session_upload(s, c->src.bytes, c->src.size),
                    session_upload(s, c->dst.bytes, c->dst.size),
                    session_upload(s, c->scale.bytes, c->scale.size)};
}

static void images_compare(session *s, const quantize_case *c, const images *at)
{
    uint8_t *got = session_host(c->dst.size + c->scale.size);
    session_download(s, got, at->dst, c->dst.size);
    session_compare(s, "codes and what surrounds them", got, c->dst_expected, 1, c->dst.size);
    session_download(s, got, at->scale, c->scale.size);
    session_compare(s, "scales and what surrounds them", got, c->scale_expected, 1, c->scale.size);
    session_host_free(got);
}

static halfbyte_activation_quantization arguments_at(const quantize_case *c, const images *at)
{
    return quantize_case_at(c, session_pointer(at->src), session_pointer(at->dst),
                            session_pointer(at->scale));
}

static quantize_shape shape_draw(struct random *r)
{
    static const quantize_shape edges[] = {
        {0, 5, false},    {3, 0, false},    {1, 1, false},      {64, 128, true},  {7, 7168, true},
        {1, 7168, true},  {1, 8193, false}, {3, 16384, true},   {2, 40001, true}, {700, 8, false},
        {33, 4096, true}, {5, 512, true},   {300, 1024, false}, {9, 2050, true},  {257, 1, false}};
    if (random_percent(r, 40)) {
        return edges[random_below(r, (int64_t)(sizeof edges / sizeof edges[0]))];
    }
    return (quantize_shape){random_between(r, 1, 70), random_between(r, 1, 3000),
                            random_percent(r, 30)};
}

void gpu_test_quantize(session *s)
{
    halfbyte_device *device = device_open(HALFBYTE_EXECUTOR_GPU);
    struct random r = {s->seed * 31 + 5};
    const int rounds = s->quick ? 3 : 14;
    int cases = 0;
    for (int i = 0; i < rounds * QUANTIZE_FORMS * TYPES * QUANTIZE_FILLS * 2; i++) {
        const int form = i % QUANTIZE_FORMS, type = i / QUANTIZE_FORMS % TYPES;
        const int fill = i / (QUANTIZE_FORMS * TYPES) % QUANTIZE_FILLS;
        const bool power_of_two = i / (QUANTIZE_FORMS * TYPES * QUANTIZE_FILLS) % 2 != 0;
        quantize_case c;
        quantize_case_make(&c, &r, (quantize_form)form, types[type], (quantize_fill)fill,
                           power_of_two, shape_draw(&r));
        const images at = images_upload(s, &c);
        const halfbyte_activation_quantization a = arguments_at(&c, &at);
        quantize(s, device, &a, NULL);
        images_compare(s, &c, &at);
        quantize_case_free(&c);
        cases++;
    }
    session_figure(s, "calls", cases);
    halfbyte_device_close(device);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A captured call must start anew at each replay, whatever the one before left in the scale. */
static void replays_check(session *s, halfbyte_device *device, quantize_form form,
                          halfbyte_type type)
{
    struct random r = {s->seed * 31 + (uint64_t)form};
    quantize_case c;
    cuda_stream stream = NULL;
    gpu_graph graph = NULL;
    gpu_graph_exec exec = NULL;
    quantize_case_make(&c, &r, form, type, QUANTIZE_FILL_BITS, false,
                       (quantize_shape){65, 3000, true});
    const images at = images_upload(s, &c);
    const halfbyte_activation_quantization a = arguments_at(&c, &at);
    session_check(s, s->stream_create(&stream, 1), "cuStreamCreate");
    session_check(s, s->capture_begin(stream, 0), "cuStreamBeginCapture");
    quantize(s, device, &a, stream);
    session_check(s, s->capture_end(stream, &graph), "cuStreamEndCapture");
    session_check(s, s->graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
    for (int replay = 0; replay < 6; replay++) {
        /* From large to small values: a maximum that was kept would show. */
        quantize_case_draw(&c, &r, replay % 2 == 0 ? QUANTIZE_FILL_NORMAL : QUANTIZE_FILL_SMALL);
        session_check(s, s->to_device(at.src, c.src.bytes, c.src.size), "cuMemcpyHtoD");
        session_wait(s); /* the copy may return early, and this stream does not wait for it */
        session_check(s, s->graph_launch(exec, stream), "cuGraphLaunch");
        session_wait(s);
        images_compare(s, &c, &at);
    }
    session_check(s, s->graph_exec_destroy(exec), "cuGraphExecDestroy");
    session_check(s, s->graph_destroy(graph), "cuGraphDestroy");
    session_check(s, s->stream_destroy(stream), "cuStreamDestroy");
    quantize_case_free(&c);
}

void gpu_test_quantize_graph(session *s)
{
    halfbyte_device *device = device_open(HALFBYTE_EXECUTOR_GPU);
    for (int form = 0; form < QUANTIZE_FORMS; form++) {
        for (int type = 0; type < TYPES; type++) {
            replays_check(s, device, (quantize_form)form, types[type]);
        }
    }
    halfbyte_device_close(device);
}

/* ---- rate ------------------------------------------------------------------------------------ */

enum { RATE_M = 16384, RATE_K = 7168, REPEATS = 10, SAMPLES = 7 };

typedef struct rate_memory {
    cuda_pointer src, dst, scale;
    uint32_t *host; /* what src holds */
} rate_memory;

/* Words that are two ordinary numbers as bf16 or f16 and one as f32. */
static rate_memory rate_memory_make(session *s)
{
    const size_t count = (size_t)RATE_M * RATE_K;
    struct random r = {s->seed};
    rate_memory memory = {session_allocate(s, count * 4), session_allocate(s, count),
                          session_allocate(s, count / 16), session_host(count * 4)};
    for (size_t i = 0; i < count; i += 2) {
        const uint64_t bits = (random_bits(&r) & 0x83ff83ff83ff83ffu) | 0x3c003c003c003c00u;
        memory.host[i] = (uint32_t)bits;
        memory.host[i + 1] = (uint32_t)(bits >> 32);
    }
    session_check(s, s->to_device(memory.src, memory.host, count * 4), "cuMemcpyHtoD");
    return memory;
}

static halfbyte_activation_quantization rate_arguments(const rate_memory *memory, int form,
                                                       halfbyte_type type, int64_t m)
{
    halfbyte_activation_quantization a = halfbyte_activation_quantization_init();
    a.mode = form == QUANTIZE_FORM_OUTER       ? HALFBYTE_SCALE_OUTER
             : form >= QUANTIZE_FORM_BLOCKS_MN ? HALFBYTE_SCALE_1X128
                                               : HALFBYTE_SCALE_TENSOR;
    a.layout = form == QUANTIZE_FORM_BLOCKS_K ? HALFBYTE_SCALE_K_MAJOR : HALFBYTE_SCALE_MN_MAJOR;
    a.flags = form == QUANTIZE_FORM_STATIC ? HALFBYTE_QUANTIZE_STATIC : 0;
    a.src_type = type;
    a.m = m;
    a.k = RATE_K;
    a.src.data = session_pointer(memory->src);
    a.src.ld = a.dst.ld = RATE_K;
    a.dst.data = session_pointer(memory->dst);
    a.scale.data = session_pointer(memory->scale);
    a.scale.stride_mn = form == QUANTIZE_FORM_BLOCKS_K ? RATE_K / 128 : 1;
    a.scale.stride_k = form == QUANTIZE_FORM_BLOCKS_MN ? m : 1;
    return a;
}

static int compare_floats(const void *x, const void *y)
{
    const float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

/* Microseconds of one call; a == NULL: of a copy of `bytes` from src to dst. */
static double time_of(session *s, halfbyte_device *device,
                      const halfbyte_activation_quantization *a, const rate_memory *memory,
                      size_t bytes)
{
    float ms[SAMPLES];
    gpu_event from = NULL, to = NULL;
    session_check(s, s->event_create(&from, 0), "cuEventCreate");
    session_check(s, s->event_create(&to, 0), "cuEventCreate");
    for (int sample = -1; sample < SAMPLES; sample++) { /* the first one warms up */
        session_check(s, s->event_record(from, NULL), "cuEventRecord");
        for (int i = 0; i < REPEATS; i++) {
            if (a != NULL) {
                quantize(s, device, a, NULL);
            } else {
                session_check(s, s->copy_async(memory->dst, memory->src, bytes, NULL),
                              "cuMemcpyDtoDAsync");
            }
        }
        session_check(s, s->event_record(to, NULL), "cuEventRecord");
        session_check(s, s->event_synchronize(to), "cuEventSynchronize");
        session_check(s, s->event_elapsed(&ms[sample < 0 ? 0 : sample], from, to),
                      "cuEventElapsedTime");
    }
    session_check(s, s->event_destroy(from), "cuEventDestroy");
    session_check(s, s->event_destroy(to), "cuEventDestroy");
    qsort(ms, SAMPLES, sizeof ms[0], compare_floats);
    return (double)ms[SAMPLES / 2] * 1000.0 / REPEATS;
}

/* The codes of m rows and the first scales against the CPU's. */
static void rate_compare(session *s, halfbyte_device *model, halfbyte_activation_quantization a,
                         const rate_memory *memory)
{
    const size_t codes = (size_t)(a.m * RATE_K);
    const size_t scales = a.mode == HALFBYTE_SCALE_TENSOR  ? 4
                          : a.mode == HALFBYTE_SCALE_OUTER ? (size_t)a.m * 4
                                                           : codes / 32;
    uint8_t *expected = session_host(codes + scales), *got = session_host(codes + scales);
    a.src.data = memory->host;
    a.dst.data = expected;
    a.scale.data = expected + codes;
    session_download(s, got, memory->dst, codes);
    session_download(s, got + codes, memory->scale, scales);
    memcpy(expected + codes, got + codes, sizeof(float)); /* of STATIC: read */
    quantize(s, model, &a, NULL);
    session_compare(s, "codes and scales of a large tensor", got, expected, 1, codes + scales);
    session_host_free(expected);
    session_host_free(got);
}

/* Bytes that must move: what is read, once a pass, and what is written. */
static double traffic_of(int form, size_t elements, size_t bytes)
{
    return (double)elements * ((form == QUANTIZE_FORM_TENSOR ? 2.0 : 1.0) * (double)bytes + 1.0);
}

static void form_time(session *s, halfbyte_device *device, halfbyte_device *model,
                      const rate_memory *memory, int form, halfbyte_type type)
{
    const size_t bytes = type == HALFBYTE_TYPE_F32 ? 4 : 2;
    const float given = 0.01f;
    halfbyte_activation_quantization a = rate_arguments(memory, form, type, RATE_M);
    const double traffic = traffic_of(form, (size_t)RATE_M * RATE_K, bytes);
    session_check(s, s->to_device(memory->scale, &given, sizeof given), "cuMemcpyHtoD");
    const double us = time_of(s, device, &a, memory, 0);
    /* A copy reads as much as it writes. */
    const double copy_us = time_of(s, NULL, NULL, memory, (size_t)RATE_M * RATE_K);
    const double copy_rate = 2.0 * RATE_M * RATE_K / copy_us;
    halfbyte_activation_quantization few = rate_arguments(memory, form, type, 64);
    session_check(s, s->to_device(memory->scale, &given, sizeof given), "cuMemcpyHtoD");
    const double few_us = time_of(s, device, &few, memory, 0);
    printf("  %-9s %-5s %9.1f us %7.0f GB/s, copy %5.0f GB/s, ratio %.3f; 64 rows %.2f us\n",
           form_names[form], halfbyte_type_name(type), us, traffic / us * 1e-3, copy_rate * 1e-3,
           traffic / us / copy_rate, few_us);
    fflush(stdout); /* said even if what follows hangs */
    if (type == HALFBYTE_TYPE_BF16) {
        session_figure(s, form_names[form], traffic / us / copy_rate);
    }
    a = rate_arguments(memory, form, type, RATE_M / 8);
    session_check(s, s->to_device(memory->scale, &given, sizeof given), "cuMemcpyHtoD");
    quantize(s, device, &a, NULL);
    session_wait(s);
    rate_compare(s, model, a, memory);
}

void gpu_test_quantize_rate(session *s)
{
    halfbyte_device *device = device_open(HALFBYTE_EXECUTOR_GPU);
    halfbyte_device *model = device_open(HALFBYTE_EXECUTOR_MODEL);
    const rate_memory memory = rate_memory_make(s);
    for (int form = 0; form < QUANTIZE_FORMS; form++) {
        for (int type = 0; type < TYPES; type++) {
            form_time(s, device, model, &memory, form, types[type]);
        }
    }
    session_free(s, memory.src);
    session_free(s, memory.dst);
    session_free(s, memory.scale);
    session_host_free(memory.host);
    halfbyte_device_close(model);
    halfbyte_device_close(device);
}
