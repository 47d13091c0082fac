#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The library builds without CMake, CUDA or any flag for a CPU: one compiler line for a shared library,
# one for a program with the sources in it. Both must compute the same as any other build.
#
#   check_bare_compiler.sh CC SOURCE
set -eu
cc=$1
source=$2
out=$(pwd)

cd "$source"
flags='-std=c11 -O2 -ffp-contract=off -Iinclude -Isrc'
sources='src/format/*.c src/model/*.c src/cuda/*.c src/api/*.c'
set -x
# shellcheck disable=SC2086 # both are lists
"$cc" $flags -fPIC -fvisibility=hidden -shared $sources -o "$out/libhalfbyte.so" -lm -lpthread -ldl
"$cc" -std=c11 -Iinclude tests/install/consumer/consumer.c -o "$out/shared" \
    -L"$out" -Wl,-rpath,"$out" -lhalfbyte
"$out/shared"
# shellcheck disable=SC2086
"$cc" $flags $sources tests/install/consumer/consumer.c -o "$out/whole" -lm -lpthread -ldl
"$out/whole"
