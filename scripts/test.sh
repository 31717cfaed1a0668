#!/usr/bin/env bash
# All tests:  test.sh [STAGE...]
# Installs what is missing, then runs every stage of scripts/run_tests.py (or those named) and sums them up. The last line is
# "N passed, N failed"; the status is 0 only if nothing failed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/install_packages.sh build test tools
exec python3 -B scripts/run_tests.py "$@"
