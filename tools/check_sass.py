#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks compiled kernels for touched operands of tensor-core instructions in flight.

    check_sass.py [--expect-races] [--stage-d=NAME,...] CUBIN...

From a QGMMA or HGMMA to the WARPGROUP.DEPBAR that covers its group, no other instruction may touch
its accumulators or write its A registers, and no store may change shared memory. ptxas lets such
code pass without a word, and the hardware does not hold it back. Every path through a kernel is
followed.

Nor may two or more R2UR stand between two instructions of a chain (one by accident): the ring's
state is then in vector registers, and its way back costs as much as the products. Not looked at
with --expect-races.

--stage-d: these kernels write a tile of D to shared memory by stmatrix while products of the next
are in flight. The listing does not show that no product reads from there (the emulator does); so
for them, and for no other, STSM is no finding, and one that does not do so is named.
--expect-races: kernels named race_* must have a finding, all others (fixed_*) none.
Needs nvdisasm (NVDISASM, PATH, or the package nvidia-cuda-nvdisasm). Exit status 0: clean,
1: findings, 2: wrong use or a listing that is not understood, 77: no nvdisasm.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections import namedtuple

Instruction = namedtuple("Instruction", "address guard name operands text")
# Registers of one tensor-core instruction, and where it stands.
Flight = namedtuple("Flight", "accumulators a address")
# Committed groups, oldest first, and the one that is open: tuples of Flights.
State = namedtuple("State", "groups current")

MOST_GROUPS = 8
MOST_STATES = 64  # at one instruction; more means that the walk does not converge

LINE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P[0-9T]+)\s+)?([A-Za-z0-9_.]+)\s*(.*?)\s*;")
LABEL = re.compile(r"(\.L_x_\d+):")
SECTION = re.compile(r"\.text\.([A-Za-z0-9_$]+):")
TARGET = re.compile(r"\.L_x_\d+")
REGISTER = re.compile(r"(?<![A-Z])R(\d+)(?:\.(64|[A-Z0-9_]+))?")
SHARED_STORES = ("STS", "STSM", "ATOMS", "LDGSTS")
# These name no result first.
NO_RESULT = tuple(
    "ST STS STG STL STSM RED REDG BRA BRX EXIT BAR MEMBAR R2UR ISETP FSETP DSETP HSETP2 PLOP3 CCTL "
    "SYNCS UTMALDG LDGSTS ARRIVES WARPSYNC NANOSLEEP RET CALL BSSY BSYNC FCHK VOTEU R2P "
    "WARPGROUP".split()
)


def find_nvdisasm():
    """Path of the disassembler, or None."""
    named = shutil.which(os.environ.get("NVDISASM") or "nvdisasm")
    if named:
        return named
    for folder in sys.path:
        for found in pathlib.Path(folder or ".").glob("nvidia/*/bin/nvdisasm"):
            return str(found)
    return None


def split_operands(text):
    """Operands at commas outside brackets."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "[({") - (c in "])}")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return [p for p in parts + [part.strip()] if p]


def parse(listing):
    """{kernel: ([Instruction], {label: index})}"""
    kernels, code, labels = {}, None, None
    for line in listing.splitlines():
        section = SECTION.match(line)
        if section:
            code, labels = [], {}
            kernels[section.group(1)] = (code, labels)
        elif line.startswith("\t.section") or line.startswith(".section"):
            if ".text." not in line:
                code = None
        elif code is not None:
            label, found = LABEL.match(line), LINE.match(line)
            if label:
                labels[label.group(1)] = len(code)
            elif found:
                address, guard, name, operands = found.groups()
                text = f"{guard + ' ' if guard else ''}{name} {operands}"
                parts = split_operands(operands)
                code.append(Instruction(int(address, 16), guard, name, parts, text))
    return kernels


def width_of(name):
    """Registers of a result or of stored data."""
    parts = name.split(".")
    if parts[0] in ("LDSM", "STSM"):
        return int(parts[-1]) if parts[-1].isdigit() else 1
    if "128" in parts:
        return 4
    if "64" in parts or "WIDE" in parts or parts[0] in ("CS2R", "MOV64", "DADD", "DMUL", "DFMA"):
        return 2
    return 1


def registers_in(operand, width):
    """Registers that an operand names: pairs where it says .64 (an address), else `width`."""
    found = set()
    for number, suffix in REGISTER.findall(operand):
        count = 2 if suffix == "64" else (1 if "[" in operand else width)
        found.update(range(int(number), int(number) + count))
    return found


def accesses(instruction):
    """(registers read, registers written); wider than true where the listing does not say."""
    base, width = instruction.name.split(".")[0], width_of(instruction.name)
    read, written = set(), set()
    for i, operand in enumerate(instruction.operands):
        if i == 0 and base not in NO_RESULT and re.match(r"R\d+", operand):
            written |= registers_in(operand, width)
        elif i == 0 and base not in NO_RESULT:
            read |= registers_in(operand, 1)
        else:
            # A wide addend of IMAD.WIDE, or the data of a store; elsewhere one register.
            wide = base in NO_RESULT or (base in ("IMAD", "LEA") and i == 3) or base[0] == "D"
            read |= registers_in(operand, width if wide else 1)
    return read, written


def flight_of(instruction):
    """The registers of a QGMMA or HGMMA."""
    shape = re.search(r"\.64x(\d+)x\d+\.(F32|F16|S32)", instruction.name)
    destination = re.match(r"R(\d+)", instruction.operands[0])
    if not shape or not destination:
        raise ValueError(f"not understood: {instruction.text}")
    count = int(shape.group(1)) // (4 if shape.group(2) == "F16" else 2)
    first = int(destination.group(1))
    a = re.match(r"R(\d+)", instruction.operands[1])
    a_registers = frozenset(range(int(a.group(1)), int(a.group(1)) + 4)) if a else frozenset()
    return Flight(frozenset(range(first, first + count)), a_registers, instruction.address)


def flights(state):
    for group in state.groups + (state.current,):
        yield from group


class Walk:
    """All paths of one kernel."""

    def __init__(self, kernel, code, labels, stages_d=False):
        self.kernel, self.code, self.labels = kernel, code, labels
        self.stages_d, self.staged = stages_d, False
        self.findings = {}
        self.regions = []  # (index of BSSY, barrier register, index of its target)
        for i, instruction in enumerate(code):
            if instruction.name.startswith("BSSY"):
                self.regions.append((i, instruction.operands[0], self.target(instruction)))

    def target(self, instruction):
        found = TARGET.search(instruction.text)
        if not found or found.group() not in self.labels:
            raise ValueError(f"{self.kernel}: no target: {instruction.text}")
        return self.labels[found.group()]

    def successors(self, i):
        instruction = self.code[i]
        base = instruction.name.split(".")[0]
        conditional = instruction.guard is not None
        if base == "EXIT" or base == "RET":
            return [i + 1] if conditional else []
        if base in ("BRX", "BRXU", "JMX"):
            targets = [self.labels[t] for t in TARGET.findall(instruction.text)]
            return targets + ([i + 1] if conditional else [])
        if base == "BRA":
            maybe = conditional or instruction.name != "BRA" or len(instruction.operands) > 1
            return [self.target(instruction)] + ([i + 1] if maybe else [])
        if base == "BSYNC":
            ends = [end for start, barrier, end in self.regions
                    if barrier == instruction.operands[0] and start < i <= end]
            return sorted(set(ends + [i + 1]))
        return [i + 1]

    def report(self, instruction, flight, what):
        self.findings.setdefault((instruction.address, flight.address), (what, instruction.text))

    def check(self, instruction, state):
        base = instruction.name.split(".")[0]
        read, written = accesses(instruction)
        for flight in flights(state):
            if read & flight.accumulators:
                self.report(instruction, flight, "reads accumulators of a group in flight")
            if written & flight.accumulators:
                self.report(instruction, flight, "writes accumulators of a group in flight")
            if written & flight.a:
                self.report(instruction, flight, "writes A registers of a group in flight")
            if base == "STSM" and self.stages_d:
                self.staged = True
            elif base in SHARED_STORES:
                self.report(instruction, flight, "changes shared memory with a group in flight")
            if base == "CALL":
                self.report(instruction, flight, "calls a function with a group in flight")

    def check_multiply(self, instruction, new, state):
        for flight in flights(state):
            overlap = new.accumulators & flight.accumulators
            if overlap and new.accumulators != flight.accumulators:
                self.report(instruction, flight, "accumulates into a part of those in flight")
            if new.accumulators & flight.a:
                self.report(instruction, flight, "accumulates into A registers in flight")
            if new.a & flight.accumulators:
                self.report(instruction, flight, "takes A from accumulators of a group in flight")

    def step(self, i, state):
        """States after the instruction."""
        instruction = self.code[i]
        if re.match(r"[QHIB]GMMA", instruction.name):
            new = flight_of(instruction)
            self.check_multiply(instruction, new, state)
            current = tuple(dict.fromkeys(state.current + (new,)))
            if "gsb0" not in instruction.operands:
                return [State(state.groups, current)]
            groups = state.groups + (current,)
            if len(groups) > MOST_GROUPS:  # the oldest joins its neighbour
                groups = (tuple(dict.fromkeys(groups[0] + groups[1])),) + groups[2:]
            return [State(groups, ())]
        if instruction.name.startswith("WARPGROUP.DEPBAR"):
            left = int(instruction.operands[1], 16)
            kept = state.groups[-left:] if left else ()
            waited = State(kept, state.current)
            return [waited, state] if instruction.guard else [waited]
        if not instruction.name.startswith("WARPGROUP"):
            self.check(instruction, state)
        return [state]

    def run(self):
        seen = [set() for _ in self.code]
        work = [(0, State((), ()))]
        while work:
            i, state = work.pop()
            if i >= len(self.code) or state in seen[i]:
                continue
            seen[i].add(state)
            if len(seen[i]) > MOST_STATES:
                raise ValueError(f"{self.kernel}: too many states at {self.code[i].text}")
            for after in self.step(i, state):
                work.extend((j, after) for j in self.successors(i))
        if self.stages_d and not self.staged:
            self.findings[(0, 0)] = ("named in --stage-d for nothing", self.kernel)
        return self.findings


def moved_descriptors(code):
    """Findings: chains whose descriptors come out of vector registers."""
    findings, before = {}, None
    for i, instruction in enumerate(code):
        if not re.match(r"[QHIB]GMMA", instruction.name):
            continue
        goes_on = before is not None and "RZ" not in instruction.operands[2:]
        between = code[before + 1:i] if goes_on else []
        if sum(x.name.split(".")[0] == "R2UR" for x in between) > 1:
            findings[(instruction.address, code[before].address)] = (
                "has descriptors from vector registers, behind one", instruction.text)
        before = None if "gsb0" in instruction.operands else i
    return findings


def check_cubin(nvdisasm, cubin, staging, expect_races):
    """{kernel: (number of tensor-core instructions, findings)}"""
    command = [nvdisasm, "-c", cubin]
    kernels = parse(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if not kernels:
        raise ValueError(f"{cubin}: no kernels in the listing")
    result = {}
    for kernel, (code, labels) in kernels.items():
        multiplies = sum(bool(re.match(r"[QHIB]GMMA", x.name)) for x in code)
        walk = Walk(kernel, code, labels, kernel in staging)
        findings = walk.run() if multiplies or walk.stages_d else {}
        if not expect_races:
            findings = {**moved_descriptors(code), **findings}
        result[kernel] = (multiplies, findings)
    return result


def verdict(kernel, findings, expect_races):
    if not expect_races:
        return not findings
    return bool(findings) == kernel.startswith("race_")


def main(arguments):
    expect_races = "--expect-races" in arguments
    staging = {name for a in arguments if a.startswith("--stage-d=")
               for name in a.partition("=")[2].split(",")}
    cubins = [a for a in arguments if not a.startswith("--")]
    unknown = [a for a in arguments
               if a.startswith("--") and a != "--expect-races" and not a.startswith("--stage-d=")]
    if not cubins or unknown:
        print(__doc__, file=sys.stderr)
        return 2
    nvdisasm = find_nvdisasm()
    if nvdisasm is None:
        print("check_sass: no nvdisasm (pip install nvidia-cuda-nvdisasm)")
        return 77
    kernels, multiplies, wrong = 0, 0, 0
    for cubin in cubins:
        checked = check_cubin(nvdisasm, cubin, staging, expect_races)
        for kernel, (count, findings) in checked.items():
            kernels += 1
            staging.discard(kernel)
            multiplies += count
            good = verdict(kernel, findings, expect_races)
            wrong += not good
            if not good or expect_races:
                print(f"{'as expected' if good else 'WRONG'}: {pathlib.Path(cubin).name} {kernel}: "
                      f"{len(findings)} findings")
            for (address, flight), (what, text) in sorted(findings.items())[:0 if good else 8]:
                print(f"  {address:04x} {text}\n       {what}, issued at {flight:04x}")
    for kernel in sorted(staging):
        wrong += 1
        print(f"WRONG: {kernel}: named in --stage-d, and in no cubin")
    print(f"{kernels} kernels, {multiplies} tensor-core instructions, "
          f"{wrong} kernels not as they must be")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ValueError as error:
        print(f"check_sass: {error}", file=sys.stderr)
        sys.exit(2)
