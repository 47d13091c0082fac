#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All checks of the sources that need no test run: format, style, dependency order, scripts, the
# descriptions of the build, clang-tidy. Each runs even if one before it failed.
#
#   sh tools/lint.sh [--no-tidy]        clang-tidy is the slow one
set -u

cd "$(dirname "$0")/.." || exit 1
failed=

check()
{
    echo "== $1"
    checked=$1
    shift
    "$@" || failed="$failed $checked"
}

format()
{
    git ls-files -z --cached --others --exclude-standard -- '*.c' '*.h' ':!*_generated.h' |
        xargs -0 clang-format --dry-run -Werror
}

scripts()
{
    git ls-files -z --cached --others --exclude-standard -- '*.sh' .ci/run | xargs -0 shellcheck
}

python_syntax()
{
    git ls-files -z --cached --others --exclude-standard -- '*.py' |
        xargs -0 python3 -c 'import ast, sys
for path in sys.argv[1:]:
    ast.parse(open(path, encoding="utf-8").read(), path)'
}

manual_pages()
{
    status=0
    for page in docs/man/*.scd; do
        scdoc < "$page" > "$scratch/page" || { echo "$page" && status=1; }
    done
    return $status
}

# Every source is named in some CMakeLists.txt, or its stem in a table (.def), or a test in its own
# folder by what it tests, so none is forgotten.
listed_sources()
{
    git ls-files -z --cached --others --exclude-standard -- '*CMakeLists.txt' '*.def' |
        xargs -0 cat > "$scratch/lists"
    git ls-files --cached --others --exclude-standard -- 'src/*.c' 'cli/*.c' 'tests/*.c' 'bench/*.c' \
        'examples/*.c' > "$scratch/sources"
    status=0
    while read -r path; do
        file=$(basename "$path")
        stem=${file%.c}
        if ! grep -q -F -e "$file" -e "($stem" "$scratch/lists" &&
            ! grep -q -w -s -e "${stem#test_}" "$(dirname "$path")/CMakeLists.txt"; then
            echo "$path is in no list of a CMakeLists.txt"
            status=1
        fi
    done < "$scratch/sources"
    return $status
}

# The consumer of the install test is no part of this build.
tidy()
{
    cmake --preset default -B build-lint --log-level=ERROR > /dev/null &&
        git ls-files -z --cached -- 'src/*.c' 'cli/*.c' 'tests/*.c' 'bench/*.c' 'examples/*.c' \
            ':!tests/install' |
        xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p build-lint 2> "$scratch/tidy.err"
    status=$?
    [ -f "$scratch/tidy.err" ] || return $status
    # "N warnings generated" counts what is suppressed in system headers.
    grep -v -E '^[0-9]+ warnings? generated|^Suppressed|^Use -header-filter' "$scratch/tidy.err" >&2
    return $status
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

check format format
check style python3 tools/check_style.py
check dependencies python3 tools/check_dependencies.py
check lists listed_sources
check scripts scripts
check python python_syntax
check manual manual_pages
[ "${1:-}" = --no-tidy ] || check clang-tidy tidy

if [ -n "$failed" ]; then
    echo "lint: failed:$failed" >&2
    exit 1
fi
echo 'lint: clean'
