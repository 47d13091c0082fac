# SPDX-License-Identifier: Apache-2.0
"""libhalfbyte through ctypes: the structs of include/halfbyte.h and the calls that the measurements
make."""

import ctypes as C


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


class PackedHeader(C.Structure):
    _fields_ = [("version", C.c_uint32), ("flags", C.c_uint32),
                ("n", C.c_int64), ("k", C.c_int64), ("groups", C.c_int64),
                ("group_k_offset", C.c_int64), ("weight_group_size", C.c_int64),
                ("scale_type", C.c_int), ("reserved", C.c_uint32)]


class Operands(C.Structure):
    _fields_ = [
        ("struct_size", C.c_size_t), ("m", C.c_int64), ("expected_m", C.c_int64),
        ("a", Matrix), ("b", Matrix), ("c", Matrix), ("d", Matrix),
        ("a_scale", Scale), ("b_scale", Scale), ("channel_scale", Vector), ("bias", Vector),
        ("alpha", C.c_float), ("beta", C.c_float), ("alpha_pointer", C.c_void_p),
        ("groups", Groups), ("b_header", C.POINTER(PackedHeader)), ("d_scale", Scale),
        ("b_zero_point", Scale), ("a_prescale", Vector),
    ]


class Int4Desc(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("layout", C.c_int),
                ("n", C.c_int64), ("k", C.c_int64), ("groups", C.c_int64),
                ("ld", C.c_int64), ("group_stride", C.c_int64),
                ("group_k_offset", C.c_int64), ("weight_group_size", C.c_int64),
                ("scale_type", C.c_int), ("flags", C.c_uint32)]


class Options(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("executor", C.c_int), ("profile", C.c_int),
                ("ordinal", C.c_int32), ("threads", C.c_int32), ("isa", C.c_int)]


FP8, W4A8 = 1, 2
DENSE, RANGES, MASKED = 0, 1, 2
F32, BF16 = 1, 2
OUTER, BLOCK_1X128, BLOCK_128X128, K_GROUP = 2, 3, 4, 5
MN_MAJOR, K_MAJOR = 0, 1
PACKED = 1
MODEL, GPU = 1, 2
PROFILE_SM90, PROFILE_ANY = 0, 1
UNSUPPORTED = 2000
PREFIX = "halfbyte_sm90_"


class Failure(RuntimeError):
    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


def made(struct, **fields):
    return struct(struct_size=C.sizeof(struct), **fields)


class Library:
    """A device of libhalfbyte: the GPU, or the CPU model, which takes host pointers."""

    def __init__(self, path, executor, profile=PROFILE_SM90):
        self.lib = C.CDLL(path)
        self.lib.halfbyte_last_error.restype = C.c_char_p
        self.lib.halfbyte_plan_workspace_bytes.restype = C.c_size_t
        self.lib.halfbyte_plan_workspace_bytes.argtypes = [C.c_void_p]
        self.lib.halfbyte_plan_destroy.argtypes = [C.c_void_p]
        options = made(Options, executor=executor, profile=profile)
        self.device = C.c_void_p()
        self.check(self.lib.halfbyte_device_open(C.byref(self.device), C.byref(options)))

    def check(self, status):
        if status:
            raise Failure(status, self.lib.halfbyte_last_error().decode())

    def plan(self, problem):
        plan = C.c_void_p()
        self.check(self.lib.halfbyte_plan_create(C.byref(plan), C.byref(problem), self.device))
        return plan

    def workspace_bytes(self, plan):
        return self.lib.halfbyte_plan_workspace_bytes(plan)

    def run(self, plan, operands, workspace=(None, 0), stream=None):
        self.check(self.lib.halfbyte_run(plan, C.byref(operands), C.c_void_p(workspace[0]),
                                         C.c_size_t(workspace[1]), C.c_void_p(stream)))

    def destroy(self, plan):
        self.lib.halfbyte_plan_destroy(plan)

    def packed_bytes(self, desc):
        size = C.c_size_t()
        self.check(self.lib.halfbyte_packed_weights_bytes(C.byref(desc), C.byref(size)))
        return size.value

    def pack(self, desc, source, packed, size):
        """On the CPU model's threads, so this must be the model; source and packed are addresses of
        host memory.  Returns the header."""
        header = PackedHeader()
        self.check(self.lib.halfbyte_pack_weights(self.device, C.byref(desc),
                                                  C.c_void_p(source), C.c_void_p(packed),
                                                  C.c_size_t(size), C.byref(header), None))
        return header
