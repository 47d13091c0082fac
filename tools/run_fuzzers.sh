#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzzer of a build for some seconds, starting from its corpus. New inputs and findings stay
# in the build folder: copy a finding into tests/fuzz/corpus/<name>/ together with its fix.
#
#   sh tools/run_fuzzers.sh BUILD [SECONDS]
set -eu

build=${1:?usage: run_fuzzers.sh BUILD [SECONDS]}
seconds=${2:-60}
source=$(cd "$(dirname "$0")/.." && pwd)/tests/fuzz
corpus=$source/corpus

count=0
failed=
for fuzzer in "$build"/tests/fuzz/fuzz_*; do
    if [ ! -f "$fuzzer" ] || [ ! -x "$fuzzer" ]; then
        continue
    fi
    name=$(basename "$fuzzer")
    name=${name#fuzz_}
    work=$build/fuzzing/$name
    mkdir -p "$work/inputs" "$work/findings"
    echo "fuzz: $name for $seconds s"
    count=$((count + 1))
    dictionary=
    [ ! -f "$source/$name.dict" ] || dictionary=-dict=$source/$name.dict
    if ! "$fuzzer" ${dictionary:+"$dictionary"} -max_total_time="$seconds" -timeout=20 \
        -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$work/findings/" "$work/inputs" "$corpus/$name" > "$work/log" 2>&1 \
        < /dev/null; then
        tail -n 60 "$work/log"
        echo "fuzz: $name has a finding, see $work/findings" >&2
        failed="$failed $name"
    fi
    grep -E '^stat::(number_of_executed_units|peak_rss_mb)' "$work/log" || true
done

if [ "$count" -eq 0 ]; then
    echo "fuzz: no fuzzer in $build/tests/fuzz" >&2
    exit 1
fi
[ -z "$failed" ] || exit 1
echo "fuzz: $count fuzzers ran without a finding"
