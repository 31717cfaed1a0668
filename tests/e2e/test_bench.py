"""`pagoda bench` through the real binary: rows of `kernels`, what it refuses, the comparison with an earlier run; `scheduler`."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from server import environment_of_binary


def bench_kernels(*arguments):
    return subprocess.run([os.environ["PAGODA_BIN"], "bench", "kernels", *arguments], env=environment_of_binary(), capture_output=True,
                          text=True, timeout=300, check=False)


SMALL = ("--kernels", "linear", "--shapes", "64x256", "--types", "Q4_K,BF16", "--rows", "1,3", "--repeat", "1")


class BenchKernels(unittest.TestCase):
    def test_every_type_shape_and_number_of_rows_is_a_row_with_its_share_of_the_roof(self):
        run = bench_kernels(*SMALL, "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        rows = json.loads(run.stdout)
        self.assertEqual([(row["type"], row["rows"]) for row in rows], [("Q4_K", 1), ("Q4_K", 3), ("BF16", 1), ("BF16", 3)])
        for row in rows:
            self.assertEqual((row["kernel"], row["out_features"], row["in_features"]), ("linear", 64, 256))
            self.assertGreater(row["gmac_s"], 0)
            self.assertLessEqual(row["least_share"], row["share"])
            self.assertLessEqual(row["share"], row["most_share"])

    def test_a_later_run_is_compared_with_the_saved_one(self):
        with tempfile.TemporaryDirectory() as folder:
            saved = str(Path(folder, "before.json"))
            self.assertEqual(bench_kernels(*SMALL, "--save-baseline", saved).returncode, 0)
            shares = json.loads(Path(saved).read_text())["shares"]
            self.assertEqual(len(shares), 4)
            rows = json.loads(bench_kernels(*SMALL, "--baseline", saved, "--json").stdout)
            self.assertEqual(sorted(row["baseline_share"] for row in rows), sorted(shares.values()))

    def test_a_share_that_fell_by_more_than_is_allowed_has_status_1_and_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            saved = Path(folder, "before.json")
            self.assertEqual(bench_kernels(*SMALL, "--save-baseline", str(saved)).returncode, 0)
            document = json.loads(saved.read_text())
            for factor, status in ((100, 1), (0.01, 0)):
                altered = {key: share * factor for key, share in document["shares"].items()}
                saved.write_text(json.dumps({**document, "shares": altered}))
                run = bench_kernels(*SMALL, "--baseline", str(saved), "--max-drop", "5", "--json")
                self.assertEqual(run.returncode, status, run.stderr)
                self.assertEqual(len(json.loads(run.stdout)), 4)
                self.assertEqual("--max-drop: 4 of 4 shares fell by more than 5 %, most of all " in run.stderr, status == 1)
            self.assertEqual(bench_kernels(*SMALL, "--max-drop", "5").returncode, 2)

    def test_layers_that_are_not_whole_blocks_are_left_out_with_a_line(self):
        run = bench_kernels("--kernels", "linear", "--shapes", "64x96", "--types", "Q4_K", "--json")
        self.assertEqual(run.returncode, 0)
        self.assertEqual(json.loads(run.stdout), [])
        self.assertIn("left out: 64 x 96 in Q4_K", run.stderr)

    def test_a_layer_that_memory_cannot_hold_is_bad_usage_and_both_sizes_are_named(self):
        run = bench_kernels("--shapes", "1048576x1048576", "--types", "F32", "--rows", "8192")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertRegex(run.stderr, r"1048576x1048576 in F32 with 8192 rows takes [0-9.]+ TiB, this process may use [0-9.]+ [MGT]iB")

    def test_wrong_lists_are_bad_usage(self):
        for option, value in (("--types", "Q4_9"), ("--types", "I32"), ("--rows", "0"), ("--shapes", "2"), ("--shapes", "2x"),
                              ("--kernels", "norm"), ("--isa", "sse9"), ("--threads", "0")):
            with self.subTest(f"{option} {value}"):
                run = bench_kernels(option, value)
                self.assertEqual(run.returncode, 2)
                self.assertTrue(run.stderr.startswith("pagoda: "), run.stderr)


class BenchScheduler(unittest.TestCase):
    def run_bench(self, *arguments):
        return subprocess.run([os.environ["PAGODA_BIN"], "bench", "scheduler", *arguments], env=environment_of_binary(), capture_output=True,
                              text=True, timeout=120, check=False)

    def test_plans_are_counted_and_timed_with_a_full_queue(self):
        run = self.run_bench("--requests", "400", "--running", "16", "--queued", "100", "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        figures = json.loads(run.stdout)
        self.assertEqual(figures["requests"], 400)
        self.assertGreater(figures["steps"], 400 * 128 / 16 * 0.9)
        self.assertGreater(figures["steps_at_depth"], figures["steps"] / 4)
        self.assertGreater(figures["cached_tokens"], 400 * 64)
        self.assertLessEqual(figures["plan_us_median"], figures["plan_us_p99"])
        self.assertGreater(figures["million_requests_s"], figures["scheduling_s"])

    def test_what_can_not_run_is_refused(self):
        for arguments, part in ((("--blocks", "4"), "KV blocks"), (("--policy", "luck"), "luck"), (("--running", "0"), "running"),
                                (("--running", "64", "--step-tokens", "32"), "max_num_batched_tokens")):
            run = self.run_bench(*arguments)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(part, run.stderr)


if __name__ == "__main__":
    unittest.main()
