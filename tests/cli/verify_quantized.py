#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recomputes what `halfbyte quantize IN -o OUT` should have written and compares it byte by byte.

    verify_quantized.py IN OUT w4afp8|fp8-block [GROUP]

fp32 arithmetic is done in double and rounded once, which is exact for a division. IN is one file.
"""

import json
import math
import struct
import sys


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    return {name: (entry["dtype"], entry["shape"],
                   data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]])
            for name, entry in header.items()}, metadata


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def decode(dtype, data):
    if dtype == "F32":
        return list(struct.unpack(f"<{len(data) // 4}f", data))
    if dtype == "F16":
        return list(struct.unpack(f"<{len(data) // 2}e", data))
    words = struct.unpack(f"<{len(data) // 2}H", data)
    return [struct.unpack("<f", struct.pack("<I", word << 16))[0] for word in words]


def e4m3_values():
    """Value of each finite code from 0 to 0x7e."""
    values = []
    for code in range(0x7f):
        exponent, mantissa = code >> 3, code & 7
        values.append(mantissa * 2.0 ** -9 if exponent == 0
                      else (8 + mantissa) * 2.0 ** (exponent - 10))
    return values


E4M3 = e4m3_values()


def encode_e4m3(value):
    """Nearest code, ties to the even one; saturating."""
    magnitude = min(abs(value), E4M3[-1])
    low = 0
    high = len(E4M3) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if E4M3[middle] <= magnitude:
            low = middle
        else:
            high = middle
    below, above = magnitude - E4M3[low], E4M3[high] - magnitude
    code = low if below < above or (below == above and low % 2 == 0) else high
    return code | (0x80 if math.copysign(1, value) < 0 else 0)


def quantize_int4(values, n, k, group):
    nibbles, scales = [], []
    for start in range(0, n * k, group):
        part = values[start:start + group]
        scale = f32(max(abs(value) for value in part) / 7)
        scales.append(scale)
        nibbles += [max(-7, min(7, round(f32(value / scale)))) if scale else 0 for value in part]
    data = bytes((low & 15) | (high & 15) << 4 for low, high in zip(nibbles[::2], nibbles[1::2]))
    return (("I8", [n, k // 2], data),
            ("F32", [n, k // group], struct.pack(f"<{len(scales)}f", *scales)))


def quantize_blocks(values, n, k):
    rows, columns = -(-n // 128), -(-k // 128)
    scales = []
    for block in range(rows * columns):
        row, column = block // columns * 128, block % columns * 128
        largest = max(abs(values[i * k + j]) for i in range(row, min(row + 128, n))
                      for j in range(column, min(column + 128, k)))
        scales.append(f32(largest / 448) if largest else 1.0)
    data = bytes(encode_e4m3(f32(values[i * k + j] / scales[i // 128 * columns + j // 128]))
                 for i in range(n) for j in range(k))
    return (("F8_E4M3", [n, k], data),
            ("F32", [rows, columns], struct.pack(f"<{len(scales)}f", *scales)))


def main():
    tensors, metadata = load(sys.argv[1])
    written, written_metadata = load(sys.argv[2])
    scheme = sys.argv[3]
    group = int(sys.argv[4]) if len(sys.argv) > 4 else 128
    expected = {}
    quantized = 0
    for name, (dtype, shape, data) in tensors.items():
        if name + "_scale_inv" not in written:
            expected[name] = (dtype, shape, data)
            continue
        quantized += 1
        values = decode(dtype, data)
        pair = (quantize_int4(values, *shape, group) if scheme == "w4afp8"
                else quantize_blocks(values, *shape))
        expected[name], expected[name + "_scale_inv"] = pair
    faults = sorted(expected.keys() ^ written.keys())
    faults += [name for name in expected if name in written and expected[name] != written[name]]
    faults += [f"metadata {key}" for key in metadata if written_metadata.get(key) != metadata[key]]
    if written_metadata.get("halfbyte.scheme") != scheme:
        faults.append("metadata halfbyte.scheme")
    for fault in faults:
        print(f"differs: {fault}")
    print(f"{quantized} quantised and {len(tensors) - quantized} kept tensors compared")
    return 1 if faults or not quantized else 0


if __name__ == "__main__":
    sys.exit(main())
