"""The plan that `serve` prints holds: the most that the process ever has resident stays below it, whatever is asked."""
import json
import re
import threading
import unittest

from server import Server

MIB = 1 << 20
PLAN = re.compile(r"memory plan: .* in all ([\d.]+) (MiB|GiB) of ")


def values(count):
    """Bodies of many small JSON values: what a parser takes the most memory for."""
    return b'{"messages":[' + b"{}," * count + b"{}]}"


def keys(count):
    return b'{"messages":{' + b",".join(b'"%d":[]' % number for number in range(count)) + b"}}"


def text(field, mib, **more):
    return json.dumps({field: "z " * (mib * MIB // 2), **more}).encode()


class Memory(unittest.TestCase):
    def high_water(self, server):
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)) * 1024

    def burst(self, server, path, body, count):
        clients = [threading.Thread(target=lambda: server.post(path, body)) for _ in range(count)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    def test_the_worst_bodies_and_answers_stay_within_the_plan(self):
        with Server("--kv-cache-memory", "32MiB", "--max-num-seqs", "8") as server:
            amount, unit = PLAN.search(server.output()).groups()
            planned = float(amount) * (MIB if unit == "MiB" else 1024 * MIB)
            bursts = {
                "values": ("/v1/chat/completions", values(200_000), 4),
                "keys": ("/v1/chat/completions", keys(120_000), 4),
                "texts": ("/v1/completions", text("prompt", 7), 4),
                "one text": ("/v1/completions", text("prompt", 31), 1),
                "tokens": ("/tokenize", text("prompt", 3, return_token_strs=True), 4),
                "scores": ("/v1/completions", {"prompt": [5] * 1000, "max_tokens": 4, "prompt_logprobs": 20, "n": 8}, 2),
            }
            for name, (path, body, count) in bursts.items():
                self.burst(server, path, body, count)
                with self.subTest(name):
                    self.assertLessEqual(self.high_water(server), planned)
            self.assertEqual(server.post("/v1/completions", {"prompt": "Hi", "max_tokens": 1}).status, 200)


if __name__ == "__main__":
    unittest.main()
