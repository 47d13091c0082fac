#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small inputs of the cases in the folder given, from a fixed seed."""

import json
import math
import os
import random
import struct
import sys

NAN = float("nan")


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def encode_bf16(value):
    """Round to nearest even; the values here are finite."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16


def pack(dtype, values):
    if dtype == "BF16":
        return struct.pack(f"<{len(values)}H", *(encode_bf16(value) for value in values))
    code = {"F32": "f", "F16": "e", "I64": "q", "I32": "i", "I8": "b", "U8": "B",
            "F8_E4M3": "B"}[dtype]
    return struct.pack(f"<{len(values)}{code}", *values)


def write_safetensors(path, tensors, metadata=None):
    """tensors: list of (name, dtype, shape, bytes)."""
    header = {} if metadata is None else {"__metadata__": metadata}
    offset = 0
    for name, dtype, shape, data in tensors:
        end = offset + len(data)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(item[3] for item in tensors))


def write_npy(path, descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def normal(count, scale=0.05):
    """Nearly normal: sums of uniform numbers, which are the same with every C library."""
    return [f32((sum(random.random() for _ in range(4)) - 2) * 1.75 * scale) for _ in range(count)]


def tensor(name, dtype, shape, values=None):
    if values is None:
        values = normal(math.prod(shape))
    return (name, dtype, shape, pack(dtype, values))


def make_plain():
    return [
        tensor("model.embed_tokens.weight", "BF16", [32, 64]),
        tensor("model.layers.0.input_layernorm.weight", "BF16", [64]),
        tensor("model.layers.0.mlp.gate.weight", "BF16", [8, 64]),
        tensor("model.layers.0.up_proj.bias", "F32", [24]),
        tensor("model.layers.0.up_proj.weight", "BF16", [24, 64]),
        tensor("model.layers.0.down_proj.weight", "F16", [16, 192]),
        tensor("model.layers.1.odd_k.weight", "F32", [16, 100]),
        tensor("model.layers.1.odd_n.weight", "F32", [5, 64]),
        tensor("model.layers.1.tall.weight", "F32", [264, 128]),
        tensor("model.layers.1.zeros.weight", "F32", [8, 128], [0.0] * 1024),
        tensor("lm_head.weight", "BF16", [32, 64]),
        ("model.position_ids", "I64", [1, 4], pack("I64", [0, 1, 2, 3])),
    ]


def quantize_int4(values, n, k, group):
    """Nibbles (-7..7) row by row, and fp32 scales: amax / 7."""
    nibbles, scales = [], []
    for row in range(n):
        for start in range(row * k, (row + 1) * k, group):
            part = values[start:start + group]
            scale = f32(max(abs(value) for value in part) / 7)
            scales.append(scale)
            nibbles += [max(-7, min(7, round(f32(value / scale)))) for value in part]
    return nibbles, scales


def low_first(nibbles):
    """Two in a byte, as signed bytes."""
    data = [(low & 15) | (high & 15) << 4 for low, high in zip(nibbles[::2], nibbles[1::2])]
    return bytes(data)


def offset_words(nibbles):
    words = [sum((value + 8) << 4 * i for i, value in enumerate(nibbles[at:at + 8]))
             for at in range(0, len(nibbles), 8)]
    return struct.pack(f"<{len(words)}I", *words)


def make_experts():
    """Three experts, original and quantised in two layouts, with static input scales."""
    plain, w4, packed = [], [], []
    parts = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
    for expert in range(3):
        for part, alias in parts.items():
            base = f"model.layers.0.mlp.experts.{expert}."
            n, k = (16, 128) if part != "down_proj" else (24, 256)
            values = normal(n * k)
            nibbles, scales = quantize_int4(values, n, k, 128)
            plain.append(tensor(base + part + ".weight", "F32", [n, k], values))
            w4.append((base + part + ".weight", "I8", [n, k // 2], low_first(nibbles)))
            w4.append(tensor(base + part + ".weight_scale_inv", "F32", [n, k // 128], scales))
            w4.append(tensor(base + alias + ".input_scale", "F32", [1], [0.01 * (expert + 1)]))
            packed.append((base + part + ".weight_packed", "I32", [n, k // 8],
                           offset_words(nibbles)))
            packed.append(tensor(base + part + ".weight_scale", "F32", [n, k // 128], scales))
            packed.append(tensor(base + part + ".weight_shape", "I64", [2], [n, k]))
    return plain, w4, packed


def make_fp8():
    def codes(count):
        return [random.choice([code for code in range(256) if code & 127 != 127])
                for _ in range(count)]
    return [
        tensor("a.tensor.weight", "F8_E4M3", [16, 64], codes(1024)),
        tensor("a.tensor.weight_scale", "F32", [], [0.01]),
        tensor("a.channel.weight", "F8_E4M3", [16, 64], codes(1024)),
        tensor("a.channel.weight_scale", "BF16", [16, 1], [0.01] * 16),
        tensor("a.block.weight", "F8_E4M3", [130, 200], codes(26000)),
        tensor("a.block.weight_scale_inv", "BF16", [2, 2], [0.01] * 4),
        tensor("a.block.input_scale", "F32", [1], [0.25]),
        tensor("a.tensor.input_scale", "F32", [1], [0.25]),
        tensor("a.channel.input_scale", "F32", [1], [0.25]),
    ]


def make_faults():
    def int4(name):
        return (name, "I8", [8, 64], bytes(512))
    ones = [1.0] * 8
    return [
        int4("missing.weight"),
        int4("shape.weight"), tensor("shape.weight_scale_inv", "F32", [8, 9], [1.0] * 72),
        int4("nan.weight"), tensor("nan.weight_scale_inv", "F32", [8, 1], ones[:3] + [NAN] * 5),
        int4("negative.weight"),
        tensor("negative.weight_scale_inv", "F32", [8, 1], [-1.0] + ones[:7]),
        int4("type.weight"), ("type.weight_scale_inv", "I32", [8, 1], bytes(32)),
        int4("zero.weight"), tensor("zero.weight_scale_inv", "F32", [8, 1], ones),
        tensor("zero.input_scale", "F32", [1], [0.0]),
        int4("static.weight"), tensor("static.weight_scale_inv", "F32", [8, 1], ones),
        tensor("orphan.weight_scale_inv", "F32", [8, 1], ones),
        tensor("bare.weight", "F8_E4M3", [8, 64], [0] * 512),
        tensor("block.weight", "F8_E4M3", [8, 64], [0] * 512),
        tensor("block.weight_scale_inv", "F32", [1, 2], [1.0, 1.0]),
        ("packed.weight_packed", "I32", [8, 8], bytes(256)),
        ("lied.weight_packed", "I32", [8, 8], bytes(256)),
        tensor("lied.weight_scale", "F32", [8, 1], ones),
        tensor("lied.weight_shape", "I64", [2], [8, 99]),
    ]


def make_activations(folder):
    values = normal(5 * 64, 1.0)
    write_npy(f"{folder}/x64.npy", "<f4", (5, 64), pack("F32", values))
    write_npy(f"{folder}/x64_half.npy", "<f2", (5, 64), pack("F16", values))
    write_npy(f"{folder}/x128.npy", "<f4", (9, 128), pack("F32", normal(9 * 128, 1.0)))
    write_npy(f"{folder}/flat.npy", "<f4", (64,), pack("F32", normal(64)))
    write_npy(f"{folder}/sizes.npy", "<i8", (3,), struct.pack("<3q", 4, 0, 5))
    write_npy(f"{folder}/negative.npy", "<i4", (2,), struct.pack("<2i", 4, -1))
    for name, text in (("sizes.txt", "# rows of three experts\n4\n\n0  # nobody\n5\n"),
                       ("two_sizes.txt", "4\n5\n"), ("bad_sizes.txt", "4\nfive\n"),
                       ("no_sizes.txt", "# none\n")):
        with open(f"{folder}/{name}", "w", encoding="ascii") as file:
            file.write(text)


def make_malformed(folder):
    with open(f"{folder}/plain.safetensors", "rb") as file:
        whole = file.read()
    for name, data in (("truncated.safetensors", whole[:-10]), ("empty.safetensors", b""),
                       ("text.safetensors", b"this is no safetensors file\n")):
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)
    write_safetensors(f"{folder}/nan.safetensors", [
        tensor("layer.weight", "F32", [8, 64], normal(300) + [NAN] + normal(211))])
    write_safetensors(f"{folder}/biases.safetensors", [tensor("a.bias", "F32", [8])])


def make_vectors(folder):
    """One e4m3 record 1 * 1 + 0 = 1, right and wrong; one of mma.sync; one unknown."""
    def record(kind, d):
        a = bytes([0x38] + [0] * 31)
        return struct.pack("<II32s32sII", kind, 25, a, a, 0, d)
    for name, data in (("right.bin", record(0, 0x3f800000) + record(16, 0)),
                       ("wrong.bin", record(0, 0x3f800000) + record(0, 0x40000000)),
                       ("skipped.bin", record(17, 0)), ("unknown.bin", record(5, 0)),
                       ("short.bin", record(0, 0)[:79])):
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)


def main():
    folder = sys.argv[1]
    os.makedirs(folder + "/sharded", exist_ok=True)
    random.seed(7)
    plain = make_plain()
    write_safetensors(f"{folder}/plain.safetensors", plain, {"format": "pt", "note": "made"})
    shards = {"model-1.safetensors": plain[:6], "model-2.safetensors": plain[6:]}
    weight_map = {}
    for name, tensors in shards.items():
        write_safetensors(f"{folder}/sharded/{name}", tensors, {"format": "pt"})
        weight_map.update({item[0]: name for item in tensors})
    with open(f"{folder}/sharded/model.safetensors.index.json", "w", encoding="ascii") as file:
        json.dump({"metadata": {}, "weight_map": weight_map}, file)
    experts, w4, packed = make_experts()
    write_safetensors(f"{folder}/experts.safetensors", experts)
    write_safetensors(f"{folder}/w4.safetensors", w4)
    write_safetensors(f"{folder}/packed.safetensors", packed)
    write_safetensors(f"{folder}/fp8.safetensors", make_fp8())
    write_safetensors(f"{folder}/faults.safetensors", make_faults())
    make_activations(folder)
    make_malformed(folder)
    make_vectors(folder)


if __name__ == "__main__":
    main()
