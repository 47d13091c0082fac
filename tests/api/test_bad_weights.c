/* SPDX-License-Identifier: Apache-2.0 */
/* Every argument and field of packing and unpacking, spoiled; nothing may be written. */
#include "api/device.h"
#include "api/spoil.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define INVALID HALFBYTE_ERR_INVALID_ARGUMENT
#define MISALIGNED HALFBYTE_ERR_MISALIGNED
#define UNSUPPORTED HALFBYTE_ERR_UNSUPPORTED
#define TOO_SMALL HALFBYTE_ERR_BUFFER_TOO_SMALL

enum { GROUPS = 2, N = 64, K = 256, PACKED_BYTES = GROUPS * N * K / 2, POISON = 0xa5 };

/* A device that this library cannot make, as a later one will. */
static halfbyte_device other = {.executor = HALFBYTE_EXECUTOR_EMULATOR};

typedef struct weight_call {
    halfbyte_int4_desc desc;
    halfbyte_packed_header header;
    halfbyte_device *device;
    halfbyte_stream stream;
    uint8_t *plain, *packed;
    int64_t packed_bytes;
    int64_t null_desc, null_header, null_bytes;
    size_t bytes;
    _Alignas(64) uint8_t plain_data[2 * PACKED_BYTES];
    _Alignas(64) uint8_t packed_data[2 * PACKED_BYTES];
} weight_call;

static weight_call weights;

static void pack_make(void *call)
{
    weight_call *c = call;
    memset(c, 0, sizeof *c);
    memset(c->packed_data, POISON, sizeof c->packed_data);
    memset(&c->header, POISON, sizeof c->header);
    c->desc = halfbyte_int4_desc_init();
    c->desc.n = N;
    c->desc.k = K;
    c->desc.groups = GROUPS;
    c->desc.ld = K;
    c->desc.group_stride = N * K;
    c->desc.weight_group_size = 128;
    c->desc.scale_type = HALFBYTE_TYPE_BF16;
    c->plain = c->plain_data;
    c->packed = c->packed_data;
    c->packed_bytes = PACKED_BYTES;
}

static void unpack_make(void *call)
{
    weight_call *c = call;
    pack_make(call);
    memset(c->plain_data, POISON, sizeof c->plain_data);
    c->header = (halfbyte_packed_header){.version = 1,
                                         .n = N,
                                         .k = K,
                                         .groups = GROUPS,
                                         .weight_group_size = 128,
                                         .scale_type = HALFBYTE_TYPE_BF16};
}

static halfbyte_status bytes_run(void *call)
{
    weight_call *c = call;
    return halfbyte_packed_weights_bytes(c->null_desc != 0 ? NULL : &c->desc,
                                         c->null_bytes != 0 ? NULL : &c->bytes);
}

static halfbyte_status pack_run(void *call)
{
    weight_call *c = call;
    return halfbyte_pack_weights(c->device, c->null_desc != 0 ? NULL : &c->desc, c->plain,
                                 c->packed, (size_t)c->packed_bytes,
                                 c->null_header != 0 ? NULL : &c->header, c->stream);
}

static halfbyte_status unpack_run(void *call)
{
    weight_call *c = call;
    return halfbyte_unpack_weights(c->device, c->null_header != 0 ? NULL : &c->header, c->packed,
                                   (size_t)c->packed_bytes, c->null_desc != 0 ? NULL : &c->desc,
                                   c->plain, c->stream);
}

#define SET(field, number)                                                                         \
    {                                                                                              \
        SPOIL_FIELD(weight_call, field), SPOIL_SET, (int64_t)(number)                              \
    }
#define ADD(field, number)                                                                         \
    {                                                                                              \
        SPOIL_FIELD(weight_call, field), SPOIL_ADD, (int64_t)(number)                              \
    }
#define COPY(field, from)                                                                          \
    {                                                                                              \
        SPOIL_FIELD(weight_call, field), SPOIL_COPY, (int64_t)offsetof(weight_call, from)          \
    }
#define INT32 SET(desc.layout, HALFBYTE_INT4_INT32_SIGNED)
#define ROOMY SET(packed_bytes, 2 * PACKED_BYTES)
#define IN_PLACE COPY(packed, plain)

/* What packed_weights_bytes and pack check alike. */
static const spoil_row shape_rows[] = {
    {{SET(null_desc, 1)}, INVALID, "desc = NULL"},
    {{SET(desc.struct_size, 8)}, INVALID, "desc.struct_size = 8"},
    {{SET(desc.layout, 3)}, INVALID, "desc.layout = 3: accepted: int8_low_first (0)"},
    {{SET(desc.layout, -1)}, INVALID, "desc.layout = -1"},
    {{SET(desc.n, -1)}, INVALID, "desc.n = -1: must be in [0, 2147483647]"},
    {{SET(desc.n, INT64_C(1) << 31)}, INVALID, "desc.n = 2147483648"},
    {{SET(desc.k, -1)}, INVALID, "desc.k = -1"},
    {{SET(desc.k, INT64_MAX)}, INVALID, "desc.k = 9223372036854775807"},
    {{SET(desc.groups, -1)}, INVALID, "desc.groups = -1: must be in [0, 1048576]"},
    {{SET(desc.groups, (1 << 20) + 1)}, INVALID, "desc.groups = 1048577"},
    {{SET(desc.group_k_offset, 16)}, INVALID, "desc.group_k_offset = 16: must be a multiple of 32"},
    {{SET(desc.group_k_offset, -32)}, INVALID, "desc.group_k_offset = -32"},
    {{SET(desc.group_k_offset, 128)}, INVALID, "below weight_group_size = 128"},
    {{SET(desc.weight_group_size, 64), SET(desc.group_k_offset, 64)},
     INVALID,
     "desc.group_k_offset = 64"},
    {{SET(desc.weight_group_size, 0), SET(desc.group_k_offset, 32)},
     INVALID,
     "below weight_group_size = 0, or 0"},
    {{SET(desc.weight_group_size, 48)}, INVALID, "desc.weight_group_size = 48"},
    {{SET(desc.weight_group_size, -128)}, INVALID, "desc.weight_group_size = -128"},
    {{SET(desc.scale_type, HALFBYTE_TYPE_E5M2)}, INVALID, "desc.scale_type = e5m2 (5)"},
    {{SET(desc.scale_type, HALFBYTE_TYPE_INT4)}, INVALID, "desc.scale_type = int4 (7)"},
    {{SET(desc.scale_type, -2)}, INVALID, "desc.scale_type = unknown (-2)"},
    {{SET(desc.flags, HALFBYTE_PACKED_HOLDS_MINUS8)}, INVALID, "desc.flags = 0x1: accepted bits"},
    {{SET(desc.flags, 6)}, INVALID, "desc.flags = 0x6"},
    {{SET(desc.flags, 2), SET(desc.n, 56)}, INVALID, "desc.n = 56: must be a multiple of 16"},
};

static const spoil_row bytes_rows[] = {
    {{SET(null_bytes, 1)}, INVALID, "bytes = NULL"},
};

/* What pack and unpack check alike of their tensors. */
static const spoil_row tensor_rows[] = {
    {{SET(stream, 16)}, INVALID, "stream = 0x10: must be NULL"},
    {{SET(null_desc, 1)}, INVALID, "desc = NULL"},
    {{SET(null_header, 1)}, INVALID, "header = NULL"},
    {{SET(plain, 0)}, INVALID, " = NULL"},
    {{INT32, ADD(plain, 2)}, MISALIGNED, "must be aligned to 4 bytes"},
    {{ADD(plain, 1), SET(packed, 0)}, INVALID, "packed = NULL"},
    {{ADD(packed, 8)}, MISALIGNED, "must be aligned to 16 bytes"},
    {{ADD(packed_bytes, -1)}, TOO_SMALL, "packed_bytes = 16383: must be at least 16384"},
    {{SET(packed_bytes, 0)}, TOO_SMALL, "packed_bytes = 0"},
    {{SET(desc.ld, K - 2)}, INVALID, "ld = 254: must be at least 256"},
    {{SET(desc.ld, K + 1)}, MISALIGNED, "ld = 257: must be a multiple of 2"},
    {{INT32, SET(desc.ld, K + 4)}, MISALIGNED, "ld = 260: must be a multiple of 8"},
    {{SET(desc.ld, -K)}, INVALID, "ld = -256"},
    {{SET(desc.ld, INT64_MAX - 1)}, INVALID, "would not fit into the address space"},
    {{SET(desc.group_stride, N *K + 1)}, MISALIGNED, "group_stride = 16385: must be a multiple"},
    {{INT32, SET(desc.group_stride, N *K + 2)}, MISALIGNED, "must be a multiple of 8"},
    {{SET(desc.group_stride, -2)}, INVALID, "group_stride = -2"},
    {{SET(desc.group_stride, INT64_MAX - 1)}, INVALID, "would not fit into the address space"},
    {{ADD(packed, 32), COPY(plain, packed), ADD(packed, -32)}, INVALID, "overlaps"},
};

static const spoil_row in_place_rows[] = {
    {{ROOMY, IN_PLACE, SET(desc.flags, 2)}, INVALID, "no flags"},
    {{ROOMY, IN_PLACE, SET(desc.n, 32)}, INVALID, "in place needs n = 32 a multiple of 64"},
    {{ROOMY, IN_PLACE, SET(desc.k, 192)}, INVALID, "k = 192 a multiple of 128"},
    {{ROOMY, IN_PLACE, SET(desc.group_k_offset, 32)}, INVALID, "group_k_offset 0"},
    {{ROOMY, IN_PLACE, SET(desc.ld, K + 2)}, INVALID, "ld == k"},
    {{ROOMY, IN_PLACE, SET(desc.group_stride, N *K + 2)}, INVALID, "group_stride == n * k"},
};

static const spoil_row unpack_rows[] = {
    {{SET(header.version, 0)}, UNSUPPORTED, "header.version = 0: accepted: 1"},
    {{SET(header.version, 2)}, UNSUPPORTED, "header.version = 2"},
    {{SET(header.flags, 3), SET(header.flags, 4)},
     INVALID,
     "header.flags = 0x4: accepted bits: 0x3"},
    {{SET(header.reserved, 1)}, INVALID, "header.reserved = 1: must be 0"},
    {{SET(header.n, -1)}, INVALID, "header.n = -1"},
    {{SET(header.k, INT64_C(1) << 31)}, INVALID, "header.k = 2147483648"},
    {{SET(header.groups, 0)}, INVALID, "header.groups = 0: must be in [1, 1048576]"},
    {{SET(header.weight_group_size, 1)}, INVALID, "header.weight_group_size = 1"},
    {{SET(header.group_k_offset, 5)}, INVALID, "header.group_k_offset = 5"},
    {{SET(header.scale_type, 99)}, INVALID, "header.scale_type = unknown (99)"},
    {{SET(header.n, 24), SET(desc.n, 24), SET(header.flags, 0), SET(header.flags, 2)},
     INVALID,
     "header.n = 24: must be a multiple of 16"},
    {{SET(header.n, N - 1)}, INVALID, "desc.n = 64: must be that of the header, 63"},
    {{SET(header.k, K + 1)}, INVALID, "desc.k = 256: must be that of the header, 257"},
    {{SET(header.groups, 1)}, INVALID, "desc.groups = 2: must be that of the header, 1"},
    {{SET(header.group_k_offset, 32)}, INVALID, "desc.group_k_offset = 0: must be that of the"},
    {{SET(desc.flags, 2)}, INVALID, "desc.flags = 0x2: must be 0 or that of the header, 0x0"},
    {{SET(desc.layout, 9)}, INVALID, "desc.layout = 9"},
    {{SET(desc.struct_size, 0)}, INVALID, "desc.struct_size = 0"},
    {{SET(desc.group_stride, 0)}, INVALID, "groups would overlap"},
    {{ROOMY, IN_PLACE, SET(header.flags, 2)}, INVALID, "no flags"},
};

static void check(const spoil_row *rows, size_t count, void (*make)(void *),
                  halfbyte_status (*run)(void *))
{
    spoil_check(rows, count, &weights, sizeof weights, make, run);
}

static void test_bytes(void **state)
{
    (void)state;
    check(shape_rows, COUNT(shape_rows), pack_make, bytes_run);
    check(bytes_rows, COUNT(bytes_rows), pack_make, bytes_run);

    pack_make(&weights); /* each extent is within its limit, but not their product */
    weights.desc.n = weights.desc.k = INT32_MAX;
    weights.desc.groups = 1 << 20;
    assert_int_equal(bytes_run(&weights), INVALID);
    assert_non_null(strstr(halfbyte_last_error(), "would not fit into the address space"));
    assert_int_equal(weights.bytes, 0);
    assert_int_equal(pack_run(&weights), INVALID);
}

static void test_pack(void **state)
{
    (void)state;
    check(shape_rows, COUNT(shape_rows), pack_make, pack_run);
    check(tensor_rows, COUNT(tensor_rows), pack_make, pack_run);
    check(in_place_rows, COUNT(in_place_rows), pack_make, pack_run);
}

static void test_unpack(void **state)
{
    (void)state;
    check(tensor_rows, COUNT(tensor_rows), unpack_make, unpack_run);
    check(unpack_rows, COUNT(unpack_rows), unpack_make, unpack_run);
}

static void test_other_executor(void **state)
{
    (void)state;
    unpack_make(&weights);
    weights.device = &other;
    assert_int_equal(pack_run(&weights), UNSUPPORTED);
    assert_int_equal(unpack_run(&weights), UNSUPPORTED);
    assert_true(weights.packed_data[0] == POISON && weights.plain_data[0] == POISON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_unpack),
        cmocka_unit_test(test_other_executor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
