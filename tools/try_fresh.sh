#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs make targets on a copy of a newly installed Debian 12 that has git, make and apt alone, in a
# fresh clone of the last commit: what a newcomer meets. Needs root, debootstrap and about 2 GB.
#
#   sudo sh tools/try_fresh.sh FOLDER TARGET...
#
# FOLDER/base is the bare system, made once and kept; FOLDER/root the copy that is used and replaced.
set -eu

if [ $# -lt 2 ] || [ "$(id -u)" -ne 0 ]; then
    echo 'usage (as root): sh tools/try_fresh.sh FOLDER TARGET...' >&2
    exit 2
fi
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
base=$folder/base
root=$folder/root

if [ ! -d "$base" ]; then
    rm -rf "$base.part"
    debootstrap --variant=minbase --include=git,make,ca-certificates bookworm "$base.part" \
        > "$folder/debootstrap.log"
    # As this machine reaches its packages, so shall the new one.
    apt-config dump Acquire > "$base.part/etc/apt/apt.conf.d/90host"
    mv "$base.part" "$base"
fi

leave()
{
    umount "$root/proc" 2>/dev/null || true
    umount "$root/dev/pts" 2>/dev/null || true
}
leave
rm -rf "$root"
cp -a "$base" "$root"
cp /etc/resolv.conf "$root/etc/"
trap leave EXIT
mount -t proc proc "$root/proc"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
git clone -q "$source" "$root/root/halfbyte"

start=$(date +%s)
status=0
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    make -C /root/halfbyte --no-print-directory "$@" < /dev/null || status=$?
echo "try_fresh: make $* ended with $status after $(($(date +%s) - start)) s"
exit "$status"
