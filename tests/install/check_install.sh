#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs a build tree into a prefix of its own, builds and runs a user's program against it by way of
# pkg-config and of find_package, shared and static; moves the prefix and does it all again; then
# installs and uninstalls below a DESTDIR.
#
#   check_install.sh CMAKE CC BUILD SOURCE VERSION
set -eu
cmake=$1
cc=$2
build=$3
source=$4
version=$5

here=$(pwd)
rm -rf ./*

run()
{
    echo "+ $*"
    "$@"
}

# The prefix under test is $1; what is built goes to $2.
use_prefix()
{
    prefix=$1
    out=$2
    mkdir -p "$out"
    pc=$(find "$prefix" -name halfbyte.pc)
    PKG_CONFIG_PATH=$(dirname "$pc")
    export PKG_CONFIG_PATH
    [ "$(pkg-config --modversion halfbyte)" = "$version" ]
    libdir=$(pkg-config --variable=libdir halfbyte)

    # shellcheck disable=SC2046 # pkg-config prints lists of flags
    run "$cc" -std=c11 -Wall -Werror "$source/tests/install/consumer/consumer.c" -o "$out/pc_shared" \
        $(pkg-config --cflags --libs halfbyte) -Wl,-rpath,"$libdir"
    run "$out/pc_shared"
    # shellcheck disable=SC2046
    run "$cc" -std=c11 -Wall -Werror "$source/tests/install/consumer/consumer.c" -o "$out/pc_static" \
        $(pkg-config --cflags --static --libs halfbyte | sed 's/-lhalfbyte/-l:libhalfbyte.a/')
    run "$out/pc_static"

    run "$cmake" -S "$source/tests/install/consumer" -B "$out/cmake" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PREFIX_PATH="$prefix" -DHALFBYTE_WANTED_VERSION="$version" --log-level=WARNING
    run "$cmake" --build "$out/cmake"
    run "$out/cmake/use_halfbyte"
    run "$out/cmake/use_halfbyte_static"

    if [ -e "$prefix/bin/halfbyte" ]; then
        run "$prefix/bin/halfbyte" --version > "$out/version"
        grep -q -F "$version" "$out/version"
    fi
}

# A static program must not ask for the shared library.
check_static()
{
    if ldd "$1" | grep halfbyte; then
        echo "$1 is linked to the shared library"
        exit 1
    fi
}

run "$cmake" --install "$build" --prefix "$here/first" > install.log
[ -f first/include/halfbyte.h ]
use_prefix "$here/first" "$here/use_first"
check_static use_first/pc_static
check_static use_first/cmake/use_halfbyte_static
ldd use_first/pc_shared | grep -q "$here/first/.*libhalfbyte.so"

# Nothing installed may hold the prefix or a folder of the build.
if grep -r -l -F -e "$here/first" -e "$build" first --include='*.pc' --include='*.cmake'; then
    echo 'the files above hold absolute paths'
    exit 1
fi
mv first second
use_prefix "$here/second" "$here/use_second"
ldd use_second/pc_shared | grep -q "$here/second/.*libhalfbyte.so"

run env DESTDIR="$here/stage" "$cmake" --install "$build" --prefix /opt/halfbyte > stage.log
[ -f stage/opt/halfbyte/include/halfbyte.h ]
installed=$(find stage ! -type d | wc -l)
(cd second && find . ! -type d | sort) > second.files
(cd stage/opt/halfbyte && find . ! -type d | sort) > stage.files
diff second.files stage.files
run env DESTDIR="$here/stage" "$cmake" -D MANIFEST="$build/install_manifest.txt" \
    -P "$source/cmake/uninstall.cmake" > uninstall.log 2>&1
left=$(find stage ! -type d -o -path '*/halfbyte*')
if [ -n "$left" ]; then
    echo "left after uninstall: $left"
    exit 1
fi
echo "$installed files installed, used from two places, and removed"
