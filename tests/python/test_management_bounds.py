"""What one client of the HTTP API may cost: bodies that are only announced, guessed passwords, answers that nobody reads."""

import base64
import gzip
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pika
import pytest

from api import Api
from test_process import broker  # noqa: F401 - a fixture

pytestmark = pytest.mark.leveret_only("RabbitMQ waits for bodies that are too large, looks at every password at once, and keeps answers that nobody reads")
GUEST = "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\nHost: x\r\n"


def say(one, text: bytes, seconds=10) -> bytes:
    """All that comes back until the other end closes."""
    with socket.create_connection(("127.0.0.1", one.http_port), timeout=seconds) as line:
        line.sendall(text)
        told = b""
        while part := line.recv(65536):
            told += part
        return told


@pytest.fixture
def one(broker):  # noqa: F811
    return broker().start()


def test_a_body_that_is_too_large_is_refused_when_it_is_announced(one):
    for more in ["", "Expect: 100-continue\r\n"]:
        told = say(one, f"PUT /api/queues/%2F/q HTTP/1.1\r\n{GUEST}{more}Content-Length: 999999999999\r\n\r\n{{}}".encode())
        head, body = told.split(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ") and json.loads(body) == {"error": "bad_request", "reason": "Exceeded HTTP request body size limit"}


@pytest.mark.parametrize("lengths", ["Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"])
def test_a_body_with_two_lengths_ends_the_connection(one, lengths):
    """Nobody who counts by the other length gets a request through behind it."""
    body = '5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\nGET /api/whoami HTTP/1.1\r\n' + GUEST + "\r\n"
    told = say(one, f"PUT /api/vhosts/two HTTP/1.1\r\n{GUEST}{lengths}\r\n{body}".encode())
    assert told.count(b"HTTP/1.1 ") == 1
    assert say(one, f"PUT /api/vhosts/two HTTP/1.1\r\n{GUEST}Content-Length: 5\r\nContent-Length: 6\r\n\r\n{{}}".encode()).startswith(b"HTTP/1.1 400 ")


def ask(one, credentials, path="/api/whoami"):
    header = "Basic " + base64.b64encode(credentials.encode()).decode()
    request = urllib.request.Request(f"http://127.0.0.1:{one.http_port}{path}", headers={"Authorization": header})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


def test_passwords_are_not_guessed_quickly_and_nobody_else_waits(one):
    assert ask(one, "guest:guest") == 200
    api = Api()
    api.root = f"http://127.0.0.1:{one.http_port}"
    assert api.put("/users/jane", {"password": "p", "tags": "management"}).status == 201
    answers, over = [], threading.Event()

    def guess(number):
        at = 0
        while not over.is_set():
            at += 1
            answers.append(ask(one, f"guest:wrong-{number}-{at}"))

    guessers = [threading.Thread(target=guess, args=(number,)) for number in range(8)]
    began = time.monotonic()
    for guesser in guessers:
        guesser.start()
    # Until some have been looked at late: the first ones are free.
    while sum(code == 401 for code in answers) < 24 and time.monotonic() < began + 60:
        asked = time.monotonic()
        # Who was right lately, and another user at the same address.
        assert (ask(one, "guest:guest"), ask(one, "jane:p")) == (200, 200)
        assert time.monotonic() - asked < 2
    took = time.monotonic() - began
    over.set()
    for guesser in guessers:
        guesser.join()
    assert set(answers) <= {401, 429}
    # Ten free ones and one for each guesser that was let through with them, then two a second.
    assert took > 1.5, took
    assert ask(one, "guest:guest") == 200


def test_passwords_are_refused_if_that_is_said(broker):  # noqa: F811
    one = broker({"management.disable_basic_auth": "true"}).start()
    api = Api()
    api.root = f"http://127.0.0.1:{one.http_port}"
    refused = (401, {"error": "not_authorised", "reason": "HTTP access denied: basic auth disabled"})
    for answer in [api.get("/whoami"), Api.get(_nobody(api.root), "/whoami"), api.put("/vhosts/no", {}), api("POST", "/api/login", b"username=guest&password=guest")]:
        assert (answer.status, answer.json) == refused
    assert api.get("/health/checks/is-in-service").status == 200


def _nobody(root):
    api = Api(user=None)
    api.root = root
    return api


def memory_of(one) -> int:
    """What the process has in memory and shares with none, in bytes."""
    status = Path(f"/proc/{one.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon:"))


def with_queues(one, count):
    """The API of a node with so many queues."""
    api = Api()
    api.root = f"http://127.0.0.1:{one.http_port}"
    queues = [{"name": f"q{at}", "vhost": "/", "durable": False, "auto_delete": False, "arguments": {}} for at in range(count)]
    assert api.post("/definitions", {"queues": queues}).status == 204
    return api


def unread(port, path, head=GUEST):
    """A connection whose client asks for something and does not read it."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(("127.0.0.1", port))
    line.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
    return line


def test_answers_that_nobody_reads_take_a_few_pieces_each_however_long_they_are(one):
    api = with_queues(one, 20_000)
    assert len(api.get("/queues").text) > 16_000_000
    before = memory_of(one)
    lines = []
    try:
        for at in range(30):
            path = "definitions" if at % 30 == 0 else ("queues", "bindings")[at % 2]
            lines.append(unread(one.http_port, f"/api/{path}"))
        # Probes need no room: once they are answered again and again, all that had room has been made.
        for _ in range(10):
            assert urllib.request.urlopen(f"http://127.0.0.1:{one.http_port}/api/health/checks/is-in-service", timeout=30).status == 200
            time.sleep(0.05)
        assert memory_of(one) - before < 40_000_000, (before, memory_of(one))
    finally:
        for line in lines:
            line.close()
    assert api.get("/whoami").status == 200


def fetch(api, path, forms="identity", **headers):
    """The head of a long answer, and its body as JSON."""
    headers |= {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q=", "Accept-Encoding": forms}
    with urllib.request.urlopen(urllib.request.Request(f"{api.root}/api{path}", headers=headers), timeout=30) as reply:
        assert reply.headers["transfer-encoding"] == "chunked" and reply.headers["content-type"] == "application/json"
        body = reply.read()
        if forms == "gzip":
            assert reply.headers["content-encoding"] == "gzip"
            body = gzip.decompress(body)
        return reply.headers, json.loads(body)


def test_a_long_list_comes_in_pieces_and_is_whole(one):
    api = with_queues(one, 2000)
    for forms in ("identity", "gzip"):
        assert sorted(queue["name"] for queue in fetch(api, "/queues", forms)[1]) == sorted(f"q{at}" for at in range(2000)), forms
    assert len(fetch(api, "/bindings")[1]) == 2000
    # What is sorted comes as a whole.
    assert [queue["name"] for queue in api.get("/queues?sort=name&sort_reverse=true&columns=name").json][:2] == ["q999", "q998"]


def test_long_lists_of_who_is_connected_come_in_pieces_and_are_whole(one):
    api = with_queues(one, 1)
    parameters = pika.ConnectionParameters("127.0.0.1", one.port, heartbeat=0)
    connections = [pika.BlockingConnection(parameters) for _ in range(250)]
    channels = [connections[0].channel() for _ in range(600)]
    for channel in channels:
        channel.basic_consume("q0", lambda *_: None, auto_ack=True)
    assert len({row["name"] for row in fetch(api, "/connections")[1]}) == 250
    assert sorted(row["number"] for row in fetch(api, "/channels")[1]) == list(range(1, 601))
    assert len({row["consumer_tag"] for row in fetch(api, "/consumers", "gzip")[1]}) == 600
    for connection in connections:
        connection.close()


def test_long_definitions_come_in_pieces_and_have_a_tag_of_their_own(one):
    api = with_queues(one, 4000)
    assert api.put("/exchanges/%2F/e", {"type": "fanout"}).status == 201
    for path, with_vhost in [("/definitions", True), ("/definitions/%2F", False)]:
        head, document = fetch(api, path)
        assert list(document) == sorted(document)
        assert sorted(queue["name"] for queue in document["queues"]) == sorted(f"q{at}" for at in range(4000))
        assert all(("vhost" in row) == with_vhost for row in document["queues"] + document["exchanges"])
        assert (document["bindings"], [row["name"] for row in document["exchanges"]]) == ([], ["e"])
        with pytest.raises(urllib.error.HTTPError) as known:
            fetch(api, path, **{"If-None-Match": head["etag"]})
        assert known.value.code == 304
        # It is the end of the document that differs.
        assert api.put("/queues/%2F/zz", {}).status == 201
        assert fetch(api, path, **{"If-None-Match": head["etag"]})[0]["etag"] != head["etag"]
        assert api.delete("/queues/%2F/zz").status == 204


def test_pages_of_metrics_that_nobody_reads_are_bounded(one):
    with_queues(one, 3000)
    page = f"http://127.0.0.1:{one.metrics_port}/metrics/per-object"
    size = len(urllib.request.urlopen(page, timeout=30).read())
    before = memory_of(one)
    lines = []
    try:
        for _ in range(60):
            lines.append(unread(one.metrics_port, "/metrics/per-object", "Host: x\r\n"))
        grown = []
        # Until nothing more is made.
        while len(grown) < 10 or max(grown[-10:]) > min(grown[-10:]) + size:
            grown.append(memory_of(one) - before)
            assert max(grown) < 30 * size, (grown, size)
            time.sleep(0.2)
    finally:
        for line in lines:
            line.close()
