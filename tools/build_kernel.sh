#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles one kernel to a cubin and refuses what a correct, fast kernel must not have:
#   any ptxas message C75xx or C76xx (a wgmma pipeline that ptxas had to repair or serialise; they are
#   of class "info", so no compiler flag turns them into errors), a spill, local memory, a stack frame.
#
#   build_kernel.sh NVCC SOURCE CUBIN INCLUDE_DIR
#
# Writes CUBIN, CUBIN.log (all messages) and CUBIN.resources: "name registers barriers".
set -eu
if [ $# -ne 4 ]; then
    echo "usage: build_kernel.sh NVCC SOURCE CUBIN INCLUDE_DIR" >&2
    exit 2
fi
nvcc=$1 source=$2 cubin=$3 include=$4
log=$cubin.log
name=$(basename "$source" .cu)

refuse() {
    rm -f "$cubin"
    echo "$name: $1" >&2
    sed 's/^/    /' "$log" >&2
    exit 1
}

"$nvcc" -std=c++17 -gencode=arch=compute_90a,code=sm_90a -O3 -lineinfo -I"$include" \
    -Xptxas -v,-warn-spills,-warn-lmem-usage -Werror all-warnings \
    -cubin -o "$cubin" "$source" >"$log" 2>&1 || refuse "nvcc failed"
if grep -qE 'C7[56][0-9][0-9]' "$log"; then
    refuse "ptxas repaired or serialised a wgmma pipeline"
fi
grep -q ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' "$log" ||
    refuse "a stack frame or a spill"
grep -q "Compiling entry function '$name'" "$log" ||
    refuse "the kernel must bear the name of its file"
sed -n "s/^ptxas info *: Used \([0-9]*\) registers, used \([0-9]*\) barriers.*/$name \1 \2/p" \
    "$log" >"$cubin.resources"
test -s "$cubin.resources" || refuse "no line with the register count"
