#!/usr/bin/env python3
"""Makes the reference data from nothing:
    all.py WORK OUT --llama-cpp SOURCE_DIR --quantize BINARY --smollm2 FILE.gguf --gemma3 FILE.gguf

WORK receives the full set (checkpoints, every GGUF file), OUT what the repository keeps of it (see trim.py).
Needs torch, transformers, accelerate, safetensors, tokenizers, sentencepiece, numpy, gguf and jinja2; from llama.cpp its
converter (a source tree) and its llama-quantize, which write files and compute none of the expected numbers.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GGUF_TYPE = dict(float32="f32", float16="f16", bfloat16="bf16")
# llama.cpp runs Mistral's GGUF without its sliding window, so only the checkpoint is made of it.
NO_GGUF = ("mistral",)


def run(*command):
    subprocess.run([str(part) for part in command], check=True)


def convert(full, llama_cpp):
    """Writes one GGUF file per checkpoint, in the checkpoint's own type."""
    (full / "gguf").mkdir(parents=True, exist_ok=True)
    jobs = []
    for folder in sorted((full / "models").iterdir()):
        if folder.name in NO_GGUF:
            continue
        golden = json.loads((folder / "golden.json").read_text(encoding="utf-8"))
        # llama.cpp gives names with "phi3" a tokenizer rule of their own, so the name avoids it.
        jobs += [folder, full / "gguf" / f"{folder.name}.gguf", GGUF_TYPE[golden["checkpoint_dtype"]],
                 golden["tokenizer"]["gguf_pre"], "toy " + folder.name.replace("phi3", "phi")]
    run(sys.executable, HERE / "togguf.py", llama_cpp, *jobs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--llama-cpp", type=Path, required=True)
    parser.add_argument("--quantize", type=Path, required=True)
    parser.add_argument("--smollm2", type=Path, required=True)
    parser.add_argument("--gemma3", type=Path, required=True)
    options = parser.parse_args()
    for needed in (options.llama_cpp / "convert_hf_to_gguf.py", options.quantize, options.smollm2, options.gemma3):
        if not needed.is_file():  # found out before the models are made, not after
            parser.error(f"there is no file {needed}")
    full = options.work.resolve()
    run(sys.executable, HERE / "models.py", full)
    convert(full, options.llama_cpp.resolve())
    run(sys.executable, HERE / "ggufquant.py", full, options.llama_cpp.resolve(), options.quantize.resolve())
    run(sys.executable, HERE / "smollm2.py", full, options.smollm2.resolve())
    run(sys.executable, HERE / "gemma3.py", full, options.gemma3.resolve())
    run(sys.executable, HERE / "trim.py", full, options.out.resolve())


if __name__ == "__main__":
    main()
