"""Looking through a queue by the HTTP API without consuming: places, filters, what is held, and that nothing changes."""

import base64
import time
import urllib.request

import pytest

from conftest import connect
from api import Api, q
from test_management_objects import got, held, publish  # noqa: F401 - a fixture

pytestmark = pytest.mark.leveret_only("RabbitMQ has no such answers")


def browse(api, held, **asked):  # noqa: F811
    query = "&".join(f"{q(name.replace('__', '.'))}={q(str(value))}" for name, value in asked.items())
    answer = api.get(f"/leveret/queues/{held}/messages?{query}")
    assert answer.status == 200, answer
    return answer.json


def bodies(found):
    return [message["payload"] for message in found["messages"]]


def whole(api, held, path="messages", **asked):  # noqa: F811
    """All pages."""
    all, page = [], browse(api, held, **asked)
    while True:
        all += page["messages"]
        if page["next"] is None:
            return all
        page = browse(api, held, **{**asked, "from": page["next"]})


def test_browsing_changes_neither_order_nor_marks(api, vhost, held):  # noqa: F811
    for at in range(20):
        publish(api, vhost, payload=f"m{at}")
    before = api.get(f"/queues/{held}").json
    for _ in range(3):
        assert [message["payload"] for message in whole(api, held, count=7)] == [f"m{at}" for at in range(20)]
    after = api.get(f"/queues/{held}").json
    for name in ["messages_ready", "messages_unacknowledged", "consumers"]:
        assert after[name] == before[name], name
    messages = got(api, held, count=20).json
    assert [(message["payload"], message["redelivered"]) for message in messages] == [(f"m{at}", False) for at in range(20)]


def test_every_place_can_be_begun_at(api, vhost, held):  # noqa: F811
    for at in range(10):
        publish(api, vhost, payload=f"m{at}")
    # So that these two have not come in the same millisecond of the broker's clock.
    time.sleep(0.01)
    for at in range(10, 20):
        publish(api, vhost, payload=f"m{at}")
    assert bodies(browse(api, held, count=2)) == ["m0", "m1"]
    tail = browse(api, held, **{"from": "tail"}, count=2)
    assert (bodies(tail), tail["next"]) == (["m18", "m19"], None)
    page = browse(api, held, index=5, count=2)
    assert bodies(page) == ["m5", "m6"]
    assert bodies(browse(api, held, **{"from": page["next"]}, count=1)) == ["m7"]
    assert bodies(browse(api, held, before=page["messages"][0]["position"], count=2)) == ["m3", "m4"]
    assert bodies(browse(api, held, before=browse(api, held)["messages"][0]["position"], count=2)) == []
    middle = browse(api, held, index=10, count=1)["messages"][0]["received_at"]
    assert bodies(browse(api, held, time=middle, count=1)) == ["m10"]
    assert bodies(browse(api, held, time="1h", count=1)) == ["m0"]
    assert bodies(browse(api, held, time="2100-01-01T00:00:00Z")) == []
    assert bodies(browse(api, held, index=20)) == []
    for wrong in ["from=zork", "index=x", "time=soon", "count=x", "state=zork", "body=(&use_regex=true"]:
        assert api.get(f"/leveret/queues/{held}/messages?{wrong}").status == 400, wrong


def test_messages_that_somebody_holds_are_shown_as_such(api, vhost, held):  # noqa: F811
    for at in range(4):
        publish(api, vhost, payload=f"m{at}")
    channel = connect(virtual_host=vhost).channel()
    tags = [channel.basic_get("q")[0].delivery_tag for _ in range(2)]
    states = [(message["payload"], message["state"], message["redelivered"]) for message in browse(api, held)["messages"]]
    assert states == [("m0", "unacked", False), ("m1", "unacked", False), ("m2", "ready", False), ("m3", "ready", False)]
    assert bodies(browse(api, held, state="unacked")) == ["m0", "m1"]
    channel.basic_reject(tags[0], requeue=True)
    channel.basic_ack(tags[1])
    channel.queue_declare("q", passive=True)
    states = [(message["payload"], message["state"], message["redelivered"]) for message in browse(api, held)["messages"]]
    assert states == [("m0", "ready", True), ("m2", "ready", False), ("m3", "ready", False)]


def test_messages_are_found_by_what_they_carry(api, vhost, held):  # noqa: F811
    publish(api, vhost, payload='{"order": 17}', headers={"tenant": "north", "n": 5}, content_type="application/json", message_id="id-1")
    publish(api, vhost, payload="A quick (brown) fox", headers={"tenant": "south"})
    publish(api, vhost, payload=base64.b64encode(b"\xff\xfe\x00fox").decode(), encoding="base64", type="raw")
    find = lambda **asked: [message["payload_bytes"] for message in browse(api, held, **asked)["messages"]]  # noqa: E731
    assert find(header__tenant="north") == [13]
    assert find(header__tenant="") == [13, 19]
    assert find(header__n="5") == [13]
    assert find(property__message_id="id-1", property__content_type="application/json") == [13]
    assert find(body="fox") == [19, 6]
    assert find(body="(brown)") == [19]
    assert find(body="^A .*x$", use_regex="true") == [19]
    assert find(text="NORTH") == [13]
    assert find(text="raw") == [6]
    assert find(routing_key="q", exchange="") == [13, 19, 6]
    assert find(routing_key="other") == []
    page = browse(api, held, header__tenant="south", scan=1)
    assert (page["messages"], page["scanned"]) == ([], 1)
    page = browse(api, held, header__tenant="south", scan=1, **{"from": page["next"]})
    assert [message["payload_bytes"] for message in page["messages"]] == [19]


def test_bodies_are_cut_and_can_be_had_whole(api, vhost, held):  # noqa: F811
    large = bytes(range(256)) * 4096
    assert publish(api, vhost, payload=base64.b64encode(large).decode(), encoding="base64").status == 200
    [message] = browse(api, held, truncate=10, encoding="base64")["messages"]
    assert (message["payload_bytes"], base64.b64decode(message["payload"])) == (len(large), large[:10])
    publish(api, vhost, payload="aé€")
    assert bodies(browse(api, held, index=1, truncate=5)) == ["aé"]
    edition = browse(api, held)["edition"]
    path = f"/leveret/queues/{held}/messages/{message['position']}/body"
    request = urllib.request.Request(f"{api.root}/api{path}?edition={edition}", headers={"authorization": f"Basic {api.credentials}"})
    with urllib.request.urlopen(request) as reply:
        assert (reply.headers["content-type"], reply.read()) == ("application/octet-stream", large)
        assert reply.headers["content-disposition"].startswith("attachment;")
    assert api.get(f"{path}?edition=of.another.queue").status == 410
    got(api, held)
    assert api.get(path).status == 410


def test_browsing_asks_for_the_permission_to_read(api, vhost, held, name):  # noqa: F811
    user = Api(f"{name}.browser", "x")
    assert api.put(f"/users/{q(name)}.browser", {"password": "x", "tags": "management"}).status == 201
    path = f"/leveret/queues/{held}/messages"
    assert user.get(path).status == 404
    for read, status in [("^other", 401), (".*", 200)]:
        assert api.put(f"/permissions/{q(vhost)}/{q(name)}.browser", {"configure": "", "write": "", "read": read}).status in (201, 204)
        assert user.get(path).status == status
    assert api.put(f"/users/{q(name)}.browser", {"password": "x", "tags": ""}).status == 204
    assert user.get(path).status == 401
    assert api.get(f"/leveret/queues/{q(vhost)}/none/messages").status == 404
    assert api.delete(f"/users/{q(name)}.browser").status == 204


def test_priorities_are_browsed_in_the_order_in_which_they_leave(api, vhost):  # noqa: F811
    assert api.put(f"/queues/{q(vhost)}/p", {"durable": True, "arguments": {"x-max-priority": 5}}).status == 201
    for at, priority in enumerate([1, 5, 0, 5]):
        publish(api, vhost, key="p", payload=f"m{at}", priority=priority)
    path = f"{q(vhost)}/p"
    assert [message["payload"] for message in whole(api, path, count=1)] == ["m1", "m3", "m0", "m2"]
    assert bodies(browse(api, path, **{"from": "tail"}, count=2)) == ["m0", "m2"]
