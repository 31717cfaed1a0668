#!/usr/bin/env python3
"""Copies the metadata of GGUF files and leaves the tensors out:  vocab_only.py IN.gguf OUT.gguf [IN OUT ...]

The result is a complete GGUF file with a tensor count of zero: enough for everything that concerns text (vocabulary,
merges, chat template), and about a hundredth of the size.
"""
import struct
import sys
from pathlib import Path

MAGIC = b"GGUF"
HEADER = struct.Struct("<4sIQQ")  # magic, version, number of tensors, number of metadata entries
STRING, ARRAY = 8, 9
FIXED_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def skip_string(data, at):
    (length,) = struct.unpack_from("<Q", data, at)
    return at + 8 + length


def skip_value(data, at, kind):
    if kind == STRING:
        return skip_string(data, at)
    if kind != ARRAY:
        return at + FIXED_BYTES[kind]
    element, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if element in FIXED_BYTES:
        return at + FIXED_BYTES[element] * count
    for _ in range(count):
        at = skip_value(data, at, element)
    return at


def without_tensors(data):
    magic, version, _, num_entries = HEADER.unpack_from(data)
    if magic != MAGIC or version not in (2, 3):
        raise ValueError(f"not a GGUF file of version 2 or 3: magic {magic!r}, version {version}")
    at = HEADER.size
    for _ in range(num_entries):
        at = skip_string(data, at)
        (kind,) = struct.unpack_from("<I", data, at)
        at = skip_value(data, at + 4, kind)
    return HEADER.pack(magic, version, 0, num_entries) + data[HEADER.size:at]


def main(paths):
    if not paths or len(paths) % 2:
        sys.exit(__doc__)
    for source, target in zip(paths[::2], paths[1::2]):
        Path(target).write_bytes(without_tensors(Path(source).read_bytes()))


if __name__ == "__main__":
    main(sys.argv[1:])
