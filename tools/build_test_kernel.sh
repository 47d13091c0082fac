#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles a file of test kernels to a cubin and compares the C75xx and C76xx messages of ptxas with those
# that the file names in a line `expect: C7517 ...` of a comment; without one it expects none.
#
#   build_test_kernel.sh NVCC SOURCE CUBIN INCLUDE_DIR...
#
# Writes CUBIN and CUBIN.log (all messages).
set -eu
if [ $# -lt 4 ]; then
    echo "usage: build_test_kernel.sh NVCC SOURCE CUBIN INCLUDE_DIR..." >&2
    exit 2
fi
nvcc=$1 source=$2 cubin=$3
shift 3
for folder; do
    set -- "$@" "-I$folder"
    shift
done
log=$cubin.log

refuse() {
    rm -f "$cubin"
    echo "$(basename "$source"): $1" >&2
    grep -E 'error|warning|C7[56]' "$log" | sed 's/^/    /' >&2
    exit 1
}

"$nvcc" -std=c++17 -gencode=arch=compute_90a,code=sm_90a -O3 -lineinfo "$@" \
    -Xptxas -v -cubin -o "$cubin" "$source" >"$log" 2>&1 || refuse "nvcc failed"
expected=$(sed -n 's/^ \* expect: *//p' "$source")
found=$(grep -oE 'C7[56][0-9]{2}' "$log" | sort -u | tr '\n' ' ' | sed 's/ $//')
if [ "${found:-none}" != "${expected:-none}" ]; then
    refuse "ptxas says ${found:-nothing}; expected ${expected:-nothing}"
fi
