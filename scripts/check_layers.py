#!/usr/bin/env python3
"""Holds the includes of src/ and apps/ to layers.toml:  check_layers.py [ROOT]

A module is the longest path in layers.toml that a file lies under. Every include of a file of ours must follow an edge of the table,
every third-party header must be listed for the module, the table must have no cycle, and no file or class may have a name
that says nothing (util, common, helper, misc, manager).
"""
import re
import sys
import tomllib
from pathlib import Path

import source_tree

SYSTEM_FOLDERS = ("sys/", "linux/", "netinet/", "arpa/", "net/", "asm/", "bits/")
# Headers of the C library, POSIX and the compiler; C++ headers have no suffix and are always allowed.
SYSTEM_HEADERS = {
    "cpuid.h", "dirent.h", "dlfcn.h", "elf.h", "errno.h", "fcntl.h", "immintrin.h", "langinfo.h", "limits.h", "malloc.h", "netdb.h",
    "poll.h", "pthread.h", "pwd.h", "sched.h", "signal.h", "spawn.h", "string.h", "termios.h", "time.h", "unistd.h", "x86intrin.h", "arm_neon.h",
}
TEST_LIBRARIES = ("gtest/", "gmock/")
EMPTY_WORDS = {"util", "utils", "common", "helper", "helpers", "misc", "manager", "managers"}
EMPTY_CLASS = re.compile(r"\b(?:class|struct)\s+(?:\[\[\w+\]\]\s+)?(\w*(?:Util|Utils|Common|Helper|Helpers|Misc|Manager))\b")


class Layers:
    """The table of layers.toml, and the rules that it must itself obey."""

    def __init__(self, path):
        self.modules = tomllib.loads(path.read_text(encoding="utf-8"))
        self.by_length = sorted(self.modules, key=lambda name: -len(self.modules[name]["path"]))

    def module_of(self, path):
        for name in self.by_length:
            if Path(self.modules[name]["path"]) in path.parents:
                return name
        return None

    def problems(self):
        for name, module in self.modules.items():
            for target in module["modules"]:
                if target not in self.modules:
                    yield f"layers.toml: [{name}] names the module '{target}', which is not in the table"
        cycle = self.find_cycle()
        if cycle:
            yield "layers.toml: cycle " + " -> ".join(cycle)

    def find_cycle(self):
        done, trail = set(), []

        def visit(name):
            if name in trail:
                return trail[trail.index(name):] + [name]
            if name in done or name not in self.modules:
                return None
            trail.append(name)
            for target in self.modules[name]["modules"]:
                cycle = visit(target)
                if cycle:
                    return cycle
            trail.pop()
            done.add(name)
            return None

        return next((cycle for cycle in map(visit, self.modules) if cycle), None)


def is_test(path):
    """Tests end in _test.cpp; what only they include is named *_for_test.h."""
    return path.name.endswith(("_test.cpp", "_for_test.h"))


def resolve(root, path, name):
    """The file that a quoted include means: root-relative below src/, and for apps/ also beside the includer."""
    candidate = Path("src") / name
    if ".." not in candidate.parts and (root / candidate).is_file():
        return candidate
    beside = path.parent / name
    if path.parts[0] != "src" and ".." not in beside.parts and (root / beside).is_file():
        return beside
    return None


def is_generated(root, path, name):
    """Whether a script beside the includer writes this header into the build tree."""
    return any((root / path.parent / name).with_suffix(suffix).is_file() for suffix in (".cmake", ".h.in"))


def own_include(root, layers, path, name):
    """What is wrong with a quoted include, or None."""
    target = resolve(root, path, name)
    if target is None and is_generated(root, path, name):
        return None
    if target is None:
        return f'"{name}" is no file below src/ (includes are root-relative)'
    if target.suffix == ".cpp":
        return f'"{name}" is a source file'
    if is_test(target) and not is_test(path):
        return f'"{name}" is for tests only'
    source, destination = layers.module_of(path), layers.module_of(target)
    if destination is None:
        return f'"{name}" lies in no module of layers.toml'
    if source != destination and destination not in layers.modules[source]["modules"]:
        return f'"{name}": {source} may not include {destination}'
    return None


def system_include(layers, path, name):
    """What is wrong with an include in angle brackets, or None."""
    if "/" not in name and "." not in name:
        return None
    if name in SYSTEM_HEADERS or name.startswith(SYSTEM_FOLDERS):
        return None
    allowed = tuple(layers.modules[layers.module_of(path)]["libraries"])
    if is_test(path):
        allowed += TEST_LIBRARIES
    if name.startswith(allowed):
        return None
    return f"<{name}> is not among the libraries of {layers.module_of(path)}"


def name_problems(root, path):
    stem = path.name.split(".")[0].removesuffix("_test")
    words = EMPTY_WORDS.intersection(re.split(r"[_\-]", stem)) | EMPTY_WORDS.intersection(path.parent.parts)
    if words:
        yield f"{path}: the name '{sorted(words)[0]}' does not say what is inside"
    if path.suffix in source_tree.CPP_SUFFIXES:
        text = source_tree.strip_literals((root / path).read_text(encoding="utf-8", errors="replace"))
        for match in EMPTY_CLASS.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: the class name '{match.group(1)}' does not say what it is"


def file_problems(root, layers, path):
    if layers.module_of(path) is None:
        yield f"{path}: no module in layers.toml owns this folder"
        return
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    for line, name, is_quoted in source_tree.includes(text):
        fault = own_include(root, layers, path, name) if is_quoted else system_include(layers, path, name)
        if fault:
            yield f"{path}:{line}: {fault}"


def check(root):
    layers = Layers(root / "layers.toml")
    problems = list(layers.problems())
    if problems:
        return problems
    for path in source_tree.files(root, source_tree.CPP_SUFFIXES + (".py", ".sh", ".cmake")):
        problems += name_problems(root, path)
        if path.parts[0] in ("src", "apps") and path.suffix in source_tree.CPP_SUFFIXES:
            problems += file_problems(root, layers, path)
    return problems


if __name__ == "__main__":
    start = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    sys.exit(source_tree.report(check(start), "layers"))
