#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files written by the C library are read here by an independent parser, and the other way round.

usage: interop.py PATH/TO/io_interop [SEED]

Needs nothing but Python's standard library: the parsers below are written from the descriptions of
the two formats. Exit status 0 if all agree.
"""
import ast
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

DTYPES = [("BOOL", 1, "|b1"), ("U8", 1, "|u1"), ("I8", 1, "|i1"), ("F8_E5M2", 1, None),
          ("F8_E4M3", 1, None), ("F8_E8M0", 1, None), ("I16", 2, "<i2"), ("U16", 2, "<u2"),
          ("F16", 2, "<f2"), ("BF16", 2, None), ("I32", 4, "<i4"), ("U32", 4, "<u4"),
          ("F32", 4, "<f4"), ("F64", 8, "<f8"), ("I64", 8, "<i8"), ("U64", 8, "<u8")]
SIZE = {name: size for name, size, _ in DTYPES}


def product(shape):
    result = 1
    for dim in shape:
        result *= dim
    return result


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return "%016x" % value


def hex_text(text):
    return "=" + text.encode().hex()


def spec_line(dtype, shape, data):
    return "%s [%s] %s" % (dtype, ", ".join(str(dim) for dim in shape), fnv(data))


# ---- parsers -------------------------------------------------------------------------------------

def no_repeated_keys(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), keys
    return dict(pairs)


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length].decode("utf-8"), object_pairs_hook=no_repeated_keys)
    data = content[8 + length:]
    metadata = header.pop("__metadata__", {})
    tensors = {}
    ranges = []
    for name, entry in header.items():
        assert set(entry) == {"dtype", "shape", "data_offsets"}, entry
        begin, end = entry["data_offsets"]
        assert end - begin == product(entry["shape"]) * SIZE[entry["dtype"]], entry
        tensors[name] = (entry["dtype"], entry["shape"], data[begin:end])
        ranges.append((begin, end))
    position = 0
    for begin, end in sorted(ranges):
        assert begin == position, (begin, position)
        position = end
    assert position == len(data)
    return length, metadata, tensors


def read_npy(path):
    with open(path, "rb") as file:
        content = file.read()
    assert content[:8] == b"\x93NUMPY\x01\x00"
    (length,) = struct.unpack_from("<H", content, 8)
    assert (10 + length) % 64 == 0 and content[9 + length:10 + length] == b"\n"
    header = ast.literal_eval(content[10:10 + length].decode("latin1"))
    assert set(header) == {"descr", "fortran_order", "shape"}
    assert header["fortran_order"] is False
    return header["descr"], header["shape"], content[10 + length:]


# ---- C writes, Python reads ----------------------------------------------------------------------

def expected_tensor(i):
    shape = [] if i == 0 else [i + 1, 3, 2]
    size = product(shape) * DTYPES[i][1]
    return shape, bytes((31 * i + j + j // 256) % 256 for j in range(size))


def check_written_by_c(tool, folder):
    subprocess.run([tool, "write", folder], check=True)
    compared = 0
    length, metadata, tensors = read_safetensors(os.path.join(folder, "all.safetensors"))
    assert length % 8 == 0
    assert list(metadata.items()) == [("format", "pt"), ("\u00e9\n", '"\\/\x01')], metadata
    assert len(tensors) == len(DTYPES)
    for i, (dtype, _, descr) in enumerate(DTYPES):
        shape, data = expected_tensor(i)
        name = 'l\u00e4yer.%d."%s"' % (i, dtype)
        assert tensors[name] == (dtype, shape, data), name
        compared += 1
        path = os.path.join(folder, dtype + ".npy")
        if descr is None:
            assert not os.path.exists(path)
            continue
        assert read_npy(path) == (descr, tuple(shape), data), path
        compared += 1
    return compared


# ---- Python writes, C reads ----------------------------------------------------------------------

def random_name(rng, used):
    while True:
        chars = 'aZ.0\u00e9\u20ac\U0001d11e\n"\\/ \x7f'
        name = "".join(rng.choice(chars) for _ in range(rng.randrange(12)))
        if name not in used and name != "__metadata__":
            used.add(name)
            return name


def random_shape(rng, limit=200):
    shape = [rng.choice([0, 1, 1, 2, 3, 4, 5]) for _ in range(rng.randrange(9))]
    return shape if product(shape) <= limit else shape[:3]


def random_safetensors(rng, path):
    """Writes a file whose order, spacing and escapes are random; returns its dump."""
    used = set()
    tensors = []
    for _ in range(rng.randrange(8)):
        dtype, size, _ = rng.choice(DTYPES)
        shape = random_shape(rng)
        content = rng.randbytes(product(shape) * size)
        tensors.append([random_name(rng, used), dtype, shape, content])
    layout = list(tensors)
    rng.shuffle(layout)
    data = b""
    for tensor in layout:
        tensor.append([len(data), len(data) + len(tensor[3])])
        data += tensor[3]
    members = []
    lines = []
    for name, dtype, shape, content, offsets in tensors:
        entry = [("dtype", dtype), ("shape", shape), ("data_offsets", offsets)]
        rng.shuffle(entry)
        members.append((name, dict(entry)))
        lines.append("%s %s" % (hex_text(name), spec_line(dtype, shape, content)))
    if rng.random() < 0.5:
        keys = set()
        count = rng.randrange(5)
        metadata = {random_name(rng, keys): random_name(rng, set()) for _ in range(count)}
        members.insert(rng.randrange(len(members) + 1), ("__metadata__", metadata))
        lines = ["%s %s" % (hex_text(k), hex_text(v)) for k, v in metadata.items()] + lines
    text = json.dumps(dict(members), ensure_ascii=rng.random() < 0.5,
                      indent=rng.choice([None, 0, 3]),
                      separators=rng.choice([(",", ":"), (" , ", " : ")]))
    header = text.encode() + b" " * rng.randrange(9)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data)
    return [path] + lines


def random_npy(rng, path):
    dtype, size, descr = rng.choice([row for row in DTYPES if row[2]])
    shape = tuple(random_shape(rng))
    data = rng.randbytes(product(shape) * size)
    fortran = len(shape) < 2 and rng.random() < 0.5
    header = repr({"descr": descr, "fortran_order": fortran, "shape": shape}).encode()
    version = rng.choice([1, 2, 3])
    prefix = 10 if version == 1 else 12
    header += b" " * (-(prefix + len(header) + 1) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, 0]) +
                   struct.pack("<H" if version == 1 else "<I", len(header)) + header + data)
    return [path, spec_line(dtype, shape, data)]


def check_read_by_c(tool, folder, rng):
    paths = []
    want = []
    for i in range(300):
        suffix, write = ((".npy", random_npy), (".safetensors", random_safetensors))[i % 2]
        paths.append(os.path.join(folder, "random %d%s" % (i, suffix)))
        want += write(rng, paths[-1])
    dump = subprocess.run([tool, "dump"] + paths, check=True, stdout=subprocess.PIPE)
    got = dump.stdout.decode().splitlines()
    for i, (left, right) in enumerate(zip(got, want)):
        assert left == right, "line %d: C reads %r, want %r" % (i, left, right)
    assert len(got) == len(want)
    return len(got) - len(paths)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    tool = os.path.abspath(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) == 3 else int(time.time())
    print("seed %d" % seed)
    with tempfile.TemporaryDirectory() as folder:
        written = check_written_by_c(tool, folder)
        read = check_read_by_c(tool, folder, random.Random(seed))
    print("%d tensors written by C and %d lines read by C agree" % (written, read))


main()
