#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library carries the SONAME and the version node of the header, and needs only libc, libm,
# libpthread, libdl and the loader.
#
#   check_needed.sh READELF SHARED SONAME NODE
set -eu
readelf=$1
shared=$2
soname=$3
node=$4

status=0
"$readelf" -d -W "$shared" > dynamic
found=$(sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p' dynamic)
if [ "$found" != "$soname" ]; then
    echo "SONAME is '$found', not $soname"
    status=1
fi
if ! "$readelf" -V -W "$shared" | grep -q "Name: $node\$"; then
    echo "no version node $node (src/halfbyte.map)"
    status=1
fi
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' dynamic)
for library in $needed; do
    case $library in
    libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | ld-linux*.so.*) echo "needs $library" ;;
    *)
        echo "needs $library, which is not allowed"
        status=1
        ;;
    esac
done
if grep -q -E '\((RPATH|RUNPATH|TEXTREL)\)' dynamic; then
    echo 'has a run path or text relocations:'
    grep -E '\((RPATH|RUNPATH|TEXTREL)\)' dynamic
    status=1
fi
exit $status
