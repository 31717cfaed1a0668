#!/usr/bin/env python3
"""Compiles every header of ours alone:  check_headers.py [ROOT] [--build FOLDER] [--jobs N]

Flags come from the compile_commands.json of a build tree (a header takes those of a source in its folder, so that a
kernel variant's headers see their instruction set). A verdict is kept in FOLDER/checks/headers.json under a hash of the
header, of all headers of ours that it includes, and of the flags, so a second run compiles only what changed.
Files named *_inl.h are fragments of a source and not headers of their own.
"""
import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import compile_commands
import source_tree

def compile_alone(root, path, flags):
    """The compiler's complaint, or an empty text. The second include shows that the header guards itself."""
    name = path.relative_to("src") if path.parts[0] == "src" else path
    unit = f'#include "{name}"\n#include "{name}"\n'
    command = flags + [f"-I{root / 'src'}", f"-I{root}", "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(command, input=unit, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{path}: does not compile alone\n{done.stderr.strip()[:2000]}"


def check(root, build, jobs):
    flags, hashes = compile_commands.Flags(root, build), compile_commands.Hashes(root)
    cache = build / "checks" / "headers.json"
    passed = set(json.loads(cache.read_text())) if cache.is_file() else set()
    headers = [p for p in source_tree.files(root, (".h",))
               if p.parts[0] in ("src", "apps", "tests", "fuzz") and not p.name.endswith("_inl.h")]
    keys = {p: hashes.of(p, flags.of(p)) for p in headers}
    todo = [p for p in headers if keys[p] not in passed]
    with ThreadPoolExecutor(jobs) as pool:
        faults = dict(zip(todo, pool.map(lambda p: compile_alone(root, p, flags.of(p)), todo)))
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text(json.dumps(sorted(key for p, key in keys.items() if not faults.get(p))))
    return [fault for fault in faults.values() if fault]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, nargs="?", default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--build", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    options = parser.parse_args()
    root = options.root.resolve()
    return source_tree.report(check(root, options.build or root / "build" / "release", options.jobs), "headers")


if __name__ == "__main__":
    sys.exit(main())
