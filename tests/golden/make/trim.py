#!/usr/bin/env python3
"""Cuts a full data set down to what the repository holds:  trim.py FULL OUT

Numbers are copied as they stand. Three things are left out: models without a GGUF file, the tensors of the architectures that
Pagoda does not run yet (their vocabulary stays), and the white space of the JSON files. Everything is packed (packed_file.py).
"""
import json
import sys
from pathlib import Path

import vocab_only

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import packed_file

WHOLE = ("llama", "llama-tied", "mistral-full", "qwen2", "qwen3", "gemma2", "gemma3")


def write_json(value, target):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    packed_file.write((text + "\n").encode(), target)


def main(full, out):
    for source in sorted((full / "gguf").glob("*.gguf")):
        data = source.read_bytes()
        packed_file.write(data if source.stem in WHOLE else vocab_only.without_tensors(data), out / "gguf" / source.name)
    for source in sorted((full / "gguf-quant").glob("*.gguf")):
        packed_file.write(source.read_bytes(), out / "gguf-quant" / source.name)
    with_gguf = sorted(path.stem for path in (full / "gguf").glob("*.gguf"))
    for source in [full / "gguf" / "gpt-oss.golden.json", full / "gguf-quant" / "blocks.json", full / "gguf-quant" / "golden.json",
                   full / "smollm2" / "golden.json", full / "gemma3-270m" / "golden.json",
                   *(full / "models" / name / "golden.json" for name in with_gguf)]:
        write_json(json.loads(source.read_text(encoding="utf-8")), out / source.relative_to(full))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
