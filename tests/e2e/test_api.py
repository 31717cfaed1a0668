"""The HTTP API of one server, raw: shapes, errors, limits, streams."""
import concurrent.futures
import json
import socket
import unittest
import urllib.parse

from server import Server
from streams import events, joined, metric, open_stream

CHAT = [{"role": "user", "content": "Name three colours of the rainbow."}]


class ApiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-model-len", "2048", "--max-queue", "400").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def chat(self, **fields):
        return self.server.post("/v1/chat/completions", {"messages": CHAT, "max_tokens": 12, "temperature": 0, **fields})

    def complete(self, **fields):
        return self.server.post("/v1/completions", {"prompt": "The sky is", "max_tokens": 12, "temperature": 0, **fields})

    def expect_error(self, answer, status, *, code=None, mentions=(), param=None):
        self.assertEqual(answer.status, status, answer.body)
        error = answer.json()["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        for word in mentions:
            self.assertIn(str(word), error["message"])
        if code:
            self.assertEqual(error["code"], code)
        if param:
            self.assertEqual(error["param"], param)
        self.assertTrue(answer.headers["x-request-id"])

    def test_a_chat_answer_has_openai_s_shape(self):
        answer = self.chat()
        self.assertEqual(answer.status, 200, answer.body)
        body = answer.json()
        self.assertEqual(body["object"], "chat.completion")
        self.assertTrue(body["id"].startswith("chatcmpl-"))
        choice = body["choices"][0]
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertIn(choice["finish_reason"], ("stop", "length"))
        self.assertIsNone(choice["logprobs"])
        usage = body["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertIn(usage["prompt_tokens_details"]["cached_tokens"], range(usage["prompt_tokens"]))

    def test_the_joined_stream_is_the_whole_text(self):
        for fields in ({}, {"temperature": 1.0, "seed": 5, "top_p": 0.9}, {"n": 3, "temperature": 1.0, "seed": 9}):
            self.chat(**fields)  # so that both find the same of their prompt
            whole = self.chat(**fields).json()
            stream = self.chat(stream=True, stream_options={"include_usage": True}, **fields)
            self.assertTrue(stream.headers["content-type"].startswith("text/event-stream"))
            documents, done = events(stream.body)
            self.assertTrue(done)
            for index, choice in enumerate(whole["choices"]):
                self.assertEqual(joined(documents, index), choice["message"]["content"])
            self.assertEqual(documents[-1]["choices"], [])
            self.assertEqual(documents[-1]["usage"], whole["usage"])
            self.assertTrue(all(document["usage"] is None for document in documents[:-1]))

    def test_usage_comes_in_streams_only_when_asked_for(self):
        for fields in ({}, {"stream_options": {"include_usage": False}}):
            documents, done = events(self.chat(stream=True, **fields).body)
            self.assertTrue(done)
            self.assertTrue(all("usage" not in document for document in documents))
            self.assertTrue(all(document["choices"] for document in documents))

    def test_completions_stream_and_echo(self):
        whole = self.complete().json()
        self.assertEqual(whole["object"], "text_completion")
        documents, done = events(self.complete(stream=True).body)
        self.assertTrue(done)
        self.assertEqual(joined(documents, kind="text"), whole["choices"][0]["text"])
        echoed = self.complete(echo=True).json()
        self.assertEqual(echoed["choices"][0]["text"], "The sky is" + whole["choices"][0]["text"])
        silent = self.complete(echo=True, max_tokens=0).json()
        self.assertEqual(silent["choices"][0]["text"], "The sky is")
        self.assertEqual(silent["usage"]["completion_tokens"], 0)

    def test_prompts_as_text_ids_and_lists_agree(self):
        text = self.complete().json()["choices"][0]["text"]
        ids = self.server.post("/tokenize", {"prompt": "The sky is"}).json()["tokens"]
        self.assertEqual(self.complete(prompt=ids).json()["choices"][0]["text"], text)
        answer = self.complete(prompt=["The sky is", "Two and two"], n=2).json()
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2, 3])
        self.assertEqual(answer["choices"][0]["text"], text)
        self.assertEqual(self.complete(prompt=[ids, ids]).json()["choices"][1]["text"], text)

    def test_seeds_decide_and_no_seed_varies(self):
        sampled = {"temperature": 1.0, "max_tokens": 24}
        with_seed = {self.complete(seed=3, **sampled).json()["choices"][0]["text"] for _ in range(5)}
        self.assertEqual(len(with_seed), 1)
        seeds = {self.complete(seed=seed, **sampled).json()["choices"][0]["text"] for seed in range(5)}
        self.assertGreater(len(seeds), 1)
        free = {self.complete(**sampled).json()["choices"][0]["text"] for _ in range(5)}
        self.assertGreater(len(free), 1)
        both = self.complete(seed=7, n=2, **sampled).json()["choices"]
        self.assertEqual(both[1]["text"], self.complete(seed=8, **sampled).json()["choices"][0]["text"])

    def test_stop_strings_never_leak(self):
        text = self.complete(max_tokens=40, ignore_eos=True).json()["choices"][0]["text"]
        self.assertGreater(len(text), 22)
        for begin in (3, 7, 15):
            stop = text[begin:begin + 7]
            expected = text[:text.index(stop)]
            answer = self.complete(max_tokens=40, ignore_eos=True, stop=stop).json()["choices"][0]
            self.assertEqual(answer["text"], expected)
            self.assertEqual(answer["finish_reason"], "stop")
            documents, _ = events(self.complete(max_tokens=40, ignore_eos=True, stop=[stop], stream=True).body)
            self.assertEqual(joined(documents, kind="text"), expected)
            kept = self.complete(max_tokens=40, ignore_eos=True, stop=stop, include_stop_str_in_output=True).json()["choices"][0]
            self.assertEqual(kept["text"], expected + stop)

    def test_logprobs_have_the_shape_of_each_api(self):
        chat = self.chat(logprobs=True, top_logprobs=3).json()["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(chat[0]["top_logprobs"]), 3)
        self.assertEqual(bytes(chat[0]["bytes"]).decode(), chat[0]["token"])
        self.assertEqual(chat[0]["token"], chat[0]["top_logprobs"][0]["token"])
        self.assertLessEqual(chat[0]["logprob"], 0)
        alone = self.chat(logprobs=True).json()["choices"][0]["logprobs"]["content"]
        self.assertEqual(alone[0]["top_logprobs"], [])
        for top in (0, 5):
            block = self.complete(logprobs=top).json()["choices"][0]["logprobs"]
            self.assertEqual(len(block["tokens"]), len(block["token_logprobs"]))
            self.assertEqual(block["text_offset"][0], 0)
        documents, _ = events(self.chat(logprobs=True, top_logprobs=3, stream=True).body)
        streamed = [entry for document in documents for choice in document["choices"] if choice["logprobs"]
                    for entry in choice["logprobs"]["content"]]
        self.assertEqual(streamed, chat)
        self.expect_error(self.chat(logprobs=True, top_logprobs=21), 400, param="top_logprobs")
        self.expect_error(self.complete(logprobs=21), 400, param="logprobs")

    def test_echoed_logprobs_cover_the_whole_prompt(self):
        answer = self.complete(prompt="hello there", echo=True, logprobs=1, max_tokens=1).json()["choices"][0]
        block = answer["logprobs"]
        self.assertEqual("".join(block["tokens"]), answer["text"])
        self.assertIsNone(block["token_logprobs"][0])
        self.assertTrue(all(value <= 0 for value in block["token_logprobs"][1:]))
        self.assertEqual(block["text_offset"], [len("".join(block["tokens"][:count])) for count in range(len(block["tokens"]))])
        for token, top in zip(block["tokens"][1:], block["top_logprobs"][1:]):
            self.assertIn(token, top)

    def test_pieces_of_characters_keep_their_bytes_in_logprobs(self):
        ids = self.server.post("/tokenize", {"prompt": "\U0001F600"}).json()["tokens"]
        bias = {str(ids[0]): 100}
        tokens = self.complete(logit_bias=bias, max_tokens=2, logprobs=0).json()["choices"][0]["logprobs"]["tokens"]
        self.assertTrue(tokens[0].startswith("bytes:\\xf0"), tokens)
        chat = self.chat(logit_bias=bias, max_tokens=2, logprobs=True).json()["choices"][0]
        self.assertEqual(chat["logprobs"]["content"][0]["bytes"][0], 0xF0)

    def test_bodies_of_another_type_are_refused_and_those_of_none_taken(self):
        body = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
        for path in ("/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize", "/apply-template"):
            for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
                answer = self.server.post(path, body, {"content-type": kind})
                self.expect_error(answer, 415, mentions=[kind, "-H 'Content-Type: application/json'"], param="content-type")
        for kind in ("application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json"):
            self.assertEqual(self.server.post("/tokenize", body, {"content-type": kind}).status, 200)
        address = urllib.parse.urlparse(self.server.address)
        with socket.create_connection((address.hostname, address.port)) as raw:
            raw.sendall(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            self.assertIn(b" 200 ", raw.recv(4096))

    def test_what_is_sent_too_slowly_is_answered_with_408(self):
        begun = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n"
        with Server("--header-timeout", "200ms", "--idle-timeout", "300ms") as server:
            address = urllib.parse.urlparse(server.address)
            for sent, limit in ((begun, "header_timeout"), (begun + b"\r\n{", "idle_timeout"), (b"", None)):
                with socket.create_connection((address.hostname, address.port)) as raw, raw.makefile("rb") as answer:
                    raw.sendall(sent)
                    head, _, body = answer.read().partition(b"\r\n\r\n")
                if limit is None:
                    self.assertEqual(head, b"")
                    continue
                self.assertTrue(head.startswith(b"HTTP/1.1 408 "), head)
                self.assertIn(b"connection: close", head.lower())
                self.assertEqual(json.loads(body)["error"]["code"], "request_timeout")
                self.assertIn(limit, json.loads(body)["error"]["message"])

    def test_compressed_bodies_and_missing_hosts_are_refused(self):
        answer = self.server.post("/v1/completions", {"prompt": "a"}, {"content-encoding": "gzip"})
        self.expect_error(answer, 415)
        address = urllib.parse.urlparse(self.server.address)
        with socket.create_connection((address.hostname, address.port)) as raw:
            raw.sendall(b"GET /health HTTP/1.1\r\n\r\n")
            self.assertIn(b" 400 ", raw.recv(4096))

    def test_prompt_logprobs_are_those_of_the_prompt(self):
        answer = self.complete(prompt_logprobs=1).json()
        scored = answer["choices"][0]["prompt_logprobs"]
        self.assertIsNone(scored[0])
        self.assertEqual(len(scored), answer["usage"]["prompt_tokens"])
        scored = self.chat(prompt_logprobs=0, max_tokens=1).json()["prompt_logprobs"]
        self.assertIsNone(scored[0])
        self.assertEqual([len(entry) for entry in scored[1:]], [1] * (len(scored) - 1))

    def test_too_long_prompts_are_refused_before_any_stream_byte(self):
        long = "secret word. " + "the " * 3000
        for stream in (False, True):
            self.expect_error(self.complete(prompt=long, stream=stream), 400, code="context_length_exceeded", mentions=[2048])
            self.expect_error(self.complete(max_tokens=2048, stream=stream), 400, code="context_length_exceeded", mentions=[2048])

    def test_lengths_of_the_wrong_kind_are_refused_and_null_is_absent(self):
        for value in (0, -1, "16", 1.5, 10**9, 1e308, True, [], {}):
            answer = self.chat(max_tokens=value)
            self.assertEqual(answer.status, 400, value)
        self.assertEqual(self.chat(max_tokens=None, max_completion_tokens=3).json()["usage"]["completion_tokens"], 3)
        self.expect_error(self.chat(max_tokens=3, max_completion_tokens=4), 400, param="max_completion_tokens")

    def test_every_number_out_of_range_names_its_field(self):
        bad = {"temperature": [-0.1, "1", 101], "top_p": [-1, 1.1, 0], "n": [0, -1, 129, 2**53 + 1], "top_k": [-2, 1.5],
               "presence_penalty": [-2.1, 2.1], "frequency_penalty": [3], "min_p": [-0.1, 1.1],
               "repetition_penalty": [0, -1], "seed": ["7", 1e308], "min_tokens": [-1], "priority": [2**40],
               "logit_bias": [[], {"x": 1}, {"5": "a"}, {"99999999": 1}], "stop": [5, [5], [""], ["a"] * 65],
               "stop_token_ids": [[-1], ["a"], 7], "stream": ["yes", 1], "messages": ["x", [], [5], [{"content": "x"}]],
               "typical_p": [0, 2]}
        for field, values in bad.items():
            for value in values:
                self.expect_error(self.chat(**{field: value}), 400, mentions=[field])

    def test_what_is_not_offered_is_refused_by_name(self):
        for field, value in {"tools": [{"type": "function", "function": {"name": "f"}}], "response_format": {"type": "json_object"},
                             "structured_outputs": {"regex": "a"}, "use_beam_search": True, "best_of": 4,
                             "chat_template": "{{ 1 }}", "chat_template_kwargs": {"chat_template": "{{ 1 }}"}}.items():
            self.expect_error(self.chat(**{field: value}), 400, code="unsupported_value", mentions=[field])
        for field, value in {"tools": [], "response_format": {"type": "text"}, "use_beam_search": False, "tool_choice": "none"}.items():
            self.assertEqual(self.chat(**{field: value}).status, 200, field)
        self.expect_error(self.complete(suffix="x"), 400, mentions=["suffix"])

    def test_unknown_fields_are_named_in_a_header(self):
        answer = self.chat(surely_unknown=1, other=None)
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["x-pagoda-ignored-fields"], "surely_unknown, other")
        nested = self.chat(stream=True, stream_options={"include_obfuscation": False})
        self.assertEqual(nested.headers["x-pagoda-ignored-fields"], "stream_options.include_obfuscation")
        self.assertIsNone(self.chat().headers["x-pagoda-ignored-fields"])

    def test_bodies_of_the_wrong_kind_are_refused_and_the_server_lives(self):
        deep = b'{"messages":' + b"[" * 10000 + b"]" * 10000 + b"}"
        for body in (b"", b"[]", b"7", b'"x"', b"true", b"null", b"{", b"\xef\xbb\xbf{}", b'{"a":1,"a":2}', b'{"a":"\xff"}',
                     deep, b'{"messages": null}', b'{"messages": ["a"]}', b'{"messages": "' + b"x" * 1000 + b'"}', b"{} {}"):
            for path in ("/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize", "/apply-template"):
                self.expect_error(self.server.post(path, body), 400)
        self.expect_error(self.server.post("/v1/chat/completions", b'"' + b"x" * (33 << 20) + b'"'), 413, mentions=["max_body"])
        self.assertEqual(self.chat().status, 200)

    def test_empty_prompts_are_refused(self):
        for prompt in ("", [""], [], [[]], None, {}):
            self.expect_error(self.complete(prompt=prompt), 400, mentions=["prompt"])

    def test_routes_and_methods(self):
        self.expect_error(self.server.get("/nothing"), 404)
        answer = self.server.get("/v1/chat/completions")
        self.expect_error(answer, 405)
        self.assertEqual(answer.headers["allow"], "POST")
        self.assertEqual(self.server.request("HEAD", "/health").body, b"")
        self.assertEqual(self.server.get("/health", {"x-request-id": "mine-1"}).headers["x-request-id"], "mine-1")

    def test_models(self):
        listed = self.server.get("/v1/models").json()
        self.assertEqual(listed["object"], "list")
        model = listed["data"][0]
        self.assertEqual(model["max_model_len"], 2048)
        self.assertEqual(self.server.get("/v1/models/" + urllib.parse.quote(model["id"])).json(), model)
        self.expect_error(self.server.get("/v1/models/none"), 404, code="model_not_found")
        self.expect_error(self.chat(model="none"), 404, code="model_not_found")
        self.assertEqual(self.chat(model=model["id"]).json()["model"], model["id"])

    def test_tokenize_and_back(self):
        text = "Hello, w\u00f6rld \U0001F600 <|im_end|>"
        answer = self.server.post("/tokenize", {"prompt": text, "return_token_strs": True}).json()
        self.assertEqual(answer["count"], len(answer["tokens"]))
        self.assertEqual(len(answer["token_strs"]), answer["count"])
        self.assertEqual(self.server.post("/detokenize", {"tokens": answer["tokens"]}).json()["prompt"], text)
        rendered = self.server.post("/apply-template", {"messages": CHAT}).json()["prompt"]
        self.assertIn(CHAT[0]["content"], rendered)
        chat = self.server.post("/tokenize", {"messages": CHAT}).json()["tokens"]
        self.assertEqual(self.server.post("/detokenize", {"tokens": chat}).json()["prompt"], rendered)
        self.assertEqual(self.chat().json()["usage"]["prompt_tokens"], len(chat))
        self.expect_error(self.server.post("/detokenize", {"tokens": [-1]}), 400)

    def test_a_last_assistant_message_is_continued(self):
        messages = [*CHAT, {"role": "assistant", "content": "Red, or"}]
        body = {"messages": messages, "continue_final_message": True}
        self.assertTrue(self.server.post("/apply-template", body).json()["prompt"].endswith("Red, or"))
        both = {**body, "add_generation_prompt": True, "max_tokens": 3}
        self.expect_error(self.server.post("/v1/chat/completions", both), 400, param="continue_final_message")

    def test_metrics_are_valid_and_agree_with_usage(self):
        names = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")
        before = [metric(self.server, name) for name in names]
        usage = self.chat(n=2).json()["usage"]
        after = [metric(self.server, name) for name in names]
        self.assertEqual(after[0] - before[0], usage["prompt_tokens"])  # once for all choices
        self.assertEqual(after[1] - before[1], usage["completion_tokens"])
        self.assertTrue(self.server.get("/metrics").headers["content-type"].startswith("text/plain"))
        for name in ("vllm:num_requests_running", "vllm:kv_cache_usage_perc", "vllm:num_preemptions_total"):
            metric(self.server, name)

    def test_32_clients_get_the_answers_they_get_alone(self):
        bodies = [{"prompt": f"Question {number}: what comes after {number * 7}?", "max_tokens": 16 + number % 9,
                   "temperature": 0 if number % 2 else 1.0, "seed": number, "stream": number % 3 == 0} for number in range(32)]

        def ask(body):
            answer = self.server.post("/v1/completions", body)
            self.assertEqual(answer.status, 200, answer.body)
            return joined(events(answer.body)[0], kind="text") if body["stream"] else answer.json()["choices"][0]["text"]

        alone = [ask(body) for body in bodies]
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            together = list(pool.map(ask, bodies))
        self.assertEqual(together, alone)

    def test_300_disconnects_leave_nothing_behind(self):
        def leave(number):
            body = {"prompt": "word " * (1 + number % 200), "max_tokens": 500, "stream": number % 2 == 0, "ignore_eos": True}
            address = urllib.parse.urlparse(self.server.address)
            if number % 5 == 0:  # in the middle of a stream
                connection, answer = open_stream(self.server.address, "/v1/completions", {**body, "stream": True})
                answer.read(10 + number)
                connection.close()
                return
            with socket.create_connection((address.hostname, address.port)) as raw:
                data = json.dumps(body).encode()
                head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n".encode()
                whole = head + data
                raw.sendall(whole[:len(head) + 10] if number % 7 == 0 else whole)

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(leave, range(300)))
        for _ in range(200):  # each probe is a whole request, after which the gauges are fresh
            self.assertEqual(self.complete(max_tokens=1).status, 200)
            if metric(self.server, "pagoda:kv_blocks_used") == 0 and metric(self.server, "vllm:num_requests_waiting") == 0:
                break
        self.assertEqual(metric(self.server, "pagoda:kv_blocks_used"), 0)
        self.assertEqual(metric(self.server, "vllm:num_requests_running"), 0)


if __name__ == "__main__":
    unittest.main()
