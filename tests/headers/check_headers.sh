#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles every header below a folder alone and twice in one file, as C11 and as C++17, without a
# single warning.
#
#   check_headers.sh CC CXX INCLUDE_DIR      CXX may be empty or not found: then 77 (skipped)
set -eu
cc=$1
cxx=$2
include=$3

flags='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror -fsyntax-only'
checked=0

# compile COMMAND EXTENSION FLAG...: a file that includes $header twice and nothing else.
compile()
{
    command=$1
    unit=unit.$2
    shift 2
    printf '#include "%s"\n#include "%s"\nint main(void);\n' "$header" "$header" > "$unit"
    # shellcheck disable=SC2086 # flags is a list
    "$command" "$@" $flags -I"$include" "$unit"
    checked=$((checked + 1))
}

for path in $(cd "$include" && find . -name '*.h' | sort); do
    header=${path#./}
    echo "$header"
    compile "$cc" c -std=c11 -Wstrict-prototypes -Wmissing-prototypes
    case $cxx in
    '' | *NOTFOUND) ;;
    *) compile "$cxx" cc -std=c++17 ;;
    esac
done

echo "$checked units compiled"
[ "$checked" -gt 0 ] || exit 1
case $cxx in
'' | *NOTFOUND)
    echo 'no C++ compiler: C++17 was not checked'
    exit 77
    ;;
esac
