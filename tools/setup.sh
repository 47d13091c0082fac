#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that the named groups need, and only those that are missing.
#
#   sh tools/setup.sh build|test|lint|clang ...
#
# A package counts as there when what it brings is there, wherever that came from; without apt-get
# the missing things are named and the script fails. docs/dependencies.md says what each package is
# for.
set -eu

missing=

# need PACKAGE COMMAND...: the package is missing if the command fails.
need()
{
    package=$1
    shift
    if ! "$@" >/dev/null 2>&1; then
        case " $missing " in
        *" $package "*) ;;
        *) missing="$missing $package" ;;
        esac
    fi
}

have_header()
{
    echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1
}

# The sanitizer run times of clang come in a package that is named after its version.
clang_runtime_package()
{
    version=$(clang -dumpversion 2>/dev/null | cut -d. -f1)
    echo "libclang-rt-${version:-14}-dev"
}

have_fuzzer()
{
    scratch=$(mktemp -d)
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n); int LLVMFuzzerTestOneInput(const char *d,
        unsigned long n) { return d == 0 && n; }' > "$scratch/probe.c"
    status=0
    clang -fsanitize=fuzzer,address,undefined "$scratch/probe.c" -o "$scratch/probe" >/dev/null 2>&1 || status=1
    rm -rf "$scratch"
    return $status
}

for group in "$@"; do
    case $group in
    build)
        need gcc command -v cc
        need libc6-dev have_header stdio.h
        need cmake command -v cmake
        need pkg-config command -v pkg-config
        need libjansson-dev pkg-config --exists jansson
        need libcmocka-dev pkg-config --exists cmocka
        ;;
    test)
        need g++ command -v c++
        need python3 command -v python3
        need scdoc command -v scdoc
        need libdw-dev pkg-config --exists libdw
        ;;
    lint)
        need clang-format command -v clang-format
        need clang-tidy command -v clang-tidy
        need python3 command -v python3
        need shellcheck command -v shellcheck
        need scdoc command -v scdoc
        ;;
    clang)
        need clang command -v clang
        need "$(clang_runtime_package)" have_fuzzer
        ;;
    *)
        echo "setup: no group '$group' (build, test, lint, clang)" >&2
        exit 2
        ;;
    esac
done

[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: no apt-get here; please install what Debian calls:$missing" >&2
    exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1; then
    as_root=sudo
else
    echo "setup: needs root or sudo to install:$missing" >&2
    exit 1
fi

echo "setup: installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # the list of packages, and the empty prefix of root, are meant to be split
if ! { $as_root apt-get -q update &&
       $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 \
           install --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    echo "setup: installing failed, see above" >&2
    exit 1
fi
