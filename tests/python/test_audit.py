"""Who changed what by HTTP stands in the log."""

import base64
import json
import urllib.error
import urllib.request

import pytest

from test_process import broker, pytestmark  # noqa: F401 - a fixture and a mark


def call(one, verb, path, body=None, user="guest", password="guest"):
    request = urllib.request.Request(f"http://{one.host}:{one.http_port}/api{path}", method=verb, data=None if body is None else json.dumps(body).encode())
    request.add_header("Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode())
    with urllib.request.urlopen(request, timeout=30) as reply:
        return reply.status


def test_changes_are_in_the_log_with_who_asked_and_looks_are_not(broker):  # noqa: F811
    one = broker().start()
    assert call(one, "PUT", "/users/jane", {"password": "s3cret-of-jane", "tags": "management"}) == 201
    assert call(one, "GET", "/users") == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        call(one, "DELETE", "/users/guest", user="jane", password="s3cret-of-jane")
    assert refused.value.code == 401
    assert call(one, "PUT", "/queues/%2F/q", {}) == 201
    assert call(one, "GET", "/leveret/queues/%2F/q/messages?body=secret") == 200
    log = [line for line in one.log_text().splitlines() if "audit: " in line]
    assert len(log) == 4, log
    assert log[3].endswith(": GET /api/leveret/queues/%2F/q/messages")
    assert "[info] audit: user 'guest' from 127.0.0.1:" in log[0] and log[0].endswith(": PUT /api/users/jane")
    assert "[warning] audit: user 'jane' from 127.0.0.1:" in log[1] and log[1].endswith(": DELETE /api/users/guest was refused with 401")
    assert "s3cret-of-jane" not in one.log_text()
