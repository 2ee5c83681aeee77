"""Queues: their kinds, names, counts, limits and ends."""

import re

import pika
import pytest

from conftest import connect


def missing(connection, queue) -> bool:
    """Whether the queue is gone."""
    channel = connection.channel()
    try:
        channel.queue_declare(queue, passive=True)
    except pika.exceptions.ChannelClosedByBroker as closed:
        assert closed.reply_code == 404
        return True
    channel.close()
    return False


def test_server_named(channel):
    first, second = (channel.queue_declare("", exclusive=True).method.queue for _ in range(2))
    assert re.fullmatch(r"amq\.gen-[A-Za-z0-9_-]{22}", first), first
    assert first != second


def test_exclusive_queue_goes_with_its_connection(connection, name):
    owner = connect()
    owner.channel().queue_declare(name, exclusive=True)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        connection.channel().basic_get(name)
    assert closed.value.reply_code == 405
    owner.close()
    assert missing(connection, name), "deleted before close-ok"


def test_auto_delete_queue_goes_with_its_last_consumer(connection, channel, name):
    channel.queue_declare(name, auto_delete=True)
    first = channel.basic_consume(name, lambda *_: None)
    second = channel.basic_consume(name, lambda *_: None)
    channel.basic_cancel(first)
    assert not missing(connection, name)
    channel.basic_cancel(second)
    assert missing(connection, name)


def test_auto_delete_queue_goes_with_its_consumers_channel(connection, name):
    other = connection.channel()
    other.queue_declare(name, auto_delete=True)
    other.basic_consume(name, lambda *_: None)
    other.close()
    assert missing(connection, name)


def test_auto_delete_queue_without_consumers_stays(connection, channel, name):
    channel.queue_declare(name, auto_delete=True)
    channel.basic_publish("", name, b"x")
    channel.basic_get(name, auto_ack=True)
    assert not missing(connection, name)
    channel.queue_delete(name)


def test_declare_counts_messages_and_consumers(channel, queue):
    channel.confirm_delivery()
    for _ in range(3):
        channel.basic_publish("", queue, b"x")
    declared = channel.queue_declare(queue, durable=True).method
    assert (declared.queue, declared.message_count, declared.consumer_count) == (queue, 3, 0)
    channel.basic_get(queue)
    assert channel.queue_declare(queue, passive=True).method.message_count == 2, "unacknowledged ones are not ready"
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(queue, lambda *_: None)
    assert channel.queue_declare(queue, passive=True).method.consumer_count == 1


def test_purge_leaves_unacknowledged_ones(channel, queue):
    channel.confirm_delivery()
    for number in range(5):
        channel.basic_publish("", queue, str(number).encode())
    method, _, _ = channel.basic_get(queue)
    assert channel.queue_purge(queue).method.message_count == 4
    assert channel.queue_purge(queue).method.message_count == 0
    channel.basic_nack(method.delivery_tag)
    assert channel.basic_get(queue)[2] == b"0"


def test_delete_tells_the_count_and_is_idempotent(channel, name):
    channel.queue_declare(name)
    channel.confirm_delivery()
    channel.basic_publish("", name, b"x")
    assert channel.queue_delete(name).method.message_count == 1
    assert channel.queue_delete(name).method.message_count == 0


def test_delete_if_unused_and_if_empty_of_an_idle_empty_queue(connection, channel, name):
    channel.queue_declare(name)
    channel.queue_delete(name, if_unused=True, if_empty=True)
    assert missing(connection, name)


def test_last_declared_queue_is_meant_by_the_empty_name(channel, name):
    channel.queue_declare("", exclusive=True)
    channel.queue_declare(name, exclusive=True)
    channel.queue_bind("", "amq.direct", "")
    channel.confirm_delivery()
    # An empty binding key together with an empty queue name means the queue's name.
    channel.basic_publish("amq.direct", name, b"by name", mandatory=True)
    assert channel.basic_get("", auto_ack=True)[2] == b"by name"
    channel.basic_publish("", name, b"x")
    assert channel.queue_purge("").method.message_count == 1
    channel.basic_consume("", lambda *_: None)
    assert channel.queue_declare(name, passive=True).method.consumer_count == 1
    assert channel.queue_delete("").method.message_count == 0


def test_max_length_drops_the_oldest(channel):
    queue = channel.queue_declare("", exclusive=True, arguments={"x-max-length": 3}).method.queue
    channel.confirm_delivery()
    for number in range(10):
        channel.basic_publish("", queue, str(number).encode())
    assert channel.queue_declare(queue, passive=True).method.message_count == 3
    assert [channel.basic_get(queue, auto_ack=True)[2] for _ in range(3)] == [b"7", b"8", b"9"]


def test_max_length_counts_ready_messages_only(channel):
    queue = channel.queue_declare("", exclusive=True, arguments={"x-max-length": 2}).method.queue
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"held")
    held, _, _ = channel.basic_get(queue)
    for number in range(3):
        channel.basic_publish("", queue, str(number).encode())
    assert channel.queue_declare(queue, passive=True).method.message_count == 2
    channel.basic_ack(held.delivery_tag)
    assert [channel.basic_get(queue, auto_ack=True)[2] for _ in range(2)] == [b"1", b"2"]


def test_max_length_bytes_drops_the_oldest(channel):
    queue = channel.queue_declare("", exclusive=True, arguments={"x-max-length-bytes": 100}).method.queue
    channel.confirm_delivery()
    for number in range(10):
        channel.basic_publish("", queue, str(number).encode() * 40)
    assert [channel.basic_get(queue, auto_ack=True)[2][:1] for _ in range(2)] == [b"8", b"9"]
    channel.basic_publish("", queue, b"x" * 101)
    assert channel.basic_get(queue)[0] is None, "a message above the limit alone does not stay"


def test_max_length_zero_keeps_nothing(channel):
    queue = channel.queue_declare("", exclusive=True, arguments={"x-max-length": 0}).method.queue
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"x")
    assert channel.basic_get(queue)[0] is None


def test_long_names(channel):
    name = "ü" * 127
    assert channel.queue_declare(name, exclusive=True).method.queue == name
    channel.confirm_delivery()
    channel.basic_publish("", name, b"x")
    assert channel.basic_get(name)[0].routing_key == name
