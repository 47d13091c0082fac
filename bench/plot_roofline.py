#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws measured products under the roofs of the machine that they ran on.

    python3 bench/plot_roofline.py RESULT.jsonl [MORE.jsonl ...] -o OUT.svg [--filter WORDS]

RESULT: JSON Lines of `halfbyte bench` or bench_gemm.py; of rows for one shape the last counts.
OUT: .svg, .png or whatever matplotlib writes.  The roofs are what the same runs measured: the rate
of chained wgmma, and the fastest plain read of weights and activations.  A product's intensity is
its multiplications and additions over the bytes of A, B and D.  Needs matplotlib.
"""

import argparse
import sys

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot

import ratios

MARKS = {"dense": "o", "contiguous": "s", "offsets": "s", "masked": "^", "labels": "v"}
COLOURS = {"fp8_block": "#1f6fb4", "fp8": "#2a9d8f", "w4a8": "#d1495b"}
WEIGHT_BYTES = {"w4a8": 0.5}
OUTPUT_BYTES = 2


def bytes_read(row):
    """Of weights and activations: what the reading probe reads."""
    return row["groups"] * row["k"] * (row["n"] * WEIGHT_BYTES.get(row["family"], 1) + row["m"])


def flops(row):
    return 2.0 * row["groups"] * row["m"] * row["n"] * row["k"]


def intensity(row):
    written = row["groups"] * row["m"] * row["n"] * OUTPUT_BYTES
    return flops(row) / (bytes_read(row) + written)


def roofs(rows):
    """(TFLOP/s of wgmma, TB/s of a plain read); None where no row measured it."""
    mma = [row["mma_tflops_run"] for row in rows if row.get("mma_tflops_run")]
    read = [bytes_read(row) / row["read_us_run"] * 1e-6 for row in rows if row.get("read_us_run")]
    return max(mma, default=None), max(read, default=None)


def draw_roofs(axes, mma, read, low, high):
    if read:
        ridge = min(mma / read if mma else high, high)
        axes.plot([low, ridge], [low * read, ridge * read], color="black", linewidth=1.2)
        middle = (low * ridge) ** 0.5
        axes.annotate(f"plain read, {read:.2f} TB/s", (middle, middle * read), xytext=(-6, 6),
                      textcoords="offset points", ha="right", fontsize=9)
    if mma:
        begin = max(mma / read if read else low, low)
        axes.plot([begin, high], [mma, mma], color="black", linewidth=1.2)
        axes.annotate(f"chained wgmma, {mma:.0f} TFLOP/s", (high, mma), xytext=(-4, 5),
                      textcoords="offset points", ha="right", fontsize=9)


def draw_points(axes, rows):
    for kind in dict.fromkeys((row["family"], row["layout"]) for row in rows):
        some = [row for row in rows if (row["family"], row["layout"]) == kind]
        colour, mark = COLOURS.get(kind[0], "grey"), MARKS.get(kind[1], "o")
        axes.scatter([intensity(row) for row in some],
                     [flops(row) / row["time_us"] * 1e-6 for row in some], s=26, color=colour,
                     marker=mark, zorder=3, label=f"{kind[0]} {kind[1]}")
        beside = [row for row in some if row.get("baseline_us")]
        if beside:
            axes.scatter([intensity(row) for row in beside],
                         [flops(row) / row["baseline_us"] * 1e-6 for row in beside], s=30,
                         facecolors="none", edgecolors=colour, marker=mark, linewidths=0.8,
                         zorder=2, label=f"{beside[0]['baseline']}, {kind[1]}")


def draw(rows, out):
    mma, read = roofs(rows)
    intensities = [intensity(row) for row in rows]
    low, high = min(intensities) / 1.6, max(intensities) * 1.6
    figure, axes = pyplot.subplots(figsize=(9, 6))
    draw_roofs(axes, mma, read, low, high)
    draw_points(axes, rows)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_xlabel("multiplications and additions per byte of A, B and D")
    axes.set_ylabel("TFLOP/s, launch included")
    facts = {f"{row.get('device', '')}, {row.get('date', '')}" for row in rows}
    axes.set_title("; ".join(sorted(facts)), fontsize=10)
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    axes.legend(loc="lower right", fontsize=8, framealpha=0.9)
    figure.tight_layout()
    figure.savefig(out, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    rows = [row for row in ratios.read_results(options.results).values()
            if ratios.taken(row, options.filter) and row["m"] > 0 and row.get("time_us", 0) > 0]
    if not rows:
        sys.exit("no measured product in these files")
    draw(rows, options.output)
    print(f"{len(rows)} products drawn into {options.output}")


if __name__ == "__main__":
    main()
