#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs CTest in a build folder and closes with a line that scripts can count on, `N passed, N
# failed` (and `, N skipped`).
#
#   sh tools/run_tests.sh BUILD [ctest option]...
#
# The exit status is CTest's; a run in which no test was executed has failed.
set -u

build=${1:?usage: run_tests.sh BUILD [ctest option]...}
shift
report=$(mktemp)
trap 'rm -f "$report"' EXIT

status=0
ctest --test-dir "$build" --output-on-failure --no-tests=error --output-junit "$report" \
    --parallel "$(nproc 2>/dev/null || echo 2)" "$@" || status=$?

# The head of the report: <testsuite name=".." tests="12" failures="1" disabled="0" skipped="2"
# ...>, over several lines.
count()
{
    sed -n "s/^.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$report" | head -n 1
}
tests=$(count tests)
failed=$(count failures)
skipped=$(($(count skipped || echo 0) + $(count disabled || echo 0)))
if [ -z "$tests" ] || [ "$tests" -eq 0 ]; then
    echo "run_tests: no test was run" >&2
    [ "$status" -ne 0 ] || status=1
    tests=0 failed=0 skipped=0
fi
passed=$((tests - failed - skipped))
[ "$failed" -eq 0 ] || [ "$status" -ne 0 ] || status=1

line="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
echo "$line"
exit "$status"
