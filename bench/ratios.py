#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares measured times with those of peers that were measured in another run, and among
themselves.

    python3 bench/ratios.py RESULT.jsonl [MORE.jsonl ...] [--peers PEERS.csv] [--own-fp8] [--loads]
        [--filter WORDS]

RESULT: JSON Lines of bench_gemm.py or of `halfbyte bench`; of rows for one shape the last counts.
PEERS: CSV with family, layout, groups, m, n, k, best_us, and where known vendor_us, read_us, mma_us
and goal_us, all taken in one run.

ratio = best_us * s / time_us, above 1 where halfbyte is faster.  s says how much slower the machine
was in halfbyte's run than in the peers': the vendor's time now over then where the peers' run has
one, else a plain read's time now over then where reading bounds the shape (read_us > mma_us), else
the wgmma rate then over now.  "plain" is best_us / time_us, without s: where the two are far apart,
the vendor's library has chosen another kernel than then.  Rows with wrong bits have no ratio.

--own-fp8: each w4a8 row over halfbyte's own FP8 kernel (fp8_block) of the same extents, for tensors
without -8, which may take 8 % more, and with -8.  The two are measured by one run.
--loads: rows whose load was given (bench/shapes/uneven.csv) over the time that they may take.
"""

import argparse
import csv
import json
import math
import sys

KEY = ("family", "layout", "groups", "m", "n", "k")
DEFAULTS = ("fp8_block", "dense", 1, None, None, None, "even")
OWN_FP8_ALLOWED = 1.08
PEERS_MMA_TFLOPS = 1724.0  # the rate that mma_us stands for


def key_of(row):
    return tuple(str(row.get(name, default)) for name, default in zip(KEY + ("load",), DEFAULTS))


def text_of_load(row):
    """Load and limit, where a row has them."""
    if row.get("limit_us") is None:
        return ""
    within = "within" if row["time_us"] <= row["limit_us"] else "over"
    return f" @{row['load']} {within} the limit of {row['limit_us']:.1f} us"


def number(row, name):
    value = row.get(name)
    return float(value) if value not in (None, "") else None


def taken(row, words):
    """Does every word fit: a family, a layout, or name=value?"""
    for word in filter(None, words.split(",")):
        name, equals, value = word.partition("=")
        if equals and str(row.get(name)) != value:
            return False
        if not equals and word not in (row.get("family"), row.get("layout"), row.get("load")):
            return False
    return True


def speed_of_run(row, peer):
    """(s, what it was taken from); (None, why not) where the run lacks what is needed."""
    vendor, baseline = number(peer, "vendor_us"), number(row, "baseline_us")
    if vendor is not None and baseline is not None:
        return baseline / vendor, "vendor"
    read, mma = number(peer, "read_us"), number(peer, "mma_us")
    if read is not None and mma is not None and read > mma:
        now = number(row, "read_us_run")
        return (now / read, "read") if now is not None else (None, "no read probe")
    now = number(row, "mma_tflops_run")
    return (PEERS_MMA_TFLOPS / now, "mma") if now is not None else (None, "no wgmma probe")


def compare(row, peer):
    """ratio, s, its source, and whether the goal is met at the peers' speed of the machine."""
    s, source = speed_of_run(row, peer)
    best, goal, time = number(peer, "best_us"), number(peer, "goal_us"), number(row, "time_us")
    if not row.get("bits_right", True):
        return None, s, "BITS DIFFER", None
    if s is None or best is None or time is None:
        return None, s, source, None
    return best * s / time, s, source, None if goal is None else time / s <= goal


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def read_results(paths):
    rows = {}
    for path in paths:
        with open(path) as file:
            for line in filter(None, map(str.strip, file)):
                row = json.loads(line)
                if "time_us" in row and "n" in row:
                    add_row(rows, row)
    return rows


def add_row(rows, row):
    """`halfbyte bench --minus8` times a shape with -8 as a row of its own."""
    key = key_of(row)
    if row.get("minus8"):
        rows.setdefault(key, {name: value for name, value in row.items() if name != "time_us"})
        rows[key]["time_minus8_us"] = row["time_us"]
        rows[key]["bits_right"] = row.get("bits_right", True) and rows[key].get("bits_right", True)
        return
    before = rows.get(key, {})
    if "time_us" not in before and "time_minus8_us" in before:
        row.setdefault("time_minus8_us", before["time_minus8_us"])
        row["bits_right"] = row.get("bits_right", True) and before.get("bits_right", True)
    rows[key] = row


# ---- own FP8 ------------------------------------------------------------------------------------

def fp8_key(row):
    """The same product by the FP8 kernels."""
    layout = {"offsets": "contiguous"}.get(row["layout"], row["layout"])
    return key_of({**row, "family": "fp8_block", "layout": layout})


def print_own_fp8(rows, words):
    """w4a8 over fp8_block; True if there were pairs."""
    found, without, wrong = {"": [], "_minus8": []}, 0, 0
    print(f"{'layout':10} {'groups':>6} {'m':>5} {'n':>6} {'k':>6} {'load':6} {'fp8 us':>8} "
          f"{'w4a8 us':>8} {'ratio':>6} {'us(-8)':>8} {'ratio':>6}")
    for row in (row for row in rows.values() if row.get("family") == "w4a8" and taken(row, words)):
        fp8 = rows.get(fp8_key(row))
        if fp8 is None:
            without += 1
            continue
        head = " ".join(f"{row[name]:>{width}}" for name, width in zip(KEY[2:], (6, 5, 6, 6)))
        head = f"{row['layout']:10} {head} {row.get('load', 'even'):6} {fp8['time_us']:8.1f}"
        if not (row.get("bits_right", True) and fp8.get("bits_right", True)):
            wrong += 1
            print(f"{head} BITS DIFFER")
            continue
        for name, some in found.items():
            time = number(row, f"time{name}_us")
            ratio = None if time is None else time / fp8["time_us"]
            head += f" {'-':>8} {'-':>6}" if time is None else f" {time:8.1f} {ratio:6.3f}"
            if ratio is not None:
                some.append((ratio, row))
        slow = (number(row, "time_us") or 0) > OWN_FP8_ALLOWED * fp8["time_us"]
        print(f"{head}{' SLOWER' if slow else ''}")
    print()
    for name, text in (("", "without -8"), ("_minus8", "with -8")):
        if found[name]:
            ratios = [ratio for ratio, _ in found[name]]
            worst, row = max(found[name], key=lambda one: one[0])
            print(f"w4a8 / own fp8, {text:10} {len(ratios):3} rows, geometric mean "
                  f"{geometric_mean(ratios):.3f}, worst {worst:.3f} "
                  f"({row['groups']}x{row['m']}x{row['n']}x{row['k']}), above {OWN_FP8_ALLOWED}: "
                  f"{sum(ratio > OWN_FP8_ALLOWED for ratio in ratios)}")
    if without or wrong:
        print(f"{without} w4a8 rows without an fp8 row, {wrong} with wrong bits")
    return any(found.values())


# ---- loads --------------------------------------------------------------------------------------

def print_loads(rows, words):
    """True if there were rows with a limit."""
    some = [row for row in rows.values()
            if row.get("limit_us") is not None and "time_us" in row and taken(row, words)]
    print(f"{'family':9} {'load':6} {'groups':>6} {'m':>5} {'n':>6} {'k':>6} {'us':>8} "
          f"{'limit':>8} {'of it':>6} {'us(-8)':>8} {'of it':>6}")
    for row in some:
        head = " ".join(f"{row[name]:>{width}}" for name, width in zip(KEY[2:], (6, 5, 6, 6)))
        head = f"{row['family']:9} {row['load']:6} {head}"
        limit = row["limit_us"]
        if not row.get("bits_right", True):
            print(f"{head} BITS DIFFER")
            continue
        minus8 = number(row, "time_minus8_us")
        head += f" {row['time_us']:8.1f} {limit:8.1f} {row['time_us'] / limit:6.3f}"
        head += "" if minus8 is None else f" {minus8:8.1f} {minus8 / limit:6.3f}"
        print(head + ("" if max(row["time_us"], minus8 or 0) <= limit else " OVER"))
    return bool(some)


def print_summary(name, found):
    if not found:
        return
    ratios = [one[0] for one in found]
    worst = min(found, key=lambda item: item[0])
    goals = [one[1] for one in found if one[1] is not None]
    row = worst[2]
    plain = geometric_mean([one[3] for one in found])
    print(f"{name:24} {len(found):3} rows, geometric mean {geometric_mean(ratios):.3f} "
          f"(plain {plain:.3f}), worst "
          f"{worst[0]:.3f} ({row['groups']}x{row['m']}x{row['n']}x{row['k']}), below 0.98: "
          f"{sum(r < 0.98 for r in ratios)}, below 1: {sum(r < 1 for r in ratios)}, "
          f"goals met {sum(goals)} of {len(goals)}")


def print_peers(rows, path, words):
    """True if there were rows of the peers with a ratio."""
    classes, absent, without = {}, 0, 0
    print(f"{'family':9} {'layout':10} {'groups':>6} {'m':>5} {'n':>6} {'k':>6} {'us':>8} "
          f"{'peer us':>8} {'s':>6} {'of':6} {'ratio':>6} {'plain':>6} {'goal us':>8}")
    with open(path, newline="") as file:
        for peer in filter(lambda p: taken(p, words), csv.DictReader(file)):
            row = rows.get(key_of(peer))
            if row is None or "time_us" not in row:
                absent += 1
                continue
            ratio, s, source, met = compare(row, peer)
            head = " ".join(f"{peer[name]:>{width}}" for name, width in
                            zip(KEY, (-9, -10, 6, 5, 6, 6)) if width > 0)
            head = f"{peer['family']:9} {peer['layout']:10} {head}"
            if ratio is None:
                without += 1
                print(f"{head} {row['time_us']:8.1f} {peer['best_us']:>8} {source}")
                continue
            print(f"{head} {row['time_us']:8.1f} {peer['best_us']:>8} {s:6.3f} {source:6} "
                  f"{ratio:6.3f} {float(peer['best_us']) / row['time_us']:6.3f} "
                  f"{peer.get('goal_us') or '':>8} "
                  f"{'' if met is None else 'met' if met else '-'}")
            classes.setdefault((peer["family"], peer["layout"]), []).append(
                (ratio, met, peer, float(peer["best_us"]) / row["time_us"]))
    print()
    for (family, layout), found in classes.items():
        print_summary(f"{family} {layout}", found)
    for family in dict.fromkeys(family for family, _ in classes):
        print_summary(family, [one for (f, _), found in classes.items() if f == family
                               for one in found])
    if absent or without:
        print(f"{absent} rows of the peers not measured, {without} without a ratio")
    return bool(classes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+")
    parser.add_argument("--peers", metavar="PEERS.csv")
    parser.add_argument("--own-fp8", action="store_true", help="w4a8 over fp8_block")
    parser.add_argument("--loads", action="store_true", help="rows with a load over their limit")
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    if not (options.peers or options.own_fp8 or options.loads):
        parser.error("--peers, --own-fp8 or --loads: what is compared?")
    rows = read_results(options.results)
    compared = []
    if options.peers:
        compared.append(print_peers(rows, options.peers, options.filter))
    if options.own_fp8:
        compared.append(print_own_fp8(rows, options.filter))
    if options.loads:
        compared.append(print_loads(rows, options.filter))
    return 0 if all(compared) else 1


if __name__ == "__main__":
    sys.exit(main())
