"""Models and machines that are not what they should be: weights that give no numbers, a file that is cut while it is served, and fewer
processors than threads. On a toy model of the reference data."""
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from server import Server, environment_of_binary
from streams import events, joined, open_stream

TOY = Path(os.environ["PAGODA_GOLDEN"], "gguf/llama.gguf")
SMALL = ("--kv-cache-memory", "16MiB")
GREEDY = {"prompt": [5, 6, 7], "max_tokens": 200, "temperature": 0, "ignore_eos": True}
EMBEDDING_BYTES = 128 * 2  # of a token of the toy, in BF16
EMBEDDING_OFFSET = 131136  # from the end of the header, as `pagoda inspect` gives it
DATA_BYTES = 1150528


def run(model, *flags, **options):
    return subprocess.run([os.environ["PAGODA_BIN"], "run", str(model), *SMALL, *flags], capture_output=True, text=True, timeout=120,
                          env=environment_of_binary(), **options)


def text_of(answer):
    return answer.json()["choices"][0]["text"]


class NotNumbers(unittest.TestCase):
    """A model in which the embedding of one token is NaN."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        with Server(*SMALL, model=str(TOY)) as sound:
            cls.expected = sound.post("/v1/completions", GREEDY)
        ids = " ".join(map(str, GREEDY["prompt"]))
        said = run(TOY, "--prompt-ids", ids, "--max-tokens", str(GREEDY["max_tokens"]), "--ignore-eos", "--temperature", "0", "--json")
        said = json.loads(said.stdout)["token_ids"]
        # One that the sound answer never comes to, and that no other prompt below has.
        cls.poison = next(token for token in range(300, 500) if token not in said)
        data = bytearray(TOY.read_bytes())
        at = len(data) - DATA_BYTES + EMBEDDING_OFFSET + cls.poison * EMBEDDING_BYTES
        data[at:at + EMBEDDING_BYTES] = b"\xff" * EMBEDDING_BYTES
        model = Path(scratch.name, "poisoned.gguf")
        model.write_bytes(data)
        cls.server = cls.enterClassContext(Server(*SMALL, model=str(model)))

    def poisoned(self, **fields):
        return self.server.post("/v1/completions", {**GREEDY, "prompt": [5, self.poison, 7], **fields})

    def test_the_request_ends_with_an_error_and_no_text(self):
        answer = self.poisoned()
        self.assertEqual(answer.status, 500, answer.body)
        self.assertNotIn("choices", answer.json())
        self.assertIn("not numbers at position 3", answer.json()["error"]["message"])

    def test_a_stream_ends_with_an_error_and_no_text(self):
        answer = self.poisoned(stream=True)
        documents, _ = events(answer.body)
        self.assertEqual(joined(documents, kind="completion"), "")
        self.assertIn("not numbers", json.dumps(documents[-1]["error"]))

    def test_those_beside_it_in_the_batch_give_what_they_give_alone(self):
        connection, stream = open_stream(self.server.address, "/v1/completions", {**GREEDY, "stream": True})
        self.addCleanup(connection.close)
        first = stream.read(20)  # it runs
        failed = [None] * 8

        def ask(number):
            failed[number] = self.poisoned(prompt=[5 + number, self.poison]).status
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(failed))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [500] * len(failed))
        documents, done = events(first + stream.read())
        self.assertTrue(done)
        self.assertEqual(joined(documents, kind="completion"), text_of(self.expected))
        self.assertEqual(text_of(self.server.post("/v1/completions", GREEDY)), text_of(self.expected))


class CutFile(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.model = Path(scratch.name, "model.gguf")
        shutil.copy(TOY, self.model)

    def test_a_file_that_loses_packed_weights_while_it_is_served_changes_no_answer(self):
        with Server(*SMALL, model=str(self.model)) as server:
            before = server.post("/v1/completions", GREEDY)
            os.truncate(self.model, self.model.stat().st_size // 2)  # behind the embeddings
            after = server.post("/v1/completions", GREEDY)
        self.assertEqual((before.status, after.status), (200, 200))
        self.assertEqual(text_of(after), text_of(before))

    def test_a_file_that_loses_its_embeddings_while_it_is_served_ends_the_server_with_its_name_and_no_answer(self):
        with Server(*SMALL, model=str(self.model)) as server:
            os.truncate(self.model, 100)
            with self.assertRaises(http.client.RemoteDisconnected):
                server.post("/v1/completions", GREEDY)
            self.assertEqual(server.process.wait(60), 1)
            server.reader.join()
            self.assertIn(f"pagoda: {self.model} was truncated or could not be read while in use", server.output())
            server.stop = lambda: 0  # it has ended, and not with status 0
            server.process.stdout.close()

    def test_a_file_that_is_cut_is_refused_with_its_name_and_the_tensor(self):
        whole = TOY.read_bytes()
        for size in (len(whole) // 10, len(whole) // 2, len(whole) - 1):
            with self.subTest(size):
                self.model.write_bytes(whole[:size])
                done = run(self.model, "--raw", "--prompt", "a")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, rf"^pagoda: {re.escape(str(self.model))}: .*\w+\.weight")


@unittest.skipUnless(sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1, "one processor")
class OneProcessor(unittest.TestCase):
    def run_on_one(self, *flags):
        one = {min(os.sched_getaffinity(0))}
        done = run(TOY, "--raw", "--prompt", "Hello", "--temperature", "0", "--max-tokens", "8", "--json", "--verbose", *flags,
                   preexec_fn=lambda: os.sched_setaffinity(0, one))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_the_default_is_one_thread_and_the_mask_is_named(self):
        done = self.run_on_one()
        self.assertRegex(done.stderr, r"kernels: .*, 1 threads placed by the system on 1 memory node,")
        self.assertIn("the affinity mask allows one processor of this machine alone", done.stderr)
        self.assertNotIn("threads is", done.stderr)

    def test_more_threads_work_with_a_warning_and_the_same_answer(self):
        alone = json.loads(self.run_on_one().stdout)["token_ids"]
        for threads in (2, 15, 16, 17, 33, 64):
            with self.subTest(threads):
                done = self.run_on_one("--threads", str(threads))
                self.assertEqual(json.loads(done.stdout)["token_ids"], alone)
                self.assertIn(f"threads is {threads}, affinity and CPU quota allow 1 cores", done.stderr)


if __name__ == "__main__":
    unittest.main()
