"""A second real model, Gemma 3 270M: windowed layers, soft norms, a vocabulary of 262144, weights in Q4_K, Q5_0, Q6_K and Q8_0.

Its terms must be accepted before it is fetched (scripts/fetch-model.sh gemma3-270m --accept-gemma-terms); where the file is not in the
cache, all of this is skipped. Expected numbers: tests/golden/gemma3-270m, made by tests/golden/make/gemma3.py.
"""
import concurrent.futures
import json
import os
import subprocess
import unittest
from pathlib import Path

from server import Server, environment_of_binary

TESTS = Path(__file__).resolve().parent.parent
GOLDEN = json.loads(Path(os.environ["PAGODA_GOLDEN"], "gemma3-270m/golden.json").read_text())
ESSAY = TESTS / "quality/english.txt"
# Below this a different order of summation may pick the second token (tests/golden/README.md).
DECIDED_MARGIN = 0.05
MAX_ORACLE_CHANGE = 0.001  # of perplexity, the f32 oracle against the reference
MAX_DEFAULT_CHANGE = 0.005  # int8 activations and bf16 KV against the oracle
COMMAND_SECONDS = 300


def cached_model():
    """The path of the file; None where it was not fetched. Without the flag the script fetches nothing."""
    done = subprocess.run(["bash", TESTS.parent / "scripts/fetch-model.sh", "gemma3-270m"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


MODEL = cached_model()


def pagoda(command, *arguments, text=b""):
    return subprocess.run([os.environ["PAGODA_BIN"], command, MODEL, *map(str, arguments)], input=text, capture_output=True,
                          timeout=COMMAND_SECONDS, env=environment_of_binary())


@unittest.skipUnless(MODEL, "Gemma 3 270M is not in the cache: its terms were not accepted")
class Gemma(unittest.TestCase):
    def succeed(self, *arguments, **options):
        done = pagoda(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return done.stdout

    def test_inspect_names_it(self):
        report = json.loads(self.succeed("inspect", "--json"))
        self.assertEqual(report["architecture"], "gemma3")
        self.assertEqual(report["tokenizer"]["tokens"], 262144)
        self.assertEqual({row["type"] for row in report["types"]}, {"F32", "Q4_K", "Q5_0", "Q6_K", "Q8_0"})
        self.assertEqual([token["text"] for token in report["tokenizer"]["end_of_generation"]], ["<eos>", "<end_of_turn>"])

    def test_ids_equal_the_golden_ones_and_come_back_as_the_same_bytes(self):
        for entry in GOLDEN["tokenize"]:
            with self.subTest(entry["text"]):
                text = entry["text"].encode()
                ids = self.succeed("tokenize", "--ids", "--no-bos", text=text)
                self.assertEqual([int(word) for word in ids.split()], entry["ids"])
                self.assertEqual(self.succeed("detokenize", text=ids), text)

    def test_the_oracle_picks_the_golden_tokens_where_they_are_decided(self):
        for prompt in GOLDEN["prompts"]:
            with self.subTest(prompt["name"]):
                steps = prompt["greedy"]["steps"]
                answer = json.loads(self.succeed("run", "--raw", prompt["text"], "--json", "--temperature", "0", "--ignore-eos",
                                                 "--activation-dtype", "f32", "--max-tokens", len(steps)))
                self.assertEqual(answer["prompt_token_ids"], prompt["ids"])
                self.assertEqual(len(answer["token_ids"]), len(steps))
                for token, step in zip(answer["token_ids"], steps):
                    if token != step["id"]:
                        self.assertLess(step["top"][0][1] - step["top"][1][1], DECIDED_MARGIN)
                        break

    def perplexity(self, activation_dtype):
        return json.loads(self.succeed("perplexity", "--file", ESSAY, "--json", "--activation-dtype", activation_dtype))

    def test_perplexity_is_the_references_and_int8_activations_cost_little(self):
        expected = GOLDEN["perplexity"]
        oracle, default = self.perplexity("f32"), self.perplexity("auto")
        self.assertEqual(oracle["tokens"], len(expected["ids"]) - 1)
        self.assertAlmostEqual(oracle["perplexity"] / expected["perplexity"], 1, delta=MAX_ORACLE_CHANGE)
        self.assertAlmostEqual(default["perplexity"] / oracle["perplexity"], 1, delta=MAX_DEFAULT_CHANGE)

    def test_an_answer_is_the_same_alone_and_among_others(self):
        prompts = [entry["text"] * times for times in (1, 30) for entry in GOLDEN["prompts"]]  # also past the window
        with Server("--max-model-len", "2048", model=MODEL) as server:
            def answer(prompt):
                done = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 32, "temperature": 0, "ignore_eos": True})
                self.assertEqual(done.status, 200, done.body)
                return done.json()["choices"][0]["text"]

            alone = [answer(prompt) for prompt in prompts]
            with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
                self.assertEqual(list(pool.map(answer, prompts)), alone)

    def test_it_has_no_chat_template_and_says_so(self):
        done = pagoda("run", "Hello")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")
        self.assertIn(b"no chat template; use --raw", done.stderr)


if __name__ == "__main__":
    unittest.main()
