#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills `halfbyte quantize` with SIGKILL at 20 random moments: the output file must be the old one,
or none if there was none. Then SIGTERM, which must leave no temporary either.

    kill_quantize.py HALFBYTE

Works in the current folder, with 48 MB of input.
"""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

ROUNDS = 20
OLD = b"the old output"


def make_input(path):
    """24 bf16 tensors [1024, 1024] of finite numbers."""
    size = 2 << 20
    header = {f"layer.{i}.weight": {"dtype": "BF16", "shape": [1024, 1024],
                                    "data_offsets": [i * size, (i + 1) * size]} for i in range(24)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    panel = struct.pack("<4096H", *(random.randrange(0x3000, 0x3f80) for _ in range(4096)))
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _ in range(24 * size // len(panel)):
            file.write(panel)


def start(halfbyte):
    return subprocess.Popen([halfbyte, "quantize", "in.safetensors", "-o", "out.safetensors",
                             "--scheme", "w4afp8", "-q"])


def read_output():
    if not os.path.exists("out.safetensors"):
        return None
    with open("out.safetensors", "rb") as file:
        return file.read()


def set_output(content):
    if content is None:
        if os.path.exists("out.safetensors"):
            os.remove("out.safetensors")
    else:
        with open("out.safetensors", "wb") as file:
            file.write(content)


def temporaries():
    return [name for name in os.listdir(".") if name.startswith(".out.safetensors.")]


def clean():
    for name in temporaries():
        os.remove(name)


def interrupt(halfbyte, delay_s, signal_number):
    """True if the run was ended by the signal, False if it had finished before."""
    process = start(halfbyte)
    time.sleep(delay_s)
    process.send_signal(signal_number)
    status = process.wait()
    if status not in (0, -signal_number):
        raise SystemExit(f"unexpected exit status {status}")
    return status != 0


def main():
    halfbyte = os.path.abspath(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    random.seed(seed)
    print(f"seed {seed}")
    make_input("in.safetensors")
    set_output(None)
    begun = time.monotonic()
    if start(halfbyte).wait() != 0:
        raise SystemExit("an undisturbed run failed")
    whole_s = time.monotonic() - begun
    new = read_output()
    killed = failed = with_temporary = 0
    for i in range(ROUNDS):
        old = OLD if i % 2 else None
        set_output(old)
        ended = interrupt(halfbyte, random.uniform(0, whole_s), signal.SIGKILL)
        killed += ended
        with_temporary += bool(temporaries())
        left = read_output()
        # A run that was killed between the rename and its end has written the whole output.
        if left not in (old, new) or (not ended and left != new):
            failed += 1
            print(f"round {i}: {'nothing' if left is None else f'{len(left)} bytes'} left")
        clean()
    print(f"{killed} of {ROUNDS} runs were killed, {with_temporary} of them while writing")
    if killed < ROUNDS // 4 or with_temporary == 0:
        failed += 1
        print("too few runs were killed while they worked")
    set_output(OLD)
    for attempt in range(20):
        if interrupt(halfbyte, whole_s * (0.5 - 0.02 * attempt), signal.SIGTERM):
            break
        set_output(OLD)
    if temporaries() or read_output() not in (OLD, new):
        failed += 1
        print("SIGTERM left a temporary or half an output")
    clean()
    os.remove("in.safetensors")
    os.remove("out.safetensors")
    print(f"{ROUNDS + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
