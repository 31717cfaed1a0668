"""A real server process on a port of its own choice.

PAGODA_BIN names the binary, PAGODA_MODEL the model file. The server is asked for port 0 and prints the address that it got. What the
suite itself is told by variables is no setting of the binary, which refuses every PAGODA_ name that it does not know.
"""
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
SUITE_VARIABLES = {"PAGODA_BIN", "PAGODA_GOLDEN", "PAGODA_MODEL", "PAGODA_SUITES"}
START_SECONDS = 60
STOP_SECONDS = 30


def environment_of_binary(changes=None):
    """That of a process of ours: this one's without what the suite is told, with the changes."""
    return {**{name: value for name, value in os.environ.items() if name not in SUITE_VARIABLES}, **(changes or {})}


class Response:
    """What a request gave, errors included."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)


class Server:
    """with Server("--max-num-seqs", "4") as server: ... The server has stopped, with status 0, when the block ends."""

    def __init__(self, *flags, model=None, environment=None):
        self.command = [os.environ["PAGODA_BIN"], "serve", model or os.environ["PAGODA_MODEL"], "--port", "0", *flags]
        self.environment = environment_of_binary(environment)
        self.lines = []
        self.address_printed = threading.Event()
        self.address = None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace")
        self.reader = threading.Thread(target=self.read_output, daemon=True)
        self.reader.start()
        try:
            self.wait_until_ready()
        except BaseException:
            self.process.kill()
            self.process.wait()
            self.reader.join()
            self.process.stdout.close()
            raise
        return self

    def __exit__(self, kind, value, trace):
        status = self.stop()
        if kind is None and status != 0:
            raise AssertionError(f"the server ended with status {status}:\n{self.output()}")

    def read_output(self):
        for line in self.process.stdout:
            self.lines.append(line)
            found = ADDRESS.search(line)
            if found and self.address is None:
                self.address = f"http://127.0.0.1:{found.group(1)}"
                self.address_printed.set()
        self.address_printed.set()

    def output(self):
        return "".join(self.lines[-200:])

    def wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS
        if not self.address_printed.wait(START_SECONDS) or self.address is None:
            raise AssertionError(f"no address within {START_SECONDS} s:\n{self.output()}")
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                if self.get("/ready").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"not ready within {START_SECONDS} s:\n{self.output()}")

    def stop(self, stop_signal=signal.SIGTERM):
        """Asks the server to stop; returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(stop_signal)
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still running {STOP_SECONDS} s after the signal:\n{self.output()}") from None
        self.reader.join()
        self.process.stdout.close()
        return status

    def request(self, method, path, body=None, headers=None):
        """body: an object that is sent as JSON, or bytes that are sent as they are."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=120)
        try:
            try:
                connection.request(method, path, data, {"content-type": "application/json", **(headers or {})})
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before the body was through; the answer is there all the same
            answer = connection.getresponse()
            return Response(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, headers=None):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        return self.request("POST", path, body, headers)
