/* SPDX-License-Identifier: Apache-2.0 */
#define GROUP_NAME halfbyte_sm90_zero_padding
#include "kernels/zero_padding.h"
