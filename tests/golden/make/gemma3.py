"""gemma3-270m/golden.json: a second real model, Gemma 3 270M in Q4_K_M GGUF, its weights dequantized to float32.

python gemma3.py OUT MODEL.gguf

transformers reads the file itself (this needs accelerate too); the ids come from the tokenizer that it makes of the metadata.
"""
import sys
from pathlib import Path

import torch

import ref

ESSAY = Path(__file__).resolve().parents[2] / "quality" / "english.txt"  # longer than the sliding window of 512

PROMPTS = [
    ("capital", "The capital of France is"),
    ("story", "Once upon a time, in a village by the sea, there lived"),
    ("code", "def fibonacci(n):\n    \"\"\"Returns the n-th Fibonacci number.\"\"\"\n"),
    ("german", "Die drei Grundfarben sind Rot, "),
]
# No text that begins with a space: there the reader of transformers adds another one.
TOKENIZE = [
    "Hello, world!",
    "two  blanks,   three, and\ttabs\t\tor\n\nlines\r\n",
    "na\u00efve caf\u00e9 \u2014 \u4f60\u597d, \u4e16\u754c \u0645\u0631\u062d\u0628\u0627 \U0001f680\U0001f469\u200d\U0001f680",
    "for (int i = 0; i < 10; ++i) sum += a[i];",
    "1234567890 3.14159",
]
NUM_TOKENS = 24


def main():
    from transformers import AutoModelForCausalLM, AutoTokenizer
    out, path = Path(sys.argv[1]), Path(sys.argv[2])
    source = dict(pretrained_model_name_or_path=path.parent, gguf_file=path.name)
    tokenizer = AutoTokenizer.from_pretrained(**source)
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32, attn_implementation="eager").eval()
    prompts = []
    for name, text in PROMPTS:
        ids = tokenizer(text)["input_ids"]
        prompts.append(dict(name=name, text=text, ids=ids, greedy=ref.greedy(model, ids, NUM_TOKENS, decode=tokenizer.decode)))
        print(name, prompts[-1]["greedy"]["min_margin"], repr(prompts[-1]["greedy"]["text"]), flush=True)
    ids = tokenizer(ESSAY.read_text(encoding="utf-8"))["input_ids"]
    values = ref.token_logprobs(model, ids)
    mean = sum(values) / len(values)
    print("essay", len(ids), mean)
    tokenize = [dict(text=text, ids=tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TOKENIZE]
    ref.dump(out / "gemma3-270m" / "golden.json",
             dict(model=path.name, compute="float32 weights dequantized by transformers, float32 activations, eager attention",
                  adds_bos=True, prompts=prompts, tokenize=tokenize,
                  perplexity=dict(text="tests/quality/english.txt", ids=ids, first_scored_index=1, mean=ref.r6(mean),
                                  perplexity=ref.r6(float(torch.exp(torch.tensor(-mean)))), values=values)))


if __name__ == "__main__":
    main()
