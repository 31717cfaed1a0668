"""The official OpenAI client against a real server."""
import unittest

import openai

from server import Server

CHAT = [{"role": "system", "content": "Answer in one word."}, {"role": "user", "content": "What is the capital of France?"}]


class OpenAiClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--api-keys", "sk-test-key", "--served-model-name", "tiny").__enter__()
        cls.client = openai.OpenAI(base_url=cls.server.address + "/v1", api_key="sk-test-key", max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.__exit__(None, None, None)

    def test_it_chats_and_streams_the_same_text(self):
        fields = {"model": "tiny", "messages": CHAT, "max_tokens": 24, "temperature": 0}
        whole = self.client.chat.completions.create(**fields)
        self.assertTrue(whole.choices[0].message.content)
        self.assertEqual(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens)
        parts, usage, finish = [], None, None
        for chunk in self.client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **fields):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                parts.append(choice.delta.content or "")
                finish = choice.finish_reason or finish
        self.assertEqual("".join(parts), whole.choices[0].message.content)
        self.assertEqual(finish, whole.choices[0].finish_reason)
        self.assertEqual(usage.total_tokens, whole.usage.total_tokens)

    def test_it_completes_text_with_logprobs(self):
        answer = self.client.completions.create(model="tiny", prompt="One, two,", max_tokens=8, temperature=0, logprobs=2)
        self.assertEqual(len(answer.choices[0].logprobs.tokens), answer.usage.completion_tokens)

    def test_it_lists_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["tiny"])

    def test_errors_are_the_right_exceptions(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="none", messages=CHAT)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model="tiny", prompt="word " * 20000)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        stranger = openai.OpenAI(base_url=self.server.address + "/v1", api_key="wrong", max_retries=0)
        with self.assertRaises(openai.AuthenticationError):
            stranger.models.list()
        stranger.close()

    def test_a_stream_can_be_left(self):
        stream = self.client.completions.create(model="tiny", prompt="Once", max_tokens=2000, stream=True,
                                                extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        self.assertTrue(self.client.completions.create(model="tiny", prompt="Once", max_tokens=2).choices[0].text)

    def test_keys_guard_every_route_but_health_and_ready(self):
        for path in ("/health", "/ready"):
            self.assertEqual(self.server.get(path).status, 200)
        for path in ("/v1/models", "/metrics", "/version", "/nothing"):
            self.assertEqual(self.server.get(path).status, 401)
            self.assertEqual(self.server.get(path, {"x-api-key": "wrong"}).status, 401)
        self.assertEqual(self.server.get("/metrics", {"x-api-key": "sk-test-key"}).status, 200)


if __name__ == "__main__":
    unittest.main()
