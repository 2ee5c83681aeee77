"""The firehose: copies of what comes into and leaves a traced virtual host."""

import contextlib

import pika
import pytest

from api import Api

TRACE = "amq.rabbitmq.trace"


@pytest.fixture
def copies(channel):
    """Turns tracing on, and gives the next copies that queues got, by routing key."""
    channel.queue_declare("py.copies", exclusive=True)
    channel.queue_bind("py.copies", TRACE, "#")
    assert Api().put("/vhosts/%2F", {"tracing": True}).status == 204
    assert Api().get("/vhosts/%2F").json["tracing"] is True

    def take(count):
        found = []
        for method, properties, body in channel.consume("py.copies", auto_ack=True, inactivity_timeout=10):
            assert method is not None, f"{found} and no more"
            found.append((method.routing_key, properties.headers, body))
            if len(found) == count:
                break
        channel.cancel()
        return found

    yield take
    with contextlib.suppress(pika.exceptions.AMQPError):
        channel.queue_delete("py.copies")
    assert Api().put("/vhosts/%2F", {"tracing": False}).status == 204
    assert Api().get("/vhosts/%2F").json["tracing"] is False


def test_a_message_is_copied_when_it_comes_and_when_it_leaves(connection, copies, name):
    user = connection.channel()
    user.queue_declare(name, exclusive=True)
    user.queue_bind(name, "amq.topic", "a.#")
    sent = pika.BasicProperties(content_type="text/plain", priority=3, headers={"h": 1})
    user.basic_publish("amq.topic", "a.b", b"body", sent)
    assert user.basic_get(name, auto_ack=True)[2] == b"body"
    (came, first, body), (left, second, same) = copies(2)
    assert (came, left, body, same) == ("publish.amq.topic", f"deliver.{name}", b"body", b"body")
    for headers in (first, second):
        assert headers["exchange_name"] == "amq.topic" and headers["routing_keys"] == ["a.b"]
        assert headers["properties"] == {"content_type": "text/plain", "priority": 3, "headers": {"h": 1}}
        assert headers["vhost"] == "/" and headers["user"] == "guest" and headers["node"] and headers["channel"] == user.channel_number
        assert " -> " in headers["connection"]
    assert first["routed_queues"] == [name] and second["redelivered"] == 0


def test_what_nobody_takes_and_what_consumers_get_is_copied(connection, copies, name):
    user = connection.channel()
    user.basic_publish("amq.direct", "nowhere", b"lost")
    user.queue_declare(name, exclusive=True)
    for body in (b"1", b"2"):
        user.basic_publish("", name, body)
    got = [body for _, (_, _, body) in zip(range(2), user.consume(name))]
    assert got == [b"1", b"2"]
    seen = copies(5)
    assert [key for key, _, _ in seen if key.startswith("publish")] == ["publish.amq.direct", "publish.", "publish."]
    assert [body for key, _, body in seen if key == f"deliver.{name}"] == [b"1", b"2"]
    assert seen[0][1]["routed_queues"] == []


def test_tracing_takes_true_or_false_only():
    assert Api().put("/vhosts/%2F", {"tracing": "perhaps"}).status == 400
