"""The event exchange, which the setting `event_exchange.vhost` brings: what happens on the node, as messages."""

import json
import time
import urllib.error
import urllib.request

import pika
import pytest

from test_process import broker, pytestmark  # noqa: F401 - a fixture and a mark

EVENTS = "amq.rabbitmq.event"


class Watcher:
    """A connection that takes the events of one broker."""

    def __init__(self, one, key="#"):
        self.parameters = pika.ConnectionParameters(one.host, one.port)
        self.root = f"http://{one.host}:{one.http_port}/api"
        self.connection = pika.BlockingConnection(self.parameters)
        self.channel = self.connection.channel()
        self.channel.queue_declare("events", exclusive=True)
        self.channel.queue_bind("events", EVENTS, key)
        if key == "#":
            assert self.next("binding.created")["destination_name"] == "events"

    def next(self, key):
        """The details of the next event with this key; others before it are passed over."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            method, properties, body = self.channel.basic_get("events", auto_ack=True)
            if method is not None and method.routing_key == key:
                assert body == b"" and properties.delivery_mode == 2
                assert properties.timestamp == properties.headers["timestamp_in_ms"] // 1000
                return properties.headers
        raise AssertionError(f"no {key}")

    def call(self, verb, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.root}{path}", data=data, method=verb)
        request.add_header("Authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status


@pytest.fixture
def watcher(broker):  # noqa: F811
    one = broker({"event_exchange.vhost": "/"}).start()
    watching = Watcher(one)
    yield watching
    watching.connection.close()


def of(headers, *names):
    return {name: headers[name] for name in names}


def test_what_clients_declare_bind_and_delete_is_told(watcher):
    channel = watcher.channel
    channel.exchange_declare("x", "topic", durable=True, arguments={"alternate-exchange": "y"})
    assert of(watcher.next("exchange.created"), "name", "vhost", "type", "durable", "internal", "auto_delete", "arguments", "user_who_performed_action") == {
        "name": "x", "vhost": "/", "type": "topic", "durable": True, "internal": False, "auto_delete": False, "arguments": {"alternate-exchange": "y"}, "user_who_performed_action": "guest"}
    channel.queue_declare("q", durable=True, arguments={"x-max-length": 5})
    assert of(watcher.next("queue.created"), "name", "vhost", "type", "durable", "exclusive", "auto_delete", "arguments") == {
        "name": "q", "vhost": "/", "type": "rabbit_classic_queue", "durable": True, "exclusive": False, "auto_delete": False, "arguments": {"x-max-length": 5, "x-queue-type": "classic"}}
    channel.queue_bind("q", "x", "k", {"a": 1})
    bound = {"source_name": "x", "source_kind": "exchange", "destination_name": "q", "destination_kind": "queue", "routing_key": "k", "arguments": {"a": 1}, "vhost": "/"}
    assert of(watcher.next("binding.created"), *bound) == bound
    channel.queue_unbind("q", "x", "k", {"a": 1})
    assert of(watcher.next("binding.deleted"), *bound) == bound
    channel.queue_delete("q")
    assert of(watcher.next("queue.deleted"), "name", "vhost", "user_who_performed_action") == {"name": "q", "vhost": "/", "user_who_performed_action": "guest"}
    channel.exchange_delete("x")
    assert of(watcher.next("exchange.deleted"), "name", "vhost") == {"name": "x", "vhost": "/"}


def test_connections_channels_and_consumers_come_and_go(watcher):
    other = pika.BlockingConnection(watcher.parameters)
    assert of(watcher.next("user.authentication.success"), "name", "peer_host", "auth_mechanism") == {"name": "guest", "peer_host": "127.0.0.1", "auth_mechanism": "PLAIN"}
    opened = watcher.next("connection.created")
    assert of(opened, "user", "vhost", "protocol", "auth_mechanism", "peer_host") == {
        "user": "guest", "vhost": "/", "protocol": "AMQP 0-9-1", "auth_mechanism": "PLAIN", "peer_host": "127.0.0.1"}
    assert opened["client_properties"]["product"] == "Pika Python Client Library"
    channel = other.channel(7)
    created = watcher.next("channel.created")
    assert of(created, "number", "connection", "name") == {"number": 7, "connection": opened["pid"], "name": f"{opened['name']} (7)"}
    channel.queue_declare("mine", exclusive=True)
    channel.basic_qos(prefetch_count=3)
    channel.basic_consume("mine", lambda *_: None, consumer_tag="tag", arguments={"x-priority": 2})
    started = {"consumer_tag": "tag", "queue": "mine", "channel": created["pid"], "ack_required": True, "exclusive": False, "prefetch_count": 3, "arguments": {"x-priority": 2}}
    assert of(watcher.next("consumer.created"), *started) == started
    channel.basic_cancel("tag")
    assert watcher.next("consumer.deleted")["consumer_tag"] == "tag"
    channel.close()
    assert watcher.next("channel.closed")["pid"] == created["pid"]
    other.close()
    assert of(watcher.next("connection.closed"), "pid", "name") == of(opened, "pid", "name")
    assert watcher.next("queue.deleted")["name"] == "mine"


def test_who_changed_what_is_told(watcher):
    by = {"user_who_performed_action": "guest"}

    def told(key, **wanted):
        assert of(watcher.next(key), *wanted, *by) == wanted | by

    watcher.call("PUT", "/users/jane", {"password": "x", "tags": "monitoring"})
    told("user.created", name="jane")
    told("user.tags.set", name="jane", tags=["monitoring"])
    watcher.call("PUT", "/users/jane", {"password": "y", "tags": "management"})
    told("user.password.changed", name="jane")
    told("user.tags.set", name="jane", tags=["management"])
    watcher.call("PUT", "/users/jane", {"password_hash": "", "tags": "management"})
    told("user.password.cleared", name="jane")
    watcher.call("PUT", "/user-limits/jane/max-channels", {"value": 5})
    told("user.limits.set", name="limits", username="jane", **{"max-channels": 5})
    watcher.call("DELETE", "/user-limits/jane/max-channels")
    told("user.limits.cleared", name="limits", username="jane")
    watcher.call("PUT", "/vhosts/shop", {"description": "for sale", "tags": "a,b"})
    told("vhost.created", name="shop")
    told("vhost.updated", name="shop", description="for sale", tags=["a", "b"])
    watcher.call("PUT", "/parameters/vhost-limits/shop/limits", {"value": {"max-queues": 5, "max-connections": 6}})
    told("vhost.limits.set", name="limits", vhost="shop", **{"max-queues": 5, "max-connections": 6})
    watcher.call("PUT", "/topic-permissions/shop/jane", {"exchange": "amq.topic", "write": "a", "read": "b"})
    told("topic.permission.created", user="jane", vhost="shop", exchange="amq.topic", write="a", read="b")
    watcher.call("DELETE", "/topic-permissions/shop/jane")
    told("topic.permission.deleted", user="jane", vhost="shop")
    watcher.call("PUT", "/operator-policies/shop/p", {"pattern": "^z", "definition": {"max-length": 5}})
    told("operator.policy.set", name="p", vhost="shop", pattern="^z")
    watcher.call("DELETE", "/operator-policies/shop/p")
    told("operator.policy.cleared", name="p", vhost="shop")
    watcher.call("PUT", "/global-parameters/g", {"value": "z"})
    told("parameter.set", name="g", value="z")
    watcher.call("POST", "/definitions", {"vhosts": [{"name": "imported"}], "queues": [{"vhost": "shop", "name": "q", "durable": True, "auto_delete": False, "arguments": {}}]})
    told("vhost.created", name="imported")
    told("queue.created", name="q", vhost="shop")
    watcher.call("DELETE", "/vhosts/shop")
    told("vhost.deleted", name="shop")


def test_refused_logins_and_changes_of_users_are_told(watcher):
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        wrong = pika.ConnectionParameters(watcher.parameters.host, watcher.parameters.port, credentials=pika.PlainCredentials("guest", "no"))
        pika.BlockingConnection(wrong)
    assert of(watcher.next("user.authentication.failure"), "name", "error") == {"name": "guest", "error": "invalid credentials"}
    watcher.call("PUT", "/users/jane", {"password": "x", "tags": "monitoring"})
    assert of(watcher.next("user.created"), "name", "tags") == {"name": "jane", "tags": ["monitoring"]}
    watcher.call("PUT", "/vhosts/shop", {})
    assert watcher.next("vhost.created")["name"] == "shop"
    watcher.call("PUT", "/permissions/shop/jane", {"configure": "a", "write": "b", "read": "c"})
    granted = {"user": "jane", "vhost": "shop", "configure": "a", "write": "b", "read": "c"}
    while (told := watcher.next("permission.created"))["user"] != "jane":
        pass
    assert of(told, *granted) == granted
    watcher.call("PUT", "/policies/shop/p", {"pattern": "^z", "apply-to": "queues", "priority": 1, "definition": {"max-length": 5}})
    policy = {"name": "p", "vhost": "shop", "pattern": "^z", "apply-to": "queues", "priority": 1, "definition": {"max-length": 5}}
    assert of(watcher.next("policy.set"), *policy) == policy
    watcher.call("DELETE", "/policies/shop/p")
    assert watcher.next("policy.cleared")["name"] == "p"
    watcher.call("DELETE", "/vhosts/shop")
    assert watcher.next("vhost.deleted")["name"] == "shop"
    watcher.call("DELETE", "/users/jane")
    assert watcher.next("user.deleted")["name"] == "jane"


def test_lines_of_the_log_are_messages_with_their_level_as_the_key(broker):  # noqa: F811
    one = broker({"log.exchange": "true"}).start()
    with pika.BlockingConnection(pika.ConnectionParameters(one.host, one.port)) as connection:
        channel = connection.channel()
        channel.queue_declare("lines", exclusive=True)
        channel.queue_bind("lines", "amq.rabbitmq.log", "#")
        pika.BlockingConnection(pika.ConnectionParameters(one.host, one.port, client_properties={"connection_name": "zork"})).close()
        end = time.monotonic() + 10
        while time.monotonic() < end:
            method, properties, body = channel.basic_get("lines", auto_ack=True)
            if method is not None and b"zork" in body:
                break
        assert method.routing_key == "info" and b"authenticated and granted access to vhost '/'" in body and b"\n" not in body
        assert properties.content_type == "text/plain" and properties.headers["node"] and abs(properties.timestamp - time.time()) < 60


def test_without_the_setting_there_is_no_such_exchange(broker):  # noqa: F811
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        Watcher(broker().start())
    assert refused.value.reply_code == 404
