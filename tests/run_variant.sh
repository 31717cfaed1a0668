#!/usr/bin/env bash
# run_variant.sh VARIANT PROGRAM [ARGUMENT...]: runs a test that needs a kernel variant; status 77 (skipped) where the CPU lacks it.
set -euo pipefail

case $1 in
    ref) needed=() ;;
    avx2) needed=(avx2 fma f16c bmi2) ;;
    avx_vnni) needed=(avx2 fma f16c bmi2 avx_vnni) ;;
    avx512_vnni) needed=(avx512f avx512bw avx512vl avx512dq avx512_vnni) ;;
    avx512_bf16) needed=(avx512f avx512bw avx512vl avx512dq avx512_vnni avx512_bf16) ;;
    *)
        echo "run_variant: unknown variant '$1'" >&2
        exit 2
        ;;
esac
flags=" $(sed -n 's/^flags[[:space:]]*: //p;T;q' /proc/cpuinfo) "
for flag in "${needed[@]}"; do
    if [[ $flags != *" $flag "* ]]; then
        echo "run_variant: this CPU has no $flag, so $1 is skipped"
        exit 77
    fi
done
shift
exec "$@"
