/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALFBYTE_TESTS_IO_IO_FIXTURE_H
#define HALFBYTE_TESTS_IO_IO_FIXTURE_H

/* A scratch folder and small helpers for the file tests. Include after cmocka.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io_error.h"
#include "io/io_source.h"
#include "io/tensor_spec.h"

/* cmocka group fixture: a fresh folder whose name holds a space, removed with all in it. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Path of `name` inside the folder; one of 8 rotating static buffers. */
const char *fixture_path(const char *name);

void fixture_write(const char *name, const void *data, size_t bytes);

/* The whole file into malloc'ed memory. */
unsigned char *fixture_read(const char *name, size_t *bytes);

bool fixture_exists(const char *name);

/* Files in the folder whose name contains `part` ("" = all). */
size_t fixture_count(const char *part);

/* Removes every file in the folder. */
void fixture_clear(void);

/* Bytes of a safetensors file: length, `json`, then data_bytes bytes 0, 1, 2 ... 250, 0 ...
 * malloc'ed. */
unsigned char *safetensors_bytes(const char *json, size_t data_bytes, size_t *bytes);

/* Byte i of the data above. */
#define PATTERN_BYTE(i) ((unsigned char)((i) % 251))

/* A source over memory with the label "file". The data must outlive it. */
io_source memory_source(const void *data, size_t bytes);

/* Checks status, error code and the whole sentence. */
void check_error(io_status status, const io_error *error, io_status want, const char *text);

/* Number from the environment, or `otherwise`. */
unsigned long fixture_number(const char *variable, unsigned long otherwise);

#endif
