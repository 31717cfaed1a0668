"""What requests notice of the scheduler through the real binary: full contexts, first tokens that end, memory for one and a half of many."""
import concurrent.futures
import json
import unittest

from server import Server

END_TOKEN = "2"  # <|im_end|> of SmolLM2


def metric(server, name):
    lines = server.get("/metrics").body.decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((name + "{", name + " ")))


class Context(unittest.TestCase):
    def test_an_answer_that_fills_the_context_ends_with_length_and_the_next_request_is_as_ever(self):
        with Server("--max-model-len", "256") as server:
            prompt = server.post("/tokenize", {"prompt": "One two three four five. " * 60}).json()["tokens"][:230]
            body = {"prompt": prompt, "ignore_eos": True, "temperature": 0}
            answers = [server.post("/v1/completions", body).json() for _ in range(2)]
            for answer in answers:
                self.assertEqual(answer["choices"][0]["finish_reason"], "length")
                self.assertEqual(answer["usage"]["completion_tokens"], 256 - 230)
            self.assertEqual(answers[0]["choices"], answers[1]["choices"])
            refused = server.post("/v1/completions", {**body, "max_tokens": 27})
            self.assertEqual(refused.status, 400, refused.body)
            self.assertIn("256", refused.json()["error"]["message"])


class FirstTokenEnds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server())

    def test_the_answer_is_empty_and_stops_for_every_choice_and_in_streams(self):
        body = {"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Go on"}],
                "logit_bias": {END_TOKEN: 100}, "n": 2, "temperature": 0}
        answer = self.server.post("/v1/chat/completions", body).json()
        self.assertEqual([(choice["message"]["content"], choice["finish_reason"]) for choice in answer["choices"]], [("", "stop")] * 2)
        stream = self.server.post("/v1/chat/completions", {**body, "stream": True}).body.decode()
        pieces = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
        self.assertEqual("".join(choice["delta"].get("content") or "" for piece in pieces for choice in piece["choices"]), "")
        self.assertTrue(stream.rstrip().endswith("data: [DONE]"))
        self.assertEqual(metric(self.server, "vllm:num_requests_running"), 0)


class FullMemory(unittest.TestCase):
    def test_many_long_answers_with_memory_for_one_and_a_half_are_those_they_are_alone(self):
        flags = ("--max-model-len", "224", "--no-enable-prefix-caching")
        bodies = [{"prompt": f"{number}. A long story begins:", "max_tokens": 160, "ignore_eos": True, "seed": number,
                   "temperature": 0 if number % 2 else 1.0} for number in range(6)]

        def ask(server, body):
            answer = server.post("/v1/completions", body)
            self.assertEqual(answer.status, 200, answer.body)
            return answer.json()["choices"][0]["text"]

        with Server(*flags) as server:
            alone = [ask(server, body) for body in bodies]
        with Server(*flags, "--kv-cache-memory", "8MiB") as server, concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
            for _ in range(40):  # answers that end at once, so that the scheduler expects the same of others and starts too many
                ask(server, {"prompt": "Short", "max_tokens": 160, "logit_bias": {END_TOKEN: 100}})
            together = list(pool.map(lambda body: ask(server, body), bodies))
            self.assertGreater(metric(server, "vllm:num_preemptions_total"), 0)
            self.assertEqual(metric(server, "pagoda:kv_blocks_used"), 0)
        self.assertEqual(together, alone)


if __name__ == "__main__":
    unittest.main()
