"""The HTTP API and the web: its description, compression, pages of other sites."""

import gzip
import os
import urllib.error
import urllib.request

import pytest

from api import Api
from test_process import broker  # noqa: F401 - a fixture

pytestmark = pytest.mark.leveret_only("RabbitMQ has no description of its API, and lets pages of other sites change what they like")


EVIL = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}


# Answers that go on as long as somebody listens.
WITHOUT_END = {"/leveret/events", "/leveret/happenings", "/leveret/logs/follow"}


def test_the_api_describes_itself(api):
    document = api.get("/openapi.json").json
    assert document["openapi"].startswith("3.") and document["servers"] == [{"url": "/api"}]
    paths = document["paths"]
    put = paths["/queues/{vhost}/{name}"]["put"]
    assert [parameter["name"] for parameter in put["parameters"]] == ["vhost", "name"]
    assert set(put["requestBody"]["content"]["application/json"]["schema"]["properties"]) == {"durable", "auto_delete", "arguments"}
    # Whatever it names for reading answers.
    for path, verbs in paths.items():
        if "get" in verbs and "{" not in path and path not in WITHOUT_END:
            assert api.get(path).status == 200, path
    assert Api(user=None).get("/openapi.json").status == 401


class KeepRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def without_redirects(address: str):
    """The answer itself, also if it is a redirect."""
    try:
        return urllib.request.build_opener(KeepRedirects).open(address, timeout=10)
    except urllib.error.HTTPError as answer:
        return answer


def test_the_api_has_a_page_that_lists_its_operations(api):
    for root in ["", "/"]:
        moved = without_redirects(f"{api.root}/api{root}")
        assert (moved.status, moved.headers["location"]) == (301, "/api/index.html")
    with urllib.request.urlopen(f"{api.root}/api", timeout=10) as page:
        assert page.status == 200 and page.headers["content-type"].startswith("text/html")
        text = page.read().decode()
    for path in ["/api/queues/{vhost}/{name}", "/api/definitions", 'href="openapi.json"']:
        assert path in text, path


def test_long_answers_are_compressed_for_those_who_take_it(api):
    plain = api.get("/openapi.json")
    assert "content-encoding" not in {name.lower() for name in plain.headers}
    for address, credentials in [(f"{api.root}/api/openapi.json", True), (f"http://{os.environ['AMQP_HOST']}:{os.environ['METRICS_PORT']}/metrics", False)]:
        request = urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})
        if credentials:
            request.add_header("Authorization", f"Basic {api.credentials}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.headers["content-encoding"] == "gzip" and "accept-encoding" in answer.headers["vary"]
            packed = answer.read()
        text = gzip.decompress(packed).decode()
        assert len(packed) * 3 < len(text)
        assert not credentials or text == plain.text


def test_pages_of_other_sites_change_nothing(api):
    answer = api("PUT", "/api/vhosts/evil", {}, headers=EVIL)
    assert (answer.status, answer.json["error"]) == (403, "forbidden")
    assert api("POST", "/api/queues/%2F/x/get", b"{}", headers={"Origin": "null"}).status == 403
    assert api.get("/vhosts/evil").status == 404
    read = api("GET", "/api/whoami", headers=EVIL)
    assert read.status == 200 and not [name for name in read.headers if name.lower().startswith("access-control")]
    assert api("PUT", "/api/vhosts/own", {}, headers={"Origin": api.root}).status == 201
    assert api.delete("/vhosts/own", headers={"Origin": "https://front.example", "Sec-Fetch-Site": "same-origin"}).status == 204


def test_pages_that_are_allowed_by_name_use_the_api(broker, api):  # noqa: F811
    one = broker({"management.cors.allow_origins.1": "https://admin.example", "management.cors.max_age": "60"}).start()
    api.root = f"http://127.0.0.1:{one.http_port}"
    friend = {"Origin": "https://admin.example", "Sec-Fetch-Site": "cross-site"}
    asked = api("OPTIONS", "/api/vhosts/x", headers=friend | {"Access-Control-Request-Headers": "authorization,content-type"})
    shown = {name.lower(): value for name, value in asked.headers.items()}
    assert shown["access-control-allow-origin"] == "https://admin.example" and shown["access-control-allow-credentials"] == "true"
    assert shown["access-control-allow-headers"] == "authorization,content-type" and shown["access-control-max-age"] == "60"
    assert "PUT" in shown["access-control-allow-methods"]
    assert api("PUT", "/api/vhosts/x", {}, headers=friend).status == 201
    assert api("PUT", "/api/vhosts/y", {}, headers=EVIL).status == 403
    assert api("GET", "/api/whoami", headers=friend).headers["access-control-allow-origin"] == "https://admin.example"


def test_memory_and_logins_of_the_node(api):
    node = api.get("/nodes").json[0]["name"]
    memory = api.get(f"/nodes/{node}/memory").json["memory"]
    assert memory.pop("strategy") == "rss" and memory["code"] > 1_000_000 and memory["total"]["rss"] > memory["code"]
    total = memory.pop("total")["rss"]
    assert sum(memory.values()) <= total * 1.2
    assert api.get(f"/nodes/{node}/memory/relative").json["memory"]["total"] == 100
    assert api.get("/nodes/other/memory").status == 404
    Api(password="wrong").get("/whoami")
    by_protocol = {row["protocol"]: row for row in api.get(f"/auth/attempts/{node}").json}
    assert by_protocol["http"]["auth_attempts_failed"] >= 1
    assert api.delete(f"/auth/attempts/{node}").status == 204
    assert api.get(f"/auth/attempts/{node}").json == [{"protocol": "http", "auth_attempts": 1, "auth_attempts_failed": 0, "auth_attempts_succeeded": 1}]


def test_a_prefix_stands_before_the_api_and_the_pages(broker, api):  # noqa: F811
    one = broker({"management.path_prefix": "mq/"}).start()
    api.root = f"http://127.0.0.1:{one.http_port}"
    assert api.get("/whoami").status == 404
    api.root += "/mq"
    assert api.get("/whoami").status == 200
    assert api.get("/openapi.json").json["servers"] == [{"url": "/mq/api"}]
    assert api.put("/queues/%2F/a%2Fb", {"durable": True}).status == 201
    assert api.get("/queues/%2F/a%2Fb?columns=name").json == {"name": "a/b"}
