"""The prefix cache of a real server: what it finds, that it changes no answer, who shares, and how it is reset."""
import unittest

from conversations import turns
from server import Server
from streams import events, joined, metric

SYSTEM = {"role": "system", "content": "You are a helpful assistant. " + "Answer in one short sentence, and be kind to everybody. " * 12}
QUESTIONS = ("Name a colour.", "Name a river in Europe, and the sea that it flows into.", "What is two and two?")


def chat(server, messages, headers=None, **fields):
    answer = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 16, "temperature": 0, **fields}, headers=headers)
    assert answer.status == 200, answer.body
    return answer.json()


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def text(answer):
    return answer["choices"][0]["message"]["content"]


class PrefixCacheTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-model-len", "2048").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def setUp(self):
        self.reset()

    def reset(self):
        answer = self.server.post("/admin/reset_prefix_cache", {})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.json(), {"status": "ok"})

    def test_answers_with_and_without_hits_are_the_same(self):
        with Server("--max-model-len", "2048", "--no-enable-prefix-caching", "--threads", "1") as plain:
            for fields in ({}, {"temperature": 1.0, "seed": 7, "logprobs": True, "top_logprobs": 3}):
                for question in QUESTIONS:
                    messages = [SYSTEM, {"role": "user", "content": question}]
                    expected = chat(plain, messages, **fields)
                    self.assertEqual(cached(expected), 0)
                    for _ in range(2):
                        found = chat(self.server, messages, **fields)
                        self.assertEqual(found["choices"], expected["choices"])
                    self.assertEqual(cached(found), found["usage"]["prompt_tokens"] - 1)

    def test_a_shared_system_prompt_is_found_and_so_is_the_last_turn(self):
        first = chat(self.server, [SYSTEM, {"role": "user", "content": QUESTIONS[0]}])
        self.assertEqual(cached(first), 0)
        other = chat(self.server, [SYSTEM, {"role": "user", "content": QUESTIONS[1]}])
        self.assertGreater(cached(other), 100)
        messages = [SYSTEM, {"role": "user", "content": QUESTIONS[0]}, {"role": "assistant", "content": text(first)},
                    {"role": "user", "content": QUESTIONS[2]}]
        second = chat(self.server, messages)
        # Of the answer too, unless its text makes other tokens than it was made of.
        self.assertGreaterEqual(cached(second), first["usage"]["prompt_tokens"] - 1)

    def test_streams_say_the_same_and_metrics_agree(self):
        messages = [SYSTEM, {"role": "user", "content": QUESTIONS[0]}]
        names = ("vllm:prompt_tokens_total", "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total")
        before = [metric(self.server, name) for name in names]
        answers = [chat(self.server, messages) for _ in range(3)] + [chat(self.server, messages, n=3, temperature=1.0)]
        stream = self.server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 16, "temperature": 0, "stream": True,
                                                           "stream_options": {"include_usage": True}})
        documents, done = events(stream.body)
        self.assertTrue(done)
        self.assertEqual(joined(documents, 0), text(answers[0]))
        self.assertEqual(documents[-1]["usage"], answers[1]["usage"])
        usages = [answer["usage"] for answer in answers] + [documents[-1]["usage"]]
        prompt = sum(usage["prompt_tokens"] for usage in usages)
        hits = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
        after = [metric(self.server, name) for name in names]
        self.assertEqual([b - a for a, b in zip(before, after)], [prompt, prompt, hits])
        self.assertGreater(metric(self.server, "pagoda:kv_blocks_cached"), 0)

    def test_a_reset_forgets_and_salts_share_nothing(self):
        messages = [SYSTEM, {"role": "user", "content": QUESTIONS[0]}]
        chat(self.server, messages)
        self.assertGreater(cached(chat(self.server, messages)), 100)
        self.assertEqual(cached(chat(self.server, messages, cache_salt="mine")), 0)
        self.assertGreater(cached(chat(self.server, messages, cache_salt="mine")), 100)
        self.reset()
        self.assertEqual(cached(chat(self.server, messages)), 0)
        self.assertEqual(metric(self.server, "pagoda:kv_blocks_used"), 0)

    def test_scores_of_a_prompt_are_computed_afresh(self):
        ask = {"prompt": SYSTEM["content"], "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
        answers = [self.server.post("/v1/completions", ask).json() for _ in range(2)]
        self.assertEqual(answers[0]["choices"], answers[1]["choices"])
        self.assertEqual(cached(answers[1]), 0)

    def test_four_of_five_tokens_of_many_chats_are_found(self):
        prompt = hits = 0
        for session in turns(seed=3, num_sessions=12):
            answer = chat(self.server, session.messages, max_tokens=12)
            session.messages.append({"role": "assistant", "content": text(answer)})
            prompt += answer["usage"]["prompt_tokens"]
            hits += cached(answer)
        self.assertGreater(hits / prompt, 0.8)


class TenantsTest(unittest.TestCase):
    def test_clients_never_share_and_only_the_operator_resets(self):
        keys = [{"authorization": f"Bearer client-key-{name}"} for name in "ab"]
        admin = {"authorization": "Bearer operator-key"}
        messages = [SYSTEM, {"role": "user", "content": QUESTIONS[0]}]
        with Server("--max-model-len", "2048", "--api-keys", "client-key-a,client-key-b", "--admin-api-key", "operator-key") as server:
            for headers in keys:
                self.assertEqual(cached(chat(server, messages, headers=headers)), 0)
                self.assertGreater(cached(chat(server, messages, headers=headers)), 100)
            # The other's name as a salt opens nothing.
            self.assertEqual(cached(chat(server, messages, headers=keys[0], cache_salt="client-key-b")), 0)
            for headers in (*keys, {}):
                self.assertEqual(server.post("/admin/reset_prefix_cache", {}, headers=headers).status, 401)
            self.assertGreater(cached(chat(server, messages, headers=keys[0])), 100)
            self.assertEqual(server.post("/admin/reset_prefix_cache", {}, headers=admin).status, 200)
            self.assertEqual(cached(chat(server, messages, headers=keys[0])), 0)
            # An operator's key is no client's.
            self.assertEqual(server.post("/v1/chat/completions", {"messages": messages}, headers=admin).status, 401)

    def test_without_a_key_the_route_is_for_programs_on_this_machine(self):
        with Server("--max-model-len", "256") as server:
            self.assertEqual(server.post("/admin/reset_prefix_cache", {}).status, 200)
            for header in ("x-forwarded-for", "origin"):
                self.assertEqual(server.post("/admin/reset_prefix_cache", {}, headers={header: "http://elsewhere"}).status, 403)
            self.assertEqual(server.get("/admin/reset_prefix_cache").status, 405)


if __name__ == "__main__":
    unittest.main()
