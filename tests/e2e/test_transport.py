"""What happens around an answer: headers before bodies, slow work beside quick questions, loading, logging and stopping."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from server import Server, environment_of_binary
from streams import events, open_stream

KEY = "a-key-of-tests"


def port_of(server):
    return int(server.address.rpartition(":")[2])


def raw(port, data):
    """A connection that has sent these bytes, and a file to read the answer from."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(data)
    return connection, connection.makefile("rb")


def head_of(reader):
    """Status and headers of an answer."""
    status = int(reader.readline().split()[1])
    headers = http.client.parse_headers(reader)
    return status, headers


class Loading:
    """A server that waits for its chat template, and so is loading until the test lets it go on."""

    def __init__(self, folder, *flags):
        self.pipe = Path(folder, "template.jinja")
        os.mkfifo(self.pipe)
        self.command = [os.environ["PAGODA_BIN"], "serve", os.environ["PAGODA_MODEL"], "--port", "0", "--chat-template", str(self.pipe),
                        *flags]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env=environment_of_binary(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        self.port = int(re.match(r"port (\d+) is bound", line).group(1))
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def go_on(self):
        self.pipe.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")

    def get(self, path, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body


class Start(unittest.TestCase):
    def test_while_the_model_loads_health_is_200_and_all_else_503(self):
        with tempfile.TemporaryDirectory() as folder, Loading(folder, "--api-keys", KEY) as loading:
            self.assertEqual(loading.get("/health")[0].status, 200)
            ready, body = loading.get("/ready")
            self.assertEqual((ready.status, json.loads(body)["error"]["code"]), (503, "not_ready"))
            self.assertTrue(ready.getheader("retry-after"))
            self.assertEqual(loading.get("/v1/models")[0].status, 401)
            for path in ("/v1/models", "/metrics", "/nowhere"):
                early, body = loading.get(path, {"x-api-key": KEY})
                self.assertEqual((early.status, json.loads(body)["error"]["code"]), (503, "model_loading"))
                self.assertTrue(early.getheader("retry-after"))
            loading.go_on()
            self.assertRegex(loading.process.stdout.readline(), rf"^pagoda: serving \S+ at http://127\.0\.0\.1:{loading.port}$")
            self.assertEqual(loading.get("/ready")[0].status, 200)
            self.assertEqual(loading.get("/v1/models", {"x-api-key": KEY})[0].status, 200)
            loading.process.send_signal(signal.SIGTERM)
            self.assertEqual(loading.process.wait(30), 0)

    def test_a_signal_ends_a_server_that_loads(self):
        for stop in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(stop.name), tempfile.TemporaryDirectory() as folder, Loading(folder) as loading:
                loading.process.send_signal(stop)
                self.assertEqual(loading.process.wait(10), 0)
                self.assertIn("stopped while the model was loading", loading.process.stderr.read())

    def test_a_port_in_use_is_refused_before_anything_is_read(self):
        with socket.create_server(("127.0.0.1", 0)) as other, tempfile.TemporaryDirectory() as folder:
            pipe = Path(folder, "template.jinja")
            os.mkfifo(pipe)  # a server that reads it waits for ever
            port = other.getsockname()[1]
            done = subprocess.run([os.environ["PAGODA_BIN"], "serve", os.environ["PAGODA_MODEL"], "--port", str(port), "--chat-template",
                                   str(pipe)], env=environment_of_binary(), capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"can't listen on 127.0.0.1:{port}: Address already in use", done.stderr)


class Requests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.server = cls.stack.enter_context(Server("--api-keys", KEY))

    @classmethod
    def tearDownClass(cls):
        cls.stack.close()

    def ask(self, headers, body=b""):
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode()
        connection, reader = raw(port_of(self.server), head + body)
        self.addCleanup(connection.close)
        self.addCleanup(reader.close)
        return connection, reader

    def test_strangers_are_refused_before_they_send_a_body(self):
        _, reader = self.ask("Content-Length: 30000000\r\n")
        status, headers = head_of(reader)
        self.assertEqual(status, 401)
        self.assertEqual(headers.get_all("www-authenticate"), ["Bearer"])

    def test_continue_is_for_those_who_may_go_on(self):
        body = json.dumps({"prompt": "Once", "max_tokens": 1}).encode()
        asking = f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\nContent-Type: application/json\r\n"
        _, stranger = self.ask(asking)
        self.assertEqual(head_of(stranger)[0], 401)
        connection, known = self.ask(f"X-Api-Key: {KEY}\r\n{asking}")
        self.assertEqual(head_of(known)[0], 100)
        connection.sendall(body)
        self.assertEqual(head_of(known)[0], 200)

    def test_a_request_leaves_one_line_in_the_log_without_what_was_in_it(self):
        self.server.post("/v1/completions?secret-query=1", {"prompt": "secret prompt", "max_tokens": 1},
                         {"x-api-key": KEY, "x-request-id": "logged-1"})
        self.server.get("/health")
        self.server.get("/v1/models/a%0Ainfo:%20request", {"x-api-key": KEY, "x-request-id": "logged-2"})
        deadline = time.monotonic() + 10
        while not all(name in self.server.output() for name in ("logged-1", "logged-2")) and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        log = self.server.output()
        self.assertRegex(log, r"info: request method=POST path=/v1/completions status=200 ms=\d+ bytes=\d+ id=logged-1 client=key-[0-9a-f]{8}\n")
        self.assertRegex(log, r"path=/v1/models/a%0Ainfo:%20request status=404 ms=\d+ bytes=\d+ id=logged-2 ")
        for absent in ("secret", KEY, "/health"):
            self.assertNotIn(absent, log)


class Threads(unittest.TestCase):
    def test_tokenising_huge_texts_holds_up_neither_health_nor_a_stream(self):
        text = json.dumps({"prompt": "all work and no play " * 190_000}).encode()  # nearly 4 MiB
        with Server("--heartbeat", "100ms") as server:
            answers = []
            clients = [threading.Thread(target=lambda: answers.append(server.post("/tokenize", text).status)) for _ in range(4)]
            for client in clients:
                client.start()
            waits = []
            while any(client.is_alive() for client in clients):
                began = time.monotonic()
                self.assertEqual(server.get("/health").status, 200)
                waits.append(time.monotonic() - began)
            for client in clients:
                client.join()
            self.assertEqual(answers, [200] * 4)
            self.assertGreater(len(waits), 3)
            self.assertLess(sorted(waits)[len(waits) // 2], 0.25)


class Stop(unittest.TestCase):
    def test_the_grace_time_cuts_an_answer_that_takes_longer(self):
        with Server("--shutdown-grace", "200ms") as server:
            connection, answer = open_stream(server.address, "/v1/completions",
                                             {"prompt": "Once", "max_tokens": 4000, "stream": True, "ignore_eos": True})
            first = answer.readline()
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            documents, done = events(first + answer.read())
            self.assertEqual(server.process.wait(20), 0)
            self.assertLess(time.monotonic() - began, 5)
            self.assertFalse(done, "the stream was not cut")
            self.assertIn("error", documents[-1])
            connection.close()


if __name__ == "__main__":
    unittest.main()
