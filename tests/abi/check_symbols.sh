#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports, the static library defines and the header declares the same functions:
# those of the list.
#
#   check_symbols.sh NM LIST HEADER SHARED STATIC
#
# A function that was added on purpose is added to the list by hand: one name a line, sorted.
set -eu
export LC_ALL=C
nm=$1
list=$2
header=$3
shared=$4
static=$5

grep -v '^#' "$list" > expected
if [ ! -s expected ] || ! sort -c -u expected; then
    echo "$list is empty or not sorted"
    exit 1
fi

# Versioned names come as name@@NODE; the node itself is an absolute symbol.
"$nm" -D --defined-only "$shared" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort > shared.found
"$nm" -g --defined-only "$static" | awk 'NF == 3 { print $3 }' | sort > static.found
# A declaration begins with HALFBYTE_API; the function is the name before its first parenthesis.
tr '\n' ' ' < "$header" | grep -o 'HALFBYTE_API [a-z][^(;]*(' |
    sed 's/.*[ *]\(halfbyte_[a-z0-9_]*\)(/\1/' | sort > declared.found

status=0
for found in shared static declared; do
    if ! diff -u expected $found.found > $found.diff; then
        echo "$found functions are not those of $list:"
        cat $found.diff
        status=1
    fi
done
echo "$(wc -l < expected) symbols compared in 3 places"
exit $status
