#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library's choice of kernels beside times of all of them on an H200.

    check_choices.py PRINT_CHOICES KERNELS_DEF BENCH_FOLDER TIMES.jsonl...

Times of later files replace those of earlier ones. For every shape the library must choose what
bench/kernel_costs.py, which has the same formula once more, says that it chooses; and what is
chosen may take 1 % longer in the mean than the best kernel.
"""

import subprocess
import sys

MOST_LOSS = 1.01


def main():
    program, table, bench, *times = sys.argv[1:]
    sys.path.insert(0, bench)
    sys.dont_write_bytecode = True
    import kernel_costs

    rows = kernel_costs.kernel_rows(table)
    shapes = kernel_costs.shapes_of(times, rows)
    text = "".join(" ".join(map(str, key)) + "\n" for key in shapes)
    names = subprocess.run([program], input=text, capture_output=True, text=True,
                           check=True).stdout.split()
    wrong = 0
    for (key, some), name in zip(shapes.items(), names, strict=True):
        expected = kernel_costs.chosen_of(rows, some)
        if name != expected:
            print(f"{key}: the library takes {name}, kernel_costs.py {expected}")
            wrong += 1
    mean = kernel_costs.mean_loss(rows, shapes)
    print(f"{len(shapes)} shapes, {wrong} chosen otherwise; choosing costs {mean:.4f} of the best")
    return 0 if shapes and wrong == 0 and mean <= MOST_LOSS else 1


if __name__ == "__main__":
    sys.exit(main())
