"""Deduplication in queues and exchanges, for which RabbitMQ needs a plugin."""

import pika
import pytest

from conftest import connect, control
from waiting import until

pytestmark = pytest.mark.leveret_only("RabbitMQ needs a plugin")


@pytest.fixture
def channel(channel):
    channel.confirm_delivery()
    return channel


def publish(channel, exchange, key, body, same=None, **headers):
    if same is not None:
        headers["x-deduplication-header"] = same
    channel.basic_publish(exchange, key, body, pika.BasicProperties(headers=headers, delivery_mode=2))


def bodies(channel, queue):
    found = []
    while (got := channel.basic_get(queue, auto_ack=True))[0]:
        found.append(got[2])
    return found


def bodies_until(channel, queue, last):
    """All up to `last`: the exchange may remember on another node than the queue's, and what was published is on its way for a moment."""
    found = []
    until(lambda: found.extend(bodies(channel, queue)) or last in found)
    return found


@pytest.mark.parametrize("more", [{}, {"x-max-priority": 5}, {"x-fair-key": "tenant"}], ids=["plain", "priorities", "groups"])
def test_a_queue_takes_a_message_once_as_long_as_it_is_there(channel, name, more):
    channel.queue_declare(name, durable=True, arguments={"x-message-deduplication": True} | more)
    for body, same in ((b"1", "a"), (b"2", "b"), (b"3", "a"), (b"4", None), (b"5", None), (b"6", 7), (b"7", 7)):
        publish(channel, "", name, body, same)
    method, _, body = channel.basic_get(name)
    assert body == b"1"
    publish(channel, "", name, b"8", "a")
    channel.basic_ack(method.delivery_tag)
    publish(channel, "", name, b"9", "a")
    assert bodies(channel, name) == [b"2", b"4", b"5", b"6", b"9"]
    channel.queue_delete(name)


def test_a_duplicate_in_another_group_or_priority_is_one_too(channel, name):
    channel.queue_declare(name, durable=True, arguments={"x-message-deduplication": True, "x-fair-key": "tenant"})
    publish(channel, "", name, b"1", "a", tenant="x")
    publish(channel, "", name, b"2", "a", tenant="y")
    assert bodies(channel, name) == [b"1"]
    channel.queue_delete(name)


@pytest.mark.needs_control
def test_a_queue_knows_duplicates_after_a_restart(name):
    channel = connect().channel()
    channel.confirm_delivery()
    channel.queue_declare(name, durable=True, arguments={"x-message-deduplication": True})
    publish(channel, "", name, b"1", "a")
    control("restart")
    channel = connect().channel()
    channel.confirm_delivery()
    publish(channel, "", name, b"2", "a")
    assert bodies(channel, name) == [b"1"]
    publish(channel, "", name, b"3", "a")
    assert bodies(channel, name) == [b"3"]
    channel.queue_delete(name)
    channel.connection.close()


def declare_exchange(channel, name, **arguments):
    arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.exchange_declare(name, "x-message-deduplication", durable=True, arguments={"x-cache-size": 100} | arguments)
    channel.queue_declare(name, durable=True)
    channel.queue_bind(name, name)


def test_an_exchange_lets_a_message_pass_once(channel, name):
    declare_exchange(channel, name)
    for body, same in ((b"1", "a"), (b"2", "b"), (b"3", "a"), (b"4", None), (b"5", None), (b"6", 7), (b"7", 7)):
        publish(channel, name, "any.key", body, same)
    publish(channel, name, "", b"8", "a")
    publish(channel, name, "", b"9", "c")
    publish(channel, name, "", b"10")
    assert bodies_until(channel, name, b"10") == [b"1", b"2", b"4", b"5", b"6", b"9", b"10"]
    channel.queue_delete(name)
    channel.exchange_delete(name)


def test_an_exchange_forgets_when_a_messages_time_is_over(channel, name):
    declare_exchange(channel, name, x_cache_ttl=3_600_000)
    channel.queue_bind(name, name, "again")
    publish(channel, name, "", b"1", "a")
    publish(channel, name, "", b"2", "b", **{"x-cache-ttl": 1})
    found = []
    while b"3" not in found:
        publish(channel, name, "", b"3", "b")
        found += bodies(channel, name)
    publish(channel, name, "", b"4", "a")
    publish(channel, name, "", b"5")
    found += bodies_until(channel, name, b"5")
    assert found in ([b"1", b"2", b"3", b"5"], [b"1", b"3", b"5"])
    channel.queue_delete(name)
    channel.exchange_delete(name)


def test_a_size_is_needed(channel, name):
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        channel.exchange_declare(name, "x-message-deduplication")
    assert refused.value.reply_code == 406
    assert "'x-cache-size' must be an integer greater than 0" in refused.value.reply_text


@pytest.mark.needs_control
@pytest.mark.parametrize("persistence, known", [("disk", True), ("memory", False)])
def test_an_exchange_knows_after_a_restart_what_it_has_on_disk(name, persistence, known):
    channel = connect().channel()
    channel.confirm_delivery()
    declare_exchange(channel, name, x_cache_persistence=persistence)
    publish(channel, name, "", b"1", "a")
    # What is still on its way when its node stops passes then, and the exchange knows it again.
    until(lambda: channel.queue_declare(name, passive=True).method.message_count == 1)
    control("restart")
    channel = connect().channel()
    channel.confirm_delivery()
    publish(channel, name, "", b"2", "a")
    publish(channel, name, "", b"3")
    # Like any dead letter, what had arrived may come once more if its node stopped before it heard so.
    found = list(dict.fromkeys(bodies_until(channel, name, b"3")))
    assert found == ([b"1", b"3"] if known else [b"1", b"2", b"3"])
    channel.queue_delete(name)
    channel.exchange_delete(name)
    channel.connection.close()
