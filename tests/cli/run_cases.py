#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of this folder; README.md says what a case is."""

import argparse
import difflib
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
TIMEOUT_S = 120


def line_matches(pattern, line):
    if not pattern.startswith("~ "):
        return pattern == line
    parts = [re.escape(part) for part in pattern[2:].split("*")]
    return re.fullmatch(".*".join(parts), line) is not None


def lines_match(patterns, lines):
    """True if the lines are as the patterns say; '...' swallows any number of lines."""
    reachable = {0}
    for pattern in patterns:
        if pattern == "...":
            reachable = set(range(min(reachable), len(lines) + 1)) if reachable else set()
            continue
        reachable = {at + 1 for at in reachable
                     if at < len(lines) and line_matches(pattern, lines[at])}
    return len(lines) in reachable


def read(path, default):
    if not os.path.exists(path):
        return default
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text, absent_if):
    if text == absent_if:
        if os.path.exists(path):
            os.remove(path)
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run_case(folder, environment):
    """stdout, stderr and exit status of the case's command, in a fresh folder."""
    with tempfile.TemporaryDirectory() as scratch:
        result = subprocess.run(["sh", os.path.join(folder, "cmd")], cwd=scratch, env=environment,
                                stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S,
                                check=False)
    inputs = environment["INPUTS"]
    def clean(data):
        text = data.decode("utf-8", "backslashreplace")
        return text.replace(inputs, "$INPUTS").replace(SOURCE, "$SOURCE")
    return clean(result.stdout), clean(result.stderr), result.returncode


def check_case(folder, environment, regenerate):
    """True if the case holds; prints how it does not."""
    name = os.path.basename(folder)
    try:
        stdout, stderr, status = run_case(folder, environment)
    except subprocess.TimeoutExpired:
        print(f"FAIL {name}: not done after {TIMEOUT_S} s")
        return False
    paths = {kind: os.path.join(folder, kind) for kind in ("expected", "stderr", "exit")}
    wanted_status = int(read(paths["exit"], "0"))
    good = status == wanted_status
    for kind, text in (("expected", stdout), ("stderr", stderr)):
        good &= lines_match(read(paths[kind], "").splitlines(), text.splitlines())
    if good:
        return True
    if regenerate:
        write(paths["expected"], stdout, "")
        write(paths["stderr"], stderr, "")
        write(paths["exit"], f"{status}\n", "0\n")
        print(f"written: {name}")
        return True
    print(f"FAIL {name}: exit status {status}, expected {wanted_status}")
    for kind, text in (("expected", stdout), ("stderr", stderr)):
        wanted = read(paths[kind], "").splitlines()
        if not lines_match(wanted, text.splitlines()):
            sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(
                wanted, text.splitlines(), kind, "printed", lineterm=""))
    return False


def make_environment(halfbyte, scratch):
    """A PATH whose first folder holds the tool, and the made inputs."""
    tools = os.path.join(scratch, "bin")
    inputs = os.path.join(scratch, "inputs")
    os.makedirs(tools)
    os.symlink(os.path.abspath(halfbyte), os.path.join(tools, "halfbyte"))
    subprocess.run([sys.executable, os.path.join(HERE, "make_inputs.py"), inputs], check=True)
    environment = {"PATH": tools + ":/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TERM": "dumb",
                   "INPUTS": inputs, "SOURCE": SOURCE, "HERE": HERE}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return environment


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--halfbyte", required=True, help="the program under test")
    parser.add_argument("--regenerate", action="store_true",
                        help="write what was printed into the cases that fail")
    parser.add_argument("--without", default="", metavar="GLOB",
                        help="leave out cases with such names")
    parser.add_argument("glob", nargs="*", default=["*"], help="only cases with such names")
    options = parser.parse_args()
    cases = os.path.join(HERE, "cases")
    names = sorted(name for name in os.listdir(cases)
                   if any(fnmatch.fnmatch(name, glob) for glob in options.glob) and
                   not fnmatch.fnmatch(name, options.without))
    scratch = tempfile.mkdtemp()
    failed = 0
    try:
        environment = make_environment(options.halfbyte, scratch)
        for name in names:
            failed += not check_case(os.path.join(cases, name), environment, options.regenerate)
    finally:
        shutil.rmtree(scratch)
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
