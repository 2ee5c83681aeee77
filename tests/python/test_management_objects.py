"""Changing objects by the HTTP API, publishing and getting."""

import base64
import time

import pytest

from api import Api, q

ACCESS_REFUSED = {"error": "not_authorised", "reason": "Access refused."}


@pytest.fixture
def held(api, vhost):
    """The path of a durable queue called `q`."""
    assert api.put(f"/queues/{q(vhost)}/q", {"durable": True}).status == 201
    return f"{q(vhost)}/q"


def publish(api, vhost, payload="hi", exchange="amq.default", key="q", encoding="string", **properties):
    return api.post(f"/exchanges/{q(vhost)}/{exchange}/publish", {"properties": properties, "routing_key": key, "payload": payload, "payload_encoding": encoding})


def got(api, held, count=1, ackmode="ack_requeue_false", encoding="auto", **more):
    return api.post(f"/queues/{held}/get", {"count": count, "ackmode": ackmode, "encoding": encoding, **more})


def reason(answer, status):
    assert answer.status == status, answer
    return answer.json["reason"]


def test_queues_are_declared_and_deleted(api, vhost):
    path = f"/queues/{q(vhost)}/a%2Fb"
    asked = {"durable": True, "auto_delete": False, "arguments": {"x-max-length": 5, "x-overflow": "reject-publish"}}
    assert [api.put(path, asked).status, api.put(path, asked).status] == [201, 204]
    found = api.get(path).json
    assert (found["name"], found["durable"]) == ("a/b", True)
    assert found["arguments"].items() >= asked["arguments"].items()
    assert "inequivalent arg 'durable' for queue 'a/b'" in reason(api.put(path, {"durable": False}), 400)
    assert reason(api.put(f"{path}2", {"durable": "yes"}), 400) == ["not_boolean", "yes"]
    assert "invalid arg 'x-max-length' for queue 'a/b3'" in reason(api.put(f"{path}3", {"durable": True, "arguments": {"x-max-length": "z"}}), 400)
    reserved = api.put(f"/queues/{q(vhost)}/amq.q", {"durable": True})
    assert (reserved.status, reserved.json) == (401, ACCESS_REFUSED)
    nowhere = api.put("/queues/nope.vhost/q", {"durable": True})
    assert (nowhere.status, nowhere.json) == (404, {"error": "not_found", "reason": "vhost_not_found"})
    assert [api.delete(path).status, api.delete(path).status] == [204, 404]


def test_a_queue_in_use_stays_if_that_is_asked(api, vhost, held):
    assert publish(api, vhost).json == {"routed": True}
    assert "not empty" in reason(api.delete(f"/queues/{held}?if-empty=true"), 400)
    assert api.delete(f"/queues/{held}/contents").status == 204
    assert api.delete(f"/queues/{held}?if-empty=true&if-unused=true").status == 204
    assert api.delete(f"/queues/{held}/contents").status == 404


def test_exchanges_are_declared_and_deleted(api, vhost):
    path = f"/exchanges/{q(vhost)}/x"
    assert [api.put(path, {"type": "topic", "durable": True}).status, api.put(path, {"type": "topic", "durable": True}).status] == [201, 204]
    found = api.get(path).json
    assert (found["type"], found["durable"], found["auto_delete"], found["internal"], found["arguments"]) == ("topic", True, False, False, {})
    assert "inequivalent arg 'type' for exchange 'x'" in reason(api.put(path, {"type": "direct", "durable": True}), 400)
    assert "exchange type 'nope'" in reason(api.put(f"{path}2", {"type": "nope"}), 400)
    for system in ["amq.direct", "amq.default"]:
        answer = api.delete(f"/exchanges/{q(vhost)}/{system}")
        assert (answer.status, answer.json) == (401, ACCESS_REFUSED)
    assert [api.delete(path).status, api.delete(path).status] == [204, 404]


def test_bindings_are_made_and_deleted(api, vhost, held):
    api.put(f"/exchanges/{q(vhost)}/x", {"type": "topic", "durable": True})
    path = f"/bindings/{q(vhost)}/e/x/q/q"
    made = api.post(path, {"routing_key": "a/b~ c", "arguments": {}})
    assert (made.status, made.headers["location"]) == (201, "q/a%252Fb%257E%2Bc")
    assert api.post(path, {}).headers["location"] == "q/~"
    assert api.post(path, {"routing_key": "k", "arguments": {"n": 1}}).status == 201
    rows = api.get(path).json
    assert [(row["routing_key"], row["arguments"]) for row in rows] == [("", {}), ("a/b~ c", {}), ("k", {"n": 1})]
    assert "in use" in reason(api.delete(f"/exchanges/{q(vhost)}/x?if-unused=true"), 400)
    for row in rows:
        one = f"{path}/{q(row['properties_key'])}"
        assert [api.delete(one).status, api.delete(one).status] == [204, 404]
    assert api.get(path).json == []
    assert reason(api.post(f"/bindings/{q(vhost)}/e/x/q/nope", {}), 404) == f"no queue 'nope' in vhost '{vhost}'"
    assert api.post(f"/bindings/{q(vhost)}/e/x/e/amq.fanout", {"routing_key": "r"}).headers["location"] == "amq.fanout/r"
    refused = api.post(f"/bindings/{q(vhost)}/e/amq.default/q/q", {"routing_key": "r"})
    assert (refused.status, refused.json) == (401, ACCESS_REFUSED)


def test_the_default_exchange_may_be_named_by_nothing(api, vhost, held):
    """As clients name it that encode the exchange's own name: nothing between two slashes."""
    at = f"/exchanges/{q(vhost)}/"
    assert publish(api, vhost, exchange="").json == {"routed": True}
    assert api.get(f"{at}/").json["name"] == ""
    assert {one["name"] for one in api.get(at).json} > {"", "amq.direct"}
    by_name = {"source": "", "vhost": vhost, "destination": "q", "destination_type": "queue", "routing_key": "q", "arguments": {}, "properties_key": "q"}
    assert api.get(f"{at}/bindings/source").json == [by_name]
    assert api.get(f"{at}/bindings/destination").json == []
    between = f"/bindings/{q(vhost)}/e//q/q"
    assert (api.get(between).json, api.get(f"{between}/q").json) == ([by_name], by_name)
    refused = [api.post(between, {}), api.post(f"{between}2", {}), api.delete(f"{between}/q"), api.put(f"{at}/", {}), api.delete(f"{at}/")]
    assert [(one.status, one.json) for one in refused] == [(401, ACCESS_REFUSED)] * 5
    assert [api.get(path).status for path in [f"/queues/{q(vhost)}//", "/queues//q", "/users//permissions", "/nodes//"]] == [404] * 4


def test_what_does_not_exist_has_no_bindings(api, vhost):
    """Only virtual hosts are looked for, and the default exchange leads to whatever is named."""
    by_name = {"source": "", "vhost": vhost, "destination": "nope", "destination_type": "queue", "routing_key": "nope", "arguments": {}, "properties_key": "nope"}
    for at, default in [(q(vhost), [by_name]), ("nope.vhost", [])]:
        assert api.get(f"/queues/{at}/nope/bindings").json == default
        assert api.get(f"/bindings/{at}/e//q/nope").json == default
        for path in ["exchanges/{}/nope/bindings/source", "exchanges/{}/nope/bindings/destination", "bindings/{}/e/amq.topic/q/nope", "bindings/{}/e/nope/e/nope"]:
            found = api.get("/" + path.format(at))
            assert (found.status, found.json) == (200, []), path
        one = [f"/bindings/{at}/e/{path}" for path in ["/q/nope/nope", "amq.topic/q/nope/k", "nope/e/nope/k"]]
        assert [ask(path).status for path in one for ask in [api.get, api.delete]] == [404] * 6
    assert api.get("/bindings/nope.vhost").status == 404


def test_a_virtual_host_that_is_missing_is_named_where_something_is_to_be_changed(api, vhost):
    missing = (404, {"error": "not_found", "reason": "vhost_not_found"})
    at = "nope.vhost"
    for answer in [publish(api, at), api.post(f"/definitions/{at}", {}), api.post(f"/bindings/{at}/e/x/q/q", {}), api.put(f"/policies/{at}/p", {"pattern": "", "definition": {"max-length": 1}})]:
        assert (answer.status, answer.json) == missing
    exported = api.get(f"/definitions/{at}")
    assert (exported.status, exported.json) == (400, {"error": "bad_request", "reason": "vhost_not_found"})


def test_what_is_published_is_got_as_it_was(api, vhost, held):
    properties = {"delivery_mode": 2, "headers": {"a": 1, "b": "c"}, "content_type": "text/plain", "timestamp": 5, "priority": 3, "type": "t"}
    assert publish(api, vhost, **properties).json == {"routed": True}
    assert publish(api, vhost, base64.b64encode(b"\xff\x00").decode(), encoding="base64").json == {"routed": True}
    assert publish(api, vhost, key="nope").json == {"routed": False}
    first, second = got(api, held, count=5, ackmode="ack_requeue_true").json
    assert first == {"payload_bytes": 2, "redelivered": False, "exchange": "", "routing_key": "q", "message_count": 1, "properties": properties, "payload": "hi", "payload_encoding": "string"}
    assert (second["payload"], second["payload_encoding"], second["properties"], second["message_count"]) == ("/wA=", "base64", [], 0)
    again, = got(api, held, encoding="base64", truncate=1).json
    assert (again["redelivered"], again["payload"], again["payload_encoding"], again["payload_bytes"]) == (True, "aA==", "base64", 2)
    assert len(got(api, held, count="7", ackmode="reject_requeue_true").json) == 1
    assert len(got(api, held, ackmode="reject_requeue_false").json) == 1
    assert got(api, held).json == []


def test_a_message_for_several_queues_is_confirmed_once_all_have_it(api, vhost, held):
    for at in range(4):
        assert api.put(f"/queues/{q(vhost)}/q{at}", {"durable": True}).status == 201
        assert api.post(f"/bindings/{q(vhost)}/e/amq.fanout/q/q{at}", {"routing_key": "", "arguments": {}}).status == 201
    for _ in range(5):
        assert publish(api, vhost, exchange="amq.fanout").json == {"routed": True}
    assert got(api, f"{q(vhost)}/q3", count=9).json[0]["message_count"] == 4


def test_wrong_publishes_and_gets(api, vhost, held):
    answer = api.post(f"/exchanges/{q(vhost)}/amq.default/publish", {"routing_key": "x"})
    assert reason(answer, 400) == "[{key_missing,properties},\n {key_missing,payload},\n {key_missing,payload_encoding}]"
    missing = publish(api, vhost, exchange="nope")
    assert (missing.status, missing.json) == (404, {"error": "not_found", "reason": "exchange_not_found"})
    assert publish(api, vhost, zork=1).json == {"routed": True}
    assert reason(publish(api, vhost, delivery_mode="x"), 400) == ["not_int", "delivery_mode"]
    assert reason(publish(api, vhost, "!!", encoding="base64"), 400) == ["not_base64", "!!"]
    assert reason(publish(api, vhost, encoding="x"), 400) == ["unsupported_encoding", "x"]
    assert reason(publish(api, vhost, 5), 400) == "payload_not_string"
    assert reason(publish(api, vhost, expiration="soon"), 400).startswith("406 PRECONDITION_FAILED - invalid expiration 'soon'")
    assert reason(publish(api, vhost, user_id="jane"), 400) == "406 PRECONDITION_FAILED - user_id property set to 'jane' but authenticated user was 'guest'"
    assert publish(api, vhost).json == {"routed": True}
    assert reason(got(api, held, encoding="x"), 400) == "Unsupported encoding. Please use auto or base64."
    assert reason(got(api, held, ackmode="zz"), 400) == "Invalid ackmode value: zz. Valid values are: ack_requeue_true, ack_requeue_false, reject_requeue_true, reject_requeue_false"
    assert reason(api.post(f"/queues/{held}/get", {"count": 1, "encoding": "auto"}), 400) == "[{key_missing,ackmode}]"
    for count in ("x", "", "1.0", " 1", None, True, []):
        assert reason(got(api, held, count=count), 400) == ["not_integer", count]
    for wrong in ({}, {"ackmode": "zz"}, {"count": "x"}):
        missing = got(api, f"{q(vhost)}/nope", **wrong)
        assert (missing.status, missing.json) == (404, {"error": "not_found", "reason": "queue_not_found"})


@pytest.mark.parametrize(("count", "expected"), [(-1, 3), ("-1", 3), (-1.5, 3), (-(10**20), 3), (10**20, 3), (1.9, 1), ("+1", 1), (-0.5, 0), (0, 0)])
def test_so_many_messages_are_got(api, vhost, held, count, expected):
    for _ in range(3):
        publish(api, vhost)
    assert len(got(api, held, count=count, ackmode="ack_requeue_true").json) == expected


@pytest.mark.leveret_only("RabbitMQ fails with 500")
def test_no_message_is_cut_to_less_than_nothing(api, vhost, held):
    publish(api, vhost)
    assert reason(got(api, held, truncate=-1), 400) == ["not_integer", -1]


def test_a_refused_message_is_told(api, vhost):
    full = {"durable": True, "arguments": {"x-max-length": 0, "x-overflow": "reject-publish"}}
    assert api.put(f"/queues/{q(vhost)}/full", full).status == 201
    assert publish(api, vhost, key="full").status == 400


def test_permissions_hold_as_over_amqp(api, vhost, name):
    user = f"{name}.user"
    assert api.put(f"/users/{user}", {"password": "p", "tags": "management"}).status == 201
    assert api.put(f"/permissions/{q(vhost)}/{user}", {"configure": "^mine", "write": "^mine", "read": "^mine"}).status == 201
    theirs = Api(user, "p")
    assert theirs.put(f"/queues/{q(vhost)}/mine", {"durable": True}).status == 201
    assert api.put(f"/queues/{q(vhost)}/other", {"durable": True}).status == 201
    for refused in [
        theirs.put(f"/queues/{q(vhost)}/another", {"durable": True}),
        theirs.delete(f"/queues/{q(vhost)}/other"),
        theirs.delete(f"/queues/{q(vhost)}/other/contents"),
        theirs.put(f"/exchanges/{q(vhost)}/x", {"type": "fanout"}),
        theirs.post(f"/bindings/{q(vhost)}/e/amq.topic/q/mine", {}),
    ]:
        assert (refused.status, refused.json) == (401, ACCESS_REFUSED)
    assert reason(got(theirs, f"{q(vhost)}/other"), 401) == f"ACCESS_REFUSED - read access to queue 'other' in vhost '{vhost}' refused for user '{user}'"
    assert reason(publish(theirs, vhost, key="mine"), 400) == f"403 ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '{vhost}' refused for user '{user}'"
    assert got(theirs, f"{q(vhost)}/mine").json == []
    assert api.delete(f"/users/{user}").status == 204


def test_messages_move_to_another_queue_or_back_to_where_they_came_from(api, vhost, held):
    def move(count, **asked):
        answer = api.post(f"/leveret/queues/{held}/move", {"count": count, **asked})
        assert answer.status == 200, answer
        return {name: answer.json[name] for name in ["moved", "refused", "without_origin", "left"] if answer.json[name]}

    def bodies(queue):
        return [message["payload"] for message in got(api, f"{q(vhost)}/{queue}", count=500, ackmode="ack_requeue_true").json]

    assert api.put(f"/queues/{q(vhost)}/other", {"durable": True}).status == 201
    assert api.put(f"/queues/{q(vhost)}/work", {"durable": True, "arguments": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}}).status == 201
    for at in range(250):
        publish(api, vhost, payload=f"m{at}")
    assert move(3, exchange="amq.default", routing_key="nowhere") == {"refused": 3, "left": 247}
    assert move(2, exchange="amq.default", routing_key="other", copy=True) == {"moved": 2, "left": 248}
    assert move(10, origin=True) == {"without_origin": 10, "left": 240}
    assert move(249, exchange="amq.default", routing_key="other") == {"moved": 249, "left": 1}
    assert bodies("other") == ["m0", "m1"] + [f"m{at}" for at in range(249)]
    assert bodies("q") == ["m249"]
    assert got(api, held).json[0]["payload"] == "m249"
    publish(api, vhost, payload="dead", key="work")
    assert len(got(api, f"{q(vhost)}/work", ackmode="reject_requeue_false").json) == 1
    deadline = time.monotonic() + 10
    while bodies("q") != ["dead"]:
        assert time.monotonic() < deadline, "the rejected message did not get to its dead-letter queue"
    assert move(5, origin=True) == {"moved": 1}
    assert bodies("work") == ["dead"]


def test_moving_asks_for_the_permissions_of_consuming_and_publishing(api, vhost, held, name):
    user = Api(f"{name}.mover", "x")
    assert api.put(f"/users/{q(name)}.mover", {"password": "x", "tags": "management"}).status == 201
    publish(api, vhost)
    asked = {"count": 1, "exchange": "amq.default", "routing_key": "q"}
    for permissions, status in [({"configure": "", "write": ".*", "read": ""}, 401), ({"configure": "", "write": "", "read": ".*"}, 401), ({"configure": "", "write": ".*", "read": ".*"}, 200)]:
        assert api.put(f"/permissions/{q(vhost)}/{q(name)}.mover", permissions).status in (201, 204)
        assert user.post(f"/leveret/queues/{held}/move", asked).status == status
    assert api.delete(f"/users/{q(name)}.mover").status == 204


@pytest.mark.leveret_only("RabbitMQ finds no key with a space or a tilde")
def test_the_key_of_a_binding_stands_in_addresses_as_the_list_has_it(api, queue):
    for routing_key in ("k.#", "a b~/c", "plain"):
        between = f"/bindings/%2F/e/amq.topic/q/{queue}"
        assert api.post(between, {"routing_key": routing_key}).status == 201
        key, = [row["properties_key"] for row in api.get(between).json]
        assert api.get(f"{between}/{key}").json["routing_key"] == routing_key
        assert api.delete(f"{between}/{key}").status == 204
        assert api.get(between).json == []
