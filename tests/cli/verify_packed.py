#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What halfbyte pack writes, derived a second time from docs/formats.md, and the way back.

    verify_packed.py HALFBYTE

Layers with and without -8, in both layouts, over several chunks and shards; then one fault after
the other, which must be named by its tensor and leave no output.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_inputs import pack, write_safetensors  # noqa: E402

PREFIX = "model.layers.7.mlp.experts"
ALIAS = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    body = data[8 + size:]
    return {name: (item["dtype"], item["shape"],
                   body[item["data_offsets"][0]:item["data_offsets"][1]])
            for name, item in header.items()}, metadata


def layer(base, alias, n, k, scheme, lowest, scale_type, inputs, group):
    """Tensors of one layer, and its weights."""
    weights = [[random.randint(lowest, 7) for _ in range(k)] for _ in range(n)]
    columns = -(-k // group)
    scales = [random.random() + 0.5 for _ in range(n * columns)]
    weights[0][:group] = [0] * min(group, k)  # a group of zeros has a scale of zero
    scales[0] = 0.0
    raw = bytearray()
    for row in weights:
        nibbles = [(w + 8 if scheme == "pack-quantized" else w) & 15 for w in row]
        raw += bytes(nibbles[i] | nibbles[i + 1] << 4 for i in range(0, k, 2))
    if scheme == "w4afp8":
        tensors = [(base + ".weight", "I8", [n, k // 2], bytes(raw)),
                   (base + ".weight_scale_inv", scale_type, [n, columns],
                    pack(scale_type, scales))]
    else:
        tensors = [(base + ".weight_packed", "I32", [n, k // 8], bytes(raw)),
                   (base + ".weight_scale", scale_type, [n, columns], pack(scale_type, scales)),
                   (base + ".weight_shape", "I64", [2], pack("I64", [n, k]))]
    if inputs:
        name = base[:base.rindex(".") + 1] + alias if inputs == "w" else base
        tensors.append((name + ".input_scale", "F32", [1], pack("F32", [random.random() + 0.1])))
    return tensors, weights


def model(experts, inner, hidden, scheme, lowest, scale_type="F32", inputs="w", group=128):
    tensors, weights = [], {}
    for expert in range(experts):
        for part, alias in ALIAS.items():
            n, k = (hidden, inner) if part == "down_proj" else (inner, hidden)
            base = f"{PREFIX}.{expert}.{part}"
            # A -8 in the last expert alone decides for all.
            low = lowest if expert == experts - 1 else -7
            made, weights[base] = layer(base, alias, n, k, scheme, low, scale_type, inputs, group)
            tensors += made
    return tensors, weights


def packed_codes(data, atoms, panels, expert, row, minus8):
    """The weights of one row, by the address in docs/formats.md."""
    r, row_values = row % 64, []
    for p in range(atoms * 128):
        q = p % 128
        at = ((expert * panels + row // 64) * atoms + p // 128) * 4096
        thread = r // 16 * 32 + r % 8 * 4 + q // 4 % 4
        at += 2048 * (q // 64) + 16 * thread + 8 * (q // 32 % 2) + 4 * (q // 16 % 2)
        word = int.from_bytes(data[at:at + 4], "little")
        shift = 8 * (q % 4) + 4 * (r // 8 % 2)
        code = (word >> shift | word << (32 - shift)) & 0x87
        magnitude = code & 7
        row_values.append(magnitude if code < 128 else -magnitude - 1 if minus8 else -magnitude)
    return row_values


def check_packed(out, metadata, weights, experts, projection, parts):
    name = f"{PREFIX}.{projection}.packed"
    fields = dict(item.split("=") for item in metadata["halfbyte.packed." + name].split())
    minus8 = fields["flags"] == "1"
    n, k = int(fields["n"]), int(fields["k"])
    panels, atoms = -(-n // 64), -(-k // 128)
    assert out[name][:2] == ("U8", [experts, panels, atoms, 4096]), out[name][:2]
    compared = 0
    for expert in range(experts):
        rows = [row for part in parts for row in weights[f"{PREFIX}.{expert}.{part}"]]
        assert len(rows) == n
        for row in random.sample(range(n), min(n, 40)) + [0, n - 1]:
            wanted = rows[row] + [0] * (atoms * 128 - k)
            got = packed_codes(out[name][2], atoms, panels, expert, row, minus8)
            assert got == wanted, (name, expert, row)
            compared += k
    assert minus8 == any(-8 in row for expert in range(experts) for part in parts
                         for row in weights[f"{PREFIX}.{expert}.{part}"]), name
    return compared


def run(halfbyte, *arguments):
    return subprocess.run([halfbyte, "pack", *arguments], capture_output=True, text=True,
                          check=False)


def check_model(halfbyte, folder, made, experts, shards):
    tensors, weights = made
    cut = len(tensors) // 2 if shards else len(tensors)
    write_safetensors(f"{folder}/a.safetensors", tensors[:cut])
    source = f"{folder}/a.safetensors"
    if shards:
        write_safetensors(f"{folder}/b.safetensors", tensors[cut:])
        names = {t[0]: "a.safetensors" for t in tensors[:cut]}
        names.update({t[0]: "b.safetensors" for t in tensors[cut:]})
        source = f"{folder}/model.safetensors.index.json"
        with open(source, "w", encoding="ascii") as file:
            json.dump({"metadata": {}, "weight_map": names}, file)
    done = run(halfbyte, source, "-o", f"{folder}/packed.safetensors")
    assert done.returncode == 0, done.stderr
    out, metadata = read_safetensors(f"{folder}/packed.safetensors")
    compared = check_packed(out, metadata, weights, experts, "gate_up_proj",
                            ["gate_proj", "up_proj"])
    compared += check_packed(out, metadata, weights, experts, "down_proj", ["down_proj"])
    done = run(halfbyte, "--unpack", f"{folder}/packed.safetensors", "-o",
               f"{folder}/back.safetensors")
    assert done.returncode == 0, done.stderr
    back, _ = read_safetensors(f"{folder}/back.safetensors")
    assert back == {t[0]: (t[1], t[2], t[3]) for t in tensors}, "the way back differs"
    return compared


def replaced(tensors, name, new):
    """new: None = left out, or a function of the tensor."""
    found = [t for t in tensors if t[0] == name]
    assert len(found) == 1, name
    return [t if t[0] != name else new(t) for t in tensors if t[0] != name or new is not None]


def values_set(index, value):
    def change(tensor):
        data = bytearray(tensor[3])
        data[4 * index:4 * index + 4] = pack("F32", [value])
        return (*tensor[:3], bytes(data))
    return change


def check_faults(halfbyte, folder):
    tensors, _ = model(3, 64, 128, "w4afp8", -7)
    up, down = f"{PREFIX}.1.up_proj", f"{PREFIX}.2.down_proj"
    nan, infinity = float("nan"), float("inf")
    faults = [
        (up + ".weight", None, "is missing", up + ".weight"),
        (up + ".weight_scale_inv", None, "weight_scale_inv is missing", up + ".weight"),
        (up + ".weight_scale_inv", values_set(5, nan), "1 of 64 scales are not finite", None),
        (up + ".weight_scale_inv", values_set(5, infinity), "not finite, the first at element 5",
         None),
        (down + ".weight_scale_inv", values_set(7, -1.0), "1 of 128 scales are negative", None),
        (down + ".weight_scale_inv", values_set(9, 0.0),
         "1 scales are zero though their weights are not, the first at [9, 0]", None),
        (up + ".weight_scale_inv",
         lambda t: (t[0], "BF16", t[1 + 1], pack("BF16", [1.0] * 64)), "type BF16, but", None),
        (up + ".weight_scale_inv", lambda t: (t[0], "F32", [64, 3], pack("F32", [1.0] * 192)),
         "shape [64, 3], expected", None),
        (up + ".weight_scale_inv", lambda t: (t[0], "F32", [64, 4], pack("F32", [1.0] * 256)),
         "groups of 32, but", None),
        (up + ".weight", lambda t: (t[0], "I8", [32, 128], t[3]), "expected", None),
        (f"{PREFIX}.1.w3.input_scale", None, "input_scale is missing", up + ".weight"),
        (f"{PREFIX}.1.w3.input_scale", values_set(0, 0.0), "the scale is zero", None),
        (f"{PREFIX}.1.w3.input_scale", values_set(0, nan), "not finite", None),
    ]
    for name, change, text, named in faults:
        write_safetensors(f"{folder}/a.safetensors", replaced(tensors, name, change))
        done = run(halfbyte, f"{folder}/a.safetensors", "-o", f"{folder}/none.safetensors")
        wanted = (named or name).split(".")[-2]
        assert done.returncode == 1, (name, text, done.returncode, done.stderr)
        assert text in done.stderr and wanted in done.stderr, (name, text, done.stderr)
        assert not os.path.exists(f"{folder}/none.safetensors"), (name, text)
    return len(faults)


def check_damaged(halfbyte, folder):
    """Metadata and tensors that do not go together are refused."""
    write_safetensors(f"{folder}/a.safetensors", model(2, 64, 128, "w4afp8", -8)[0])
    assert run(halfbyte, f"{folder}/a.safetensors", "-o",
               f"{folder}/packed.safetensors").returncode == 0
    out, metadata = read_safetensors(f"{folder}/packed.safetensors")
    key = f"halfbyte.packed.{PREFIX}.down_proj.packed"
    tensors = [(name, *item) for name, item in out.items()]
    refused = 0
    for old, new in (("n=128", "n=129"), ("n=128", "n=-128"), ("groups=2", "groups=3"),
                     ("groups=2", "groups=99999999"), ("version=1", "version=2"),
                     ("k=64", "k=640000000000"), ("flags=1", "flags=3"), ("scale_type=f32", "x"),
                     ("group_k_offset=0", "group_k_offset=32"), ("inputs=w", "inputs=?"),
                     ("weight_group_size=128", "weight_group_size=16")):
        changed = dict(metadata)
        changed[key] = changed[key].replace(old, new)
        assert changed != metadata, old
        write_safetensors(f"{folder}/damaged.safetensors", tensors, changed)
        done = run(halfbyte, "--unpack", f"{folder}/damaged.safetensors", "-o",
                   f"{folder}/none.safetensors")
        assert done.returncode == 1, (new, done.returncode, done.stderr)
        assert not os.path.exists(f"{folder}/none.safetensors"), new
        refused += 1
    return refused


def main():
    halfbyte = sys.argv[1]
    random.seed(11)
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for made, experts, shards in (
                (model(3, 72, 256, "w4afp8", -7), 3, False),
                (model(2, 96, 192, "w4afp8", -8, "BF16", "own"), 2, True),
                (model(2, 320, 640, "pack-quantized", -8, "BF16", None), 2, True),
                (model(1, 288, 96, "pack-quantized", -7, "F16", "own", 32), 1, False),
                (model(2, 552, 64, "w4afp8", -8, "F32", None, 64), 2, False)):
            compared += check_model(halfbyte, folder, made, experts, shards)
        faults = check_faults(halfbyte, folder)
        damaged = check_damaged(halfbyte, folder)
    print(f"{compared} packed weights compared, {faults} faults named, {damaged} damages refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
