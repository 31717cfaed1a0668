"""The compile commands of a build tree, and hashes that say whether a source means the same as before."""
import hashlib
import json
import os
import re
import shlex
from pathlib import Path

import source_tree

DEFAULT_FLAGS = ["g++", "-std=c++20"]
DROPPED = re.compile(r"-O\w*|-g\w*|-MD|-c|-fsanitize=.*|-Winvalid-pch")


def flags_of(entry):
    """The compiler and flags of one compile command, without input, output and precompiled headers."""
    words = iter(shlex.split(entry["command"]))
    flags = []
    for word in words:
        if word in ("-o", "-MT", "-MF", "-c"):
            next(words)
        elif word == "-include" or word == "-include-pch":
            next(words)
        elif not DROPPED.fullmatch(word) and Path(word).name != "ccache":
            flags.append(word)
    return flags


class Flags:
    def __init__(self, root, build):
        self.by_folder = {}
        commands = build / "compile_commands.json"
        if commands.is_file():
            for entry in sorted(json.loads(commands.read_text()), key=lambda e: e["file"]):
                folder = Path(os.path.relpath(Path(entry["file"]).parent, root))
                is_test = entry["file"].endswith("_test.cpp")
                if folder not in self.by_folder or not is_test:
                    self.by_folder[folder] = flags_of(entry)

    def of(self, path):
        for folder in path.parents:
            if folder in self.by_folder:
                return self.by_folder[folder]
        return next(iter(self.by_folder.values()), DEFAULT_FLAGS)


class Hashes:
    """Content hashes of headers together with what they include of ours."""

    def __init__(self, root):
        self.root = root
        self.closures = {}

    def closure(self, path):
        if path not in self.closures:
            self.closures[path] = {path}
            text = (self.root / path).read_text(encoding="utf-8", errors="replace")
            for _, name, is_quoted in source_tree.includes(text):
                target = Path("src") / name
                if is_quoted and (self.root / target).is_file():
                    self.closures[path] = self.closures[path] | self.closure(target)
        return self.closures[path]

    def of(self, path, flags):
        digest = hashlib.sha256("\0".join(flags).encode())
        for part in sorted(self.closure(path)):
            digest.update(str(part).encode() + b"\0" + (self.root / part).read_bytes())
        return digest.hexdigest()
