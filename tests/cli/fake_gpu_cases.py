#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that use a GPU on a driver that computes nothing (fake_gpu.c): what they print
and return, also when a call fails, and that all is given back.

usage: fake_gpu_cases.py HALFBYTE FOLDER_OF_LIBCUDA
"""

import json
import os
import subprocess
import sys
import tempfile

PROBLEM = "fp8:m8n128k256:a1x128:b128x128,k"
LOADED = "fp8:m64n128k256g8:a1x128:b128x128,k@one"
PLAIN = "halfbyte_sm90_fp8_any_m128n128k128s6"


class Cases:
    def __init__(self, halfbyte, folder):
        self.halfbyte, self.folder, self.failed, self.count = halfbyte, folder, 0, 0

    def run(self, arguments, status, stderr, fails="", kernel=PLAIN):
        """stdout; complains unless the exit status is as given and stderr holds the text, or
        nothing where it is empty."""
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "FAKE_CUDA": fails,
                       "FAKE_KERNEL": kernel, "LD_LIBRARY_PATH": self.folder}
        result = subprocess.run([self.halfbyte, *arguments], env=environment, timeout=120,
                                capture_output=True, text=True, check=False)
        good = result.returncode == status and "not given back" not in result.stderr and (
            stderr in result.stderr if stderr else result.stderr == "")
        self.count += 1
        if not good:
            self.failed += 1
            print(f"FAIL {' '.join(arguments)} FAKE_CUDA={fails}: exit status "
                  f"{result.returncode}, expected {status}; stderr: {result.stderr}")
        return result.stdout

    def check(self, condition, what):
        self.count += 1
        if not condition:
            self.failed += 1
            print(f"FAIL {what}")


def bench(cases):
    """Bits that nobody computed are wrong; without the check, times are those of the events."""
    cases.run(["bench", PROBLEM], 1, "1 of 1 shapes with wrong bits")
    out = cases.run(["bench", PROBLEM, "--no-check", "--json", "-"], 0, "")
    row = json.loads(out)
    cases.check(row["executor"] == "gpu" and row["kernel"] == PLAIN.removeprefix(
        "halfbyte_sm90_") and row["time_us"] == row["graph_us"] == row["read_us_run"] == 1000 and
        row["device"] == "Void 9000" and row["baseline_us"] is None, f"row: {out}")
    out = cases.run(["bench", PROBLEM, "--no-check", "--no-probes", "--json", "-"], 0, "")
    cases.check(json.loads(out)["read_us_run"] is None, f"without probes: {out}")
    out = cases.run(["bench", LOADED, "--no-check", "--json", "-"], 0, "")
    row = json.loads(out)
    cases.check(row["load"] == "one" and row["used_groups"] == 1 and row["most_rows"] == 64 and
                row["limit_us"] < row["time_us"], f"load: {out}")
    out = cases.run(["bench", LOADED, "--no-check"], 0, "")
    cases.check(" @one over the limit of 3.8 us" in out, f"load: {out}")
    for what, sentence in (("memory", "out of GPU memory: 256.0 MiB"),
                           ("event", "event_create failed with CUDA_ERROR_OUT_OF_MEMORY (2)"),
                           ("stream", "stream_create failed"), ("copy_in", "copy_in failed"),
                           ("capture", "capture_begin failed"), ("nodes", "graph_nodes failed"),
                           ("instantiate", "graph_instantiate failed"),
                           ("graph_launch", "graph_launch failed"), ("fill", "fill_words failed"),
                           ("probe", "launch failed"), ("copy_out", "copy_out failed"),
                           ("launch", "cuLaunchKernelEx failed")):
        cases.run(["bench", PROBLEM, "--repeat", "3"], 4, sentence, what)
    cases.run(["bench", PROBLEM, "--executor", "gpu"], 3, "cannot open a device", "no_device")
    cases.run(["bench", PROBLEM, "--repeat", "1"], 0, "the CPU model is timed", "no_device")


def gemm(cases):
    run = ["gemm", "--executor", "gpu", "--problem", PROBLEM]
    out = cases.run([*run, "--json"], 0, "")
    cases.check("different" not in json.loads(out) and json.loads(out)["seconds"] == 1e-3, out)
    out = cases.run([*run, "--check", "--json"], 1, "")
    cases.check(json.loads(out)["different"] > 1000, out)
    for what, sentence in (("memory", "out of GPU memory"), ("copy_out", "copy_out failed"),
                           ("event", "")):
        cases.run(run, 4 if sentence else 0, sentence, what)


def tune(cases, scratch):
    """Only a candidate that a captured run launches is timed and stored."""
    path = os.path.join(scratch, "tune")
    cases.run(["tune", PROBLEM, PROBLEM.replace("m8", "m99"), "-o", path, "-q"], 0, "")
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    entry = "family=fp8 grouping=dense n=128 k=256 rows={} sms=132 kernel={} # 1000.0 us"
    name = PLAIN.removeprefix("halfbyte_sm90_")
    cases.check(lines[0] == "halfbyte-tune 1" and lines[1].startswith("# Void 9000, driver ") and
                lines[2:] == [entry.format("1..8", name), entry.format("9..99", name)],
                f"tune file: {lines}")
    cases.run(["tune", PROBLEM, "-o", path, "--append", "-q"], 0, "")
    out = cases.run(["tune", "--check", path], 0, "")
    cases.check(out == "entries for this library: 3\n", out)
    cases.run(["tune", PROBLEM, "-o", path], 3, "", kernel="nobody")
    cases.run(["tune", LOADED, "-o", path], 2, "stored for even loads alone")
    cases.run(["tune", PROBLEM, "-o", os.path.join(scratch, "no", "tune"), "-q"], 4, "no/tune")
    for what, sentence in (("memory", "out of GPU memory"), ("capture", "capture_begin failed"),
                           ("fill", "fill_words failed"), ("copy_out", "copy_out failed")):
        cases.run(["tune", PROBLEM, "-o", path], 4, sentence, what)


def main():
    cases = Cases(sys.argv[1], sys.argv[2])
    bench(cases)
    gemm(cases)
    with tempfile.TemporaryDirectory() as scratch:
        tune(cases, scratch)
    print(f"{cases.count - cases.failed} passed, {cases.failed} failed")
    return 1 if cases.failed else 0


if __name__ == "__main__":
    sys.exit(main())
