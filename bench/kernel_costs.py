#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times every GEMM kernel alone on every shape, and fits what kernels.def says of them.

    python3 bench/kernel_costs.py measure --library L --kernels src/api/kernels.def \
        --shapes FILE... --json OUT [--filter WORDS] [--repeats N]
    python3 bench/kernel_costs.py fit OUT... --kernels src/api/kernels.def

fit prints block_ns, tile_ns and start_ns of each kernel: of the model that src/api/gemm_select.c
chooses by (waves of tiles and the memory's rate), those that come nearest to the times, moved a
little where that makes it choose better kernels; and then what choosing by them costs beside the
best kernel of each shape.
"""

import argparse
import datetime
import itertools
import json
import math
import os
import re
import sys

LAUNCH_NS = 3300  # what an empty kernel reads
RATE_BYTES_PER_NS = 4000
LESSER_SHARE = 8
SMS = 132
NUMBERS = ("block_ns", "tile_ns", "start_ns")
REFINE_ROUNDS, AWAY_COSTS = 4, 0.05
REFINE_FACTORS = ((0.87, 0.94, 1.0, 1.06, 1.15),) * 2 + ((0.8, 1.0, 1.25),)
ROW = re.compile(r"KERNEL_ROW\(([^)]*)\)", re.S)
COLUMNS = ("name", "threads", "smem", "tile_m", "tile_n", "cluster_m", "cluster_n", "d_box_rows",
           *NUMBERS, "accepts")


def kernel_rows(path):
    with open(path) as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    rows = {}
    for match in ROW.finditer(text):
        cells = [cell.strip() for cell in match.group(1).split(",")]
        row = dict(zip(COLUMNS, cells))
        rows[row["name"]] = {key: int(value) if value.isdigit() else value
                             for key, value in row.items()}
    return rows


def ceil_div(a, b):
    return -(-a // b)


def waves_of(row, shape):
    """(waves, k blocks, ns at the memory's rate), as expected_ns() has them."""
    groups, m, n, k = (shape[name] for name in ("groups", "m", "n", "k"))
    cluster = row["cluster_m"] * row["cluster_n"]
    high = ceil_div(m, row["tile_m"] * row["cluster_m"])
    wide = ceil_div(n, row["tile_n"] * row["cluster_n"])
    bits = 4 if shape["family"] == "w4a8" else 8
    rate = groups * (n * k * bits // 8 + m * k) // RATE_BYTES_PER_NS
    return ceil_div(groups * high * wide, SMS // cluster), ceil_div(k, 128), rate


def expected(row, shape, numbers):
    """ns, as expected_ns() has them."""
    waves, blocks, rate = waves_of(row, shape)
    block, tile, start = numbers
    busy, rate = waves * (blocks * block + tile), rate + tile
    return start + max(busy, rate) + min(busy, rate) // LESSER_SHARE


def badness(row, samples, numbers):
    return sum(math.log((LAUNCH_NS + expected(row, s, numbers)) / (1000 * s["time_us"])) ** 2
               for s in samples)


def fit_one(row, samples):
    """Least squares of logarithms: a coarse grid, then finer ones around the best point."""
    grid = [[20 * 1.25 ** i for i in range(20)], (50, 200, 600, 1500, 3000, 5000),
            (0, 500, 1500, 3000, 5000)]
    best = (math.inf, (0, 0, 0))
    for step in range(9):
        best = min(best, min((badness(row, samples, x), x) for x in itertools.product(*grid)))
        width = 0.3 * 0.7 ** step
        grid = [[x * (1 + width * i / 2) for i in range(-2, 3)] for x in best[1]]
        grid[2] += [200 * width]  # from 0 no factor leads away
    return best


def chosen_of(rows, some):
    return min(some, key=lambda name: expected(rows[name], some[name],
                                               [rows[name][x] for x in NUMBERS]))


def loss(rows, some):
    """Logarithm of the chosen kernel's time over the best one's."""
    best = min(sample["time_us"] for sample in some.values())
    return math.log(some[chosen_of(rows, some)]["time_us"] / best)


def refine(rows, shapes):
    """Moves the numbers of one kernel after another by a few per cent as long as better kernels are
    chosen; numbers far from the fitted ones have to earn more."""
    fitted = {name: [row[x] for x in NUMBERS] for name, row in rows.items()}
    concerned = {name: [some for some in shapes.values() if name in some] for name in rows}

    def badness_with(name, numbers):
        rows[name].update(zip(NUMBERS, numbers))
        away = sum(math.log((x + 1) / (y + 1)) ** 2 for x, y in zip(numbers, fitted[name]))
        return sum(loss(rows, some) for some in concerned[name]) + AWAY_COSTS * away

    for _ in range(REFINE_ROUNDS):
        for name in rows:
            if concerned[name]:
                now = [rows[name][x] for x in NUMBERS]
                steps = [[x * y for x, y in zip(now, factors)]
                         for factors in itertools.product(*REFINE_FACTORS)]
                badness_with(name, min([now, *steps], key=lambda n: badness_with(name, n)))


def shapes_of(paths, rows):
    """Times by shape and kernel; those of later files replace others."""
    shapes = {}
    for path in paths:
        with open(path) as file:
            for line in file:
                sample = json.loads(line)
                key = tuple(sample[x] for x in ("family", "layout", "groups", "m", "n", "k"))
                if sample["kernel"] in rows:
                    shapes.setdefault(key, {})[sample["kernel"]] = sample
    return shapes


def mean_loss(rows, shapes):
    """Time of the chosen kernels over that of the best ones, geometric mean."""
    return math.exp(sum(loss(rows, some) for some in shapes.values()) / len(shapes))


def fit(options):
    rows = kernel_rows(options.kernels)
    shapes = shapes_of(options.files, rows)
    for name, row in rows.items():
        samples = [some[name] for some in shapes.values() if name in some]
        if samples:
            row["off"], numbers = fit_one(row, samples)
            row.update(zip(NUMBERS, numbers))
            row["samples"] = len(samples)
    refine(rows, shapes)
    for name, row in rows.items():
        row.update((x, round(row[x], 0 if x == "block_ns" else -1)) for x in NUMBERS)
        if "samples" in row:
            print(f"{name:48} block_ns {row['block_ns']:5.0f} tile_ns {row['tile_ns']:6.0f}"
                  f" start_ns {row['start_ns']:6.0f}"
                  f"  {row['samples']} shapes, fitted"
                  f" {100 * math.sqrt(row['off'] / row['samples']):.0f} % off")
    for key, some in sorted(shapes.items()):
        chosen = chosen_of(rows, some)
        best = min(some, key=lambda name: some[name]["time_us"])
        if loss(rows, some) > math.log(1.02):
            print(f"{key}: {chosen} {some[chosen]['time_us']:.1f} us, best {best} "
                  f"{some[best]['time_us']:.1f}")
    print(f"choosing costs {100 * (mean_loss(rows, shapes) - 1):.1f} % in the mean")


def measure(options):
    import torch
    import bench_gemm
    import halfbyte_library as hb
    from gemm_data import Fp8Weights, Int4Weights, Layer, Tokens

    names = list(kernel_rows(options.kernels))
    library, driver = hb.Library(options.library, hb.GPU), bench_gemm.Driver()
    model = hb.Library(options.library, hb.MODEL)
    timer = bench_gemm.Timer(options.repeats)
    layer, weights = None, None
    where = {"device": torch.cuda.get_device_name(), "driver": bench_gemm.driver_version(),
             "date": datetime.date.today().isoformat(), "commit": options.commit}
    with open(options.json, "a") as out:
        for shape in bench_gemm.read_shapes(options.shapes, options.filter):
            groups, m, n, k = (int(shape[name]) for name in ("groups", "m", "n", "k"))
            wanted = Layer(shape["family"], groups, n, k, hb.K_MAJOR)
            if wanted != layer:
                layer, weights = wanted, None
                weights = (Fp8Weights(layer, 1) if layer.family == "fp8_block"
                           else Int4Weights(model, layer, 1, False))
            tokens = Tokens(layer, shape["layout"], m, 1)
            times = {}
            for name in names:
                os.environ["HALFBYTE_SKIP_KERNELS"] = ",".join(x for x in names if x != name)
                try:
                    product = bench_gemm.Product(library, driver, tokens, weights)
                except hb.Failure:
                    continue
                times[name] = timer.times(product.run, None)[options.repeats // 2]
                product.close()
                out.write(json.dumps({**where, "family": layer.family, "layout": shape["layout"],
                                      "groups": groups, "m": m, "n": n, "k": k, "kernel": name,
                                      "time_us": round(times[name], 2)}) + "\n")
            best = sorted(times, key=times.get)[:4]
            print(f"{layer.family} {shape['layout']} {groups} {m} {n} {k}: " + ", ".join(
                f"{x.removeprefix(hb.PREFIX)} {times[x]:.1f}" for x in best), flush=True)
    torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure")
    one.add_argument("--library", required=True)
    one.add_argument("--kernels", required=True)
    one.add_argument("--shapes", required=True, nargs="+")
    one.add_argument("--json", required=True)
    one.add_argument("--filter", default="")
    one.add_argument("--commit", default="")
    one.add_argument("--repeats", type=int, default=11)
    one.set_defaults(run=measure)
    two = commands.add_parser("fit")
    two.add_argument("files", nargs="+")
    two.add_argument("--kernels", required=True)
    two.set_defaults(run=fit)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    sys.exit(main())
