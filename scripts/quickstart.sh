#!/usr/bin/env bash
# From a clone to a running server:  quickstart.sh [--model PATH] [--port N] [--no-serve]
# Installs what is missing, builds, fetches the default model and serves it on 127.0.0.1. Every step is skipped where its result is there.
set -euo pipefail

usage() {
    cat <<'TEXT'
quickstart.sh [--model PATH] [--port N] [--no-serve]
  --model PATH   serve this GGUF file (default: SmolLM2-135M-Instruct, fetched into the cache)
  --port N       listen on 127.0.0.1:N (default: 8080; 0 picks a free port)
  --no-serve     stop when all is built and fetched
TEXT
}

model=
port=8080
serve=yes
while [ $# -gt 0 ]; do
    case $1 in
        --model | --port)
            if [ $# -lt 2 ]; then
                echo "quickstart: $1 needs a value" >&2
                exit 2
            fi
            if [ "$1" = --model ]; then model=$2; else port=$2; fi
            shift 2
            ;;
        --no-serve)
            serve=no
            shift
            ;;
        -h | --help)
            usage
            exit 0
            ;;
        *)
            echo "quickstart: unknown argument '$1'" >&2
            usage >&2
            exit 2
            ;;
    esac
done
if ! [[ $port =~ ^[0-9]{1,5}$ ]] || [ "$port" -gt 65535 ]; then
    echo "quickstart: --port must be 0 to 65535, got '$port'" >&2
    exit 2
fi
if [ -n "$model" ]; then
    if ! [ -r "$model" ]; then
        echo "quickstart: cannot read the model '$model'" >&2
        exit 2
    fi
    # Links stay: the parts of a split model are found by name, which what a link points to need not have.
    model=$(realpath --no-symlinks "$model")
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/install_packages.sh build

pagoda=build/release/apps/pagoda
if ! [ -f build/release/build.ninja ]; then
    # Tests need packages that serving does not; scripts/test.sh turns them on in the same tree.
    cmake --preset release -DPAGODA_TESTS=OFF >/dev/null
fi
# On a terminal ninja tells in one line how far it is.
quiet=(--quiet)
if [ -t 1 ]; then quiet=(); fi
if [ -x "$pagoda" ]; then echo "building what has changed"; else echo "building (about 4 minutes on 2 cores)"; fi
began=$SECONDS
ninja -C build/release -j "$(nproc)" "${quiet[@]}" pagoda
echo "built in $((SECONDS - began)) s"
[ -n "$model" ] || model=$(bash scripts/fetch-model.sh)

if [ "$serve" = no ]; then
    echo "Built $pagoda. To serve:"
    echo "  $pagoda serve $model --port $port"
    exit 0
fi

# The server says where it listens, how to ask it and how to stop it once it is ready; signals reach it directly.
exec "$pagoda" serve "$model" --port "$port"
