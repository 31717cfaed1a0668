"""The step log of a real server, and what pagoda replay makes of it: equal plans, the first that differs, damage."""
import json
import os
import re
import stat
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

from server import Server, environment_of_binary

SYSTEM = {"role": "system", "content": "You are a helpful assistant. " + "Answer in one short sentence, and be kind to everybody. " * 12}


def chat(server, question, **fields):
    answer = server.post("/v1/chat/completions", {"messages": [SYSTEM, {"role": "user", "content": question}], "max_tokens": 16,
                                                  "temperature": 0, **fields})
    assert answer.status == 200, answer.body
    return answer.json()


def replay(*arguments):
    return subprocess.run([os.environ["PAGODA_BIN"], "replay", *arguments], env=environment_of_binary(), capture_output=True, text=True,
                          timeout=120, check=False)


class ReplayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.log = os.path.join(cls.folder.name, "steps.jsonl")
        with Server("--max-model-len", "1024", "--step-log", cls.log) as server:
            cls.first = chat(server, "Name a colour.")
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda question: chat(server, question, stop=["the"]), ("Name a river.", "What is two and two?", "Why?")))
            cls.again = chat(server, "Name a colour.", n=2)
            server.post("/admin/reset_prefix_cache", {})
            chat(server, "Name a colour.")
            cls.said = server.output()
        with open(cls.log, encoding="ascii") as stream:
            cls.lines = stream.readlines()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def write(self, lines):
        path = os.path.join(self.folder.name, "changed.jsonl")
        with open(path, "w", encoding="utf-8") as stream:
            stream.writelines(lines)
        return path

    def test_a_log_with_prefix_hits_is_replayed_with_equal_plans(self):
        self.assertGreater(self.again["usage"]["prompt_tokens_details"]["cached_tokens"], 100)
        done = replay(self.log, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        summary = json.loads(done.stdout)
        self.assertTrue(summary["equal"])
        self.assertEqual(summary["sequences"], 7)
        steps = sum('"event":"step"' in line for line in self.lines)
        # A step that only tells the executor who ended computes nothing.
        self.assertEqual(summary["steps"], steps)
        self.assertGreater(summary["cached_tokens"], 300)
        self.assertGreater(summary["output_tokens"], 20)
        self.assertGreater(summary["plan_us_median"], 0)
        self.assertGreaterEqual(summary["plan_us_p99"], summary["plan_us_median"])
        text = replay(self.log)
        self.assertEqual(text.returncode, 0)
        self.assertIn("every plan is equal", text.stdout)

    def test_the_log_is_its_owners_alone_and_said_to_hold_prompts(self):
        self.assertEqual(stat.S_IMODE(os.stat(self.log).st_mode), 0o600)
        self.assertIn(f"step log: {self.log} (it holds prompts)", self.said)

    def test_one_changed_number_is_found(self):
        number, line = next((i, line) for i, line in enumerate(self.lines) if '"cached":[[0,[' in line)
        block = re.search(r'"cached":\[\[0,\[(\d+)', line)
        lines = list(self.lines)
        lines[number] = line[:block.start(1)] + str(int(block[1]) + 1) + line[block.end(1):]
        done = replay(self.write(lines), "--json")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        difference = json.loads(done.stdout)["difference"]
        self.assertEqual(difference["line"], number + 1)
        self.assertEqual(difference["step"], json.loads(line)["step"])
        self.assertRegex(difference["field"], r"^sequences\[\d\]\.cached$")
        self.assertTrue(difference["expected"].startswith(f"[[0,[{int(block[1]) + 1}"), difference)
        self.assertTrue(difference["got"].startswith(f"[[0,[{block[1]}"), difference)
        self.assertIn(f"the plan of step {difference['step']} differs (line {number + 1})", replay(self.write(lines)).stdout)

    def test_damage_is_refused_with_its_line(self):
        lines = list(self.lines)
        lines[3] = lines[3].replace("{", "[", 1)
        done = replay(self.write(lines))
        self.assertEqual(done.returncode, 1)
        self.assertIn("changed.jsonl: line 4: ", done.stderr)
        for content in ([], ["\n"], ["GGUF\x00\n"], ["{}\n"]):
            done = replay(self.write(content))
            self.assertEqual(done.returncode, 1)
            self.assertIn("the first line must be its header", done.stderr)
        self.assertIn("can't be opened", replay(os.path.join(self.folder.name, "none")).stderr)

    def test_a_last_line_that_is_cut_off_is_left_out_and_said(self):
        done = replay(self.write(self.lines[:-1] + [self.lines[-1][:20]]))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("the last line is cut off and was left out", done.stdout)

    def test_a_log_that_cant_be_written_stops_nothing(self):
        with Server("--max-model-len", "1024", "--step-log", "/dev/full") as server:
            self.assertEqual(chat(server, "Name a colour.")["choices"], self.first["choices"])
            self.assertEqual(server.output().count("step_log /dev/full ends here: No space left on device"), 1)
        command = [os.environ["PAGODA_BIN"], "serve", os.environ["PAGODA_MODEL"], "--port", "0", "--step-log",
                   os.path.join(self.folder.name, "none", "log")]
        done = subprocess.run(command, env=environment_of_binary(), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("can't be written: No such file or directory", done.stderr)


if __name__ == "__main__":
    unittest.main()
