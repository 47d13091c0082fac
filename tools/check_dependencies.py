#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the dependency order of the source tree over its #include lines.

    python3 tools/check_dependencies.py [ROOT]

Each folder may include what its row of LAYERS names and nothing else; system headers beyond those
of C11 must be named in SYSTEM. Prints one line a fault; exit status 1 if there was any, 2 if no
#include line was found.
"""

import re
import sys
from pathlib import Path

# folder -> folders whose headers it may include, besides its own; "include" is the public header.
# Tests may include everything.
LAYERS = {
    "include": set(),
    "src/format": set(),
    "src/model": {"src/format", "include"},
    "src/io": {"src/format"},
    # The parameter blocks of the kernels are seen from both sides.
    "src/cuda": {"src/kernels", "src/format", "include"},
    "src/kernels": set(),
    "src/emulator": {"src/kernels", "src/model", "src/format"},
    "src/api": {"src/model", "src/format", "src/cuda", "src/kernels", "include"},
    # Runs kernels by the host code of the GPU, beside the public face of the model.
    "src/emulator/harness": {"src/emulator", "src/kernels", "src/api", "src/cuda", "include"},
    # race drives the emulator, bench launches the probes.
    "cli": {"src/io", "src/emulator", "src/emulator/harness", "bench", "include"},
    # bench_cpu measures parts of the model that no public call reaches alone; probes are kernels.
    "bench": {"src/model", "src/io", "src/kernels", "include"},
    "examples": {"src/io", "include"},
}

# Tables of rows in macros, which whoever needs a column of them includes.
TABLES = {
    "src/api/kernels.def",
    "src/api/group_kernels.def",
    "src/api/quantize_kernels.def",
    "src/api/pack_kernels.def",
}

C11 = set(
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal"
    " stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath"
    " threads time uchar wchar wctype".split()
)
POSIX = set(
    "dirent.h fcntl.h fnmatch.h pthread.h sched.h unistd.h sys/stat.h sys/types.h sys/mman.h"
    " sys/resource.h sys/ioctl.h sys/time.h sys/wait.h sys/random.h termios.h strings.h".split()
)
# System headers beyond C11 that a folder may include.
SYSTEM = {
    "include": set(),
    "src/format": set(),
    "src/model": {"pthread.h", "sched.h", "unistd.h", "immintrin.h", "xmmintrin.h"},
    "src/io": POSIX | {"jansson.h"},
    "src/cuda": {"dlfcn.h", "pthread.h"},
    "src/kernels": set(),
    "src/emulator": {"pthread.h", "sched.h", "unistd.h", "sys/mman.h", "ucontext.h",
                     "elfutils/libdw.h", "elfutils/libdwfl.h",
                     "sanitizer/common_interface_defs.h"},
    "src/emulator/harness": {"sys/mman.h", "sys/types.h", "sys/wait.h", "unistd.h"},
    "src/api": {"pthread.h", "sched.h", "unistd.h"},
    "cli": POSIX | {"argp.h", "dlfcn.h", "jansson.h"},
    "bench": POSIX,
    "examples": POSIX | {"halfbyte/hopper.h", "halfbyte/emulator.h"},
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def layer_of(path):
    """The folder of LAYERS that a path (relative to the root) lies in, or None."""
    parts = path.parts
    if "/".join(parts[:3]) in LAYERS:
        return "/".join(parts[:3])
    if parts[0] == "src":
        return "/".join(parts[:2]) if len(parts) > 2 else None
    return parts[0]


def resolve(root, source, name):
    """The path of an included project file, relative to the root, or None for a system header."""
    for folder in (source.parent, root / "src", root / "include", root):
        candidate = folder / name
        if candidate.is_file():
            return candidate.resolve().relative_to(root)
    return None


def check_include(root, source, layer, bracket, name):
    """One fault as text, or None."""
    target = resolve(root, source, name)
    if target is None:
        if bracket == '"':
            return f'"{name}" does not exist'
        stem = name[:-2] if name.endswith(".h") else name
        if stem in C11 or name in SYSTEM[layer]:
            return None
        return f"{layer} may not include the system header <{name}>"
    reached = layer_of(target)
    if str(target) in TABLES:
        return None
    if reached == layer or reached in LAYERS[layer]:
        return None
    allowed = ", ".join(sorted(LAYERS[layer])) or "nothing else of the project"
    return f"{layer} may not include {target} (allowed: {allowed})"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    faults = 0
    includes = 0
    for top in ("include", "src", "cli", "bench", "examples"):
        for source in sorted((root / top).rglob("*")):
            if source.suffix not in (".c", ".h", ".cu", ".def", ".inc"):
                continue
            relative = source.relative_to(root)
            layer = layer_of(relative)
            if layer not in LAYERS:
                print(f"{relative}: no dependency rule for this folder")
                faults += 1
                continue
            text = source.read_text(encoding="utf-8")
            for match in INCLUDE.finditer(text):
                includes += 1
                fault = check_include(root, source, layer, *match.groups())
                if fault is not None:
                    line = text.count("\n", 0, match.start()) + 1
                    print(f"{relative}:{line}: {fault}")
                    faults += 1
    if includes == 0:
        print(f"{root}: no #include line found", file=sys.stderr)
        return 2
    print(f"dependencies: {includes} includes checked, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
