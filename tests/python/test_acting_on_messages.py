"""Moving, copying, deleting and replaying selected messages of a queue, and rehearsing that."""

import threading
import time

import pytest

from api import Api, q
from conftest import connect
from test_browsing import bodies, browse, whole
from test_management_objects import got, held, publish  # noqa: F401 - a fixture
from waiting import until

pytestmark = pytest.mark.leveret_only("RabbitMQ has no such answers")


def act(api, held, action, **asked):  # noqa: F811
    answer = api.post(f"/leveret/queues/{held}/messages", {"action": action, **asked})
    assert answer.status == 200, answer
    return answer.json


def to(queue):
    return {"exchange": "amq.default", "routing_key": queue}


@pytest.fixture
def other(api, vhost):  # noqa: F811
    assert api.put(f"/queues/{q(vhost)}/other", {"durable": True}).status == 201
    return f"{q(vhost)}/other"


def positions(api, held, *payloads):  # noqa: F811
    page = browse(api, held, count=1000)
    found = {message["payload"]: message["position"] for message in page["messages"]}
    return {"positions": [found[payload] for payload in payloads], "edition": page["edition"]}


def test_what_a_filter_selects_is_moved_and_the_rest_stays_as_it_is(api, vhost, held, other):  # noqa: F811
    for at in range(300):
        publish(api, vhost, payload=f"m{at}", headers={"tenant": ["north", "south", "east"][at % 3]})
    souths = [f"m{at}" for at in range(1, 300, 3)]
    rehearsed = act(api, held, "move", filter={"header.tenant": "south"}, dry_run=True, **to("other"))
    assert (rehearsed["selected"], rehearsed["next"]) == (100, None)
    assert [message["payload"] for message in rehearsed["sample"]] == souths[:10]
    assert (browse(api, other)["messages"], browse(api, held)["messages_ready"]) == ([], 300)
    moved = act(api, held, "move", filter={"header.tenant": "south"}, count=40, **to("other"))
    assert moved["moved"] == 40
    assert [message["payload"] for message in whole(api, other)] == souths[:40]
    moved = act(api, held, "move", filter={"header.tenant": "south"}, **{"from": moved["next"]}, **to("other"))
    assert (moved["moved"], moved["next"]) == (60, None)
    left = got(api, held, count=500).json
    assert [(message["payload"], message["redelivered"]) for message in left] == [(f"m{at}", False) for at in range(300) if at % 3 != 1]
    assert [message["payload"] for message in whole(api, other)] == souths


def test_named_positions_are_deleted_wherever_they_stand(api, vhost, held):  # noqa: F811
    for at in range(600):
        publish(api, vhost, payload=f"m{at}")
    named = positions(api, held, "m0", "m7", "m8", "m590")
    assert act(api, held, "delete", dry_run=True, **named)["selected"] == 4
    assert act(api, held, "delete", **named)["deleted"] == 4
    assert act(api, held, "delete", **named)["deleted"] == 0
    left = [message["payload"] for message in whole(api, held, count=500)]
    assert left == [f"m{at}" for at in range(600) if at not in (0, 7, 8, 590)]
    stale = api.post(f"/leveret/queues/{held}/messages", {"action": "delete", **named, "edition": "1.2"})
    assert (stale.status, stale.json["error"]) == (412, "precondition_failed")


def test_copies_go_on_from_a_cursor_and_nothing_is_touched(api, vhost, held, other):  # noqa: F811
    for at in range(250):
        publish(api, vhost, payload=f"m{at}")
    place, copied = {}, 0
    while place is not None:
        answer = act(api, held, "copy", count=100, **place, **to("other"))
        copied += answer["moved"]
        place = {"from": answer["next"]} if answer["next"] else None
    assert copied == 250
    every = [f"m{at}" for at in range(250)]
    assert [message["payload"] for message in whole(api, other, count=500)] == every
    messages = got(api, held, count=500).json
    assert [(message["payload"], message["redelivered"]) for message in messages] == [(payload, False) for payload in every]


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 3}])
def test_a_queue_copied_to_itself_is_copied_once(api, vhost, arguments):  # noqa: F811
    assert api.put(f"/queues/{q(vhost)}/own", {"durable": True, "arguments": arguments}).status == 201
    for at in range(250):
        publish(api, vhost, key="own", payload=f"m{at}", priority=at % 3)
    time.sleep(0.01)
    own, copied, place = f"{q(vhost)}/own", 0, {}
    while True:
        answer = act(api, own, "copy", count=100, **place, **to("own"))
        copied += answer["moved"]
        if not answer["next"]:
            break
        place = {"from": answer["next"], "end": answer["end"]}
        time.sleep(0.01)
    assert copied == 250
    assert len(whole(api, own, count=1000)) == 500


def test_dead_letters_are_selected_by_where_they_died_and_replayed(api, vhost, held, other):  # noqa: F811
    for name in ["a", "b"]:
        assert api.put(f"/queues/{q(vhost)}/{name}", {"durable": True, "arguments": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}}).status == 201
        publish(api, vhost, key=name, payload=f"from {name}")
        assert len(got(api, f"{q(vhost)}/{name}", ackmode="reject_requeue_false").json) == 1
    publish(api, vhost, payload="never died")
    until(lambda: len(bodies(browse(api, held))) == 3)
    answer = act(api, held, "move", origin=True, filter={"header.x-death.0.queue": "a"})
    assert (answer["moved"], answer["without_origin"]) == (1, 0)
    assert bodies(browse(api, f"{q(vhost)}/a")) == ["from a"]
    answer = act(api, held, "move", origin=True)
    assert (answer["moved"], answer["without_origin"]) == (1, 1)
    assert bodies(browse(api, held)) == ["never died"]


def test_a_consumer_and_a_mover_share_the_messages_and_none_is_lost_or_twice(api, vhost, held, other):  # noqa: F811
    for at in range(600):
        publish(api, vhost, payload=f"m{at}")
    taken = []
    channel = connect(virtual_host=vhost).channel()
    channel.basic_qos(prefetch_count=5)

    def consume():
        for method, _, body in channel.consume("q", inactivity_timeout=1):
            if method is None:
                break
            taken.append((body.decode(), method.redelivered))
            channel.basic_ack(method.delivery_tag)

    consumer = threading.Thread(target=consume)
    consumer.start()
    moved = 0
    while consumer.is_alive():
        moved += act(api, held, "move", count=50, **to("other"))["moved"]
        if browse(api, held)["messages_ready"] == 0:
            break
    consumer.join()
    there = [message["payload"] for message in whole(api, other, count=1000)]
    assert len(there) == moved
    assert sorted(there + [body for body, _ in taken]) == sorted(f"m{at}" for at in range(600))
    assert not any(redelivered for _, redelivered in taken)


def test_acting_asks_for_the_permissions_of_reading_and_of_publishing(api, vhost, held, other, name):  # noqa: F811
    user = Api(f"{name}.actor", "x")
    assert api.put(f"/users/{q(name)}.actor", {"password": "x", "tags": "management"}).status == 201
    publish(api, vhost)
    path = f"/leveret/queues/{held}/messages"
    move, delete = {"action": "move", **to("other")}, {"action": "delete"}
    assert user.post(path, delete).status == 404
    for write, read, statuses in [(".*", "^no", (401, 401)), ("^no", ".*", (401, 200))]:
        assert api.put(f"/permissions/{q(vhost)}/{q(name)}.actor", {"configure": "", "write": write, "read": read}).status in (201, 204)
        before = browse(api, held)["messages_ready"]
        assert user.post(path, move).status == statuses[0]
        assert browse(api, held)["messages_ready"] == before
        assert user.post(path, delete).status == statuses[1]
    assert browse(api, held)["messages"] == []
    assert api.delete(f"/users/{q(name)}.actor").status == 204


def test_what_cannot_be_meant_is_refused(api, vhost, held):  # noqa: F811
    path = f"/leveret/queues/{held}/messages"
    for wrong in [
        {},
        {"action": "zork"},
        {"action": "move"},
        {"action": "delete", "filter": {"zork": "1"}},
        {"action": "delete", "positions": ["1"]},
        {"action": "delete", "from": "zork"},
        {"action": "move", "exchange": "", "routing_key": "k" * 256},
    ]:
        assert api.post(path, wrong).status == 400, wrong
    publish(api, vhost)
    missing = api.post(path, {"action": "move", "exchange": "no.such", "routing_key": ""})
    assert missing.status == 404
    assert len(browse(api, held)["messages"]) == 1
