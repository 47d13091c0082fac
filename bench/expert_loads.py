# SPDX-License-Identifier: Apache-2.0
"""How the rows of a grouped product fall to its groups, and the time that they may take.

The numbers are those of expert_loads.h and of `halfbyte bench`.
"""

import bisect
import itertools

MASK = (1 << 64) - 1
BYTES_PER_US, FLOPS_PER_US, LAUNCH_US, ALLOWED = 4.3e6, 1724e6, 3.0, 1.25
WEIGHT_BYTES = {"w4a8": 0.5}


def splitmix(seed):
    state = seed
    while True:
        state = (state + 0x9e3779b97f4a7c15) & MASK
        z = state
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
        z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
        yield z ^ z >> 31


def zipf(tokens, top, experts, seed):
    """Tokens of each expert: every token draws `top` different ones, expert e with weight
    floor(2^32 / (e + 1))."""
    sums = list(itertools.accumulate((1 << 32) // (e + 1) for e in range(experts)))
    bits, rows = splitmix(seed), [0] * experts
    for _ in range(tokens):
        has = set()
        while len(has) < top:
            has.add(bisect.bisect_right(sums, next(bits) % sums[-1]))
        for expert in has:
            rows[expert] += 1
    return rows


def rows_of(load, groups, m, seed):
    """Rows of each group, groups * m in all."""
    if load == "one":
        return [groups * m if group == groups // 2 else 0 for group in range(groups)]
    if load.startswith("zipf"):
        top = int(load.removeprefix("zipf"))
        if not 0 < top <= groups or groups * m % top:
            raise ValueError(f"{load}: {groups} groups, {groups * m} rows")
        return zipf(groups * m // top, top, groups, seed)
    if load != "even":
        raise ValueError(f"no load {load}")
    return [m] * groups


def limit_us(family, rows, n, k):
    """1.25 x (the larger of reading and computing at the rates of an H200, and a launch)."""
    used, total = sum(1 for one in rows if one), sum(rows)
    reading = k * (n * WEIGHT_BYTES.get(family, 1) * used + total) / BYTES_PER_US
    computing = 2 * total * n * k / FLOPS_PER_US
    return ALLOWED * (max(reading, computing) + LAUNCH_US)
