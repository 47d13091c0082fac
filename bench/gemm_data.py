# SPDX-License-Identifier: Apache-2.0
"""Operands of the measured products on the GPU: weights are made once for all m of a layer."""

import ctypes as C
from typing import NamedTuple

import torch

import expert_loads
import halfbyte_library as hb

MOST_EXPERTS = 4  # different int4 weights; further groups repeat them, at addresses of their own
GROUP = 128


def ceil_div(a, b):
    return -(-a // b)


def generator_of(seed):
    return torch.Generator(device="cuda").manual_seed(seed)


def random_e4m3(shape, generator):
    """About normal, with all of e4m3's exponents that a quantiser makes."""
    return (torch.randn(shape, device="cuda", generator=generator) * 80).clamp(-448, 448).to(
        torch.float8_e4m3fn)


def random_scales(shape, generator):
    return torch.rand(shape, device="cuda", generator=generator) * 0.02 + 0.001


class Layer(NamedTuple):
    family: str
    groups: int
    n: int
    k: int
    int4_layout: int  # of w4a8's weight scales


def grouping_of(layout):
    return {"dense": hb.DENSE, "masked": hb.MASKED}.get(layout, hb.RANGES)


def problem_of(layer, layout, m):
    """m: rows per group."""
    problem = hb.made(hb.Problem, grouping=grouping_of(layout), n=layer.n, k=layer.k,
                      m_max=m if layout == "masked" else m * layer.groups, groups=layer.groups,
                      d_type=hb.BF16)
    if layer.family == "fp8_block":
        problem.family = hb.FP8
        problem.a_scale = hb.ScaleSpec(hb.BLOCK_1X128, 0, hb.MN_MAJOR)
        problem.b_scale = hb.ScaleSpec(hb.BLOCK_128X128, 0, hb.K_MAJOR)
    else:
        problem.family, problem.b_layout = hb.W4A8, hb.PACKED
        problem.weight_group_size = GROUP
        problem.a_scale = hb.ScaleSpec(hb.OUTER, 0, hb.MN_MAJOR)
        problem.b_scale = hb.ScaleSpec(hb.K_GROUP, hb.BF16, layer.int4_layout)
    return problem


class Fp8Weights:
    """e4m3 [groups, n, k] with a scale per 128 x 128."""

    def __init__(self, layer, seed):
        generator = generator_of(seed)
        self.layer, (_, groups, n, k, _) = layer, layer
        self.k, self.n, self.bytes = k, n, groups * n * k
        self.b = torch.empty((groups, n, k), dtype=torch.float8_e4m3fn, device="cuda")
        for group in range(groups):
            self.b[group] = random_e4m3((n, k), generator)
        self.scale = random_scales((groups, ceil_div(n, 128), ceil_div(k, 128)), generator)
        self.row_scale = random_scales((groups, n), generator)  # of the vendor's grouped product

    def operands(self, operands):
        operands.b = hb.Matrix(self.b.data_ptr(), self.k, self.n * self.k)
        blocks = self.scale.shape[2]
        operands.b_scale = hb.Scale(self.scale.data_ptr(), blocks, 1, self.scale.shape[1] * blocks)

    def address(self):
        return self.b.data_ptr()

    def sample(self, group, columns):
        """Some columns for the CPU model: problem fields, weights, scales [columns, k blocks]."""
        b = self.b[group].view(torch.uint8)[columns].cpu().contiguous()
        scale = self.scale[group][columns // 128].cpu().contiguous()
        return (hb.made(hb.Problem, family=hb.FP8,
                        b_scale=hb.ScaleSpec(hb.BLOCK_1X128, 0, hb.K_MAJOR)),
                b, scale, scale.shape[1])


class Int4Weights:
    """int4 [groups, n, k], packed, with a bf16 scale per 128 along k; with a -8 or without one."""

    def __init__(self, model, layer, seed, minus8):
        generator = generator_of(seed)
        self.layer, (_, groups, n, k, layout) = layer, layer
        self.n, self.k, self.layout = n, k, layout
        self.experts = min(groups, MOST_EXPERTS)
        self.raw = torch.empty((self.experts, n, k // 2), dtype=torch.uint8)
        for expert in range(self.experts):
            q = torch.randint(-8 if minus8 else -7, 8, (n, k), dtype=torch.int8, device="cuda",
                              generator=generator)
            if minus8:
                q[0, 0] = -8
            self.raw[expert] = (q[:, 0::2] & 15 | q[:, 1::2] << 4).view(torch.uint8).cpu()
        desc = hb.made(hb.Int4Desc, n=n, k=k, groups=self.experts, ld=k, group_stride=n * k,
                       weight_group_size=GROUP, scale_type=hb.BF16)
        packed = torch.empty(model.packed_bytes(desc), dtype=torch.uint8)
        self.header = model.pack(desc, self.raw.data_ptr(), packed.data_ptr(), packed.numel())
        self.header.groups = groups
        each = packed.numel() // self.experts
        self.bytes = groups * each
        self.packed = torch.empty((groups, each), dtype=torch.uint8, device="cuda")
        for first in range(0, groups, self.experts):
            some = min(self.experts, groups - first)
            self.packed[first:first + some] = packed.view(self.experts, each)[:some].cuda()
        self.blocks = ceil_div(k, GROUP)
        shape = (groups, n, self.blocks) if layout == hb.K_MAJOR else (groups, self.blocks, n)
        self.scale = random_scales(shape, generator).to(torch.bfloat16)

    def operands(self, operands):
        operands.b = hb.Matrix(self.packed.data_ptr(), 0, 0)
        operands.b_header = C.pointer(self.header)
        stride = (self.blocks, 1) if self.layout == hb.K_MAJOR else (1, self.n)
        operands.b_scale = hb.Scale(self.scale.data_ptr(), *stride, self.n * self.blocks)

    def address(self):
        return self.packed.data_ptr()

    def sample(self, group, columns):
        b = self.raw[group % self.experts][columns.cpu()].contiguous()
        scale = self.scale[group] if self.layout == hb.K_MAJOR else self.scale[group].t()
        scale = scale[columns].cpu().contiguous()
        return (hb.made(hb.Problem, family=hb.W4A8, weight_group_size=GROUP,
                        b_scale=hb.ScaleSpec(hb.K_GROUP, hb.BF16, hb.K_MAJOR)),
                b, scale, self.blocks)


class Tokens:
    """Activations with their scales, D, and what says which rows are whose."""

    def __init__(self, layer, layout, m, seed, load="even"):
        generator = generator_of(seed + 1)
        family, groups, self.n, k, _ = layer
        self.counts_list = expert_loads.rows_of(load, groups, m, seed)
        self.starts_list = [group * m if load == "even" else sum(self.counts_list[:group])
                            for group in range(groups)]
        self.layout, self.m, self.rows, self.k = layout, m, groups * m, k
        self.groups, self.blocks = groups, ceil_div(k, 128)
        self.a = random_e4m3((self.rows, k), generator)
        self.bytes = self.rows * k
        self.per_block = family == "fp8_block"
        planes, each = (groups, m) if layout == "masked" else (1, self.rows)
        shape = (planes, self.blocks, each) if self.per_block else (planes, each)
        self.scale = random_scales(shape, generator)  # m-major
        self.row_scale = random_scales((self.rows,), generator)
        self.d = torch.empty((self.rows, self.n), dtype=torch.bfloat16, device="cuda")
        self.offsets = torch.tensor(self.starts_list + [self.rows], dtype=torch.int32,
                                    device="cuda")
        self.counts = torch.tensor(self.counts_list, dtype=torch.int32, device="cuda")

    def m_of_run(self):
        return self.m if self.layout == "masked" else self.rows

    def operands(self, weights):
        m, k = self.m_of_run(), self.k
        operands = hb.made(hb.Operands, m=m)
        operands.a = hb.Matrix(self.a.data_ptr(), k, m * k)
        operands.d = hb.Matrix(self.d.data_ptr(), self.n, m * self.n)
        operands.a_scale = hb.Scale(self.scale.data_ptr(), 1, m if self.per_block else 0,
                                    self.scale[0].numel())
        if self.layout == "masked":
            operands.groups = hb.Groups(counts=self.counts.data_ptr())
            operands.expected_m = self.m
        elif self.layout != "dense":
            operands.groups = hb.Groups(starts=self.offsets.data_ptr(),
                                        ends=self.offsets.data_ptr() + 4)
            operands.expected_m = self.m
        weights.operands(operands)
        return operands

    def sample_scales(self, rows):
        """The scales of some rows of A: [rows, k blocks], or [rows]."""
        plane, row = 0 * rows, rows  # one plane, or one a group
        if self.layout == "masked":
            plane, row = rows // self.m, rows % self.m
        return (self.scale[plane, :, row] if self.per_block else self.scale[plane, row]).cpu()

    def poison(self):
        self.d.view(torch.int16).fill_(-0x5a5b)

    def bits(self):
        return self.d.view(torch.int16)


def equals_model(model, weights, tokens, bits, seed):
    """Some rows and columns of some groups, computed anew by the CPU model: (outputs compared,
    outputs that differ)."""
    generator = generator_of(seed + 2)
    compared = different = 0
    used = [group for group in range(tokens.groups) if tokens.counts_list[group]]
    for group in sorted({used[0], used[len(used) // 2], used[-1]}):
        count = tokens.counts_list[group]
        rows = torch.unique(torch.cat([
            torch.tensor([0, count - 1], device="cuda"),
            torch.randint(count, (6,), device="cuda", generator=generator)]))
        rows += tokens.starts_list[group]
        columns = torch.unique(torch.cat([
            torch.arange(16, device="cuda"), torch.arange(tokens.n - 16, tokens.n, device="cuda"),
            torch.randint(tokens.n, (64,), device="cuda", generator=generator)]))
        a = tokens.a.view(torch.uint8)[rows].cpu().contiguous()
        a_scale = tokens.sample_scales(rows).contiguous()
        problem, b, b_scale, blocks = weights.sample(group, columns)
        m, n = rows.numel(), columns.numel()
        problem.m_max, problem.n, problem.k, problem.d_type = m, n, tokens.k, hb.BF16
        mode = (hb.BLOCK_1X128, 0, hb.K_MAJOR) if tokens.per_block else (hb.OUTER, 0, hb.MN_MAJOR)
        problem.a_scale = hb.ScaleSpec(*mode)
        operands = hb.made(hb.Operands, m=m)
        d = torch.empty((m, n), dtype=torch.bfloat16)
        operands.a = hb.Matrix(a.data_ptr(), tokens.k, 0)
        operands.b = hb.Matrix(b.data_ptr(), tokens.k, 0)
        operands.d = hb.Matrix(d.data_ptr(), n, 0)
        operands.a_scale = hb.Scale(a_scale.data_ptr(), tokens.blocks if tokens.per_block else 1,
                                    1 if tokens.per_block else 0, 0)
        operands.b_scale = hb.Scale(b_scale.data_ptr(), blocks, 1, 0)
        plan = model.plan(problem)
        model.run(plan, operands)
        model.destroy(plan)
        got = bits[rows][:, columns].cpu()
        compared += m * n
        different += int((got != d.view(torch.int16)).sum())
    return compared, different
