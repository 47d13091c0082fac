/* SPDX-License-Identifier: Apache-2.0 */
#define GROUP_NAME halfbyte_sm90_group_bounds
#include "kernels/group_bounds.h"
