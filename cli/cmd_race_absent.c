/* SPDX-License-Identifier: Apache-2.0 */
/* halfbyte race in a build without the emulator. */
#include "command.h"
#include "common.h"

int command_race(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    cli.command = "halfbyte race";
    return cli_fail(CLI_NO_DEVICE, "this build has no emulator: it takes Linux on x86-64 or "
                                   "aarch64, libdw, and no sanitizer");
}
