#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the starting inputs of the file fuzzers: good files and one of each way to be wrong.

usage: make_corpus.py [FOLDER]      (default: the corpus folder beside this script)

Each input has a name that says what it is. Findings of the fuzzers are kept beside them under names
that start with `finding_`; this script does not touch them.
"""
import json
import os
import struct
import sys

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(
    os.path.abspath(__file__)), "corpus")


def write(target, name, content):
    folder = os.path.join(FOLDER, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)


# ---- safetensors ---------------------------------------------------------------------------------

SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "I16": 2, "U16": 2,
         "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8}


def safetensors(name, header, data_bytes=0, length=None):
    text = header if isinstance(header, bytes) else json.dumps(
        header, separators=(",", ":"), ensure_ascii=False).encode()
    prefix = struct.pack("<Q", len(text) if length is None else length)
    write("safetensors", name, prefix + text + bytes(i % 251 for i in range(data_bytes)))


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def good_safetensors():
    position = 0
    every = {}
    for dtype, size in SIZES.items():
        every[dtype.lower()] = entry(dtype, [2, 1], position, position + 2 * size)
        position += 2 * size
    safetensors("good_every_dtype", every, position)
    safetensors("good_empty", {})
    safetensors("good_metadata", {"__metadata__": {"format": "pt", "\u00e9": "\u20ac\U0001d11e"},
                                  "w": entry("U8", [3], 0, 3)}, 3)
    safetensors("good_order", {"b": entry("U8", [3], 4, 7), "none": entry("F64", [0, 4], 4, 4),
                               "a": entry("F32", [], 0, 4)}, 7)
    safetensors("good_escapes", b'{"\\u00e9\\ud834\\udd1e\\n\\"":{"dtype":"U8","shape":[1],'
                b'"data_offsets":[0,1]}}   \n', 1)
    safetensors("good_rank_8", {"w": entry("U8", [1, 2, 1, 1, 1, 1, 1, 2], 0, 4)}, 4)


def bad_safetensors():
    w = entry("U8", [4], 0, 4)
    for name, fields in {
            "no_dtype": {"shape": [4], "data_offsets": [0, 4]},
            "no_shape": {"dtype": "U8", "data_offsets": [0, 4]},
            "no_offsets": {"dtype": "U8", "shape": [4]},
            "extra_key": dict(w, strides=[1]),
            "dtype_number": dict(w, dtype=1),
            "dtype_unknown": dict(w, dtype="U9"),
            "dtype_f4": entry("F4", [8], 0, 4),
            "dtype_f6": entry("F6_E2M3", [4], 0, 3),
            "shape_number": dict(w, shape=4),
            "shape_float": dict(w, shape=[4.0]),
            "shape_negative": dict(w, shape=[-4]),
            "shape_rank_9": dict(w, shape=[4] + 8 * [1]),
            "shape_big": dict(w, shape=[2 ** 63]),
            "shape_product": dict(w, shape=[2 ** 32, 2 ** 32]),
            "shape_product_zero": dict(w, shape=[2 ** 32, 2 ** 32, 0]),
            "shape_bytes": dict(w, dtype="F64", shape=[2 ** 60]),
            "offsets_one": dict(w, data_offsets=[4]),
            "offsets_three": dict(w, data_offsets=[0, 4, 8]),
            "offsets_negative": dict(w, data_offsets=[-1, 3]),
            "offsets_backward": dict(w, data_offsets=[4, 0]),
            "offsets_short": dict(w, data_offsets=[0, 3]),
            "offsets_far": dict(w, data_offsets=[2 ** 63 - 5, 2 ** 63 - 1])}.items():
        safetensors("bad_" + name, {"w": fields}, 4)
    safetensors("bad_truncated", {"w": w}, 3)
    safetensors("bad_trailing", {"w": w}, 5)
    safetensors("bad_gap", {"w": w, "v": entry("U8", [2], 5, 7)}, 7)
    safetensors("bad_overlap", {"w": w, "v": entry("U8", [2], 3, 5)}, 5)
    safetensors("bad_empty_inside", {"w": w, "v": entry("U8", [0], 2, 2)}, 4)
    one = json.dumps(w).encode()
    safetensors("bad_name_twice", b'{"w":' + one + b',"\\u0077":' + one + b"}", 4)
    safetensors("bad_key_twice",
                b'{"w":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4)
    safetensors("bad_metadata_twice", b'{"__metadata__":{},"__metadata__":{}}')
    safetensors("bad_metadata_key_twice", b'{"__metadata__":{"a":"","a":""}}')
    safetensors("bad_metadata_value", {"__metadata__": {"a": 1}})
    safetensors("bad_metadata_list", {"__metadata__": []})
    safetensors("bad_nul", b'{"a\\u0000":1}')
    safetensors("bad_surrogate", b'{"\\ud800":1}')
    safetensors("bad_utf8", b'{"\xc0\x80":1}')
    safetensors("bad_control", b'{"\x1b[2J":1}')
    safetensors("bad_behind", b"{} x")
    safetensors("bad_comma", b'{"__metadata__":{},}')
    safetensors("bad_space_before", b" {}")
    safetensors("bad_list", b"[]")
    safetensors("bad_nesting", b'{"w":' + b"[" * 3000)
    safetensors("bad_nesting_inside", b'{"w":{"a":' + b"[" * 3000)
    safetensors("bad_number", b'{"w":{"shape":[1e999]}}')
    safetensors("bad_long_name", b'{"' + b"n" * 5000 + b'":{}}')
    safetensors("bad_length_huge", b"{}", 0, 2 ** 64 - 1)
    safetensors("bad_length_large", b"{}", 0, 3)
    safetensors("bad_length_zero", b"{}", 0, 0)
    write("safetensors", "bad_lfs_pointer",
          b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    write("safetensors", "bad_short", b"\2\0\0\0\0\0\0\0{")
    write("safetensors", "bad_nothing", b"")


# ---- safetensors_index ---------------------------------------------------------------------------

def index():
    for name, text in {
            "good_two_files": b'{"metadata":{"total_size":3,"x":[1.5,null,true]},"weight_map":'
                    b'{"a":"model-00001-of-00002.safetensors",'
                    b'"b":"model-00002-of-00002.safetensors",'
                    b'"c":"model-00001-of-00002.safetensors"}}',
            "good_empty": b'{"weight_map":{}}',
            "good_escapes": b' {"weight_map":{"\\u00e9\\n":"a b.safetensors"}} \n',
            "bad_nothing": b"",
            "bad_none": b'{"metadata":{}}',
            "bad_twice": b'{"weight_map":{},"weight_map":{}}',
            "bad_list": b'{"weight_map":[]}',
            "bad_number": b'{"weight_map":{"a":1}}',
            "bad_path": b'{"weight_map":{"a":"../../etc/passwd"}}',
            "bad_dots": b'{"weight_map":{"a":".."}}',
            "bad_empty_file": b'{"weight_map":{"a":""}}',
            "bad_behind": b'{"weight_map":{}}}',
            "bad_metadata": b'{"metadata":{"a":1,"a":1},"weight_map":{}}',
            "bad_nesting": b'{"metadata":' + b"[" * 3000}.items():
        write("safetensors_index", name, text)


# ---- npy -----------------------------------------------------------------------------------------

def npy(name, text, data_bytes, version=1, length=None, minor=0):
    header = text.encode("latin1")
    size = len(header) if length is None else length
    write("npy", name, b"\x93NUMPY" + bytes([version, minor]) +
          struct.pack("<H" if version == 1 else "<I", size) + header +
          bytes(i % 251 for i in range(data_bytes)))


def dictionary(descr="'<f4'", order="False", shape="(2, 3)"):
    return "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n" % (descr, order, shape)


def good_npy():
    for descr, size in [("|b1", 1), ("|i1", 1), ("|u1", 1), ("<i2", 2), ("<u2", 2), ("<f2", 2),
                        ("<i4", 4), ("<u4", 4), ("<f4", 4), ("<i8", 8), ("<u8", 8), ("<f8", 8)]:
        npy("good_" + descr[1:], dictionary("'%s'" % descr), 6 * size)
    npy("good_version_2", dictionary(), 24, 2)
    npy("good_version_3", dictionary(), 24, 3)
    npy("good_scalar", dictionary(shape="()"), 4)
    npy("good_vector_fortran", dictionary(order="True", shape="(6,)"), 24)
    npy("good_empty", dictionary(shape="(0, 3)"), 0)
    npy("good_rank_8", dictionary(shape="(1, 2, 1, 2, 1, 1, 1, 1,)"), 16)
    npy("good_padded", dictionary()[:-1] + " " * 50 + "\n", 24)
    npy("good_spaces", " { \"shape\" : ( 6 , ) ,'fortran_order':False,\n'descr':'<u1'}\n", 6)


def bad_npy():
    for name, changed in {
            "big_endian": {"descr": "'>f4'"},
            "object": {"descr": "'|O'"},
            "text": {"descr": "'<U3'"},
            "bytes": {"descr": "'|S4'"},
            "raw": {"descr": "'|V2'"},
            "complex": {"descr": "'<c8'"},
            "time": {"descr": "'<M8[ns]'"},
            "structured": {"descr": "[('a', '<f4')]"},
            "unknown": {"descr": "'<f3'"},
            "no_order": {"descr": "'f4'"},
            "descr_number": {"descr": "4"},
            "fortran": {"order": "True"},
            "order_word": {"order": "false"},
            "list": {"shape": "[6]"},
            "no_comma": {"shape": "(6)"},
            "negative": {"shape": "(-6,)"},
            "float": {"shape": "(6.0,)"},
            "leading_zero": {"shape": "(06,)"},
            "long_suffix": {"shape": "(6L,)"},
            "too_big": {"shape": "(9223372036854775808,)"},
            "product": {"shape": "(4294967296, 4294967296)"},
            "product_zero": {"shape": "(4294967296, 4294967296, 0)"},
            "rank_9": {"shape": "(6, 1, 1, 1, 1, 1, 1, 1, 1)"}}.items():
        npy("bad_" + name, dictionary(**changed), 24)
    npy("bad_truncated", dictionary(), 23)
    npy("bad_trailing", dictionary(), 25)
    npy("bad_no_newline", dictionary()[:-1], 24)
    npy("bad_key_twice", "{'descr': '<f4', 'descr': '<f4'}\n", 24)
    npy("bad_key_unknown", "{'strides': (1,)}\n", 24)
    npy("bad_key_missing", "{'descr': '<f4', 'shape': (6,)}\n", 24)
    npy("bad_behind", dictionary() + "x\n", 24)
    npy("bad_open", "{'descr': '<f4", 24)
    npy("bad_escape", "{'des\\x63r': '<f4'}\n", 24)
    npy("bad_empty_header", "", 24)
    npy("bad_length", dictionary(), 24, 2, 2 ** 32 - 1)
    npy("bad_version_4", dictionary(), 24, 4)
    npy("bad_version_1_1", dictionary(), 24, 1, None, 1)
    write("npy", "bad_magic", b"\x93NUMPX\1\0\0\0")
    write("npy", "bad_short", b"\x93NUMPY\1\0\0")
    write("npy", "bad_zip", b"PK\3\4" + bytes(30))
    write("npy", "bad_nothing", b"")


# ---- tune files ----------------------------------------------------------------------------------

def tune(name, text):
    write("tune", name, text.encode() if isinstance(text, str) else text)


TUNED = "family=fp8 grouping=dense n=4096 k=7168 rows=1..16 kernel=fp8_any_m128n128k128s6"


def tunes():
    tune("good", f"# H200\nhalfbyte-tune 1\n\n{TUNED} # 11 us\r\n"
                 f"{TUNED.replace('dense', 'masked')} groups=8 sms=132\n")
    tune("no_last_newline", f"halfbyte-tune 1\n{TUNED}")
    tune("repeated", f"halfbyte-tune 1\n{TUNED}\n{TUNED}\n{TUNED} groups=1\n")
    tune("other_kernel", f"halfbyte-tune 1\n{TUNED}0\n")
    tune("empty", "")
    tune("comment_only", "# nothing\n")
    tune("no_version", TUNED)
    tune("wrong_version", "halfbyte-tune 2\n")
    tune("wrong_family", f"halfbyte-tune 1\n{TUNED.replace('fp8 ', 'int3 ')}\n")
    tune("wrong_number", f"halfbyte-tune 1\n{TUNED.replace('7168', '99999999999')}\n")
    tune("wrong_rows", f"halfbyte-tune 1\n{TUNED.replace('1..16', '16..1')}\n")
    tune("wrong_kernel", f"halfbyte-tune 1\n{TUNED.replace('any_', 'Any/')}\n")
    tune("twice", f"halfbyte-tune 1\n{TUNED} n=1\n")
    tune("missing", "halfbyte-tune 1\nfamily=w4a8\n")
    tune("unknown", "halfbyte-tune 1\nspeed=3\n")
    tune("no_text", b"halfbyte-tune 1\n\x00\xff=\xfe\n")


good_safetensors()
bad_safetensors()
index()
good_npy()
bad_npy()
tunes()
