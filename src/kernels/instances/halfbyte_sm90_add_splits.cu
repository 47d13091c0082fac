/* SPDX-License-Identifier: Apache-2.0 */
#define GROUP_NAME halfbyte_sm90_add_splits
#include "kernels/add_splits.h"
