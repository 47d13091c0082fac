#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo: quantises one feed-forward block of a real model in both schemes, multiplies it with the
# activations that entered it on real text, and compares with the unquantised block.
#
#   sh tools/demo.sh [--record] BUILD_DIR
#
# Works in BUILD_DIR/demo. The checksums of the output bits must be those of
# examples/data/minilm/CHECKSUMS; --record writes that file anew. Exit: 0 all as recorded, 1 not,
# 2 usage.
# docs/demo.md explains what is printed.
set -eu

usage()
{
    echo 'usage: sh tools/demo.sh [--record] BUILD_DIR' >&2
    exit 2
}

fail()
{
    echo "demo: $*" >&2
    exit 1
}

record=
if [ "${1:-}" = --record ]; then
    record=1
    shift
fi
[ $# -eq 1 ] || usage
build_dir=$1

source_dir=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
data=$source_dir/examples/data/minilm
recorded=$data/CHECKSUMS
block=encoder.layer.2
out=$build_dir/demo

halfbyte=$build_dir/cli/halfbyte
[ -x "$halfbyte" ] || fail "there is no $halfbyte; 'make demo' builds it"
mkdir -p "$out"

# show COMMAND...: prints a command as a user would type it, then runs it.
show()
{
    printf '\n$ halfbyte'
    for word in "$@"; do
        case $word in
        "$source_dir"/*) word=${word#"$source_dir"/} ;;
        esac
        printf ' %s' "$word"
    done
    printf '\n'
    "$halfbyte" "$@"
}

# field NAME: the value of a field of the JSON line on standard input, quotes removed.
field()
{
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"
}

# multiply SCHEME SCALES LAYER SUMS [OPTION...]: one product; prints a row of the table and adds its
# checksum to the file SUMS. SCALES is how the activations are quantised to e4m3: one scale for all,
# or one per token and 128 channels. OPTIONs say where.
multiply()
{
    scheme=$1
    scales=$2
    layer=$3
    sums=$4
    shift 4
    weights=$block.$layer.dense
    "$halfbyte" gemm --weights "$out/ffn-$scheme.safetensors" --tensor "$weights.weight" \
        --bias "$weights.bias" --activations "$data/x_$layer.npy" --a-scale "$scales" --d-type f32 \
        --reference "$data/ffn.safetensors" --output "$out/$layer-$scheme.npy" \
        --json "$@" >"$out/gemm.json" ||
        fail "the product of $weights in scheme $scheme failed"

    checksum=$(field checksum <"$out/gemm.json")
    [ -n "$checksum" ] || fail "halfbyte gemm printed no checksum: $(cat "$out/gemm.json")"
    shape="$(field m <"$out/gemm.json") x $(field n <"$out/gemm.json")"
    shape="$shape x $(field k <"$out/gemm.json")"
    printf '%-10s  %-12s  %-16s  %12s  %13s  %7s  %s\n' "$scheme" "$layer" "$shape" \
        "$(field relative_rms <"$out/gemm.json")" "$(field max_error <"$out/gemm.json")" \
        "$(field sqnr_db <"$out/gemm.json")" "$checksum"
    echo "$scheme $layer $checksum" >>"$sums"
}

# products SUMS [OPTION...]: the table, of all four.
products()
{
    sums=$1
    shift
    : >"$sums"
    printf '%-10s  %-12s  %-16s  %12s  %13s  %7s  %s\n' scheme layer 'm x n x k' 'relative RMS' \
        'largest error' SQNR 'checksum of bits'
    for layer in intermediate output; do
        multiply w4afp8 tensor "$layer" "$sums" "$@"
        multiply fp8-block 1x128 "$layer" "$sums" "$@"
    done
}

# as_recorded SUMS WHAT: fails unless the checksums are the recorded ones.
as_recorded()
{
    if ! diff "$recorded" "$1" >"$out/checksums.diff"; then
        cat "$out/checksums.diff"
        fail "the output bits are not the recorded ones (< recorded, > now);" \
            "please report this with your $2"
    fi
}

cat <<'END'
A real layer: the feed-forward block of layer 2 of all-MiniLM-L6-v2 (a sentence-embedding model),
and the activations that entered it on 37 English sentences (410 tokens).
END
show inspect "$data/ffn.safetensors"

for scheme in w4afp8 fp8-block; do
    show quantize "$data/ffn.safetensors" -o "$out/ffn-$scheme.safetensors" --scheme "$scheme"
done
show inspect "$out/ffn-w4afp8.safetensors"

cat <<'END'

Products with the quantised weights, compared with the unquantised weights and activations in double
precision (SQNR in dB, higher is better):

END
products "$out/CHECKSUMS"

if [ -n "$record" ]; then
    cp "$out/CHECKSUMS" "$recorded"
    printf '\nWritten: %s\n' "$recorded"
    exit 0
fi
[ -f "$recorded" ] || fail "no recorded checksums in $recorded; --record makes them"
as_recorded "$out/CHECKSUMS" 'CPU and compiler'

# Exit status 3: there is no GPU, or the library has no kernels. Any other is a fault.
status=0
"$halfbyte" gemm --executor gpu --problem w4a8:m1n64k128:atoken:bk128 >"$out/gpu.log" 2>&1 ||
    status=$?
case $status in
0)
    printf '\nThe same on the GPU, every bit compared with the CPU model:\n\n'
    products "$out/CHECKSUMS-gpu" --executor gpu --check
    as_recorded "$out/CHECKSUMS-gpu" 'GPU and driver'
    where='on the CPU and on the GPU'
    ;;
3)
    where='on the CPU; halfbyte finds no GPU here'
    ;;
*)
    cat "$out/gpu.log"
    fail "a product on the GPU failed (exit status $status)"
    ;;
esac

count=$(wc -l <"$out/CHECKSUMS" | tr -d ' ')
cat <<END

All $count checksums are the recorded ones ($where).
These are the bits that every executor must give, whatever the CPU, the compiler and the number of
threads.

Next:
  quantise your own weights:   $halfbyte quantize IN.safetensors -o OUT.safetensors --scheme w4afp8
  multiply them, grouped too:  $halfbyte help gemm
  test against an H200's bits: make test
  read what the figures mean:  docs/demo.md
END
