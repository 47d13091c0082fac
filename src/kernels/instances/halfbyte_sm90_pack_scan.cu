/* SPDX-License-Identifier: Apache-2.0 */
#define PACK_NAME halfbyte_sm90_pack_scan
#define PACK_BODY pack_scan
#define PACK_SHARING 4
#include "kernels/pack_weights.h"
