/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halfbyte_pack_weights() and halfbyte_unpack_weights() on the GPU against the CPU: every layout
 * over ragged, shifted and gapped tensors, in place, guards and gaps included; capture is refused;
 * and the rate, beside that of a copy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/pack_case.h"
#include "gpu/tests.h"

static halfbyte_device *device_open(void)
{
    halfbyte_device_options options = halfbyte_device_options_init();
    halfbyte_device *device = NULL;
    options.executor = HALFBYTE_EXECUTOR_GPU;
    if (halfbyte_device_open(&device, &options) != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
    return device;
}

static void check(halfbyte_status status)
{
    if (status != HALFBYTE_SUCCESS) {
        session_die("%s", halfbyte_last_error());
    }
}

/* ---- equality -------------------------------------------------------------------------------- */

static void image_compare(session *s, const char *what, cuda_pointer at, const uint8_t *expected,
                          size_t size)
{
    uint8_t *got = session_host(size);
    session_download(s, got, at, size);
    session_compare(s, what, got, expected, 1, size);
    session_host_free(got);
}

static void *data_at(cuda_pointer image, const pack_image *of)
{
    return (char *)session_pointer(image) + of->data_at;
}

static void case_check(session *s, halfbyte_device *device, const pack_case *c)
{
    const pack_image *target = c->in_place ? &c->plain : &c->packed;
    halfbyte_packed_header header;
    session_reset(s);
    memset(&header, 0, sizeof header);
    const cuda_pointer plain = session_upload(s, c->plain.bytes, c->plain.size);
    const cuda_pointer packed =
        c->in_place ? plain : session_upload(s, c->packed.bytes, c->packed.size);
    check(halfbyte_pack_weights(device, &c->desc, data_at(plain, &c->plain),
                                data_at(packed, target), target->data_size, &header, NULL));
    image_compare(s, "packed weights and what surrounds them", packed, c->packed_expected,
                  target->size);
    session_expect(s, "the header", memcmp(&header, &c->header, sizeof header) == 0);

    cuda_pointer back = plain;
    if (!c->in_place) {
        uint8_t *poison = session_host(c->plain.size);
        memset(poison, PACK_POISON, c->plain.size);
        back = session_upload(s, poison, c->plain.size);
        session_host_free(poison);
    }
    check(halfbyte_unpack_weights(device, &c->header, data_at(packed, target), target->data_size,
                                  &c->desc, data_at(back, &c->plain), NULL));
    image_compare(s, "unpacked weights and what surrounds them", back, c->plain_expected,
                  c->plain.size);
}

void gpu_test_pack(session *s)
{
    static const pack_shape edges[] = {
        {1, 1, 1, 0, false, false, false},     {3, 129, 2880, 0, false, true, false},
        {2, 512, 7168, 0, false, true, true},  {1, 64, 57344, 0, false, true, true},
        {2, 128, 14336, 0, false, true, true}, {1, 192, 28672, 0, false, true, true},
        {2, 64, 1024, 96, false, true, false}, {2, 96, 1536, 64, true, true, false},
        {9, 64, 128, 0, false, true, true},    {1, 3, 0, 32, false, true, false},
    };
    enum { EDGES = sizeof edges / sizeof edges[0], KINDS = 3 * PACK_MINUS8_KINDS };
    halfbyte_device *device = device_open();
    struct random r = {s->seed * 31 + 7};
    const int cases = EDGES * KINDS + (s->quick ? 200 : 2000);
    for (int i = 0; i < cases; i++) {
        pack_case c;
        pack_case_make(&c, &r, (halfbyte_int4_layout)(i % 3),
                       (pack_minus8)(i / 3 % PACK_MINUS8_KINDS),
                       i < EDGES * KINDS ? edges[i / KINDS] : pack_shape_draw(&r, 300, 1500));
        case_check(s, device, &c);
        pack_case_free(&c);
    }
    session_figure(s, "calls", 2 * cases);
    halfbyte_device_close(device);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Packing is refused while the stream is captured, which goes on; unpacking is captured. */
void gpu_test_pack_graph(session *s)
{
    halfbyte_device *device = device_open();
    struct random r = {s->seed};
    halfbyte_packed_header header;
    cuda_stream stream = NULL;
    gpu_graph graph = NULL;
    gpu_graph_exec exec = NULL;
    pack_case c;
    pack_case_make(&c, &r, HALFBYTE_INT4_INT8_LOW_FIRST, PACK_MINUS8_MANY,
                   (pack_shape){3, 128, 512, 0, false, true, false});
    session_reset(s);
    const cuda_pointer packed = session_upload(s, c.packed_expected, c.packed.size);
    uint8_t *poison = session_host(c.plain.size);
    memset(poison, PACK_POISON, c.plain.size);
    const cuda_pointer plain = session_upload(s, poison, c.plain.size);
    session_host_free(poison);
    session_check(s, s->stream_create(&stream, 1), "cuStreamCreate");
    session_check(s, s->capture_begin(stream, 0), "cuStreamBeginCapture");
    const halfbyte_status refused =
        halfbyte_pack_weights(device, &c.desc, data_at(plain, &c.plain), data_at(packed, &c.packed),
                              c.packed.data_size, &header, stream);
    session_expect(s, "the refusal", refused == HALFBYTE_ERR_UNSUPPORTED);
    check(halfbyte_unpack_weights(device, &c.header, data_at(packed, &c.packed), c.packed.data_size,
                                  &c.desc, data_at(plain, &c.plain), stream));
    session_check(s, s->capture_end(stream, &graph), "cuStreamEndCapture");
    session_check(s, s->graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
    session_check(s, s->graph_launch(exec, stream), "cuGraphLaunch");
    session_wait(s);
    image_compare(s, "unpacked weights", plain, c.plain_expected, c.plain.size);
    session_check(s, s->graph_exec_destroy(exec), "cuGraphExecDestroy");
    session_check(s, s->graph_destroy(graph), "cuGraphDestroy");
    session_check(s, s->stream_destroy(stream), "cuStreamDestroy");
    pack_case_free(&c);
    halfbyte_device_close(device);
}

/* ---- rate ------------------------------------------------------------------------------------ */

enum { GROUPS = 16, ROWS = 4096, WIDTH = 7168, SAMPLES = 9 };
static const size_t rate_bytes = (size_t)GROUPS * ROWS * WIDTH / 2;

typedef enum rate_kind {
    RATE_COPY,
    RATE_PACK,
    RATE_UNPACK,
    RATE_IN_PLACE,
    RATE_UNPACK_IN_PLACE,
    RATE_KINDS
} rate_kind;

typedef struct rate {
    halfbyte_device *device;
    halfbyte_int4_desc desc;
    halfbyte_packed_header header;
    cuda_pointer plain, packed;
    gpu_event from, to;
} rate;

static void rate_call(session *s, rate *at, rate_kind kind)
{
    void *plain = session_pointer(at->plain), *packed = session_pointer(at->packed);
    switch (kind) {
    case RATE_PACK:
        check(halfbyte_pack_weights(at->device, &at->desc, plain, packed, rate_bytes, &at->header,
                                    NULL));
        return;
    case RATE_UNPACK:
        check(halfbyte_unpack_weights(at->device, &at->header, packed, rate_bytes, &at->desc, plain,
                                      NULL));
        return;
    case RATE_IN_PLACE:
        check(halfbyte_pack_weights(at->device, &at->desc, plain, plain, rate_bytes, &at->header,
                                    NULL));
        return;
    case RATE_UNPACK_IN_PLACE:
        check(halfbyte_unpack_weights(at->device, &at->header, plain, rate_bytes, &at->desc, plain,
                                      NULL));
        return;
    default:
        session_check(s, s->copy_async(at->packed, at->plain, rate_bytes, NULL),
                      "cuMemcpyDtoDAsync");
    }
}

static int compare_floats(const void *x, const void *y)
{
    const float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

/* In place the calls alternate between both ways, so that there is always something packed. */
static double time_of(session *s, rate *at, rate_kind kind)
{
    float ms[SAMPLES];
    for (int sample = -1; sample < SAMPLES; sample++) { /* the first one warms up */
        if (kind == RATE_UNPACK_IN_PLACE) {
            rate_call(s, at, RATE_IN_PLACE);
        }
        session_check(s, s->event_record(at->from, NULL), "cuEventRecord");
        rate_call(s, at, kind);
        session_check(s, s->event_record(at->to, NULL), "cuEventRecord");
        session_check(s, s->event_synchronize(at->to), "cuEventSynchronize");
        session_check(s, s->event_elapsed(&ms[sample < 0 ? 0 : sample], at->from, at->to),
                      "cuEventElapsedTime");
        if (kind == RATE_IN_PLACE) {
            rate_call(s, at, RATE_UNPACK_IN_PLACE);
        }
    }
    qsort(ms, SAMPLES, sizeof ms[0], compare_floats);
    return (double)ms[SAMPLES / 2] * 1000.0;
}

static void rates_print(session *s, rate *at, bool minus8)
{
    static const char *const names[RATE_KINDS] = {"copy", "pack", "unpack", "pack in place",
                                                  "unpack in place"};
    double copy_rate = 0;
    for (int kind = 0; kind < RATE_KINDS; kind++) {
        /* Packing reads once more, to look for -8, unless it soon finds one. */
        const bool scans = kind == RATE_PACK || kind == RATE_IN_PLACE;
        const double us = time_of(s, at, (rate_kind)kind);
        const double gigabytes = (scans && !minus8 ? 3.0 : 2.0) * (double)rate_bytes / us * 1e-3;
        copy_rate = kind == RATE_COPY ? gigabytes : copy_rate;
        printf("  %-16s %s -8 %9.1f us %6.0f GB/s, ratio to copy %.3f\n", names[kind],
               minus8 ? "with   " : "without", us, gigabytes, gigabytes / copy_rate);
        if (!minus8) {
            session_figure(s, names[kind], gigabytes / copy_rate);
        }
    }
    fflush(stdout);
}

/* Random weights; without: no byte has a nibble of 8. */
static uint8_t *weights_make(session *s, bool minus8)
{
    struct random r = {s->seed};
    uint8_t *host = session_host(rate_bytes);
    for (size_t i = 0; i < rate_bytes; i += 8) {
        uint64_t bits = random_bits(&r);
        if (!minus8) { /* the lowest bit of each nibble set: odd numbers */
            bits |= 0x1111111111111111u;
        }
        memcpy(host + i, &bits, 8);
    }
    return host;
}

void gpu_test_pack_rate(session *s)
{
    rate at = {.device = device_open(), .desc = halfbyte_int4_desc_init()};
    at.desc.groups = GROUPS;
    at.desc.n = ROWS;
    at.desc.k = at.desc.ld = WIDTH;
    at.desc.group_stride = (int64_t)ROWS * WIDTH;
    at.desc.weight_group_size = 128;
    at.plain = session_allocate(s, rate_bytes);
    at.packed = session_allocate(s, rate_bytes);
    session_check(s, s->event_create(&at.from, 0), "cuEventCreate");
    session_check(s, s->event_create(&at.to, 0), "cuEventCreate");
    for (int minus8 = 0; minus8 < 2; minus8++) {
        uint8_t *host = weights_make(s, minus8 != 0);
        session_check(s, s->to_device(at.plain, host, rate_bytes), "cuMemcpyHtoD");
        rates_print(s, &at, minus8 != 0);
        /* Once more over memory that holds something else, so that doing nothing is seen. */
        session_check(s, s->set_bytes(at.packed, PACK_POISON, rate_bytes), "cuMemsetD8");
        time_of(s, &at, RATE_PACK);
        session_check(s, s->set_bytes(at.plain, PACK_POISON, rate_bytes), "cuMemsetD8");
        time_of(s, &at, RATE_UNPACK);
        image_compare(s, "weights after many round trips", at.plain, host, rate_bytes);
        session_host_free(host);
    }
    session_check(s, s->event_destroy(at.from), "cuEventDestroy");
    session_check(s, s->event_destroy(at.to), "cuEventDestroy");
    session_free(s, at.plain);
    session_free(s, at.packed);
    halfbyte_device_close(at.device);
}
