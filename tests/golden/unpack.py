#!/usr/bin/env python3
"""Unpacks the reference data for the tests:  unpack.py OUT

OUT gets the same folders as this one, without ".xz". A file that is newer than its packed one is left alone.
"""
import shutil
import sys
from pathlib import Path

import packed_file

HERE = Path(__file__).resolve().parent


def unpack(source, target):
    if target.is_file() and target.stat().st_mtime_ns > source.stat().st_mtime_ns:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    if source.suffix == ".xz":
        partial.write_bytes(packed_file.read(source))
    else:
        shutil.copyfile(source, partial)
    partial.replace(target)


def main(out):
    for source in sorted([*HERE.rglob("*.xz"), *HERE.rglob("*.jinja")]):
        target = out / source.relative_to(HERE)
        unpack(source, target.with_suffix("") if source.suffix == ".xz" else target)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
