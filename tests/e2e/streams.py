"""Reading server-sent events, whole or cut short, and the metrics page."""
import http.client
import json
import re
import urllib.parse


def events(body):
    """The JSON documents of a stream's body, and whether [DONE] came last."""
    documents, done = [], False
    for block in body.decode().split("\n\n"):
        for line in block.splitlines():
            if line.startswith(":") or not line:
                continue
            assert line.startswith("data: "), line
            data = line[len("data: "):]
            assert not done, "data after [DONE]"
            if data == "[DONE]":
                done = True
            else:
                documents.append(json.loads(data))
    return documents, done


def joined(documents, choice=0, kind="chat"):
    parts = []
    for document in documents:
        for entry in document.get("choices", []):
            if entry["index"] != choice:
                continue
            parts.append(entry["delta"].get("content") or "" if kind == "chat" else entry["text"])
    return "".join(parts)


def open_stream(address, path, body):
    """A connection whose answer has begun; close() it to leave."""
    target = urllib.parse.urlparse(address)
    connection = http.client.HTTPConnection(target.hostname, target.port, timeout=120)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    return connection, connection.getresponse()


def metric(server, name):
    """The sum of a metric's samples."""
    page = server.get("/metrics").body.decode()
    values = re.findall(r"^" + re.escape(name) + r"(?:\{[^}]*\})? (\S+)$", page, re.MULTILINE)
    assert values, f"no metric {name}"
    return sum(float(value) for value in values)
