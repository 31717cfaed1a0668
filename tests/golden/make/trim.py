#!/usr/bin/env python3
"""Cuts a full data set down to what the repository holds:  trim.py FULL OUT

Numbers are copied as they stand. Four things are left out: models without a GGUF file, the tensors of gemma2 and of the
architectures that Pagoda does not run yet (their vocabulary stays), the F16 and BF16 files of gguf-quant (gguf/qwen2.gguf and
gguf/llama.gguf have these types), and the white space of the JSON files.
"""
import json
import shutil
import sys
from pathlib import Path

import vocab_only

WHOLE = ("llama", "llama-tied", "mistral-full", "qwen2", "qwen3", "gemma3")
QUANT_LEFT_OUT = ("F16", "BF16")


def write_json(value, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    target.write_text(text + "\n", encoding="utf-8")


def main(full, out):
    for source in sorted((full / "gguf").glob("*.gguf")):
        data = source.read_bytes()
        target = out / "gguf" / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data if source.stem in WHOLE else vocab_only.without_tensors(data))
    for source in sorted((full / "gguf-quant").glob("*.gguf")):
        if source.stem.removeprefix("llama-") not in QUANT_LEFT_OUT:
            target = out / "gguf-quant" / source.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    with_gguf = sorted(path.stem for path in (full / "gguf").glob("*.gguf"))
    for source in [full / "gguf" / "gpt-oss.golden.json", full / "gguf-quant" / "blocks.json", full / "gguf-quant" / "golden.json",
                   full / "smollm2" / "golden.json", full / "gemma3-270m" / "golden.json",
                   *(full / "models" / name / "golden.json" for name in with_gguf)]:
        golden = json.loads(source.read_text(encoding="utf-8"))
        if source == full / "gguf-quant" / "golden.json":
            for name in QUANT_LEFT_OUT:
                golden["types"].pop(name, None)
        write_json(golden, out / source.relative_to(full))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
