#!/usr/bin/env python3
"""Keeps a server busy for a long time and looks at what is left:  soak.py [--seconds N] [--clients N] [--seed N]

Clients send random chats, of which some are read to the end, some are left in mid-stream, and some are nonsense. Afterwards no request
may be running, no KV block in use, and memory may not have grown since the first tenth of the time by more than a tenth.
"""
import argparse
import http.client
import json
import random
import re
import sys
import threading
import time

from server import Server

WORDS = "river stone lamp quiet engine seven blue paper north window bread letter glass winter".split()


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * 4096


class Client(threading.Thread):
    """One client with its own randomness; counts what it saw and keeps what should not have been."""

    def __init__(self, server, seed, deadline):
        super().__init__()
        self.server = server
        self.random = random.Random(seed)
        self.deadline = deadline
        self.finished = self.left = self.refused = 0
        self.faults = []

    def run(self):
        while time.monotonic() < self.deadline:
            try:
                self.random.choice((self.read_to_the_end, self.read_to_the_end, self.leave_early, self.send_nonsense))()
            except (OSError, http.client.HTTPException, ValueError) as fault:
                self.faults.append(repr(fault))

    def open(self, body):
        host = self.server.address.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=300)
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        return connection, connection.getresponse()

    def chat(self):
        text = " ".join(self.random.choices(WORDS, k=self.random.randint(1, 120)))
        return dict(messages=[dict(role="user", content=text)], stream=True, max_tokens=self.random.randint(1, 96),
                    seed=self.random.getrandbits(31), temperature=self.random.choice((0, 0.7, 1.3)))

    def read_to_the_end(self):
        connection, answer = self.open(self.chat())
        body = answer.read()
        connection.close()
        if answer.status == 503:
            self.refused += 1
        elif answer.status != 200 or not body.rstrip().endswith(b"data: [DONE]"):
            self.faults.append(f"status {answer.status}: {body[-200:]!r}")
        else:
            self.finished += 1

    def leave_early(self):
        connection, answer = self.open(self.chat())
        answer.read(self.random.randint(1, 2000))
        connection.close()
        self.left += 1

    def send_nonsense(self):
        connection, answer = self.open(dict(messages=self.random.choice((None, [], "hello", [1], [{"role": 3}])), max_tokens=-1))
        answer.read()
        connection.close()
        if not 400 <= answer.status < 500:
            self.faults.append(f"nonsense got status {answer.status}")
        self.refused += 1


def gauge(server, name):
    text = server.get("/metrics").body.decode()
    values = [float(v) for v in re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? ([^ \n]+)$", text, re.M)]
    if not values:
        raise AssertionError(f"/metrics has no {name}")
    return sum(values)


def wait_until_idle(server, seconds=60):
    deadline = time.monotonic() + seconds
    while gauge(server, "vllm:num_requests_running") + gauge(server, "vllm:num_requests_waiting") > 0:
        if time.monotonic() > deadline:
            return [f"requests still running {seconds} s after the last client left"]
        time.sleep(0.2)
    # With prefix caching the pool may keep blocks; the gauge counts only those that a sequence holds.
    in_use = gauge(server, "vllm:kv_cache_usage_perc")
    return [f"KV usage {in_use} with no request"] if in_use > 0 else []


def fill_kv_cache(server):
    """Prompts until blocks are evicted, so that every page of the KV memory is resident before memory is looked at."""
    number = 0
    while gauge(server, "pagoda:prefix_cache_evicted_blocks_total") == 0:
        number += 1
        answer = server.post("/v1/completions", {"prompt": [number % 1000 + i for i in range(1000)], "max_tokens": 1})
        if answer.status != 200 or number > 1000:
            raise AssertionError(f"the KV cache is not full after {number} prompts: status {answer.status}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # A small cache, so that sequences are preempted and blocks evicted all the time.
    with Server("--max-model-len", "2048", "--kv-cache-memory", "96MiB") as server:
        fill_kv_cache(server)
        begin = time.monotonic()
        clients = [Client(server, options.seed * 1000 + i, begin + options.seconds) for i in range(options.clients)]
        for client in clients:
            client.start()
        time.sleep(options.seconds / 10)
        early = resident_bytes(server.process.pid)
        for client in clients:
            client.join()
        faults = [fault for client in clients for fault in client.faults] + wait_until_idle(server)
        late = resident_bytes(server.process.pid)
        if late > early * 1.1:
            faults.append(f"memory grew from {early >> 20} to {late >> 20} MiB")
    print(f"soak: {sum(c.finished for c in clients)} answers, {sum(c.left for c in clients)} left early, "
          f"{sum(c.refused for c in clients)} refused, memory {early >> 20} then {late >> 20} MiB, {len(faults)} faults")
    for fault in faults[:20]:
        print(" ", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
