#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times halfbyte's dense FP8 block-scaled kernels on a GPU beside torch's block-scaled _scaled_mm.

    python3 bench/bench_fp8.py --library build/src/libhalfbyte.so --shapes FILE [--json OUT]

FILE: CSV with columns m, n, k (others are ignored; rows with a column family other than fp8_block
or a column layout other than dense are skipped). Method: CUDA-event median of --repeats launches,
256 MiB written before each so that operands come from device memory, random data. Needs torch with
CUDA.
"""

import argparse
import csv
import ctypes as C
import datetime
import json
import os
import statistics
import sys

import torch


class ScaleSpec(C.Structure):
    _fields_ = [("mode", C.c_int), ("type", C.c_int), ("layout", C.c_int)]


class Problem(C.Structure):
    _fields_ = [
        ("struct_size", C.c_size_t), ("family", C.c_int), ("grouping", C.c_int),
        ("m_max", C.c_int64), ("n", C.c_int64), ("k", C.c_int64), ("groups", C.c_int64),
        ("a_type", C.c_int), ("b_type", C.c_int), ("d_type", C.c_int), ("b_layout", C.c_int),
        ("a_scale", ScaleSpec), ("b_scale", ScaleSpec),
        ("weight_group_size", C.c_int64), ("group_k_offset", C.c_int64),
        ("channel_scale_type", C.c_int), ("k_splits", C.c_int64), ("alpha_mode", C.c_int),
        ("c_type", C.c_int), ("bias_type", C.c_int), ("index_type", C.c_int),
        ("flags", C.c_uint32), ("num_sms", C.c_int32),
        ("a_alignment", C.c_int32), ("b_alignment", C.c_int32), ("d_alignment", C.c_int32),
        ("activation", C.c_int), ("activation_type", C.c_int), ("d_scale", ScaleSpec),
        ("b_zero_point_type", C.c_int), ("a_prescale_type", C.c_int),
    ]


class Matrix(C.Structure):
    _fields_ = [("data", C.c_void_p), ("ld", C.c_int64), ("group_stride", C.c_int64)]


class Scale(C.Structure):
    _fields_ = [("data", C.c_void_p), ("stride_mn", C.c_int64), ("stride_k", C.c_int64),
                ("group_stride", C.c_int64)]


class Vector(C.Structure):
    _fields_ = [("data", C.c_void_p), ("group_stride", C.c_int64)]


class Groups(C.Structure):
    _fields_ = [("starts", C.c_void_p), ("ends", C.c_void_p), ("counts", C.c_void_p),
                ("labels", C.c_void_p), ("starts_stride", C.c_int64), ("ends_stride", C.c_int64),
                ("counts_stride", C.c_int64)]


class Operands(C.Structure):
    _fields_ = [
        ("struct_size", C.c_size_t), ("m", C.c_int64), ("expected_m", C.c_int64),
        ("a", Matrix), ("b", Matrix), ("c", Matrix), ("d", Matrix),
        ("a_scale", Scale), ("b_scale", Scale), ("channel_scale", Vector), ("bias", Vector),
        ("alpha", C.c_float), ("beta", C.c_float), ("alpha_pointer", C.c_void_p),
        ("groups", Groups), ("b_header", C.c_void_p), ("d_scale", Scale),
        ("b_zero_point", Scale), ("a_prescale", Vector),
    ]


class Options(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("executor", C.c_int), ("profile", C.c_int),
                ("ordinal", C.c_int32), ("threads", C.c_int32), ("isa", C.c_int)]


DENSE = ("fp8_block", "dense")

# Leaves the plain kernel, which the others must equal in every bit.
SKIP_ALL_BUT_PLAIN = "m16n64,m64n64,m128n64,m128n192"

FAMILY_FP8, BF16, SCALE_1X128, SCALE_128X128, MN_MAJOR, K_MAJOR, EXECUTOR_GPU = 1, 2, 3, 4, 0, 1, 2


class Library:
    def __init__(self, path):
        self.lib = C.CDLL(path)
        self.lib.halfbyte_last_error.restype = C.c_char_p
        options = Options(struct_size=C.sizeof(Options), executor=EXECUTOR_GPU)
        self.device = C.c_void_p()
        self.check(self.lib.halfbyte_device_open(C.byref(self.device), C.byref(options)))

    def check(self, status):
        if status:
            sys.exit("halfbyte: " + self.lib.halfbyte_last_error().decode())

    def plan(self, m, n, k):
        problem = Problem(struct_size=C.sizeof(Problem), family=FAMILY_FP8, m_max=m, n=n, k=k,
                          d_type=BF16, a_scale=ScaleSpec(SCALE_1X128, 0, MN_MAJOR),
                          b_scale=ScaleSpec(SCALE_128X128, 0, K_MAJOR))
        plan = C.c_void_p()
        self.check(self.lib.halfbyte_plan_create(C.byref(plan), C.byref(problem), self.device))
        text = C.create_string_buffer(1024)
        self.check(self.lib.halfbyte_plan_describe(plan, text, C.c_size_t(1024)))
        return plan, text.value.decode().split("kernels=")[-1]

    def run(self, plan, operands):
        stream = C.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.lib.halfbyte_run(plan, C.byref(operands), None, C.c_size_t(0), stream))


def quantised(m, n, k, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    kb = (k + 127) // 128
    a = (torch.randn(m, k, device="cuda", generator=generator) * 80).clamp(-448, 448)
    b = (torch.randn(n, k, device="cuda", generator=generator) * 80).clamp(-448, 448)
    sa = torch.rand(kb, m, device="cuda", generator=generator) * 0.02 + 0.001  # m-major
    sb = torch.rand((n + 127) // 128, kb, device="cuda", generator=generator) * 0.02 + 0.001
    return a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), sa, sb


def median_us(function, repeats, flush):
    times = []
    for _ in range(3):
        function()
    for _ in range(repeats):
        flush.fill_(1)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    return statistics.median(times)


def vendor_call(a, b, sa, sb):
    """torch's block-scaled product, or None where it refuses the shape."""
    def call():
        return torch._scaled_mm(a, b.t(), scale_a=sa.t(), scale_b=sb.t(), out_dtype=torch.bfloat16,
                                use_fast_accum=False)
    try:
        call()
        return call
    except RuntimeError:
        return None


def kernel_for(m, kernels):
    """Of "NAME(m<=16),NAME": the first whose bound is not below m, as a run chooses."""
    for entry in kernels.split(","):
        name, _, bound = entry.partition("(m<=")
        if not bound or m <= int(bound.rstrip(")")):
            return name
    raise ValueError(f"no kernel for m = {m} in {kernels}")


def operands_of(a, b, sa, sb, d, m, n, k):
    operands = Operands(struct_size=C.sizeof(Operands), m=m)
    operands.a = Matrix(a.data_ptr(), k, 0)
    operands.b = Matrix(b.data_ptr(), k, 0)
    operands.d = Matrix(d.data_ptr(), n, 0)
    operands.a_scale = Scale(sa.data_ptr(), 1, m, 0)
    operands.b_scale = Scale(sb.data_ptr(), sb.shape[1], 1, 0)
    return operands


def measure(library, m, n, k, repeats, flush, seed):
    a, b, sa, sb = quantised(m, n, k, seed)
    d = torch.full((m, n), float("nan"), dtype=torch.bfloat16, device="cuda")
    operands = operands_of(a, b, sa, sb, d, m, n, k)
    plan, kernel = library.plan(m, n, k)
    library.run(plan, operands)
    torch.cuda.synchronize()
    bits = d.clone()
    row = {"m": m, "n": n, "k": k, "kernel": kernel_for(m, kernel),
           "time_us": median_us(lambda: library.run(plan, operands), repeats, flush)}
    os.environ["HALFBYTE_SKIP_KERNELS"] = SKIP_ALL_BUT_PLAIN
    plain, _ = library.plan(m, n, k)
    del os.environ["HALFBYTE_SKIP_KERNELS"]
    d.fill_(float("nan"))
    library.run(plain, operands)
    row["equal_to_plain"] = bool(torch.equal(bits.view(torch.int16), d.view(torch.int16)))
    library.run(plan, operands)
    row["repeat_equal"] = bool(torch.equal(bits.view(torch.int16), d.view(torch.int16)))
    vendor = vendor_call(a, b, sa, sb)
    if vendor:
        row["baseline"] = "torch._scaled_mm"
        row["baseline_us"] = median_us(vendor, repeats, flush)
        want = vendor().float()
        error = (bits.float() - want).norm() / want.norm()
        row["relative_difference"] = float(error)
    row["tflops"] = 2e-6 * m * n * k / row["time_us"]
    library.lib.halfbyte_plan_destroy(plan)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--shapes", required=True)
    parser.add_argument("--json")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commit", default="")
    options = parser.parse_args()
    library = Library(options.library)
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    common = {"family": "fp8_block", "layout": "dense", "groups": 1,
              "device": torch.cuda.get_device_name(), "cuda": torch.version.cuda,
              "torch": torch.__version__, "date": datetime.date.today().isoformat(),
              "commit": options.commit}
    out = open(options.json, "a") if options.json else None
    print(f"{'m':>6} {'n':>6} {'k':>6} {'us':>8} {'TFLOP/s':>8} {'torch us':>9} {'goal us':>8} "
          "kernel, relative difference from torch")
    with open(options.shapes, newline="") as file:
        for shape in csv.DictReader(file):
            if (shape.get("family", "fp8_block"), shape.get("layout", "dense")) != DENSE:
                continue
            row = measure(library, int(shape["m"]), int(shape["n"]), int(shape["k"]),
                          options.repeats, flush, options.seed)
            print(f"{row['m']:6} {row['n']:6} {row['k']:6} {row['time_us']:8.1f} "
                  f"{row['tflops']:8.0f} {row.get('baseline_us', float('nan')):9.1f} "
                  f"{shape.get('goal_us') or '':>8} {row['kernel'].rsplit('_', 1)[-1]} "
                  f"{row.get('relative_difference', float('nan')):.1e} "
                  f"{'' if row['repeat_equal'] and row['equal_to_plain'] else 'BITS DIFFER'}",
                  flush=True)
            if out:
                out.write(json.dumps({**common, **row}) + "\n")
                out.flush()


if __name__ == "__main__":
    main()
