/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public names, for the emulator's own sources: these alone are visible outside the library.
 */
#ifndef HALFBYTE_EMULATOR_API_H
#define HALFBYTE_EMULATOR_API_H

#pragma GCC visibility push(default)
#include "emulator/emulator.h"
#pragma GCC visibility pop

#endif
