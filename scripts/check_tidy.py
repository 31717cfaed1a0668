#!/usr/bin/env python3
"""clang-tidy on what changed:  check_tidy.py [--base COMMIT | --all] [--build FOLDER] [--max-seconds N]

Looks at the sources that differ from the base (default: where this branch left origin/main, else the last commit), uncommitted changes
included; a changed header is looked at through one source that includes it. Verdicts are kept in FOLDER/checks/tidy.json, under
a hash of all that the source includes. Sources left when the time is up are named in the last line and are no problem.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import compile_commands
import source_tree

TIDY = "clang-tidy-16"


def git(root, *arguments):
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def default_base(root):
    head = git(root, "rev-parse", "HEAD")
    fork = git(root, "merge-base", "HEAD", "origin/main")
    return fork if fork and fork != head else git(root, "rev-parse", "HEAD~1")


def changed_paths(root, base):
    names = git(root, "diff", "--name-only", base) if base else ""
    names += "\n" + git(root, "ls-files", "-o", "--exclude-standard")
    return {Path(name) for name in names.split("\n") if name}


def source_of(header, sources, hashes):
    """The source through which a header is looked at: its own, else the first that includes it."""
    own = header.with_suffix(".cpp")
    if own in sources:
        return own
    return next((s for s in sources if header in hashes.closure(s)), None)


def select(root, build, base, hashes):
    """Sources of the build tree to look at; all of them where base is None."""
    entries = json.loads((build / "compile_commands.json").read_text())
    sources = sorted({Path(os.path.relpath(e["file"], root)) for e in entries})
    sources = [s for s in sources if s.parts[0] != ".." and (root / s).is_file()]
    if base is None:
        return sources
    changed = changed_paths(root, base)
    chosen = {s for s in sources if s in changed}
    headers = {source_of(h, sources, hashes) for h in changed if h.suffix == ".h" and (root / h).is_file()}
    return sorted(chosen | (headers - {None}))


def tidy(root, build, path):
    command = [TIDY, "--quiet", "--extra-arg=-Wno-unknown-warning-option", "-p", str(build), str(root / path)]
    done = subprocess.run(command, capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if " error: " in line]
    if done.returncode == 0:
        return []
    return [line.replace(f"{root}/", "") for line in found] or [f"{path}: {done.stderr.strip()[:1000]}"]


def check(root, build, base, deadline):
    """(problems, number of sources that were looked at, sources that were left)"""
    hashes = compile_commands.Hashes(root)
    rules = (root / ".clang-tidy").read_text()
    cache = build / "checks" / "tidy.json"
    passed = set(json.loads(cache.read_text())) if cache.is_file() else set()
    sources = select(root, build, base, hashes)
    keys = {s: hashes.of(s, [rules]) for s in sources}
    todo = [s for s in sources if keys[s] not in passed]

    def look(path):
        return None if time.monotonic() > deadline else tidy(root, build, path)

    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        verdicts = dict(zip(todo, pool.map(look, todo)))
    clean = {keys[s] for s, found in verdicts.items() if found == []}
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text(json.dumps(sorted(passed | clean)))
    problems = sorted({line for found in verdicts.values() for line in found or []})
    return problems, len(sources), [s for s, found in verdicts.items() if found is None]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("--base")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--build", type=Path, default=root / "build" / "release")
    parser.add_argument("--max-seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    base = None if options.all else options.base or default_base(root)
    problems, num_sources, left = check(root, options.build.resolve(), base, time.monotonic() + options.max_seconds)
    nothing = "" if base != "" else ", no earlier commit to compare with: only what is not committed"
    note = nothing + (f", {len(left)} left when the time was up: {' '.join(map(str, left))}" if left else "")
    return source_tree.report(problems, f"tidy ({num_sources} sources{note})")


if __name__ == "__main__":
    sys.exit(main())
