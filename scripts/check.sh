#!/usr/bin/env bash
# All static checks, each to its end:  check.sh [BUILD_FOLDER]
# The build folder (default build/release) gives the compile commands and the objects. CHECK_TIDY_SECONDS limits clang-tidy, which
# looks at changed files only.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."
build=${1:-build/release}
failed=0

run() {
    "$@" || failed=$((failed + 1))
}

run python3 -B scripts/check_layers.py
run python3 -B scripts/check_sizes.py
run bash scripts/check_format.sh
run python3 -B scripts/check_headers.py --build "$build"
run python3 -B scripts/check_symbols.py "$build"
run python3 -B scripts/check_instructions.py "$build"
run python3 -B scripts/check_tidy.py --build "$build" --max-seconds "${CHECK_TIDY_SECONDS:-180}"

if [ "$failed" -gt 0 ]; then
    echo "checks: $failed of 7 failed"
    exit 1
fi
echo "checks: all 7 passed"
