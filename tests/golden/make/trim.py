#!/usr/bin/env python3
"""Cuts a full data set down to what the repository holds:  trim.py FULL OUT

Numbers are copied as they stand. Three things are left out: the tensors of the architectures that Pagoda does not run
yet (their vocabulary stays), the F16 and BF16 files of gguf-quant (gguf/qwen2.gguf and gguf/llama.gguf have these
types), and the white space of the large JSON file.
"""
import json
import shutil
import sys
from pathlib import Path

import vocab_only

WHOLE = ("llama", "llama-tied", "mistral-full", "qwen2", "qwen3", "gemma3")
QUANT_LEFT_OUT = ("F16", "BF16")


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def main(full, out):
    for source in sorted((full / "gguf").glob("*.gguf")):
        target = out / "gguf" / source.name
        copy(source, target)
        if source.stem not in WHOLE:
            target.write_bytes(vocab_only.without_tensors(source.read_bytes()))
    for source in [full / "gguf" / "gpt-oss.golden.json", full / "gguf-quant" / "blocks.json",
                   full / "smollm2" / "golden.json", *sorted((full / "models").glob("*/golden.json"))]:
        copy(source, out / source.relative_to(full))
    for source in sorted((full / "gguf-quant").glob("*.gguf")):
        if source.stem.removeprefix("llama-") not in QUANT_LEFT_OUT:
            copy(source, out / "gguf-quant" / source.name)
    golden = json.loads((full / "gguf-quant" / "golden.json").read_text(encoding="utf-8"))
    for name in QUANT_LEFT_OUT:
        golden["types"].pop(name, None)
    text = json.dumps(golden, ensure_ascii=False, separators=(",", ":"))
    (out / "gguf-quant" / "golden.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
