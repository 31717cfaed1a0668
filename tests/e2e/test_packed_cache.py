"""`packed_cache_dir` through the real binary: the first start writes the packed weights, the next reads them, answers are the same, and
whatever is wrong with the file or the folder is one line of warning."""
import os
import re
import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

from server import Server, environment_of_binary

MIB = 1 << 20
PLAN = re.compile(r"memory plan: .* in all ([\d.]+) (MiB|GiB) of ")
REQUEST = {"prompt": "The capital of France is", "max_tokens": 24, "temperature": 0.8, "seed": 7, "logprobs": 3}


class PackedCache(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name, "packed")

    def answer(self, *flags):
        """What a new server answers, and the lines it logged of packed weights."""
        with Server("--kv-cache-memory", "32MiB", "--max-num-seqs", "8", *flags) as server:
            response = server.post("/v1/completions", REQUEST)
            self.assertEqual(response.status, 200, response.body)
            amount, unit = PLAN.search(server.output()).groups()
            with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
                resident = int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)) * 1024
            self.assertLessEqual(resident, float(amount) * (MIB if unit == "MiB" else 1024 * MIB))
            lines = [line for line in server.output().splitlines() if "packed weights" in line and "%" not in line]
        return response.json()["choices"], lines

    def cached(self):
        return self.answer("--packed-cache-dir", str(self.folder))

    def file(self):
        [path] = self.folder.iterdir()
        return path

    def test_the_first_start_writes_and_the_next_reads_and_says_so_with_the_same_answers(self):
        plain, lines = self.answer()
        self.assertEqual(lines, [])
        first, [line] = self.cached()
        self.assertIn(f"to {self.file()} in", line)
        self.assertRegex(line, "packed weights: wrote [0-9.]+ MiB")
        stamp = self.file().stat().st_mtime_ns
        second, [line] = self.cached()
        self.assertIn(f"from {self.file()} in", line)
        self.assertRegex(line, "packed weights: read [0-9.]+ MiB")
        self.assertEqual(self.file().stat().st_mtime_ns, stamp)
        self.assertEqual(plain, first)
        self.assertEqual(plain, second)

    def test_a_damaged_file_is_named_written_anew_and_read_at_the_next_start(self):
        plain, _ = self.cached()
        whole = self.file().read_bytes()
        middle = len(whole) // 2
        damages = {"does not have its checksum": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1:],
                   "bytes, not": whole[:middle],
                   "is no file of packed weights": os.urandom(1000)}
        for reason, damaged in damages.items():
            with self.subTest(reason):
                self.file().write_bytes(damaged)
                choices, [warning, wrote] = self.cached()
                self.assertIn(f"packed anew: {self.file()}: ", warning)
                self.assertIn(reason, warning)
                self.assertIn("packed weights: wrote", wrote)
                self.assertEqual(choices, plain)
                self.assertEqual(self.file().read_bytes(), whole)
        choices, [line] = self.cached()
        self.assertIn("packed weights: read", line)
        self.assertEqual(choices, plain)

    def run_once(self, **limits):
        return subprocess.run([os.environ["PAGODA_BIN"], "run", os.environ["PAGODA_MODEL"], "--packed-cache-dir", str(self.folder),
                               "--max-tokens", "8", "--temperature", "0", "Hello"], env=environment_of_binary(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, check=False, **limits)

    def test_a_file_that_the_system_refuses_is_one_warning_and_the_model_answers(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB))
        refused = self.run_once(preexec_fn=small_files)
        self.assertEqual(refused.returncode, 0, refused.stderr)
        [warning] = [line for line in refused.stderr.splitlines() if "packed weights" in line]
        self.assertIn("packed weights are not kept: ", warning)
        self.assertIn("files may have 1048576 (ulimit -f)", warning)
        self.assertEqual(list(self.folder.iterdir()), [])
        kept = self.run_once()
        self.assertEqual(kept.stdout, refused.stdout)
        self.assertEqual(len(list(self.folder.iterdir())), 1)

    def test_a_folder_that_is_a_file_is_one_warning_and_what_a_killed_writer_left_is_removed(self):
        self.folder.write_text("mine")
        done = self.run_once()
        self.assertEqual(done.returncode, 0, done.stderr)
        [warning] = [line for line in done.stderr.splitlines() if "packed weights" in line]
        self.assertIn(f"packed weights are not kept: {self.folder}: cannot create the folder", warning)
        self.assertEqual(self.folder.read_text(), "mine")
        self.folder.unlink()
        self.folder.mkdir()
        (self.folder / "abc-avx2.packed.0123.part").write_bytes(b"half")
        self.assertEqual(self.run_once().returncode, 0)
        self.assertTrue(self.file().name.endswith(".packed"))


if __name__ == "__main__":
    unittest.main()
