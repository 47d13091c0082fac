#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs an example and compares what it prints, and its exit status, with the recorded text.
#
#   check_output.sh PROGRAM EXPECTED
#
# EXPECTED is the output, files without their folders, then a line "exit N".
set -eu
program=$1 expected=$2
status=0
"$program" >printed.txt || status=$?
sed 's,[^ ]*/\([a-z0-9_]*\.[ch]:\),\1,' printed.txt >output.txt
echo "exit $status" >>output.txt
diff "$expected" output.txt
