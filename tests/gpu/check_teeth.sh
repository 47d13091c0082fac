#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs gpu_test over a driver that launches nothing: each of its tests must fail by itself (not by a crash),
# so that a pass on a GPU means something.
#
#   check_teeth.sh GPU_TEST FOLDER_OF_THE_FAKE_DRIVER
set -u
# The largest tests are left out: the smaller ones of the same code stand for them.
LD_LIBRARY_PATH=$2 "$1" --quick --skip wgmma_e4m3 --seconds 300 >log 2>&1
tests=$(grep -cE '^FAILED +[a-z0-9_]+ +[0-9]+ compared' log)
last=$(tail -n 1 log)
if [ "$tests" -gt 0 ] && [ "$last" = "0 passed, $tests failed" ]; then
    echo "$tests tests, all of them fail"
    exit 0
fi
grep -vE '^  ' log >&2
echo "expected: 0 passed, $tests failed" >&2
exit 1
