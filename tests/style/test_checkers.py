#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Feeds the checkers small trees with one fault each and demands that the fault is reported.

    python3 test_checkers.py SOURCE_ROOT
"""

import subprocess
import sys
import tempfile
from pathlib import Path

SPDX_C = "/* SPDX-License-Identifier: Apache-2.0 */\n"
GUARD = "#ifndef HALFBYTE_FORMAT_FP8_H\n#define HALFBYTE_FORMAT_FP8_H\n#endif\n"

# A tree that both checkers accept.
CLEAN = {
    "include/halfbyte.h": SPDX_C + "#ifndef HALFBYTE_H\n#define HALFBYTE_H\n"
    "#include <stdint.h>\n#endif\n",
    "src/format/fp8.h": SPDX_C + GUARD,
    "src/format/fp8.c": SPDX_C + '#include "format/fp8.h"\n\nint f(void)\n{\n    return 1;\n}\n',
    "src/model/gemm.c": SPDX_C + '#include "format/fp8.h"\n#include "halfbyte.h"\n'
    "/* never calls exit() */\n",
    "src/io/npy.c": SPDX_C + '#include "format/fp8.h"\n#include <jansson.h>\n',
    "src/api/plan.c": SPDX_C + '#include "model/gemm2.h"\n#include <halfbyte.h>\n',
    "src/model/gemm2.h": SPDX_C + "#ifndef HALFBYTE_MODEL_GEMM2_H\n"
    "#define HALFBYTE_MODEL_GEMM2_H\n#endif\n",
    "src/io/npy.h": SPDX_C + "#ifndef HALFBYTE_IO_NPY_H\n#define HALFBYTE_IO_NPY_H\n#endif\n",
    "cli/main.c": SPDX_C + '#include <halfbyte.h>\n#include "io/npy.h"\n',
    "Makefile": "# SPDX-License-Identifier: Apache-2.0\nall:\n\ttrue\n",
}

UNFINISHED = "TO" + "DO"

# checker, path, text of the file, what the report must contain
CASES = [
    ("style", "src/format/a.c", "int a;\n", "no SPDX"),
    ("style", "src/format/a.c", SPDX_C + "int a; \n", "trailing blank"),
    ("style", "src/format/a.c", SPDX_C + "\tint a;\n", "tab"),
    ("style", "src/format/a.c", SPDX_C + "int a;", "no newline at the end"),
    ("style", "src/format/a.c", SPDX_C + "int a;\n\n", "blank line at the end"),
    ("style", "src/format/a.c", SPDX_C + "int a;\r\n", "carriage return"),
    ("style", "src/format/a.c", SPDX_C + "/* " + "x" * 98 + "\n*/\n", "101 columns"),
    ("style", "src/format/a.c", SPDX_C + "/* \u2192 */\n", "outside ASCII"),
    ("style", "src/format/a.c", SPDX_C + f"/* {UNFINISHED}: this */\n", "unfinished work"),
    ("style", "src/format/a.c", SPDX_C + "int a;\n" * 500, "501 lines"),
    ("style", "src/format/a.c", SPDX_C + "void f(void)\n{\n" + "    ;\n" * 91 + "}\n",
     "function of 91 lines"),
    ("style", "src/model/a.c", SPDX_C + "void f(void)\n{\n    exit(1);\n}\n", "exit()"),
    ("style", "src/model/a.c", SPDX_C + "void f(void)\n{\n    abort();\n}\n", "abort()"),
    ("style", "src/io/a.c", SPDX_C + 'void f(void)\n{\n    printf("x");\n}\n', "printf()"),
    ("style", "src/io/a.c", SPDX_C + 'void f(void)\n{\n    fprintf(stderr, "x");\n}\n',
     "fprintf()"),
    ("style", "src/format/fp8.h", SPDX_C + GUARD.replace("_FORMAT", ""), "HALFBYTE_FORMAT_FP8_H"),
    ("style", "src/format/fp8.h", SPDX_C + "int a;\n", "HALFBYTE_FORMAT_FP8_H"),
    ("style", "src/format/gemm.c", SPDX_C, "file name gemm.c is taken"),
    ("style", "docs/a.md", "text \n", "trailing blank"),
    ("dependencies", "src/format/a.c", SPDX_C + '#include "model/gemm2.h"\n',
     "src/format may not include src/model/gemm2.h"),
    ("dependencies", "src/format/a.c", SPDX_C + "#include <halfbyte.h>\n",
     "src/format may not include include/halfbyte.h"),
    ("dependencies", "src/model/a.c", SPDX_C + '#include "io/npy.h"\n',
     "src/model may not include src/io/npy.h"),
    ("dependencies", "src/io/a.c", SPDX_C + '#  include "../model/gemm2.h"\n',
     "src/io may not include src/model/gemm2.h"),
    ("dependencies", "src/api/a.c", SPDX_C + '#include "io/npy.h"\n',
     "src/api may not include src/io/npy.h"),
    ("dependencies", "cli/a.c", SPDX_C + '#include "format/fp8.h"\n',
     "cli may not include src/format/fp8.h"),
    ("dependencies", "src/model/a.c", SPDX_C + "#include <jansson.h>\n", "<jansson.h>"),
    ("dependencies", "src/format/a.c", SPDX_C + "#include <unistd.h>\n", "<unistd.h>"),
    ("dependencies", "src/model/a.c", SPDX_C + '#include "model/gone.h"\n', "does not exist"),
    ("dependencies", "src/extra/a.c", SPDX_C + "#include <stdio.h>\n", "no dependency rule"),
]


def run_checker(source, checker, files):
    """Exit status and output of a checker over a fresh tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            target = Path(folder) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())
        script = source / "tools" / f"check_{checker}.py"
        result = subprocess.run([sys.executable, str(script), folder], capture_output=True,
                                text=True, check=False)
        return result.returncode, result.stdout + result.stderr


def main():
    source = Path(sys.argv[1])
    bad = 0
    for checker in ("style", "dependencies"):
        status, output = run_checker(source, checker, CLEAN)
        if status != 0:
            print(f"{checker}: the clean tree is not accepted:\n{output}")
            bad += 1
        status, output = run_checker(source, checker, {})
        if status != 2:
            print(f"{checker}: an empty tree gives exit status {status}, not 2:\n{output}")
            bad += 1
    for checker, path, text, expected in CASES:
        status, output = run_checker(source, checker, {**CLEAN, path: text})
        if status != 1 or expected not in output or path not in output:
            print(f"{checker}: {path}: '{expected}' was not reported (status {status}):\n{output}")
            bad += 1
    print(f"{len(CASES) + 4} trees checked, {bad} not as expected")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
