/* SPDX-License-Identifier: Apache-2.0 */
#include "api/error.h"
#include "model/tensor_core.h"

halfbyte_status halfbyte_tensor_core_dot(halfbyte_type type, const void *a, const void *b,
                                         uint32_t c, uint32_t *d)
{
    uint16_t codes_a[TENSOR_CORE_MAX_K], codes_b[TENSOR_CORE_MAX_K];
    tensor_core_type instruction = TENSOR_CORE_E4M3;

    switch (type) {
    case HALFBYTE_TYPE_E4M3: instruction = TENSOR_CORE_E4M3; break;
    case HALFBYTE_TYPE_E5M2: instruction = TENSOR_CORE_E5M2; break;
    case HALFBYTE_TYPE_BF16: instruction = TENSOR_CORE_BF16; break;
    case HALFBYTE_TYPE_F16: instruction = TENSOR_CORE_FP16; break;
    default:
        return status_fail(HALFBYTE_ERR_UNSUPPORTED,
                           "type = %s (%d): accepted: e4m3, e5m2, bf16, f16",
                           halfbyte_type_name(type), (int)type);
    }
    CHECK_ARGUMENT(a != NULL, "a = NULL: must point to 32 bytes");
    CHECK_ARGUMENT(b != NULL, "b = NULL: must point to 32 bytes");
    CHECK_ARGUMENT(d != NULL, "d = NULL: must point to where the result is stored");

    if (halfbyte_type_bits(type) == 8) {
        for (int i = 0; i < TENSOR_CORE_MAX_K; i++) {
            codes_a[i] = ((const uint8_t *)a)[i];
            codes_b[i] = ((const uint8_t *)b)[i];
        }
    } else { /* any alignment */
        memcpy(codes_a, a, 32);
        memcpy(codes_b, b, 32);
    }
    *d = tensor_core_block(instruction, codes_a, codes_b, c);
    return HALFBYTE_SUCCESS;
}
