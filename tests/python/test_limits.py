"""Limits of users and virtual hosts, parameters, topic permissions, what is said about virtual hosts: RabbitMQ's words and codes."""

import os
import time
import urllib.request

import pika
import pytest

from api import Api
from conftest import connect


@pytest.fixture
def place(api, name):
    """A virtual host and a user of the same name who may do everything there."""
    assert api.put(f"/vhosts/{name}", {}).status == 201
    assert api.put(f"/users/{name}", {"password": "x", "tags": ""}).status == 201
    assert api.put(f"/permissions/{name}/{name}", {"configure": ".*", "write": ".*", "read": ".*"}).status == 201
    yield name
    api.delete(f"/vhosts/{name}/deletion/protection")
    assert api.delete(f"/vhosts/{name}").status == 204
    assert api.delete(f"/users/{name}").status == 204


def enter(place):
    return connect(virtual_host=place, credentials=pika.PlainCredentials(place, "x"))


def refusal(act):
    """What the broker says as it closes connection or channel."""
    with pytest.raises(Exception) as caught:
        act()
    error = caught.value
    while not hasattr(error, "reply_text"):
        error = error.args[0]
        if isinstance(error, str):
            code, text = error.split("(", 1)[1].split(") ", 1)
            return int(code), text.strip("'\"").removesuffix("\"').").replace("\\'", "'")
    return error.reply_code, error.reply_text


def test_a_virtual_host_has_no_more_queues_than_it_may(api, place):
    assert api.put(f"/vhost-limits/{place}/max-queues", {"value": 1}).status == 204
    assert api.get(f"/vhost-limits/{place}").json == [{"vhost": place, "value": {"max-queues": 1}}]
    with enter(place) as connection:
        connection.channel().queue_declare("a", durable=True)
        connection.channel().queue_declare("a", durable=True)
        text = f"PRECONDITION_FAILED - cannot declare queue 'b': queue limit in vhost '{place}' (1) is reached"
        assert refusal(lambda: connection.channel().queue_declare("b", durable=True)) == (406, text)
        assert api.delete(f"/vhost-limits/{place}/max-queues").status == 204
        connection.channel().queue_declare("b", durable=True)
    assert api.get(f"/vhost-limits/{place}").json == []


def test_what_delayed_exchanges_keep_counts_for_no_limit(api, place):
    assert api.put(f"/exchanges/{place}/later", {"type": "x-delayed-message", "arguments": {"x-delayed-type": "fanout"}}).status == 201
    assert api.put(f"/vhost-limits/{place}/max-queues", {"value": 1}).status == 204
    assert api.put(f"/queues/{place}/one", {}).status == 201
    assert api.put(f"/queues/{place}/two", {}).status == 400
    assert [queue["name"] for queue in api.get(f"/queues/{place}").json] == ["one"]


def test_users_and_virtual_hosts_have_no_more_connections_than_they_may(api, place):
    with enter(place):
        for kind, text in [
            ("user", f"NOT_ALLOWED - connection refused for user '{place}': user connection limit (1) is reached"),
            ("vhost", f"NOT_ALLOWED - access to vhost '{place}' refused for user '{place}': connection limit (1) is reached"),
        ]:
            path = f"/{kind}-limits/{place}/max-connections"
            assert api.put(path, {"value": 1}).status == 204
            assert refusal(lambda: enter(place)) == (530, text)
            assert api.put(path, {"value": -1}).status == 204
            enter(place).close()
    api.put(f"/user-limits/{place}/max-connections", {"value": 1})
    for _ in range(3):
        eventually(lambda: enter(place).close())


def eventually(act):
    """A connection that is closed is forgotten a moment later."""
    end = time.monotonic() + 5
    while True:
        try:
            return act()
        except pika.exceptions.AMQPConnectionError:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_a_user_has_no_more_channels_than_it_may(api, place):
    assert api.put(f"/user-limits/{place}/max-channels", {"value": 2}).status == 204
    assert api.get(f"/user-limits/{place}").json == [{"user": place, "value": {"max-channels": 2}}]
    assert api.get(f"/users/{place}").json["limits"] == {"max-channels": 2}
    connection = enter(place)
    first = connection.channel()
    first.close()
    connection.channel(), connection.channel()
    text = f"NOT_ALLOWED - number of channels opened for user '{place}' has reached the maximum allowed user limit of 2"
    assert refusal(connection.channel) == (530, text)


def test_users_see_their_own_limits_and_no_others(api, place):
    assert api.put(f"/users/{place}", {"password": "x", "tags": "management"}).status == 204
    api.put(f"/user-limits/{place}/max-channels", {"value": 2})
    mine = Api(place, "x")
    assert mine.get(f"/user-limits/{place}").json == [{"user": place, "value": {"max-channels": 2}}]
    assert mine.get("/user-limits/guest").status == 401


def test_limits_that_make_no_sense_are_refused(api, place):
    user = f"/user-limits/{place}"
    for path, body, reason in [
        (f"{user}/max-channels", {"value": "a"}, 'max-channels should be a number, actually was <<"a">>'),
        (f"{user}/max-zork", {"value": 3}, 'Unrecognised terms [{<<"max-zork">>,3}] in user-limits'),
        (f"{user}/max-channels", {}, "[{key_missing,value}]"),
        ("/user-limits/no.such/max-channels", {"value": 3}, ["no_such_user", "no.such"]),
        (f"/vhost-limits/{place}/max-queues", {}, "[{key_missing,value}]"),
    ]:
        assert api.put(path, body).json == {"error": "bad_request", "reason": reason}
    assert api.get("/user-limits/no.such").status == 404
    assert api.get("/vhost-limits/no.such").status == 404
    assert api.put("/vhost-limits/no.such/max-queues", {"value": 3}).json == {"error": "not_found", "reason": "vhost_not_found"}


def test_a_user_is_made_with_limits_which_stay_until_others_are_given(api, place):
    def put(**more):
        return api.put(f"/users/{place}", {"password": "x", "tags": ""} | more).status

    assert put(limits={"max-channels": 5}) == 204 and put() == 204
    assert put(limits={"max-connections": 7}) == 204 and put(limits={}) == 204
    assert api.get(f"/users/{place}").json["limits"] == {"max-channels": 5, "max-connections": 7}
    # RabbitMQ answers these with an internal error.
    for wrong in ({"zork": 7}, {"max-channels": "a"}, {"max-channels": 6, "zork": 1}, 3):
        assert put(limits=wrong) in (400, 500), wrong
    assert api.get(f"/users/{place}").json["limits"] == {"max-channels": 5, "max-connections": 7}


def test_limits_given_together_are_set_together_or_not_at_all(api, place):
    path = f"/parameters/vhost-limits/{place}/limits"
    assert api.put(path, {"value": {"max-queues": 5, "max-connections": 6}}).status == 201
    assert api.put(path, {"value": {"max-queues": 7, "zork": 1}}).status == 400
    assert api.get(path).json["value"] == {"max-queues": 5, "max-connections": 6}
    assert api.put(path, {"value": {"max-queues": 7}}).status == 204
    assert api.get(path).json["value"] == {"max-queues": 7}


@pytest.mark.leveret_only("RabbitMQ has no such limits")
@pytest.mark.parametrize("kind", ["user", "vhost"])
def test_who_publishes_faster_than_it_may_is_slowed_down(api, place, kind):
    assert api.put(f"/{kind}-limits/{place}/max-message-rate", {"value": 1000}).status == 204
    with enter(place) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.confirm_delivery()
        start = time.monotonic()
        for _ in range(600):
            channel.basic_publish("", "q", b"x")
        assert 0.4 < time.monotonic() - start < 60
        assert api.delete(f"/{kind}-limits/{place}/max-message-rate").status == 204
        assert api.put(f"/{kind}-limits/{place}/max-byte-rate", {"value": 100_000}).status == 204
        start = time.monotonic()
        for _ in range(5):
            channel.basic_publish("", "q", bytes(10_000))
        assert 0.3 < time.monotonic() - start < 60
    assert api.put(f"/{kind}-limits/{place}/max-byte-rate", {"value": 0}).status == 400


def test_topic_permissions_bound_what_is_published_and_bound(api, place):
    path = f"/topic-permissions/{place}/{place}"
    asked = {"exchange": "amq.topic", "write": "^{username}\\.{vhost}\\.", "read": "^b"}
    assert [api.put(path, asked).status, api.put(path, asked).status] == [201, 204]
    shown = {"user": place, "vhost": place} | asked
    for listed in (path, f"/vhosts/{place}/topic-permissions", f"/users/{place}/topic-permissions"):
        assert api.get(listed).json == [shown]
    assert shown in api.get("/definitions").json["topic_permissions"]
    with enter(place) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        channel.queue_bind("q", "amq.topic", "b.x")
        text = f"ACCESS_REFUSED - %s access to topic '%s' in exchange 'amq.topic' in vhost '{place}' refused for user '{place}'"
        assert refusal(lambda: connection.channel().queue_bind("q", "amq.topic", "a.x")) == (403, text % ("read", "a.x"))
        assert refusal(lambda: connection.channel().queue_unbind("q", "amq.topic", "a.x")) == (403, text % ("read", "a.x"))
        publish(connection, f"{place}.{place}.x")
        assert refusal(lambda: publish(connection, "foo")) == (403, text % ("write", "foo"))
        assert api.delete(path).status == 204
        publish(connection, "foo")
    assert (api.get(path).status, api.delete(path).status) == (404, 404)


def publish(connection, key):
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_publish("amq.topic", key, b"")


def test_topic_permissions_that_make_no_sense_are_refused(api, place):
    path = f"/topic-permissions/{place}/{place}"
    asked = {"exchange": "amq.topic", "write": "a", "read": "b"}
    assert api.put(path, {}).json["reason"] == "[{key_missing,exchange},{key_missing,write},{key_missing,read}]"
    assert api.put(path, asked | {"exchange": "nope"}).json["reason"] == ["no_such_exchange", "nope"]
    assert api.put(path, asked | {"write": "("}).status == 400
    assert api.put(f"/topic-permissions/{place}/no.such", asked).json["reason"] == "vhost_or_user_not_found"
    assert api.put(path, asked | {"exchange": ""}).status == 201


def test_global_parameters_hold_anything(api, name):
    path = f"/global-parameters/{name}"
    value = {"a": [1, "x", None, True, 1.5], "b": {}}
    assert [api.put(path, {"value": value}).status, api.put(path, {"value": value}).status] == [201, 204]
    assert api.get(path).json == {"name": name, "value": value}
    assert {"name": name, "value": value} in api.get("/definitions").json["global_parameters"]
    assert api.put(path, {}).json["reason"] == "[{key_missing,value}]"
    assert [api.delete(path).status, api.delete(path).status, api.get(path).status] == [204, 404, 404]


def test_the_tags_of_the_cluster_are_a_global_parameter_like_others(api):
    path, seeded = "/global-parameters/cluster_tags", {"name": "cluster_tags", "value": []}
    shown = lambda: api.get("/overview").json["cluster_tags"]  # noqa: E731
    assert (api.get(path).json, shown()) == (seeded, {})
    try:
        assert api.put(path, {"value": {"region": "eu", "az": 1}}).status == 204
        assert shown() == {"region": "eu", "az": 1}
        assert [api.delete(path).status, api.get(path).status, api.delete(path).status] == [204, 404, 404]
        assert (shown(), "cluster_tags" in {one["name"] for one in api.get("/definitions").json["global_parameters"]}) == ({}, False)
        assert api.put(path, {"value": []}).status == 201
    finally:
        api.put(path, {"value": []})
    assert seeded in api.get("/global-parameters").json


def test_parameters_of_unknown_components_are_refused(api, place):
    path = f"/parameters/zork/{place}/x"
    assert api.put(path, {"value": 5}).json == {"error": "bad_request", "reason": "Validation failed\n\ncomponent zork not found\n"}
    assert api.put(path, {}).json["reason"] == "[{key_missing,value}]"
    assert (api.get(path).status, api.delete(path).status, api.get("/parameters/zork").json) == (404, 404, [])
    assert api.put(f"/parameters/policy/{place}/x", {"value": {"pattern": "x", "definition": {"expires": 1}}}).json["reason"] == "policies may not be set using this method"
    assert api.get("/parameters/zork/no.such").status == 404
    assert api.put("/parameters/zork/no.such/x", {"value": 5}).json["reason"] == "vhost_not_found"


def test_limits_of_virtual_hosts_are_parameters(api, place):
    api.put(f"/vhost-limits/{place}/max-queues", {"value": 9})
    row = {"component": "vhost-limits", "name": "limits", "vhost": place, "value": {"max-queues": 9}}
    assert api.get(f"/parameters/vhost-limits/{place}").json == [row]
    exported = api.get("/definitions").json
    assert row in exported["parameters"]
    assert [vhost["limits"] for vhost in exported["vhosts"] if vhost["name"] == place] == [{"max-queues": 9}]
    row["value"] = {"max-connections": 7}
    assert api.post("/definitions", {"parameters": [row]}).status in (200, 204)
    assert api.get(f"/vhost-limits/{place}").json[0]["value"] == {"max-connections": 7}


def test_the_cluster_is_renamed(api):
    before = api.get("/cluster-name").json["name"]
    try:
        assert api.put("/cluster-name", {"name": "another"}).status == 204
        assert api.get("/cluster-name").json == {"name": "another"}
        with urllib.request.urlopen(f"http://{os.environ['AMQP_HOST']}:{os.environ['METRICS_PORT']}/metrics", timeout=30) as page:
            assert 'rabbitmq_cluster="another"' in page.read().decode()
        assert {"name": "cluster_name", "value": "another"} in api.get("/global-parameters").json
        assert api.put("/cluster-name", {}).json["reason"] == "[{key_missing,name}]"
    finally:
        api.put("/cluster-name", {"name": before})


def said(api, place):
    row = api.get(f"/vhosts/{place}").json
    return row["description"], row["tags"], row["metadata"], row["protected_from_deletion"]


def test_virtual_hosts_are_described_and_protected(api, place):
    assert api.put(f"/vhosts/{place}", {"description": "d", "tags": "a,b"}).status == 204
    metadata = {"description": "d", "tags": ["a", "b"], "default_queue_type": "classic"}
    assert said(api, place) == ("d", ["a", "b"], metadata, False)
    assert api.post(f"/vhosts/{place}/deletion/protection").status == 204
    assert said(api, place) == ("d", ["a", "b"], metadata | {"protected_from_deletion": True}, True)
    reason = f"Refusing to delete virtual host '{place}' because it is protected from deletion"
    answer = api.delete(f"/vhosts/{place}")
    assert (answer.status, answer.json) == (412, {"error": "precondition_failed", "reason": reason})
    assert api.delete(f"/vhosts/{place}/deletion/protection").status == 204
    assert api.put(f"/vhosts/{place}", {"tags": ["c"]}).status == 204
    assert said(api, place)[:2] == ("", ["c"])
    assert api.put(f"/vhosts/{place}", {"default_queue_type": "zork"}).json["reason"] == "zork is not a valid queue type"
