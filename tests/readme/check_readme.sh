#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Takes the first C block out of README.md, compiles and runs it, and compares the output with the
# first text block behind it.
#
#   check_readme.sh CC SOURCE STATIC_LIBRARY
set -eu
cc=$1
source=$2
library=$3

# block LANGUAGE: the first fenced block of that language.
block()
{
    awk -v fence="\`\`\`$1" '
        inside && /^```/ { exit }
        inside { print }
        $0 == fence { inside = 1 }' "$source/README.md"
}

block c > example.c
block text > expected.txt
[ -s example.c ]
[ -s expected.txt ]
"$cc" -std=c11 -Wall -Wextra -Werror -I"$source/include" example.c -o example "$library" \
    -lm -lpthread -ldl
./example > printed.txt
diff -u expected.txt printed.txt
echo "$(wc -l < example.c) lines of code, $(wc -l < expected.txt) lines of output as in README.md"
