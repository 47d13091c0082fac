#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the formatter does not: licence headers, blanks, lengths, guards, names, calls.

    python3 tools/check_style.py [ROOT]     all files that git tracks or would track below ROOT

Prints one line a fault, and a warning for what is long but not yet too long. Exit status 1 if there
was a fault, 2 if nothing was checked. CONTRIBUTING.md states the rules.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

MAX_COLUMNS = {".c": 100, ".h": 100, ".py": 100, ".cmake": 100, ".sh": 120}
FILE_LINES_WARN, FILE_LINES_FAIL = 400, 500
FUNCTION_LINES_WARN, FUNCTION_LINES_FAIL = 60, 90
# The public header is mostly contract and must stay one file.
LONG_FILES = {"include/halfbyte.h"}

CODE = {".c", ".h", ".cu", ".def", ".inc", ".py", ".sh", ".cmake", ".map", ".in"}
TEXT = CODE | {".md", ".scd", ".json", ".txt", ".yml", ".yaml", ".toml"}
TEXT_NAMES = {"Makefile", "CMakeLists.txt", ".clang-format", ".clang-tidy", ".editorconfig",
              ".gitignore", "run"}
CODE_NAMES = {"Makefile", "CMakeLists.txt", "run"}
# Recorded data and expected output are as they are.
EXEMPT = re.compile(r"^(LICENSE|examples/data/|tests/golden/|tests/fuzz/corpus/|tests/cli/cases/)")

MARKS = re.compile(r"\b(TO" r"DO|FIX" r"ME|HA" r"CK)\b")
FORBIDDEN_CALL = re.compile(r"\b(_?exit|abort|v?f?printf|f?puts|putchar|perror)\s*\(")
STRING_OR_COMMENT = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL
)


class Report:
    def __init__(self):
        self.faults = 0

    def fault(self, path, line, text):
        print(f"{path}:{line}: {text}")
        self.faults += 1

    @staticmethod
    def warn(path, line, text):
        print(f"{path}:{line}: warning: {text}")


def blank_out(match):
    """Keeps the line breaks of a comment or string, so that line numbers stay right."""
    return "".join(c if c == "\n" else " " for c in match.group())


def guard_of(path):
    name = re.sub(r"^(include|src)/", "", path)
    name = re.sub(r"[^A-Za-z0-9]", "_", name).upper()
    return name if name.startswith("HALFBYTE_") else "HALFBYTE_" + name


def check_lines(report, path, suffix, text):
    """Blanks, tabs, line ends and line lengths of any text file."""
    name = path.rsplit("/", 1)[-1]
    if "\r" in text:
        report.fault(path, 1, "carriage return")
    if not text.endswith("\n"):
        report.fault(path, text.count("\n") + 1, "no newline at the end")
    elif text.endswith("\n\n"):
        report.fault(path, text.count("\n"), "blank line at the end")
    tabs_allowed = name == "Makefile" or suffix == ".scd"
    limit = MAX_COLUMNS.get(suffix, 100 if name == "CMakeLists.txt" else None)
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip():
            report.fault(path, number, "trailing blank")
        if "\t" in line and not tabs_allowed:
            report.fault(path, number, "tab")
        if limit is not None and len(line) > limit:
            report.fault(path, number, f"{len(line)} columns, {limit} at most")


def check_code(report, path, text):
    """Licence header, character set and marks of a source file."""
    head = text.split("\n", 2)
    first = head[1] if head[0].startswith("#!") and len(head) > 1 else head[0]
    if not path.endswith(".in") and "SPDX-License-Identifier: Apache-2.0" not in first:
        report.fault(path, 1, "no SPDX-License-Identifier: Apache-2.0 in the first line")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.isascii():
            report.fault(path, number, "character outside ASCII")
        if MARKS.search(line):
            report.fault(path, number, "mark of unfinished work")


def check_c(report, path, text):
    """Guards, forbidden calls and lengths of a C file."""
    bare = STRING_OR_COMMENT.sub(blank_out, text)
    lines = bare.splitlines()
    if path.endswith(".h"):
        guard = guard_of(path)
        directives = [line.split() for line in lines if line.startswith("#")]
        good = directives[:2] == [["#ifndef", guard], ["#define", guard]]
        template = "Included several times" in text[:2000]
        if not good and not template:
            report.fault(path, 1, f"include guard is not {guard}")
    if path.startswith("src/"):
        for number, line in enumerate(lines, 1):
            match = FORBIDDEN_CALL.search(line)
            if match:
                report.fault(path, number, f"{match.group(1)}() in the library")
    if path not in LONG_FILES:
        if len(lines) > FILE_LINES_FAIL:
            report.fault(path, 1, f"{len(lines)} lines, {FILE_LINES_FAIL} at most")
        elif len(lines) > FILE_LINES_WARN:
            report.warn(path, 1, f"{len(lines)} lines, about {FILE_LINES_WARN} wanted")
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start is not None:
            length = number - start - 1
            if length > FUNCTION_LINES_FAIL:
                report.fault(path, start, f"function of {length} lines, "
                                          f"{FUNCTION_LINES_FAIL} at most")
            elif length > FUNCTION_LINES_WARN:
                report.warn(path, start, f"function of {length} lines, "
                                         f"about {FUNCTION_LINES_WARN} wanted")
            start = None


def list_files(root):
    """Tracked and not ignored files; outside a git work tree, all files."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
               "--exclude-standard"]
    try:
        output = subprocess.run(command, check=True, capture_output=True).stdout
        names = [name for name in output.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    return sorted(name for name in set(names) if (root / name).is_file())


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    report = Report()
    checked = 0
    places = defaultdict(list)
    for path in list_files(root):
        name = path.rsplit("/", 1)[-1]
        suffix = Path(name).suffix
        if EXEMPT.match(path) or (suffix not in TEXT and name not in TEXT_NAMES):
            continue
        try:
            text = (root / path).read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            report.fault(path, 1, "not UTF-8")
            continue
        checked += 1
        check_lines(report, path, suffix, text)
        if suffix in CODE or name in CODE_NAMES:
            check_code(report, path, text)
        if suffix in (".c", ".h"):
            check_c(report, path, text)
            places[name].append(path)
    for name, paths in places.items():
        if len(paths) > 1:
            report.fault(paths[1], 1, f"file name {name} is taken by {paths[0]}")
    if checked == 0:
        print(f"{root}: nothing to check", file=sys.stderr)
        return 2
    print(f"style: {checked} files checked, {report.faults} faults")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
