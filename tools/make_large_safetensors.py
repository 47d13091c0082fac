#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a large safetensors file of bf16 weights, to show that a reader's memory stays bounded.

    tools/make_large_safetensors.py OUT [--gigabytes 2.2] [--seed 1] [--dry-run]

Standard library only; runs at about the speed of the disk and holds under 40 MB. The tensors have
the names and shapes of a mixture-of-experts model's layers (attention projections, router, experts
with n and k of 2048 and 7168, norms); the largest has 29.4 MB, so a program that holds one tensor
at a time stays far below the file's size. Layers and experts are added until the file has at least
the size asked for.

Values are normal with standard deviation 0.02 (1 for norms), rounded to bf16, the same for the same
seed. They repeat with a prime period, so neither rows nor quantisation groups repeat.
"""

import argparse
import array
import itertools
import json
import os
import random
import struct
import sys

PERIOD = 524_287            # elements of the repeated pattern, prime
HIDDEN, INNER, EXPERTS_A_LAYER = 7168, 2048, 8


def tensor_shapes():
    """Yields (name, shape) without end, in the order of a checkpoint."""
    for layer in itertools.count():
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", (HIDDEN,)
        yield prefix + "self_attn.q_a_proj.weight", (1536, HIDDEN)
        yield prefix + "self_attn.kv_a_proj_with_mqa.weight", (576, HIDDEN)
        yield prefix + "post_attention_layernorm.weight", (HIDDEN,)
        yield prefix + "mlp.gate.weight", (256, HIDDEN)
        for expert in range(EXPERTS_A_LAYER):
            name = f"{prefix}mlp.experts.{expert}."
            yield name + "gate_proj.weight", (INNER, HIDDEN)
            yield name + "up_proj.weight", (INNER, HIDDEN)
            yield name + "down_proj.weight", (HIDDEN, INNER)


def choose_tensors(target_bytes):
    """Returns a list of (name, shape, bytes) whose data add up to at least target_bytes."""
    chosen, total = [], 0
    for name, shape in tensor_shapes():
        if total >= target_bytes:
            return chosen
        size = 2
        for extent in shape:
            size *= extent
        chosen.append((name, shape, size))
        total += size


def header_bytes(tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, size in tensors:
        header[name] = {"dtype": "BF16", "shape": list(shape),
                        "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def bf16_pattern(generator, mean, deviation):
    """PERIOD normal values as little-endian bf16, rounded to nearest even."""
    values = array.array("f", (generator.gauss(mean, deviation) for _ in range(PERIOD)))
    words = array.array("I", values.tobytes())
    halves = array.array("H", ((w + 0x7FFF + (w >> 16 & 1)) >> 16 for w in words))
    if sys.byteorder == "big":
        halves.byteswap()
    return halves.tobytes()


def write_values(stream, pattern, first_byte, size):
    """Writes size bytes of the endlessly repeated pattern, beginning at first_byte."""
    view = memoryview(pattern)
    at = first_byte % len(pattern)
    while size > 0:
        part = min(size, len(pattern) - at)
        stream.write(view[at:at + part])
        size -= part
        at = 0


def write_file(path, tensors, seed):
    """Writes beside the final name and renames, so that no half file is left under it."""
    generator = random.Random(seed)
    weights = bf16_pattern(generator, 0.0, 0.02)
    norms = bf16_pattern(generator, 1.0, 0.02)
    partial = f"{path}.{os.getpid()}.partial"
    try:
        with open(partial, "wb") as stream:
            stream.write(header_bytes(tensors))
            for _, shape, size in tensors:
                pattern = norms if len(shape) == 1 else weights
                write_values(stream, pattern, 2 * generator.randrange(PERIOD), size)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def positive(text):
    value = float(text)
    if not 0 < value < 1000:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1000")
    return value


def main():
    parser = argparse.ArgumentParser(
        description="Write a large safetensors file of bf16 weights with realistic names and "
                    "shapes.")
    parser.add_argument("out", metavar="OUT", help="file to write")
    parser.add_argument("--gigabytes", type=positive, default=2.2, metavar="N",
                        help="least size in units of 10^9 bytes (default 2.2)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the values (default 1)")
    parser.add_argument("--dry-run", action="store_true", help="print the figures, write nothing")
    args = parser.parse_args()
    tensors = choose_tensors(int(args.gigabytes * 1e9))
    try:
        if not args.dry_run:
            write_file(args.out, tensors, args.seed)
    except OSError as error:
        print(f"make_large_safetensors: {error}", file=sys.stderr)
        return 1
    total = len(header_bytes(tensors)) + sum(size for _, _, size in tensors)
    print(f"{args.out}: {len(tensors)} tensors, {total} bytes, largest tensor "
          f"{max(size for _, _, size in tensors)} bytes, seed {args.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
