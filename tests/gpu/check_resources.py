#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares registers, barriers, threads and shared memory of each kernel with a recorded table.

    check_resources.py [--update] NVCC PRINT_KERNELS BUILD_FOLDER_OF_KERNELS TABLE

Another compiler gives other registers: with another release of nvcc than the table's, exit status
77. --update writes the table anew.
"""

import pathlib
import re
import subprocess
import sys


def nvcc_release(nvcc):
    text = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"release (\d+\.\d+)", text).group(1)


def measured(print_kernels, build):
    """One line a kernel of the library."""
    lines = []
    rows = subprocess.run([print_kernels], check=True, capture_output=True, text=True).stdout
    for row in rows.splitlines():
        name, threads, smem = row.split()
        got, registers, barriers = (build / f"{name}.cubin.resources").read_text().split()
        if got != name:
            raise ValueError(f"{name}.cubin.resources speaks of {got}")
        lines.append(f"{name} {registers} {barriers} {threads} {smem}")
    return lines


def main(arguments):
    update = "--update" in arguments
    places = [a for a in arguments if not a.startswith("--")]
    if len(places) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    nvcc, print_kernels, build, golden = places[0], places[1], *map(pathlib.Path, places[2:])
    lines = measured(print_kernels, build)
    if not lines:
        print("no kernels in the library")
        return 2
    head = f"# nvcc {nvcc_release(nvcc)}: kernel, registers, barriers, threads, shared bytes"
    if update:
        golden.write_text("\n".join([head] + sorted(lines)) + "\n")
        return 0
    recorded = golden.read_text().splitlines()
    if recorded[0] != head:
        print(f"the table was made with another compiler ({recorded[0]}); this one is {head}")
        return 77
    wrong = sorted(set(lines) ^ set(recorded[1:]))
    for line in wrong:
        print(("built:    " if line in lines else "recorded: ") + line)
    print(f"{len(lines)} kernels compared, {len(wrong)} lines differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
