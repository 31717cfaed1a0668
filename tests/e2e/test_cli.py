"""The commands, as a user meets them: data on standard output, the rest on standard error, and the exit status."""
import contextlib
import http.client
import json
import os
import pty
import resource
import signal
import struct
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from server import SUITE_VARIABLES, Server, environment_of_binary

GOLDEN = Path(os.environ["PAGODA_GOLDEN"])
SMOLLM2 = json.loads((GOLDEN / "smollm2/golden.json").read_text())
TOY = str(GOLDEN / "gguf/llama.gguf")
# Below this a different order of summation may pick the second token (tests/golden/README.md).
DECIDED_MARGIN = 0.05
COMMAND_SECONDS = 300


def pagoda(*arguments, text=b"", environment=None):
    """Runs a command; returns its finished process with bytes on both outputs."""
    return subprocess.run([os.environ["PAGODA_BIN"], *map(str, arguments)], input=text, capture_output=True,
                          timeout=COMMAND_SECONDS, env=environment_of_binary(environment))


def gguf(entries):
    """A file without tensors, of these texts by key."""
    def text(value):
        return struct.pack("<Q", len(value.encode())) + value.encode()
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(
        text(key) + struct.pack("<I", 8) + text(value) for key, value in entries.items())


def model():
    return os.environ["PAGODA_MODEL"]


class Cli(unittest.TestCase):
    def succeed(self, *arguments, **options):
        done = pagoda(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return done.stdout

    def refuse(self, status, *arguments, **options):
        """The one line that says why."""
        done = pagoda(*arguments, **options)
        message = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, status, message)
        self.assertEqual(done.stdout, b"")
        return message


class Usage(Cli):
    def test_every_command_has_help_with_examples(self):
        for command in ("serve", "run", "tokenize", "detokenize", "template", "perplexity", "inspect", "kernels", "version",
                        "bench roof", "bench engine"):
            with self.subTest(command):
                text = self.succeed(*command.split(), "--help").decode()
                self.assertIn(f"pagoda {command}", text[text.index("Examples:"):])

    def test_bad_usage_has_status_2_and_the_name_that_was_meant(self):
        self.assertIn("did you mean serve?", self.refuse(2, "srve"))
        self.assertIn("did you mean --max-num-seqs?", self.refuse(2, "serve", TOY, "--max-num-sequs", "3"))
        self.assertIn("MODEL", self.refuse(2, "tokenize"))
        self.assertIn("; see pagoda bench roof --help\n", self.refuse(2, "bench", "roof", "--nonsense"))
        self.assertIn("; see pagoda run --help\n", self.refuse(2, "run", TOY, "--nonsense"))
        self.assertIn("from 0 to 100, got \"hot\"", self.refuse(2, "run", TOY, "hi", "--temperature", "hot"))
        self.refuse(2)

    def test_every_command_that_runs_a_model_takes_the_engine_options_of_serve(self):
        engine = {"--max-num-seqs", "--max-num-batched-tokens", "--scheduling-policy", "--memory-utilization", "--gpu-memory-utilization",
                  "--kv-cache-memory", "--kv-cache-dtype", "--packed-cache-dir", "--max-model-len", "--activation-dtype", "--threads"}
        for command in ("serve", "run", "perplexity", "bench engine"):
            with self.subTest(command):
                words = set(self.succeed(*command.split(), "--help").decode().split())
                self.assertLessEqual(engine, words)
        flags = ("--max-num-seqs", "2", "--scheduling-policy", "fcfs", "--block-size", "32", "--memory-utilization", "0.5", "--raw")
        self.succeed("run", TOY, "hi", "--max-tokens", "1", *flags)
        self.assertIn("not offered in this version", self.refuse(2, "perplexity", TOY, "--file", "-", "--enable-expert-parallel"))
        self.assertIn("are one key", self.refuse(2, "run", TOY, "hi", "--memory-utilization", "0.5", "--gpu-memory-utilization", "0.6"))

    def test_a_failed_operation_has_status_1(self):
        self.assertIn("/nowhere.gguf", self.refuse(1, "inspect", "/nowhere.gguf"))
        self.assertIn("vocabulary", self.refuse(1, "run", GOLDEN / "gguf/falcon.gguf", "hi"))

    def test_a_model_that_is_not_supported_is_refused_in_one_line_that_names_the_file_once(self):
        key = b"general.architecture" + struct.pack("<IQ", 8, len("llama"))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "other.gguf")
            file.write_bytes(Path(TOY).read_bytes().replace(key + b"llama", key + b"other"))
            message = self.refuse(1, "run", file, "hi")
        self.assertIn('architecture "other" is not supported', message)
        self.assertEqual((message.count(str(file)), message.count("\n")), (1, 1), message)

    def test_output_that_cannot_be_written_has_status_1_also_of_the_help(self):
        for command in (["--help"], ["run", "--help"], ["version"], ["serve", "--print-config"]):
            with self.subTest(command), open("/dev/full", "wb") as full:
                done = subprocess.run([os.environ["PAGODA_BIN"], *command], stdout=full, stderr=subprocess.PIPE,
                                      timeout=COMMAND_SECONDS, env=environment_of_binary())
                self.assertEqual((done.returncode, done.stderr), (1, b"pagoda: standard output can't be written\n"))

    def test_a_file_that_cannot_be_read_has_status_1_whoever_reads_it(self):
        for command in (("run", TOY, "--prompt-file", "/nope"), ("perplexity", TOY, "--file", "/nope"),
                        ("template", model(), "--messages", "/nope"), ("run", TOY, "hi", "--config", "/nope"),
                        ("serve", TOY, "--api-key-file", "/nope"), ("bench", "kernels", "--baseline", "/nope"),
                        ("run", TOY, "hi", "--chat-template", "/nope")):
            with self.subTest(command):
                self.assertEqual(self.refuse(1, *command), "pagoda: /nope: cannot be read: No such file or directory\n")

    def test_version_names_commit_and_variant(self):
        version = json.loads(self.succeed("version", "--json"))
        self.assertEqual(set(version), {"version", "commit", "compiler", "build_type", "variant"})
        ref = json.loads(self.succeed("version", "--json", environment={"PAGODA_ISA": "ref"}))
        self.assertEqual(ref["variant"], "ref")

    def test_kernels_names_one_provider_for_every_operator(self):
        kernels = json.loads(self.succeed("kernels", "--json"))
        chosen = [variant["name"] for variant in kernels["variants"] if variant["chosen"]]
        self.assertEqual(chosen, [kernels["chosen"]])
        names = {variant["name"] for variant in kernels["variants"]}
        self.assertTrue(kernels["operators"])
        self.assertLessEqual(set(kernels["operators"].values()), names)

    def test_an_unknown_isa_is_bad_usage_and_answered_with_those_that_there_are(self):
        for command in (["version"], ["kernels"], ["bench", "roof"], ["run", TOY, "hi"], ["serve", TOY, "--port", "0"],
                        ["perplexity", TOY, "--file", "-"], ["bench", "engine", TOY]):
            with self.subTest(command):
                message = self.refuse(2, *command, environment={"PAGODA_ISA": "mmx"})
                self.assertRegex(message, r'"mmx"; this build has ref, .+\n$')

    def test_flags_that_another_one_leaves_without_a_meaning_are_refused(self):
        for flags, advice in {("hi", "--logprobs", "2"): "add --json",
                              ("hi", "--raw", "--system", "Be brief."): "--system",
                              ("--prompt-ids", "1", "--system", "Be brief."): "--system",
                              ("hi", "--raw", "--chat-template", "t.jinja"): "--chat-template",
                              ("--print-config", "--json"): "leave --json out",
                              ("hi", "--print-config"): "PROMPT"}.items():
            with self.subTest(flags):
                self.assertIn(advice, self.refuse(2, "run", TOY, *flags))
        self.assertIn("--chat-template", self.refuse(2, "perplexity", TOY, "--file", "-", "--chat-template", "t.jinja"))
        self.assertIn("leave one of the two out", self.refuse(2, "serve", TOY, "--allow-unauthenticated", "--api-keys", "some-key-1"))

    def test_a_chat_cannot_do_without_its_template(self):
        ours, theirs = pty.openpty()
        try:
            done = subprocess.run([os.environ["PAGODA_BIN"], "run", TOY, "--raw"], stdin=theirs, capture_output=True,
                                  timeout=COMMAND_SECONDS, env=environment_of_binary())
        finally:
            os.close(ours)
            os.close(theirs)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--raw needs a prompt", done.stderr)

    def test_threads_that_the_system_refuses_are_an_error_with_the_limits(self):
        done = subprocess.run([os.environ["PAGODA_BIN"], "bench", "roof", "--threads", "1024"], capture_output=True,
                              timeout=COMMAND_SECONDS, env=environment_of_binary(),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
        message = done.stderr.decode()
        self.assertEqual(done.returncode, 1, message)
        self.assertRegex(message, r"^pagoda: threads is 1024, the system allows \d+: .+ulimit")

    def test_the_roof_has_four_figures_for_one_thread_and_all(self):
        roof = json.loads(self.succeed("bench", "roof", "--json"))
        self.assertEqual(set(roof), {"int8_gops", "bf16_gflops", "f32_gflops", "read_gb_s"})
        for figure in roof.values():
            self.assertEqual(set(figure), {"one", "all"})
        self.assertGreater(roof["int8_gops"]["all"], 0)


class Configuration(Cli):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name, "pagoda.yaml")

    def printed(self, *flags, environment=None):
        text = self.succeed("serve", "--print-config", "--config", self.file, *flags, environment=environment).decode()
        return dict(line.split(":", 1) for line in text.splitlines())

    def test_a_flag_beats_the_environment_beats_the_file(self):
        self.file.write_text("max_num_seqs: 3\nmax_queue: 30\nport: 1111\n")
        printed = self.printed("--max-num-seqs", "5", environment={"PAGODA_MAX_NUM_SEQS": "4", "PAGODA_MAX_QUEUE": "40"})
        self.assertEqual(printed["max_num_seqs"], " 5  # flag")
        self.assertEqual(printed["max_queue"], " 40  # environment")
        self.assertEqual(printed["port"], " 1111  # file")
        self.assertEqual(printed["host"], ' "127.0.0.1"  # default')

    def test_unknown_keys_and_variables_are_refused(self):
        self.file.write_text("max_num_sqs: 3\n")
        self.assertIn("did you mean max_num_seqs?", self.refuse(2, "serve", "--print-config", "--config", self.file))
        self.assertIn("did you mean PAGODA_PORT?", self.refuse(2, "serve", "--print-config", environment={"PAGODA_PROT": "1"}))

    def test_variables_of_this_suite_are_unknown_to_the_binary_too(self):
        for name in sorted(SUITE_VARIABLES):
            with self.subTest(name):
                message = self.refuse(2, "run", TOY, "hi", environment={name: "x"})
                self.assertIn(f"environment: unknown variable {name}", message)
        self.assertIn("did you mean PAGODA_ISA?", self.refuse(2, "run", TOY, "hi", environment={"PAGODA_IAS": "ref"}))

    def test_what_this_version_lacks_is_refused_by_name(self):
        self.assertIn("not offered", self.refuse(2, "serve", TOY, "--enable-expert-parallel"))
        self.file.write_text("enable_expert_parallel: false\n")
        self.printed()

    def test_secrets_are_masked(self):
        self.file.write_text("api_keys: [sk-very-secret]\n")
        self.assertNotIn("secret", self.printed()["api_keys"])


class Text(Cli):
    def test_tokens_come_back_as_the_same_bytes(self):
        for text in (b"Hello, world", b"  two  blanks \n\n", "\u00fcber \u4e16\u754c \U0001f9ff".encode(), b"\r\n\ttabs", b""):
            with self.subTest(text):
                ids = self.succeed("tokenize", model(), "--ids", text=text)
                self.assertEqual(self.succeed("detokenize", model(), text=ids) if ids.strip() else b"", text)

    def test_ids_of_prompts_equal_the_golden_ones(self):
        for prompt in SMOLLM2["prompts"]:
            with self.subTest(prompt["name"]):
                ids = self.succeed("tokenize", model(), "--ids", "--no-bos", text=prompt["text"].encode())
                self.assertEqual([int(word) for word in ids.split()], prompt["ids"])

    def test_null_separates_texts_and_gives_a_line_each(self):
        lines = self.succeed("tokenize", model(), "--null", text=b"one\0two\nlines\0\0three").splitlines()
        self.assertEqual(len(lines), 4)
        self.assertEqual(lines[1], self.succeed("tokenize", model(), "--ids", text=b"two\nlines").rstrip(b"\n"))
        self.assertEqual(lines[2], b"")

    def test_special_text_is_plain_text_when_asked(self):
        special = self.succeed("tokenize", model(), "--ids", "--text", "<|im_start|>").split()
        plain = self.succeed("tokenize", model(), "--ids", "--no-special", "--text", "<|im_start|>").split()
        self.assertEqual(special, [b"1"])
        self.assertGreater(len(plain), 1)

    def test_ids_that_are_none_are_bad_usage_and_found_before_weights_are_loaded(self):
        for ids in ("49152", "-1", "1.5", "x", "1 2 -3", "9" * 30):
            with self.subTest(ids):
                word = ids.split()[-1]
                for message in (self.refuse(2, "detokenize", model(), "--", *ids.split()),
                                self.refuse(2, "detokenize", model(), text=ids.encode()),
                                self.refuse(2, "run", model(), "--prompt-ids", ids)):
                    self.assertEqual(message, f'pagoda: a token id must be an integer from 0 to 49151, got "{word}"\n')
        self.assertIn("no token id", self.refuse(2, "run", model(), "--prompt-ids", " "))

    def test_template_prints_the_golden_text(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "chat.json")
            for prompt in SMOLLM2["prompts"]:
                if "messages" not in prompt:
                    continue
                with self.subTest(prompt["name"]):
                    file.write_text(json.dumps({"messages": prompt["messages"], "add_generation_prompt": True}))
                    self.assertEqual(self.succeed("template", model(), "--messages", file).decode(), prompt["text"])

    def test_template_says_which_members_it_leaves_out(self):
        body = {"messages": [{"role": "user", "content": "Hi"}], "model": "x", "add_generaton_prompt": False}
        done = pagoda("template", model(), "--messages", "-", text=json.dumps(body).encode())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, b"-: no part of the prompt, and left out: model, add_generaton_prompt\n")
        known = {"messages": body["messages"], "tools": None, "documents": [], "add_generation_prompt": True,
                 "continue_final_message": False, "chat_template_kwargs": {}, "reasoning_effort": "low", "chat_template": "default"}
        done = pagoda("template", model(), "--messages", "-", text=json.dumps(known).encode())
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(done.stdout.endswith(b"<|im_start|>assistant\n"))

    def test_template_of_the_body_sees_its_documents_and_variables(self):
        body = {"messages": [{"role": "user", "content": "Hi"}], "documents": [{"text": "facts"}], "add_generation_prompt": False,
                "chat_template_kwargs": {"tone": "dry"}, "reasoning_effort": "low",
                "chat_template": "{{ documents[0].text }} {{ tone }} {{ reasoning_effort }} {{ add_generation_prompt }}"}
        self.assertEqual(self.succeed("template", model(), "--messages", "-", text=json.dumps(body).encode()), b"facts dry low False")
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as other:
            other.write("other")
            other.flush()
            twice = self.refuse(2, "template", "--template-file", other.name, "--messages", "-", text=json.dumps(body).encode())
        self.assertIn("leave one of them out", twice)
        empty = self.refuse(1, "template", "--template-file", os.devnull, "--messages", "-", text=json.dumps(body).encode())
        self.assertIn("the chat template is empty", empty)
        body["chat_template"] = "{{ broken"
        message = self.refuse(1, "template", model(), "--messages", "-", text=json.dumps(body).encode())
        self.assertIn("chat_template: ", message)

    def test_a_template_file_sees_variables_and_its_own_complaint_comes_back(self):
        with tempfile.TemporaryDirectory() as folder:
            source, messages = Path(folder, "t.jinja"), Path(folder, "m.json")
            messages.write_text('[{"role": "user", "content": "hi"}]')
            source.write_text("{{ bos_token }}{{ messages[0].content }}{{ tools is none }}{{ mood }}")
            flags = ["template", "--template-file", source, "--messages", messages]
            self.assertEqual(self.succeed(*flags, "--var", "bos_token=<s>", "--var", "mood=fine"), b"<s>hiTruefine")
            source.write_text("{{ raise_exception('no such role') }}")
            self.assertIn("no such role", self.refuse(1, *flags))
            source.write_text("line one\n{% if %}")
            self.assertIn("2", self.refuse(1, *flags))


class Run(Cli):
    def answer(self, *arguments, **options):
        return json.loads(self.succeed("run", model(), "--json", *arguments, **options))

    def test_the_same_seed_gives_the_same_answer(self):
        flags = ("--seed", "7", "--temperature", "1", "--max-tokens", "24", "Tell me a story.")
        first, second = self.answer(*flags), self.answer(*flags)
        for member in ("text", "token_ids", "prompt_token_ids", "finish_reason"):
            self.assertEqual(first[member], second[member])
        self.assertEqual(len(first["token_ids"]), 24)
        self.assertEqual(first["finish_reason"], "length")
        self.assertNotEqual(first["token_ids"], self.answer("--seed", "8", *flags[2:])["token_ids"])

    def test_a_prompt_from_a_pipe_a_file_and_the_command_line_is_one(self):
        flags = ("--temperature", "0", "--max-tokens", "8")
        expected = self.answer(*flags, "Hello there")
        self.assertEqual(self.answer(*flags, text=b"Hello there\n")["token_ids"], expected["token_ids"])
        self.assertEqual(self.answer(*flags, "--prompt", "Hello there")["token_ids"], expected["token_ids"])
        ids = " ".join(map(str, expected["prompt_token_ids"]))
        self.assertEqual(self.answer(*flags, "--prompt-ids", ids)["token_ids"], expected["token_ids"])
        plain = self.succeed("run", model(), *flags, "Hello there").decode()
        self.assertEqual(plain, expected["text"] + "\n")

    def test_what_is_piped_comes_behind_the_prompt_after_an_empty_line(self):
        flags = ("--max-tokens", "1")
        whole = self.answer(*flags, "Sum up\n\nsome\nnotes")["prompt_token_ids"]
        with tempfile.TemporaryDirectory() as folder:
            notes, question = Path(folder, "notes"), Path(folder, "question")
            notes.write_text("some\nnotes\n")
            question.write_text("Sum up")
            self.assertEqual(self.answer(*flags, "Sum up", text=notes.read_bytes())["prompt_token_ids"], whole)
            self.assertEqual(self.answer(*flags, "--prompt-file", question, text=notes.read_bytes())["prompt_token_ids"], whole)
            self.assertEqual(self.asked("Sum up", notes), whole)
            self.assertEqual(self.asked("Sum up", os.devnull), self.answer(*flags, "Sum up")["prompt_token_ids"])
            self.assertEqual(self.asked("--prompt-file", "/dev/stdin", question), self.asked("Sum up", os.devnull))

    def asked(self, *arguments):
        """The prompt's ids, with the file that is named last as standard input."""
        with open(arguments[-1], "rb") as file:
            done = subprocess.run([os.environ["PAGODA_BIN"], "run", model(), "--json", "--max-tokens", "1", *map(str, arguments[:-1])],
                                  stdin=file, capture_output=True, timeout=COMMAND_SECONDS, check=True, env=environment_of_binary())
        return json.loads(done.stdout)["prompt_token_ids"]

    def test_greedy_tokens_equal_the_golden_ones_where_they_are_decided(self):
        for prompt in SMOLLM2["prompts"]:
            with self.subTest(prompt["name"]):
                golden = prompt["greedy"]
                ids = " ".join(map(str, prompt["ids"]))
                found = self.answer("--prompt-ids", ids, "--temperature", "0", "--ignore-eos", "--activation-dtype", "f32",
                                    "--max-tokens", len(golden["ids"]))["token_ids"]
                for step, (ours, theirs) in enumerate(zip(found, golden["ids"], strict=True)):
                    if ours != theirs:
                        top = golden["steps"][step]["top"]
                        self.assertLess(top[0][1] - top[1][1], DECIDED_MARGIN, f"step {step}")
                        break

    def test_logprobs_are_of_the_tokens_that_were_chosen(self):
        answer = self.answer("--logprobs", "3", "--temperature", "0", "--max-tokens", "5", "Hello")
        self.assertEqual([entry["id"] for entry in answer["logprobs"]], answer["token_ids"])
        for entry in answer["logprobs"]:
            self.assertEqual(len(entry["top"]), 3)
            self.assertEqual(entry["top"][0]["id"], entry["id"])
        self.assertIsNone(self.answer("--max-tokens", "1", "Hello")["logprobs"])

    def test_any_number_of_threads_gives_the_same_answer(self):
        flags = ("--temperature", "0", "--max-tokens", "8", "Hello there")
        expected = self.answer(*flags)["token_ids"]
        for threads in (1, 2, 15, 33):
            with self.subTest(threads):
                self.assertEqual(self.answer("--threads", threads, *flags)["token_ids"], expected)

    def test_every_type_of_the_kv_cache_answers_the_same_on_any_number_of_threads(self):
        for dtype in ("f32", "bf16", "int8"):
            flags = ("--kv-cache-dtype", dtype, "--temperature", "0", "--max-tokens", "16", "--ignore-eos", "Hello")
            with self.subTest(dtype):
                answer = self.answer("--threads", 1, *flags)
                self.assertEqual(len(answer["token_ids"]), 16)
                self.assertEqual(self.answer("--threads", 3, *flags)["token_ids"], answer["token_ids"])

    def test_an_unknown_type_of_the_kv_cache_is_bad_usage_and_answered_with_those_that_there_are(self):
        self.assertIn("auto, f32, bf16, int8", self.refuse(2, "run", model(), "--kv-cache-dtype", "int4", "hi"))
        self.assertIn('got "q8_0"', self.refuse(2, "run", model(), "--kv-cache-dtype", "q8_0", "hi"))

    def test_a_reader_that_goes_away_ends_the_answer(self):
        command = [os.environ["PAGODA_BIN"], "run", model(), "--ignore-eos", "Tell me a long story"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              env=environment_of_binary()) as process:
            process.stdout.read(10)
            process.stdout.close()
            self.assertEqual(process.wait(COMMAND_SECONDS), 1)
            self.assertIn(b"standard output can't be written", process.stderr.read())

    def test_a_prompt_over_the_context_is_refused_with_both_numbers(self):
        message = self.refuse(1, "run", model(), "--raw", "--max-model-len", "64", text=b"word " * 100)
        self.assertRegex(message, r"has \d+ tokens, the context is 64 tokens")
        self.assertNotIn("loading", message)


    def test_memory_that_the_system_refuses_is_an_error_with_the_size(self):
        done = subprocess.run([os.environ["PAGODA_BIN"], "bench", "engine", model(), "--concurrency", "64", "--depth", "0"],
                              capture_output=True, timeout=COMMAND_SECONDS, env=environment_of_binary(),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)))
        message = done.stderr.decode().splitlines()[-1]
        self.assertEqual(done.returncode, 1, message)
        self.assertRegex(message, r"^pagoda: .*the system refuses the [\d.]+ GiB of address space that the KV cache takes; raise its limit")


class Perplexity(Cli):
    def test_the_golden_essay_has_its_perplexity(self):
        golden = SMOLLM2["perplexity"]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "essay.txt")
            file.write_text(golden["text"])
            found = json.loads(self.succeed("perplexity", model(), "--file", file, "--activation-dtype", "f32", "--json"))
        self.assertEqual(found["token_ids"], golden["ids"])
        self.assertEqual(found["tokens"], len(golden["values"]))
        self.assertAlmostEqual(found["perplexity"], golden["perplexity"], delta=golden["perplexity"] * 1e-3)
        for ours, theirs in zip(found["logprobs"][1:], golden["values"], strict=True):
            self.assertAlmostEqual(ours, theirs, delta=0.01)

    def test_windows_score_every_token_once(self):
        text = SMOLLM2["perplexity"]["text"].encode()
        found = json.loads(self.succeed("perplexity", model(), "--file", "-", "--context", "64", "--stride", "40", "--json", text=text))
        self.assertEqual(found["tokens"], len(found["token_ids"]) - 1)
        self.assertIsNone(found["logprobs"][0])
        self.assertNotIn(None, found["logprobs"][1:])


class Inspect(Cli):
    def test_it_says_what_a_model_holds_and_that_it_runs(self):
        found = json.loads(self.succeed("inspect", model(), "--json"))
        self.assertEqual(found["architecture"], "llama")
        self.assertEqual(found["runs"], True)
        self.assertEqual(found["tokenizer"]["tokens"], 49152)
        self.assertIn(b"blk.0.attn_q.weight", self.succeed("inspect", model(), "--tensors"))

    def test_models_that_cannot_be_run_are_still_described(self):
        found = json.loads(self.succeed("inspect", GOLDEN / "gguf/mixtral.gguf", "--json"))
        self.assertIsInstance(found["runs"], str)

    def test_damaged_files_are_refused_in_one_line_that_names_the_file(self):
        whole = Path(TOY).read_bytes()
        damage = {
            "empty": b"",
            "no GGUF": b"PK\3\4" + whole[4:],
            "cut in the metadata": whole[:200],
            "cut in the tensors": whole[:-1000],
            "impossible count": whole[:8] + b"\xff" * 8 + whole[16:],
            "another head count": self.with_number(whole, b"llama.attention.head_count", 3),
            "another width": self.with_number(whole, b"llama.embedding_length", 4096),
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, content in damage.items():
                with self.subTest(name):
                    file = Path(folder, "damaged.gguf")
                    file.write_bytes(content)
                    for command in (["inspect"], ["run", "--prompt", "hi"]):
                        message = self.refuse(1, command[0], file, *command[1:])
                        self.assertEqual(message.count("damaged.gguf"), 1, message)
                        self.assertEqual(message.count("\n"), 1, message)

    def test_no_text_of_a_file_steers_the_terminal(self):
        steering = "\x1b[2J\n\x9b1m\u202egpj.\x7f"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "hostile.gguf")
            file.write_bytes(gguf({"general.architecture": f"llama{steering}", "general.name": f"toy{steering}",
                                   f"key{steering}": f"value{steering}"}))
            shown = self.succeed("inspect", file).decode()
            as_json = self.succeed("inspect", file, "--json").decode()
            refused = self.refuse(1, "run", file, "hi")
        for text in (shown, as_json, refused):
            for character in steering.replace("\n", ""):
                if not character.isprintable():
                    self.assertNotIn(character, text)
        self.assertIn(r"name          toy\x1b[2J\n\u009b1m\u202egpj.\x7f", shown)
        self.assertEqual(json.loads(as_json)["name"], f"toy{steering}")
        self.assertEqual(as_json.count("\n"), 1)
        self.assertEqual(refused.count("\n"), 1)

    @staticmethod
    def with_number(content, key, value):
        """The file with another uint32 under that key: its text, a type of 4 bytes, the value."""
        at = content.index(key) + len(key) + 4
        return content[:at] + value.to_bytes(4, "little") + content[at + 4:]


class BenchEngine(Cli):
    def test_rows_have_the_promised_members(self):
        rows = json.loads(self.succeed("bench", "engine", model(), "--prompt-tokens", "32", "--output-tokens", "4",
                                       "--concurrency", "1,2", "--depth", "0", "--repeat", "1", "--json"))
        self.assertEqual([row["concurrency"] for row in rows], [1, 2])
        for row in rows:
            self.assertEqual(set(row), {"prompt_tokens", "output_tokens", "concurrency", "depth", "prefill_tok_s", "decode_tok_s",
                                        "prefill_share", "decode_share"})
            self.assertGreater(row["prefill_tok_s"], 0)
            self.assertGreater(row["decode_tok_s"], 0)


class Serve(Cli):
    def test_the_plan_comes_before_the_address(self):
        with Server() as server:
            output = server.output()
        self.assertLess(output.index("memory plan"), output.index("serving"))

    def test_standard_output_has_one_line(self):
        with subprocess.Popen([os.environ["PAGODA_BIN"], "serve", model(), "--port", "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env=environment_of_binary()) as process:
            line = process.stdout.readline().decode()
            process.send_signal(signal.SIGTERM)
            self.assertRegex(line, r"^pagoda: serving \S+ at http://127\.0\.0\.1:\d+\n$")
            self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(process.returncode, 0)

    def test_a_public_address_needs_keys_or_consent(self):
        message = self.refuse(2, "serve", model(), "--host", "0.0.0.0", "--port", "0")
        self.assertIn("--allow-unauthenticated", message)

    def test_what_cannot_fit_is_refused_before_loading(self):
        message = self.refuse(1, "serve", model(), "--port", "0", "--kv-cache-memory", "1MiB", "--max-model-len", "8192")
        self.assertIn("max_model_len is 8192", message)
        self.assertNotIn("loading", message)

    def test_a_port_in_use_is_named(self):
        with Server() as server:
            port = server.address.rsplit(":", 1)[1]
            done = pagoda("serve", model(), "--port", port)
        self.assertEqual(done.returncode, 1)
        self.assertIn(port, done.stderr.decode().splitlines()[-1])

    def test_with_keys_every_route_but_two_needs_one(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = Path(folder, "keys")
            keys.write_text("# clients\nfirst-key-1\n")
            with Server("--api-keys", "second-key-2", "--api-key-file", str(keys)) as server:
                for path in ("/health", "/ready"):
                    self.assertEqual(server.get(path).status, 200)
                for path in ("/v1/models", "/metrics", "/version"):
                    refused = server.get(path)
                    self.assertEqual(refused.status, 401)
                    self.assertEqual(refused.json()["error"]["code"], "invalid_api_key")
                    self.assertEqual(server.get(path, {"authorization": "Bearer first-key-1"}).status, 200)
                    self.assertEqual(server.get(path, {"x-api-key": "second-key-2"}).status, 200)

    def test_the_name_is_the_files_or_as_told(self):
        with Server() as server:
            self.assertEqual(server.get("/v1/models").json()["data"][0]["id"], Path(model()).stem)
        with Server("--served-model-name", "small,tiny") as server:
            self.assertEqual([entry["id"] for entry in server.get("/v1/models").json()["data"]], ["small", "tiny"])


class Stream:
    """A chat that streams, read line by line."""

    def __init__(self, server, max_tokens):
        self.connection = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=120)
        self.connection.request("POST", "/v1/completions", json.dumps(
            {"prompt": "Once", "max_tokens": max_tokens, "stream": True, "ignore_eos": True}), {"content-type": "application/json"})
        self.answer = self.connection.getresponse()
        self.first = self.answer.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.answer.close()
        self.connection.close()

    def rest(self):
        return self.first + self.answer.read()


class Stop(Cli):
    def stopping(self, server):
        """Sends the signal and returns when the server says that it stops."""
        server.process.send_signal(signal.SIGTERM)
        while "stopping" not in server.output():
            if server.process.poll() is not None:
                self.fail(server.output())
            threading.Event().wait(0.01)

    def test_running_streams_finish_new_requests_get_503_and_readiness_falls(self):
        with Server() as server, contextlib.ExitStack() as stack:
            streams = [stack.enter_context(Stream(server, 150)) for _ in range(10)]
            self.stopping(server)
            self.assertEqual(server.get("/ready").status, 503)
            self.assertEqual(server.get("/health").status, 200)
            refused = server.post("/v1/completions", {"prompt": "x", "max_tokens": 1})
            self.assertEqual(refused.status, 503)
            for stream in streams:
                text = stream.rest()
                self.assertTrue(text.rstrip().endswith(b"data: [DONE]"), text[-300:])
            self.assertEqual(server.process.wait(30), 0)

    def test_a_second_signal_stops_at_once(self):
        with Server() as server, Stream(server, 4000) as stream:
            self.stopping(server)
            self.assertEqual(server.stop(), 0)
            try:
                self.assertNotIn(b"[DONE]", stream.rest())
            except (OSError, http.client.HTTPException):
                pass

    def test_the_grace_time_bounds_the_wait(self):
        with Server("--shutdown-grace", "300ms") as server, Stream(server, 4000) as stream:
            self.assertEqual(server.stop(), 0)
            self.assertTrue(stream.first.startswith(b"data: "))


if __name__ == "__main__":
    unittest.main()
