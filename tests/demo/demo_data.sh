#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the committed demo data: SHA-256 sums, then types and shapes where Python exists, and that
# both checks notice a flipped byte.
#
#     demo_data.sh SOURCE_DIR
#
# Works in the current folder. Last line: N passed, N failed, N skipped.
set -u

source_dir=${1:?usage: demo_data.sh SOURCE_DIR}
data=$source_dir/examples/data/minilm
maker=$source_dir/tools/make_demo_data.py
passed=0
failed=0
skipped=0

# expect STATUS TITLE COMMAND...: counts a pass if the command ends with 0 (STATUS 0) or not
# (STATUS 1).
expect()
{
    wanted=$1
    title=$2
    shift 2
    "$@" >output.txt 2>&1
    status=$?
    [ "$status" -eq 0 ] || status=1
    if [ "$status" -eq "$wanted" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL: $title"
        cat output.txt
    fi
}

sums_hold()
{
    (cd "$1" && sha256sum --strict -c SHA256SUMS)
}

# flip FILE OFFSET: replaces one byte by another.
flip()
{
    old=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    # shellcheck disable=SC2059 # the format is the byte
    printf "\\$(printf '%03o' $((255 - old)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

small_enough()
{
    bytes=$(cat "$data"/* | wc -c)
    [ "$bytes" -lt 8000000 ]
}

rm -rf copy
mkdir copy || exit 1
cp "$data"/* copy/ || exit 1
chmod u+w copy/*

expect 0 "sums of the committed files" sums_hold "$data"
expect 0 "four files are summed" test "$(wc -l <"$data/SHA256SUMS")" -eq 4
expect 0 "the folder stays under 8 MB" small_enough
if command -v python3 >/dev/null 2>&1; then
    expect 0 "sums, types and shapes" python3 "$maker" --check
    expect 0 "the same for a copy" python3 "$maker" --check --data copy
fi
for name in ffn.safetensors x_intermediate.npy x_output.npy text.txt; do
    flip "copy/$name" 1000
    expect 1 "a flipped byte of $name is noticed" sums_hold copy
    if command -v python3 >/dev/null 2>&1; then
        expect 1 "--check notices a flipped byte of $name" python3 "$maker" --check --data copy
    else
        skipped=$((skipped + 1))
    fi
    cp "$data/$name" "copy/$name"
done
expect 0 "the restored copy is right again" sums_hold copy
rm -rf copy output.txt

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
