# SPDX-License-Identifier: Apache-2.0
"""What the machine gives at the moment of a measurement: event timing after a flush, a plain read
of the same bytes, the rate of chained wgmma; and which kernels a call launches."""

import ctypes as C
import os
import statistics
import subprocess

import torch

FLUSH_BYTES = 256 << 20
EVICT_NORMAL, EVICT_FIRST = 0x1000000000000000, 0x12f0000000000000
READ_THREADS, MMA_THREADS, MMA_CHAIN = 512, 256, 32  # bench/kernels/bench_params.h
MMA_SMEM = 1024 + 128 * 128 + 256 * 128
MMA_FLOPS = 2.0 * 64 * 256 * 32
CAPTURE_RELAXED, KERNEL_NODE, MAX_DYNAMIC_SMEM = 2, 0, 8


class ReadParams(C.Structure):
    _fields_ = [("weights", C.c_void_p), ("weight_bytes", C.c_uint64),
                ("activations", C.c_void_p), ("activation_bytes", C.c_uint64),
                ("policy", C.c_uint64), ("sink", C.c_void_p)]


class MmaParams(C.Structure):
    _fields_ = [("chains", C.c_uint32), ("seed", C.c_uint32), ("sink", C.c_void_p)]


class KernelNode(C.Structure):
    _fields_ = [("function", C.c_void_p), ("grid", C.c_uint * 3), ("block", C.c_uint * 3),
                ("smem", C.c_uint), ("params", C.c_void_p), ("extra", C.c_void_p),
                ("kernel", C.c_void_p), ("context", C.c_void_p)]


def driver_version():
    try:
        say = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                             capture_output=True, text=True, timeout=20, check=True).stdout
        return say.splitlines()[0].strip()
    except (OSError, subprocess.SubprocessError, IndexError):
        return ""


class Timer:
    """CUDA-event times of a call, 256 MiB written before each so that operands come from device
    memory.  The launches are queued behind the flush, so the host's share is not in the time."""

    def __init__(self, repeats):
        self.repeats = repeats
        self.flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")

    def times(self, function, repeats=None, warm=2):
        for _ in range(warm):
            function()
        events = []
        for _ in range(repeats or self.repeats):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.flush.fill_(1)
            begin.record()
            function()
            end.record()
            events.append((begin, end))
        torch.cuda.synchronize()
        return sorted(begin.elapsed_time(end) * 1000 for begin, end in events)

    def median(self, function, repeats=None, warm=2):
        return statistics.median(self.times(function, repeats, warm))


class Driver:
    """The few calls of the CUDA driver that torch does not show."""

    def __init__(self):
        torch.zeros(1, device="cuda")  # torch's context is the current one from here on
        self.lib = C.CDLL("libcuda.so.1")
        self.side = torch.cuda.Stream()

    def call(self, name, *arguments):
        result = getattr(self.lib, name)(*arguments)
        if result:
            raise RuntimeError(f"{name} failed with {result}")

    def load(self, path, name, smem=0):
        module, function = C.c_void_p(), C.c_void_p()
        with open(path, "rb") as file:
            self.call("cuModuleLoadData", C.byref(module), file.read())
        self.call("cuModuleGetFunction", C.byref(function), module, name.encode())
        if smem:
            self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SMEM, smem)
        return function

    def launch(self, function, blocks, threads, smem, params):
        pointers = (C.c_void_p * 1)(C.addressof(params))
        stream = C.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, smem, stream, pointers,
                  None)

    def kernels_of(self, enqueue):
        """Names of the kernels that enqueue(stream) launches: it is captured, not run."""
        stream, graph, count = C.c_void_p(self.side.cuda_stream), C.c_void_p(), C.c_size_t()
        self.call("cuStreamBeginCapture_v2", stream, CAPTURE_RELAXED)
        try:
            enqueue(self.side.cuda_stream)
        finally:
            self.call("cuStreamEndCapture", stream, C.byref(graph))
        self.call("cuGraphGetNodes", graph, None, C.byref(count))
        nodes = (C.c_void_p * count.value)()
        self.call("cuGraphGetNodes", graph, nodes, C.byref(count))
        names = []
        for node in nodes:
            kind, params, name = C.c_int(), KernelNode(), C.c_char_p()
            self.call("cuGraphNodeGetType", C.c_void_p(node), C.byref(kind))
            if kind.value == KERNEL_NODE:
                self.call("cuGraphKernelNodeGetParams_v2", C.c_void_p(node), C.byref(params))
                self.call("cuFuncGetName", C.byref(name), C.c_void_p(params.function))
                names.append(name.value.decode())
        self.call("cuGraphDestroy", graph)
        return names


class Probes:
    """The two probe kernels; without their cubins every probe answers None."""

    def __init__(self, driver, timer, folders):
        self.driver, self.timer = driver, timer
        self.sms = torch.cuda.get_device_properties(0).multi_processor_count
        self.sink = torch.zeros(64, dtype=torch.int32, device="cuda")
        self.read_kernel = self._load(folders, "bench_read", 0)
        self.mma_kernel = self._load(folders, "bench_mma", MMA_SMEM)
        self.ways = {}

    def _load(self, folders, name, smem):
        for folder in folders:
            path = os.path.join(folder, name + ".cubin")
            if os.path.exists(path):
                return self.driver.load(path, name, smem)
        print(f"no {name}.cubin in {', '.join(folders)}: that probe is left out")
        return None

    def read_us(self, weights, weight_bytes, activations, activation_bytes, repeats=None):
        """Median time of a kernel that only reads these bytes, by the fastest grid and cache policy
        that were found."""
        if self.read_kernel is None:
            return None
        def reading(blocks, policy):
            params = ReadParams(weights, weight_bytes, activations, activation_bytes, policy,
                                self.sink.data_ptr())
            return lambda: self.driver.launch(self.read_kernel, blocks, READ_THREADS, 0, params)
        total = weight_bytes + activation_bytes
        size = total.bit_length() * 4 + (total >> max(total.bit_length() - 3, 0)) % 4
        if size not in self.ways:
            ways = [(self.sms * share, policy) for share in (1, 2, 4, 16)
                    for policy in (EVICT_NORMAL, EVICT_FIRST)]
            self.ways[size] = min(ways, key=lambda way: self.timer.median(reading(*way), 7))
        return self.timer.median(reading(*self.ways[size]), repeats)

    def mma_tflops(self, milliseconds=60):
        """Rate of chained m64n256k32 e4m3 wgmma with nothing else in the loop, back to back for so
        long that power limits it."""
        if self.mma_kernel is None:
            return None
        launches = 12
        per_chain = MMA_CHAIN * MMA_FLOPS * (MMA_THREADS // 128) * self.sms
        params = MmaParams(int(milliseconds * 1e-3 * 1.7e15 / per_chain) // launches, 1,
                           self.sink.data_ptr())
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for step in range(launches + 1):
            if step == 1:
                begin.record()
            self.driver.launch(self.mma_kernel, self.sms, MMA_THREADS, MMA_SMEM, params)
        end.record()
        torch.cuda.synchronize()
        return launches * params.chains * per_chain / begin.elapsed_time(end) * 1e-9
