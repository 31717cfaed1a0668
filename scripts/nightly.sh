#!/usr/bin/env bash
# What takes hours:  nightly.sh [--accept-gemma-terms] [FUZZ_SECONDS] [SOAK_SECONDS]   (defaults: 1800 per fuzzer, 3600)
# With the flag the second model is fetched too (see fetch-model.sh); without it, its tests are skipped unless it is in the cache.
# All stages of test.sh with long fuzzing, clang-tidy over every source, the clang Release build with all tests and benches, and a soak of
# the server. Bench results go to build/bench/. A part that fails does not keep the next from running.
set -uo pipefail

accepts_gemma=no
if [ "${1:-}" = --accept-gemma-terms ]; then
    accepts_gemma=yes
    shift
fi
fuzz_seconds=${1:-1800}
soak_seconds=${2:-3600}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
failed=()
PAGODA_MODEL=$(bash scripts/fetch-model.sh) || exit 1
export PAGODA_MODEL

part() {
    local name=$1
    shift
    echo
    echo "=== nightly: $name"
    "$@" || failed+=("$name")
}

clang_release() {
    cmake --preset clang --log-level=WARNING &&
        ninja -C build/clang --quiet &&
        ctest --test-dir build/clang -j "$(nproc)" --output-on-failure --no-tests=error
}

benches() {
    local status=0
    mkdir -p build/bench
    build/release/apps/pagoda bench roof --json >build/bench/roof.json || status=1
    build/release/apps/pagoda bench kernels --types all --rows 1,2,4,8,16,32,64,128,512 --repeat 3 --json >build/bench/kernels.json || status=1
    env -u PAGODA_MODEL build/release/apps/pagoda bench engine "$PAGODA_MODEL" --json >build/bench/engine.json || status=1
    return "$status"
}

soak() {
    PAGODA_BIN=$PWD/build/release/apps/pagoda build/venv/bin/python -B tests/e2e/soak.py --seconds "$soak_seconds"
}

if [ "$accepts_gemma" = yes ]; then
    part "second model" bash scripts/fetch-model.sh gemma3-270m --accept-gemma-terms
fi
part "all stages" bash scripts/test.sh --fuzz-seconds "$fuzz_seconds"
part "clang-tidy on every source" python3 -B scripts/check_tidy.py --all
part "clang Release" clang_release
part "benches" benches
part "soak" soak

echo
if [ ${#failed[@]} -gt 0 ]; then
    echo "nightly: failed: ${failed[*]}"
    exit 1
fi
echo "nightly: all parts passed"
