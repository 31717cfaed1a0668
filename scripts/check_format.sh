#!/usr/bin/env bash
# Layout and wording of the sources:  check_format.sh [ROOT]
# clang-format leaves them alone, they are ASCII, and they hold no reminder without an issue number and no path of one machine.
set -euo pipefail

cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"
list() {
    if [ -e .git ]; then git ls-files -co --exclude-standard -- "$@"; else
        for pattern in "$@"; do find . -name "$pattern" -not -path './build*' | sed 's|^\./||'; done
    fi | sort -u | while IFS= read -r file; do if [ -f "$file" ]; then printf '%s\n' "$file"; fi; done
}
if ! command -v clang-format-16 >/dev/null; then
    echo "check_format: clang-format-16 is not installed; scripts/install_packages.sh tools does it" >&2
    exit 1
fi
problems=0
# Reads findings on stdin; prints and counts them.
complain() {
    while IFS= read -r line; do
        printf '%s: %s\n' "$line" "$1"
        problems=$((problems + 1))
    done
}

mapfile -t cpp < <(list '*.h' '*.cpp' '*.cu' '*.cuh')
mapfile -t sources < <(list '*.h' '*.cpp' '*.cu' '*.cuh' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' '*.toml' '*.yaml' '*.yml')
mapfile -t texts < <(list '*.h' '*.cpp' '*.cu' '*.cuh' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' '*.toml' '*.yaml' '*.yml' '*.md')

if [ ${#cpp[@]} -gt 0 ]; then
    complain "not as clang-format writes it" < <(
        printf '%s\0' "${cpp[@]}" | xargs -0 clang-format-16 --dry-run -Werror 2>&1 |
            sed -n 's/^\([^:]*:[0-9]*\):[0-9]*: error: .*/\1/p' | sort -u -t: -k1,1
    )
fi
if [ ${#sources[@]} -gt 0 ]; then
    complain "not ASCII" < <(LC_ALL=C grep -nH '[^ -~'$'\t'']' "${sources[@]}" | cut -d: -f1,2 || true)
    complain "white space at the end of the line" < <(grep -nHE '[[:space:]]+$' "${sources[@]}" | cut -d: -f1,2 || true)
fi
if [ ${#texts[@]} -gt 0 ]; then
    # The brackets keep these patterns from finding themselves.
    complain "a reminder without an issue number" < <(
        grep -nHE '\b(TOD[O]|FIXM[E]|XX[X])\b' "${sources[@]}" | grep -vE '(TOD[O]|FIXM[E])\(#[0-9]+\)' | cut -d: -f1,2 || true
    )
    complain "a path of one machine" < <(
        grep -nHE '(^|[^A-Za-z0-9_.~-])/(wor[k]|roo[t]|hom[e]/[a-z]+)/[A-Za-z.]' "${texts[@]}" | cut -d: -f1,2 || true
    )
fi
echo "format: $problems problem$([ "$problems" -eq 1 ] || echo s)"
[ "$problems" -eq 0 ]
