"""How long messages and queues live, and what happens to a queue that is full."""

import time

import pika
import pytest

from test_queues import missing
from waiting import until


def ready(channel, queue) -> int:
    return channel.queue_declare(queue, passive=True).method.message_count


def bodies(channel, queue) -> list[bytes]:
    found = []
    while (message := channel.basic_get(queue, auto_ack=True))[0]:
        found.append(message[2])
    return found


def own(ms) -> pika.BasicProperties:
    return pika.BasicProperties(expiration=str(ms))


def limited(channel, name, **arguments) -> str:
    channel.queue_declare(name, exclusive=True, arguments={"x-" + key.replace("_", "-"): value for key, value in arguments.items()})
    return name


def outcomes(channel, queue, sizes) -> list[str]:
    """What the publisher is told of messages of these sizes."""
    channel.confirm_delivery()
    told = []
    for size in sizes:
        try:
            channel.basic_publish("", queue, b"x" * size)
            told.append("ack")
        except pika.exceptions.NackError:
            told.append("nack")
    return told


def test_messages_expire_after_the_queues_time_to_live(channel, name):
    queue = limited(channel, name, message_ttl=200)
    start = time.monotonic()
    channel.basic_publish("", queue, b"one")
    assert ready(channel, queue) == 1
    until(lambda: ready(channel, queue) == 0)
    assert 0.19 <= time.monotonic() - start < 2


def test_a_message_expires_after_its_own_time(channel, name):
    queue = limited(channel, name)
    channel.basic_publish("", queue, b"short", own(100))
    channel.basic_publish("", queue, b"long", own(60000))
    until(lambda: ready(channel, queue) == 1)
    assert bodies(channel, queue) == [b"long"]


def test_the_shorter_time_counts(channel, name):
    queue = limited(channel, name, message_ttl=150)
    channel.basic_publish("", queue, b"own", own(60000))
    until(lambda: ready(channel, queue) == 0)


@pytest.mark.leveret_only("RabbitMQ's classic queues expire messages at the head only")
def test_a_message_expires_behind_others_that_do_not(channel, name):
    queue = limited(channel, name)
    for body, expiration in [(b"stays", None), (b"goes", "100"), (b"stays too", None), (b"goes later", "150")]:
        channel.basic_publish("", queue, body, pika.BasicProperties(expiration=expiration))
    until(lambda: ready(channel, queue) == 2)
    assert bodies(channel, queue) == [b"stays", b"stays too"]


def test_a_time_to_live_of_zero_is_now_or_never(channel, name):
    queue = limited(channel, name, message_ttl=0)
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"nobody waits")
    assert ready(channel, queue) == 0
    got = []
    channel.basic_consume(queue, lambda *message: got.append(message[3]), auto_ack=True)
    channel.basic_publish("", queue, b"somebody waits")
    channel.connection.process_data_events(1)
    assert got == [b"somebody waits"]


def test_what_is_held_does_not_expire_until_it_comes_back(channel, name):
    queue = limited(channel, name, message_ttl=100)
    channel.basic_publish("", queue, b"held")
    method, _, _ = until(lambda: (message := channel.basic_get(queue))[0] and message)
    channel.basic_publish("", queue, b"waits")
    until(lambda: ready(channel, queue) == 0)
    channel.basic_nack(method.delivery_tag)
    until(lambda: ready(channel, queue) == 0)


def test_an_acknowledgement_after_the_deadline_is_fine(channel, name):
    queue = limited(channel, name, message_ttl=50)
    channel.basic_publish("", queue, b"held")
    method, _, _ = channel.basic_get(queue)
    channel.connection.sleep(0.1)
    channel.basic_ack(method.delivery_tag)
    assert ready(channel, queue) == 0


@pytest.mark.parametrize(("expiration", "complaint"), [
    ("", "no_integer"), ("soon", "no_integer"), ("1.5", '{leftover_string,".5"}'), ("-1", "{value_negative,-1}"), ("315360000001", "{value_too_large,315360000001}"),
])  # fmt: skip
def test_an_expiration_that_is_none_is_refused(channel, name, expiration, complaint):
    queue = limited(channel, name)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.basic_publish("", queue, b"", own(expiration))
        channel.queue_declare(queue, passive=True)
    assert (closed.value.reply_code, closed.value.reply_text) == (406, f"PRECONDITION_FAILED - invalid expiration '{expiration}': {complaint}")


@pytest.mark.parametrize("expiration", ["+60000", "060000", "315360000000"])
def test_expirations_may_be_written_like_this(channel, name, expiration):
    queue = limited(channel, name)
    channel.basic_publish("", queue, b"", own(expiration))
    _, properties, _ = until(lambda: (message := channel.basic_get(queue))[0] and message)
    assert int(properties.expiration) == int(expiration)


def test_an_unused_queue_ends(connection, channel, name):
    channel.queue_declare(name, arguments={"x-expires": 300})
    start = time.monotonic()
    connection.sleep(0.5)
    until(lambda: missing(connection, name))
    assert time.monotonic() - start >= 0.3


def test_a_queue_that_is_used_does_not_end(connection, channel, name):
    channel.queue_declare(name, arguments={"x-expires": 400})
    for _ in range(4):
        connection.sleep(0.2)
        channel.basic_get(name)
    for _ in range(4):
        connection.sleep(0.2)
        channel.queue_declare(name, arguments={"x-expires": 400})
    channel.basic_consume(name, lambda *_: None, consumer_tag="t")
    connection.sleep(0.8)
    channel.basic_cancel("t")
    connection.sleep(0.7)
    assert missing(connection, name)


def test_publishing_is_no_use_of_a_queue(connection, channel, name):
    channel.queue_declare(name, arguments={"x-expires": 300})
    for _ in range(4):
        connection.sleep(0.15)
        channel.basic_publish("", name, b"")
    assert missing(connection, name)


def test_a_full_queue_refuses(channel, name):
    queue = limited(channel, name, max_length=2, overflow="reject-publish")
    assert outcomes(channel, queue, [1, 1, 1, 1]) == ["ack", "ack", "nack", "nack"]
    assert channel.basic_get(queue, auto_ack=True)[2] == b"x"
    assert outcomes(channel, queue, [1, 1]) == ["ack", "nack"]


def test_a_queue_that_is_full_in_bytes_refuses_what_is_too_large(channel, name):
    queue = limited(channel, name, max_length_bytes=100, overflow="reject-publish")
    assert outcomes(channel, queue, [60, 60, 40, 1, 0]) == ["ack", "nack", "ack", "nack", "ack"]


def test_a_queue_of_length_zero_refuses_everything(channel, name):
    queue = limited(channel, name, max_length=0, overflow="reject-publish")
    channel.basic_consume(queue, lambda *_: None, auto_ack=True)
    assert outcomes(channel, queue, [1]) == ["nack"]


def test_unacknowledged_messages_take_no_room(channel, name):
    queue = limited(channel, name, max_length=1, overflow="reject-publish")
    assert outcomes(channel, queue, [1]) == ["ack"]
    channel.basic_get(queue)
    assert outcomes(channel, queue, [1, 1]) == ["ack", "nack"]


def test_one_full_queue_of_two_is_a_refusal(channel, name):
    full = limited(channel, name, max_length=0, overflow="reject-publish")
    free = limited(channel, name + ".free")
    for queue in (full, free):
        channel.queue_bind(queue, "amq.direct", name)
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("amq.direct", name, b"x")
    assert ready(channel, free) == 1


def test_the_oldest_go_by_default(channel, name):
    queue = limited(channel, name, max_length_bytes=5, overflow="drop-head")
    for body in (b"a", b"bb", b"cc", b"dd"):
        channel.basic_publish("", queue, body)
    assert bodies(channel, queue) == [b"cc", b"dd"]
