"""`pagoda bench serve` through the real binary, on a real server: what it counts, and what it refuses."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from server import Server, environment_of_binary


def bench_serve(*arguments):
    return subprocess.run([os.environ["PAGODA_BIN"], "bench", "serve", *arguments], env=environment_of_binary(), capture_output=True,
                          text=True, timeout=300, check=False)


class BenchServe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server("--api-keys", "secret-key"))

    def load(self, *arguments):
        run = bench_serve("--url", self.server.address, "--api-key", "secret-key", "--json", *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def test_a_closed_loop_counts_what_the_server_answered(self):
        result = self.load("--requests", "6", "--concurrency", "2", "--prompt-tokens", "90", "--shared-prefix", "70", "--output-tokens", "5")
        self.assertEqual((result["completed"], result["failed"], result["left_out"]), (6, 0, 0))
        self.assertEqual(result["total_output_tokens"], 6 * 5)
        self.assertGreaterEqual(result["total_input_tokens"], 6 * 90)
        self.assertGreaterEqual(result["total_cached_tokens"], 4 * 64)
        self.assertGreater(result["median_ttft_ms"], 0)
        self.assertLessEqual(result["median_ttft_ms"], result["p99_ttft_ms"])
        self.assertLess(result["median_ttft_ms"], result["median_e2el_ms"])
        self.assertAlmostEqual(result["request_goodput"], result["request_throughput"])

    def test_goodput_is_what_keeps_the_targets(self):
        result = self.load("--requests", "2", "--rate", "50", "--prompt-tokens", "8", "--output-tokens", "2", "--slo-ttft-ms", "0.001")
        self.assertEqual((result["completed"], result["request_goodput"]), (2, 0))

    def test_chats_go_on_and_find_what_was_said_in_the_cache(self):
        result = self.load("--chats", "--requests", "8", "--concurrency", "1", "--applications", "1", "--system-tokens", "100", "--spread",
                           "0", "--question-tokens", "10", "--output-tokens", "4")
        self.assertEqual(result["completed"], 8)
        self.assertGreater(result["total_cached_tokens"] / result["total_input_tokens"], 0.5)

    def test_completions_and_a_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder, "trace.jsonl")
            lines = [{"timestamp": 1000 * number, "input_length": 20, "output_length": 3, "hash_ids": [number]} for number in range(3)]
            trace.write_text("\n".join(json.dumps(line) for line in lines))
            result = self.load("--completions", "--trace", str(trace), "--speed", "100")
        self.assertEqual((result["completed"], result["total_output_tokens"]), (3, 9))

    def test_static_batches_wait_for_each_other(self):
        shape = ("--requests", "6", "--concurrency", "6", "--prompt-tokens", "8", "--output-tokens", "6")
        together, alone = self.load(*shape), self.load(*shape, "--static-batch", "1")
        self.assertGreater(alone["max_ttft_ms"], together["max_ttft_ms"])

    def test_what_a_server_refuses_is_counted_and_said(self):
        run = bench_serve("--url", self.server.address, "--model", "m", "--api-key", "wrong", "--requests", "2")
        self.assertEqual(run.returncode, 1)
        self.assertIn("2 failed", run.stdout)
        self.assertIn("status 401", run.stdout)

    def test_no_server_and_no_key_are_failures_that_say_so(self):
        run = bench_serve("--url", "http://127.0.0.1:9")
        self.assertEqual(run.returncode, 1)
        self.assertIn("http://127.0.0.1:9/v1/models", run.stderr)
        run = bench_serve("--url", self.server.address)
        self.assertEqual(run.returncode, 1)
        self.assertIn("--api-key", run.stderr)

    def test_options_without_meaning_are_bad_usage(self):
        for arguments in (("--rate", "1", "--concurrency", "2"), ("--speed", "2"), ("--turns", "3"), ("--chats", "--shared-prefix", "4"),
                          ("--shared-prefix", "512"), ("--rate", "0"), ("--requests", "0"), ("--url", "localhost:1"),
                          ("--trace", "no/such/file", "--rate", "1")):
            run = bench_serve(*arguments)
            self.assertEqual(run.returncode, 2, (arguments, run.stderr))
            self.assertIn("--", run.stderr)


if __name__ == "__main__":
    unittest.main()
