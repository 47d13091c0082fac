/* SPDX-License-Identifier: Apache-2.0 */
#define PACK_NAME halfbyte_sm90_unpack_weights
#define PACK_BODY unpack_weights
#define PACK_SHARING 4
#include "kernels/pack_weights.h"
