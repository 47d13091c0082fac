/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C side of interop.py.
 *
 *   io_interop write DIR    all.safetensors and one .npy a type, with the bytes of byte_at()
 *   io_interop dump FILE... a line "FILE", then one a metadata entry and one a tensor
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/npy.h"
#include "io/safetensors.h"
#include "io/safetensors_writer.h"

/* Byte j of the tensor of type i. interop.py computes the same. */
static unsigned char byte_at(size_t i, size_t j)
{
    return (unsigned char)(31 * i + j + j / 256);
}

static int complain(const io_error *error)
{
    fprintf(stderr, "%s: %s\n", io_status_name(error->code), error->text);
    return 1;
}

/* Type i has shape [i + 1, 3, 2], type 0 none. */
static int shape_of(size_t i, int64_t *shape)
{
    shape[0] = (int64_t)i + 1;
    shape[1] = 3;
    shape[2] = 2;
    return i == 0 ? 0 : 3;
}

static unsigned char *make_data(size_t i, size_t *bytes)
{
    *bytes = (i == 0 ? 1 : (i + 1) * 6) * tensor_dtype_bytes((tensor_dtype)i);
    unsigned char *data = malloc(*bytes);
    for (size_t j = 0; data != NULL && j < *bytes; j++)
        data[j] = byte_at(i, j);
    return data;
}

static int write_npy(const char *dir, size_t i, const unsigned char *data)
{
    if (tensor_dtype_npy_descr((tensor_dtype)i) == NULL)
        return 0;
    char path[4096];
    int64_t shape[3];
    io_error error;
    snprintf(path, sizeof path, "%s/%s.npy", dir, tensor_dtype_name((tensor_dtype)i));
    int rank = shape_of(i, shape);
    return npy_write(path, (tensor_dtype)i, rank, shape, data, &error) == IO_OK ? 0
                                                                                : complain(&error);
}

static int write_all(const char *dir)
{
    safetensors_writer *writer;
    io_error error;
    size_t bytes;
    char path[4096];
    if (safetensors_writer_create(&writer, &error) != IO_OK)
        return complain(&error);
    io_status status = safetensors_writer_add_metadata(writer, "format", "pt", &error);
    if (status == IO_OK)
        status = safetensors_writer_add_metadata(writer, "\xc3\xa9\n", "\"\\/\x01", &error);
    for (size_t i = 0; i < TENSOR_DTYPE_COUNT && status == IO_OK; i++) {
        int64_t shape[3];
        char name[64];
        snprintf(name, sizeof name, "l\xc3\xa4yer.%zu.\"%s\"", i,
                 tensor_dtype_name((tensor_dtype)i));
        int rank = shape_of(i, shape);
        status =
            safetensors_writer_add_tensor(writer, name, (tensor_dtype)i, rank, shape, NULL, &error);
    }
    snprintf(path, sizeof path, "%s/all.safetensors", dir);
    if (status == IO_OK)
        status = safetensors_writer_begin(writer, path, &error);
    int failed = 0;
    for (size_t i = 0; i < TENSOR_DTYPE_COUNT && status == IO_OK; i++) {
        unsigned char *data = make_data(i, &bytes);
        failed |= data == NULL || write_npy(dir, i, data);
        if (data != NULL)
            status = safetensors_writer_append(writer, i, data, bytes, &error);
        free(data);
    }
    if (status == IO_OK)
        status = safetensors_writer_commit(writer, &error);
    safetensors_writer_destroy(writer);
    return status == IO_OK ? failed : complain(&error);
}

/* ---- dump ----------------------------------------------------------------------------------- */

static void print_hex(const char *text)
{
    putchar('=');
    for (; *text != '\0'; text++)
        printf("%02x", (unsigned char)*text);
}

/* dtype, shape, FNV-1a of the data. */
static void print_spec(const tensor_spec *spec, const unsigned char *data)
{
    char shape[168];
    uint64_t hash = 0xcbf29ce484222325;
    for (uint64_t j = 0; j < spec->bytes; j++)
        hash = (hash ^ data[j]) * 0x100000001b3;
    tensor_shape_format(spec, shape, sizeof shape);
    printf("%s %s %016" PRIx64 "\n", tensor_dtype_name(spec->dtype), shape, hash);
}

static int dump_safetensors(const char *path)
{
    safetensors_file *file;
    io_error error;
    if (safetensors_open(&file, path, &error) != IO_OK)
        return complain(&error);
    for (size_t i = 0; i < safetensors_metadata_count(file); i++) {
        print_hex(safetensors_metadata_key(file, i));
        putchar(' ');
        print_hex(safetensors_metadata_value(file, i));
        putchar('\n');
    }
    io_status status = IO_OK;
    for (size_t i = 0; i < safetensors_count(file) && status == IO_OK; i++) {
        const safetensors_tensor *tensor = safetensors_at(file, i);
        unsigned char *data = malloc((size_t)tensor->spec.bytes + 1);
        status = data == NULL
                     ? io_error_out_of_memory(&error, path, tensor->spec.bytes)
                     : safetensors_read(file, tensor, 0, data, (size_t)tensor->spec.bytes, &error);
        if (status == IO_OK) {
            print_hex(tensor->name);
            putchar(' ');
            print_spec(&tensor->spec, data);
        }
        free(data);
    }
    safetensors_close(file);
    return status == IO_OK ? 0 : complain(&error);
}

static int dump_npy(const char *path)
{
    npy_file *file;
    io_error error;
    if (npy_open(&file, path, &error) != IO_OK)
        return complain(&error);
    const tensor_spec *spec = npy_spec(file);
    unsigned char *data = malloc((size_t)spec->bytes + 1);
    io_status status = data == NULL ? io_error_out_of_memory(&error, path, spec->bytes)
                                    : npy_read(file, 0, data, (size_t)spec->bytes, &error);
    if (status == IO_OK)
        print_spec(spec, data);
    free(data);
    npy_close(file);
    return status == IO_OK ? 0 : complain(&error);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        return write_all(argv[2]);
    if (argc < 3 || strcmp(argv[1], "dump") != 0) {
        fprintf(stderr, "usage: io_interop write DIR | io_interop dump FILE...\n");
        return 2;
    }
    int failed = 0;
    for (int i = 2; i < argc && !failed; i++) {
        size_t length = strlen(argv[i]);
        printf("%s\n", argv[i]);
        failed = length > 4 && strcmp(argv[i] + length - 4, ".npy") == 0
                     ? dump_npy(argv[i])
                     : dump_safetensors(argv[i]);
    }
    return failed;
}
