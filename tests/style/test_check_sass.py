#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Feeds check_sass.py listings of a few instructions, each with one fault or none.

    python3 test_check_sass.py SOURCE_ROOT

(That it finds races in compiled kernels is for the test sass_of_races, which needs nvdisasm.)
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[1]) / "tools"))
import check_sass  # noqa: E402

FIRST = "QGMMA.64x64x32.F32.E4M3.E4M3 R24, R4, gdesc[UR8], RZ, !UPT"
NEXT = "QGMMA.64x64x32.F32.E4M3.E4M3 R24, R8, gdesc[UR8], R24"
LAST = NEXT + ", gsb0"
WAIT = "WARPGROUP.DEPBAR.LE gsb0, 0x0"
MOVE, ADD = "R2UR UR8, R2", "UIADD3 UR8, UR8, 0x2, URZ"

# what it is, instructions, findings of moved_descriptors(), findings of the walk
CASES = [
    ("a chain from uniform registers", [FIRST, ADD, NEXT, ADD, LAST, WAIT], 0, 0),
    ("one descriptor moved, by accident", [FIRST, MOVE, NEXT, ADD, LAST, WAIT], 0, 0),
    ("one moved behind each instruction", [FIRST, MOVE, NEXT, MOVE, LAST, WAIT], 0, 0),
    ("both halves moved", [FIRST, MOVE, MOVE, NEXT, LAST, WAIT], 1, 0),
    ("both halves moved, each time", [FIRST, MOVE, ADD, MOVE, NEXT, MOVE, MOVE, LAST, WAIT], 2, 0),
    ("moved ahead of a chain", [MOVE, MOVE, FIRST, NEXT, LAST, WAIT], 0, 0),
    ("moved between two chains", [FIRST, LAST, WAIT, MOVE, MOVE, FIRST, LAST, WAIT], 0, 0),
    ("moved before a chain that begins anew", [FIRST, MOVE, MOVE, FIRST, LAST, WAIT], 0, 0),
    ("sums of both read in flight", [FIRST, LAST, "FADD R0, R24, R1", WAIT], 0, 2),
    ("sums read behind the wait", [FIRST, LAST, WAIT, "FADD R0, R24, R1"], 0, 0),
    ("weights written in flight", [FIRST, LAST, "LDS R8, [R1]", WAIT], 0, 1),
    ("weights written behind the wait", [FIRST, LAST, WAIT, "LDS R8, [R1]"], 0, 0),
]


def listing_of(instructions):
    lines = ["\t.section\t.text.kernel,\"ax\",@progbits", ".text.kernel:"]
    for i, text in enumerate(instructions + ["EXIT"]):
        lines.append(f"        /*{i * 16:04x}*/                   {text} ;")
    return "\n".join(lines) + "\n"


def main():
    failed = 0
    for what, instructions, moved, raced in CASES:
        code, labels = check_sass.parse(listing_of(instructions))["kernel"]
        got_moved = check_sass.moved_descriptors(code)
        got_raced = check_sass.Walk("kernel", code, labels, False).run()
        if (len(got_moved), len(got_raced)) != (moved, raced):
            failed += 1
            print(f"{what}: {moved} and {raced} findings wanted, got {got_moved} and {got_raced}")
    print(f"{len(CASES) - failed} cases passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
