#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times halfbyte's GPU kernels beside what the machine and its vendor's library give.

    python3 bench/bench_gemm.py --library build/src/libhalfbyte.so --shapes FILE... [--json OUT]
        [--filter WORDS] [--repeats N] [--probes FOLDER]

FILE: CSV with columns m, n, k and, where they differ from the first named, family (fp8_block,
w4a8), layout, groups, goal_us, and load: how rows fall to groups (even, one, zipfN, as
expert_loads.py has them).  A row with a load has limit_us, the time that it may take.

Per row, one line of JSON: time_us, the median of CUDA-event times with 256 MiB written before each
launch; baseline_us, torch's block-scaled _scaled_mm (dense) or rowwise _scaled_grouped_mm, with
fast accumulation or without it, whichever is faster;
read_us_run, a kernel that only reads the same bytes; mma_tflops_run, chained wgmma; bits_right: D
equals that of the library's plain kernel where there is one, a sample of D equals the CPU model's,
and so do repeated launches.  w4a8: for tensors without -8; time_minus8_us: with.

Needs torch with CUDA, and bench_read.cubin and bench_mma.cubin from the build for the two probes.
"""

import argparse
import csv
import datetime
import json
import os
import sys

import torch

import expert_loads
import halfbyte_library as hb
import ratios
from gemm_data import Fp8Weights, Int4Weights, Layer, Tokens, equals_model, problem_of
from gpu_probes import Driver, Probes, Timer, driver_version

LAYOUTS = {"fp8_block": ("dense", "contiguous", "masked"), "w4a8": ("dense", "offsets", "masked")}
HELPERS = ("group_bounds", "zero_padding", "add_splits")
FEW_REPEATS_FROM_US, FEW_REPEATS = 400, 9


def read_file(path):
    with open(path, newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            row = {"family": "fp8_block", "layout": "dense", "groups": "1",
                   **{name: value for name, value in row.items() if value}}
            if row["layout"] not in LAYOUTS.get(row["family"], ()):
                sys.exit(f"{path}:{number}: no {row['family']} {row['layout']}")
            yield row


def read_shapes(paths, words):
    shapes = [row for path in paths for row in read_file(path) if ratios.taken(row, words)]
    # Rows of one layer together, so that its weights are made once.
    order = {}
    for shape in shapes:
        order.setdefault((shape["family"], shape["layout"]), []).append(shape)
    return [shape for some in order.values()
            for shape in sorted(some, key=lambda s: tuple(int(s[x]) for x in ("groups", "n", "k")))]


def vendor_calls(family, tokens, weights):
    """(name, calls) of torch's product of the same shape: with fast accumulation and without it,
    each where torch takes it; None for w4a8, which it does not know."""
    if family != "fp8_block":
        return None
    a, b = tokens.a, weights.b.transpose(-2, -1)
    if tokens.layout == "dense":
        name, scale_a, scale_b = "torch._scaled_mm", tokens.scale[0].t(), weights.scale[0].t()

        def call(fast):
            return torch._scaled_mm(a, b[0], scale_a=scale_a, scale_b=scale_b,
                                    out_dtype=torch.bfloat16, use_fast_accum=fast)
    else:
        name, ends = "torch._scaled_grouped_mm", tokens.offsets[1:].contiguous()

        def call(fast):
            return torch._scaled_grouped_mm(a, b, tokens.row_scale, weights.row_scale, offs=ends,
                                            out_dtype=torch.bfloat16, use_fast_accum=fast)
    taken = []
    for fast in (False, True):
        try:
            call(fast)
            torch.cuda.synchronize()
            taken.append(lambda fast=fast: call(fast))
        except (RuntimeError, ValueError):
            pass
    return (name, taken) if taken else None


class Product:
    """One product on the GPU: plan, operands, workspace."""

    def __init__(self, library, driver, tokens, weights):
        self.library, self.driver, self.tokens = library, driver, tokens
        self.problem = problem_of(weights.layer, tokens.layout, tokens.m)
        self.operands = tokens.operands(weights)
        self.plan = library.plan(self.problem)
        size = library.workspace_bytes(self.plan)
        self.space = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
        self.workspace = (self.space.data_ptr() if size else None, size)

    def enqueue(self, stream):
        self.library.run(self.plan, self.operands, self.workspace, stream)

    def run(self):
        self.enqueue(torch.cuda.current_stream().cuda_stream)

    def kernels(self):
        return [name.removeprefix(hb.PREFIX) for name in self.driver.kernels_of(self.enqueue)]

    def bits_of_run(self):
        self.tokens.poison()
        self.run()
        torch.cuda.synchronize()
        return self.tokens.bits().clone()

    def close(self):
        self.library.destroy(self.plan)


def plain_product(library, driver, tokens, weights):
    """The same by the library's plain kernel; None if it has none that serves it."""
    skipped = []
    try:
        for _ in range(64):
            os.environ["HALFBYTE_SKIP_KERNELS"] = ",".join(skipped)
            product = Product(library, driver, tokens, weights)
            names = [name for name in product.kernels() if name not in HELPERS]
            if all("_any_" in name for name in names):
                return product
            product.close()
            skipped += names
    except hb.Failure as failure:
        if failure.status != hb.UNSUPPORTED:
            raise
    finally:
        os.environ.pop("HALFBYTE_SKIP_KERNELS", None)
    return None


class Bench:
    def __init__(self, options):
        self.options = options
        self.library = hb.Library(options.library, hb.GPU)
        self.model = hb.Library(options.library, hb.MODEL, hb.PROFILE_ANY)
        self.driver, self.timer = Driver(), Timer(options.repeats)
        here, there = (os.path.dirname(os.path.abspath(p)) for p in (__file__, options.library))
        folders = [options.probes] if options.probes else [
            os.path.join(there, "..", "kernels"), there, here, os.path.join(here, "kernels")]
        self.probes = Probes(self.driver, self.timer, folders)
        self.weights_key, self.weights, self.kind, self.mma = None, [], None, None
        self.int4_layout = hb.K_MAJOR if options.int4_scales == "k" else hb.MN_MAJOR

    def weights_of(self, layer, layout):
        """A layer's weights, kept while rows of it follow: one tensor; of int4 also one with -8."""
        if self.kind != (layer.family, layout):
            self.kind, self.mma = (layer.family, layout), self.probes.mma_tflops()
        if self.weights_key != layer:
            self.weights, self.weights_key = [], layer
            seed = self.options.seed
            if layer.family == "fp8_block":
                self.weights = [Fp8Weights(layer, seed)]
            else:
                self.weights = [Int4Weights(self.model, layer, seed, minus8)
                                for minus8 in (False, True)]
        return self.weights

    def timed(self, product):
        first = self.timer.times(product.run, 3)
        repeats = FEW_REPEATS if first[1] > FEW_REPEATS_FROM_US else None
        times = self.timer.times(product.run, repeats, 0)
        return times[len(times) // 2], times

    def checked(self, product, tokens, weights, row, name):
        """Adds what the bits of D were compared with; True if all were equal."""
        bits = product.bits_of_run()
        compared, different = equals_model(self.model, weights, tokens, bits, self.options.seed)
        row["model_compared" + name], row["model_different" + name] = compared, different
        right = different == 0
        for _ in range(2):
            right &= torch.equal(bits, product.bits_of_run())
        plain = plain_product(self.library, self.driver, tokens, weights)
        if plain:
            same = torch.equal(bits, plain.bits_of_run())
            row["equal_to_plain" + name] = same
            right &= same
            plain.close()
        return right

    def row(self, shape):
        family, layout = shape["family"], shape["layout"]
        groups, m, n, k = (int(shape[name]) for name in ("groups", "m", "n", "k"))
        layer = Layer(family, groups, n, k, self.int4_layout)
        self.library.destroy(self.library.plan(problem_of(layer, layout, m)))  # is it served?
        weights = self.weights_of(layer, layout)
        tokens = Tokens(layer, layout, m, self.options.seed, shape.get("load", "even"))
        used = sum(1 for count in tokens.counts_list if count)
        row = {"family": family, "layout": layout, "groups": groups, "m": m, "n": n, "k": k}
        if "load" in shape:
            row["load"], row["used_groups"] = shape["load"], used
            row["limit_us"] = expert_loads.limit_us(family, tokens.counts_list, n, k)
        right = True
        for name, some in zip(("", "_minus8"), weights):
            product = Product(self.library, self.driver, tokens, some)
            row["kernel" + name] = "+".join(product.kernels())
            right &= self.checked(product, tokens, some, row, name)
            row[f"time{name}_us"], times = self.timed(product)
            row[f"least{name}_us"], row[f"most{name}_us"] = times[0], times[-1]
            right &= torch.equal(tokens.bits(), product.bits_of_run())
            product.close()
        row["bits_right"] = bool(right)
        vendor = vendor_calls(family, tokens, weights[0])
        if vendor:
            row["baseline"] = vendor[0]
            # Twice: now and then one series is several times slower, whatever the shape.
            row["baseline_us"] = min(self.timer.median(call) for call in 2 * vendor[1])
        weight_bytes = weights[0].bytes // groups * used
        bytes_read = (weights[0].address(), weight_bytes, tokens.a.data_ptr(), tokens.bytes)
        row["read_us_run"], row["mma_tflops_run"] = self.probes.read_us(*bytes_read), self.mma
        row["tflops"] = 2e-6 * groups * m * n * k / row["time_us"]
        row["gbytes_per_s"] = 1e-3 * (weight_bytes + tokens.bytes) / row["time_us"]
        return row


def rounded(row):
    return {name: float(f"{value:.5g}") if isinstance(value, float) else value
            for name, value in row.items()}


def text_or_dash(row, name, width, form=".1f"):
    value = row.get(name)
    return f"{value:{width}{form}}" if value is not None else "-".rjust(width)


def print_row(row, shape):
    ratio, s, source, met = ratios.compare(row, shape) if shape.get("best_us") else (None,) * 4
    print(f"{row['family']:9} {row['layout']:10} {row['groups']:3} {row['m']:5} {row['n']:5} "
          f"{row['k']:5} {row['time_us']:7.1f} {text_or_dash(row, 'time_minus8_us', 7)} "
          f"{row['tflops']:5.0f} {row['gbytes_per_s']:5.0f} {text_or_dash(row, 'baseline_us', 7)} "
          f"{text_or_dash(row, 'read_us_run', 7)} {shape.get('goal_us') or '-':>7} "
          f"{'-'.rjust(6) if ratio is None else f'{ratio:6.3f}'} {'*' if met else ' '} "
          f"{row['kernel']}{ratios.text_of_load(row)}"
          f"{'' if row['bits_right'] else ' BITS DIFFER'}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--shapes", required=True, nargs="+")
    parser.add_argument("--json", help="file to append JSON Lines to")
    parser.add_argument("--filter", default="", help="words that must fit, separated by commas")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", default="")
    parser.add_argument("--probes", help="folder of bench_read.cubin and bench_mma.cubin")
    parser.add_argument("--int4-scales", choices=("k", "mn"), default="k",
                        help="which stride of w4a8's weight scales is 1")
    return parser.parse_args()


def main():
    options = arguments()
    bench = Bench(options)
    common = {"device": torch.cuda.get_device_name(), "driver": driver_version(),
              "cuda": torch.version.cuda, "torch": torch.__version__,
              "date": datetime.date.today().isoformat(), "commit": options.commit}
    out = open(options.json, "a") if options.json else None
    print("family    layout     grp     m     n     k      us  us(-8) TFLOP  GB/s  vendor    read "
          "   goal  ratio * kernel", flush=True)
    wrong, served, refused = 0, 0, {}
    for shape in read_shapes(options.shapes, options.filter):
        try:
            row = bench.row(shape)
        except hb.Failure as failure:
            if failure.status != hb.UNSUPPORTED:
                raise
            reason = f"{shape['family']} {shape['layout']}: {failure}"
            refused[reason] = refused.get(reason, 0) + 1
            continue
        served += 1
        wrong += not row["bits_right"]
        print_row(row, shape)
        if out:
            out.write(json.dumps(rounded({**common, **row})) + "\n")
            out.flush()
    for reason, count in refused.items():
        print(f"{count} rows left out: {reason}")
    print(f"{served} rows measured, {wrong} with wrong bits")
    return 1 if wrong or not served else 0


if __name__ == "__main__":
    sys.exit(main())
