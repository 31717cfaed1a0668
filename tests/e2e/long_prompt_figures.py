"""What running streams notice of a long prompt on this machine, with target_itl_ms and without: their gaps before and while it is computed,
and how long it takes alone and beside them. Needs PAGODA_BIN and PAGODA_MODEL; prints a table. Not a test: times depend on the machine.
"""
import argparse
import http.client
import json
import statistics
import threading
import time

from prefix_figures import ask, prompt_of
from server import Server

STREAM_TOKENS = 6000


class Stream(threading.Thread):
    """One completion that goes on until it is told to stop; the moments of its tokens."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.server, self.number, self.moments, self.is_over = server, number, [], threading.Event()

    def run(self):
        connection = http.client.HTTPConnection(self.server.address.removeprefix("http://"), timeout=600)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": f"{self.number} Once upon a time", "max_tokens": STREAM_TOKENS,
                                                                  "ignore_eos": True, "stream": True, "temperature": 0}),
                           {"content-type": "application/json"})
        for line in connection.getresponse():
            if line.startswith(b"data: {"):
                self.moments.append(time.perf_counter())
            if self.is_over.is_set():
                break
        connection.close()

    def gaps(self, begin, end):
        moments = [moment for moment in self.moments if begin <= moment <= end]
        return [b - a for a, b in zip(moments, moments[1:])]


def beside(server, prompt, num_streams):
    streams = [Stream(server, number) for number in range(num_streams)]
    for stream in streams:
        stream.start()
    while min(len(stream.moments) for stream in streams) < 100:
        time.sleep(0.05)
    began = time.perf_counter()
    seconds, _, _ = ask(server, "/v1/completions", {"prompt": prompt, "max_tokens": 1, "ignore_eos": True})
    ended = time.perf_counter()
    for stream in streams:
        stream.is_over.set()
        stream.join()
    alone = [gap for stream in streams for gap in stream.gaps(0, began)[20:]]
    during = [gap for stream in streams for gap in stream.gaps(began, ended)]
    return seconds, statistics.median(alone), sorted(during)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompt-tokens", type=int, default=7800)
    parser.add_argument("--streams", type=int, default=4)
    arguments = parser.parse_args()
    print("target  prompt alone  beside  streams alone  median, p99, largest gap beside")
    for target in ("200", "0"):
        with Server("--max-model-len", "8192", "--target-itl-ms", target, "--no-enable-prefix-caching") as server:
            prompt = prompt_of(server, arguments.prompt_tokens, 0)
            alone, _, _ = ask(server, "/v1/completions", {"prompt": prompt, "max_tokens": 1, "ignore_eos": True})
            seconds, before, gaps = beside(server, prompt, arguments.streams)
            print(f"{target:>6}  {alone:10.1f} s  {seconds:4.1f} s  {1000 * before:10.0f} ms  {1000 * statistics.median(gaps):.0f}, "
                  f"{1000 * gaps[int(0.99 * len(gaps))]:.0f}, {1000 * gaps[-1]:.0f} ms")


if __name__ == "__main__":
    main()
