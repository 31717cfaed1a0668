#!/usr/bin/env bash
# Installs the Debian packages of the given sections of scripts/packages.txt (all sections without arguments).
# Does nothing, and needs neither network nor root, when they are there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
list=$here/packages.txt

# Prints the packages of one section.
section() {
    awk -v want="[$1]" '{ sub(/#.*/, ""); gsub(/[ \t]/, "") } /^\[/ { on = ($0 == want); next } on && $0 != ""' "$list"
}

sections=("$@")
[ ${#sections[@]} -gt 0 ] || sections=(build run test tools)

wanted=()
for name in "${sections[@]}"; do
    mapfile -t packages < <(section "$name")
    if [ ${#packages[@]} -eq 0 ]; then
        echo "install_packages: no section [$name] in $list" >&2
        exit 2
    fi
    wanted+=("${packages[@]}")
done

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "install_packages: this is not a Debian system (no dpkg-query). Install the equivalents of:" >&2
    echo "  ${wanted[*]}" >&2
    exit 1
fi

installed=$(dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' 2>/dev/null |
    awk '$2 == "installed" { sub(/:.*/, "", $1); print $1 }')
missing=()
for package in "${wanted[@]}"; do
    grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

echo "Packages to install: ${missing[*]}" >&2
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        as_root=(sudo)
    else
        echo "install_packages: neither root nor sudo. Ask an administrator to run:" >&2
        echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
fi

export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
