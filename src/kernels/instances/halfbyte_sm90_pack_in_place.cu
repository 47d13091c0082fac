/* SPDX-License-Identifier: Apache-2.0 */
#define PACK_NAME halfbyte_sm90_pack_in_place
#define PACK_BODY pack_in_place
#define PACK_SHARING 5
#include "kernels/pack_weights.h"
