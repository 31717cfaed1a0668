#!/usr/bin/env python3
"""Holds the kernel variants to symbols of their own:  check_symbols.py BUILD_FOLDER

An object that was compiled for an instruction set may export its table (pagoda::kernels::table_<variant>) and the entry points
in its own namespace (pagoda::kernels::<variant>::...), and no weak symbol at all: the linker could keep the AVX-512 copy of an
inline function for the whole program. Optimisation hides such symbols, so every source of a variant is compiled once more
with -O0 and looked at too.
"""
import json
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import source_tree

VARIANT_OBJECT = re.compile(r"pagoda_kernels_(\w+)\.dir/.*\.o$")
WEAK = "VvWwu"


def symbols(path):
    """(type, name) of what an object defines for others."""
    lines = subprocess.run(["nm", "-P", "-g", "-C", "--defined-only", str(path)], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    for line in lines:
        # "name type value size"; a demangled name may hold spaces.
        match = re.match(r"(.+?) ([A-Za-z])(?: [0-9a-f]*){0,2}\s*$", line)
        if match:
            yield match.group(2), match.group(1)


def object_problems(path, variant, label):
    own = re.compile(rf"pagoda::kernels::(?:table_{variant}$|{variant}::\w+\()")
    for kind, name in symbols(path):
        if kind in WEAK:
            yield f"{label}: weak symbol {name}"
        elif not own.match(name):
            yield f"{label}: exports {name}, allowed are table_{variant} and {variant}::..."


def unoptimised(entry, folder, index):
    """Compiles a source again with -O0; returns the object."""
    words = [w for w in shlex.split(entry["command"]) if not re.fullmatch(r"-O\w*|-g\w*", w)]
    if Path(words[0]).name == "ccache":
        words = words[1:]
    out = Path(folder) / f"{index}.o"
    words[words.index("-o") + 1] = str(out)
    subprocess.run(words + ["-O0"], cwd=entry["directory"], check=True)
    return out


def check(build):
    found = sorted((m.group(1), path) for path in build.rglob("*.o") if (m := VARIANT_OBJECT.search(str(path))))
    if not found:
        return [f"{build}: no object of a kernel variant (is the tree built?)"]
    problems = []
    for variant, path in found:
        problems += object_problems(path, variant, path.relative_to(build))
    commands = build / "compile_commands.json"
    if not commands.is_file():
        return problems
    entries = [(m.group(1), e) for e in json.loads(commands.read_text()) if (m := VARIANT_OBJECT.search(e["command"].split(" -c ")[0]))]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        objects = pool.map(lambda item: unoptimised(item[1][1], folder, item[0]), enumerate(entries))
        for (variant, entry), path in zip(entries, objects):
            problems += object_problems(path, variant, f"{Path(entry['file']).name} at -O0")
    return problems


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(source_tree.report(check(Path(sys.argv[1])), "symbols"))
