/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over every file of the folders and files named on the command line, so that
 * past findings stay fixed in builds without a fuzzer. Fails when it found no input at all.
 */
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The target sees a heap block of exactly the input's size: a sanitizer notices a read past it. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    uint8_t *data = NULL;
    long size = -1;
    if (fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    int bad = size < 0 || fseek(file, 0, SEEK_SET) != 0;
    if (!bad) {
        data = malloc(size > 0 ? (size_t)size : 1);
        bad = data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size;
    }
    fclose(file);
    if (bad)
        fprintf(stderr, "%s: cannot be read\n", path);
    else
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return bad;
}

static int replay_folder(const char *folder, size_t *num_inputs)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        perror(folder);
        return 1;
    }
    int bad = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof path) {
            fprintf(stderr, "%s: path too long\n", entry->d_name);
            bad = 1;
            continue;
        }
        bad |= replay_file(path);
        ++*num_inputs;
    }
    closedir(dir);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    size_t num_inputs = 0;
    for (int i = 1; i < argc; ++i) {
        struct stat status;
        if (stat(argv[i], &status) != 0) {
            perror(argv[i]);
            bad = 1;
        } else if (S_ISDIR(status.st_mode)) {
            bad |= replay_folder(argv[i], &num_inputs);
        } else {
            bad |= replay_file(argv[i]);
            ++num_inputs;
        }
    }
    printf("%zu inputs replayed\n", num_inputs);
    return bad || num_inputs == 0;
}
