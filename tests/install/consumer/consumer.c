/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program: one FP8 product by way of the public header alone, checked to the bit. */
#include <halfbyte.h>

#include <stdio.h>

enum { M = 3, N = 8, K = 160 };

static _Alignas(16) uint8_t a[M][K];
static _Alignas(16) uint8_t b[N][K];
static float d[M][N];

static int run_product(halfbyte_device *device)
{
    halfbyte_problem problem = halfbyte_problem_init();
    problem.family = HALFBYTE_FAMILY_FP8;
    problem.m_max = M;
    problem.n = N;
    problem.k = K;
    problem.d_type = HALFBYTE_TYPE_F32;
    halfbyte_operands operands = halfbyte_operands_init();
    operands.m = M;
    operands.a = (halfbyte_matrix_in){.data = a, .ld = K};
    operands.b = (halfbyte_matrix_in){.data = b, .ld = K};
    operands.d = (halfbyte_matrix_out){.data = d, .ld = N};

    halfbyte_plan *plan = NULL;
    halfbyte_status status = halfbyte_plan_create(&plan, &problem, device);
    if (status == HALFBYTE_SUCCESS)
        status = halfbyte_run(plan, &operands, NULL, 0, NULL);
    halfbyte_plan_destroy(plan);
    return status == HALFBYTE_SUCCESS;
}

int main(void)
{
    /* e4m3: 0x38 is 1, 0x40 is 2. A is all ones, row j of B holds twos below k = 16 j. */
    for (int k = 0; k < K; k++) {
        for (int i = 0; i < M; i++)
            a[i][k] = 0x38;
        for (int j = 0; j < N; j++)
            b[j][k] = k < 16 * j ? 0x40 : 0;
    }

    halfbyte_device *device = NULL;
    halfbyte_device_options options = halfbyte_device_options_init();
    options.executor = HALFBYTE_EXECUTOR_MODEL;
    int good = halfbyte_device_open(&device, &options) == HALFBYTE_SUCCESS && run_product(device);
    halfbyte_device_close(device);
    if (!good) {
        fprintf(stderr, "consumer: %s\n", halfbyte_last_error());
        return 1;
    }

    int equal = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            equal += d[i][j] == 32.0f * (float)j;
    const uint32_t header_version =
        HALFBYTE_VERSION_MAJOR * 1000000 + HALFBYTE_VERSION_MINOR * 1000 + HALFBYTE_VERSION_PATCH;
    printf("consumer: %s, %d of %d elements right\n", halfbyte_version_text(), equal, M * N);
    return equal == M * N && halfbyte_version() == header_version ? 0 : 1;
}
