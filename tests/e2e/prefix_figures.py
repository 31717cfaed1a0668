"""What the prefix cache is worth on this machine: TTFT of a 2000-token prompt with and without a hit, and the hit rate and TTFT of many
chats (conversations.py). Needs PAGODA_BIN and PAGODA_MODEL; prints a table. Not a test: times depend on the machine and what else it does.
"""
import argparse
import http.client
import json
import statistics
import time

from conversations import turns
from server import Server


def ask(server, path, body):
    """Seconds to the first token, the answer's text, and the usage."""
    connection = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=600)
    body = {"temperature": 0, "stream": True, "stream_options": {"include_usage": True}, **body}
    began = time.perf_counter()
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    first, text, usage = None, "", None
    for line in connection.getresponse():
        if not line.startswith(b"data: {"):
            continue
        document = json.loads(line[len(b"data: "):])
        usage = document.get("usage") or usage
        for choice in document["choices"]:
            piece = choice["delta"].get("content") if "delta" in choice else choice["text"]
            if piece and first is None:
                first = time.perf_counter() - began
            text += piece or ""
    connection.close()
    return first if first is not None else time.perf_counter() - began, text, usage


def prompt_of(server, num_tokens, number):
    ids = server.post("/tokenize", {"prompt": f"{number} " + "The river runs past the old stone bridge. " * 1000}).json()["tokens"]
    return ids[:num_tokens]


def time_to_first_token(server, num_tokens, rounds):
    cold, warm = [], []
    for number in range(rounds):
        prompt = prompt_of(server, num_tokens, number)
        for times in (cold, warm):
            seconds, _, usage = ask(server, "/v1/completions", {"prompt": prompt, "max_tokens": 2, "ignore_eos": True})
            times.append(seconds)
            expected = 0 if times is cold else num_tokens - 1
            assert abs(usage["prompt_tokens_details"]["cached_tokens"] - expected) < 32, usage
    return statistics.median(cold), statistics.median(warm)


def chats(server, num_sessions):
    times, prompt, hits = [], 0, 0
    for session in turns(seed=11, num_sessions=num_sessions):
        seconds, text, usage = ask(server, "/v1/chat/completions", {"messages": session.messages, "max_tokens": 24})
        session.messages.append({"role": "assistant", "content": text})
        times.append(seconds)
        prompt += usage["prompt_tokens"]
        hits += usage["prompt_tokens_details"]["cached_tokens"]
    return len(times), hits / prompt, statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompt-tokens", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=30)
    arguments = parser.parse_args()
    with Server() as server:
        cold, warm = time_to_first_token(server, arguments.prompt_tokens, arguments.rounds)
        print(f"TTFT of {arguments.prompt_tokens} tokens: {1000 * cold:.0f} ms, found {1000 * warm:.1f} ms, {cold / warm:.0f} times less")
    for flags in ((), ("--no-enable-prefix-caching",)):
        with Server(*flags) as server:
            count, rate, median = chats(server, arguments.sessions)
            print(f"{count} turns of {arguments.sessions} chats, {' '.join(flags) or 'default'}: hit rate {rate:.1%}, "
                  f"median TTFT {1000 * median:.0f} ms")


if __name__ == "__main__":
    main()
