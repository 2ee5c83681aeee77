"""Priorities of messages and of consumers."""

import pytest
from pika import spec

from conftest import connect, control
from wire import B, Q, connected


@pytest.fixture
def wire():
    opened = connected()
    opened.channel(1)
    yield opened
    opened.close()


def declared(wire, **options):
    return wire.call(1, Q.Declare(queue="", exclusive=True, **options), Q.DeclareOk).queue


def consume(wire, queue, tag, priority=None, **options):
    arguments = {} if priority is None else {"x-priority": priority}
    wire.call(1, B.Consume(queue=queue, consumer_tag=tag, arguments=arguments, **options), B.ConsumeOk)


def deliveries(wire, count):
    got = []
    for _ in range(count):
        method = wire.expect(B.Deliver, 1)
        got.append((method.consumer_tag, wire.read_content()[1].decode()))
    return got


def test_the_highest_priority_that_has_room_is_served_first(wire):
    queue = declared(wire)
    consume(wire, queue, "usual")
    wire.call(1, B.Qos(prefetch_count=2), B.QosOk)
    consume(wire, queue, "high", 10)
    for number in range(4):
        wire.publish(1, "", queue, str(number).encode())
    assert sorted(deliveries(wire, 4)) == [("high", "0"), ("high", "1"), ("usual", "2"), ("usual", "3")]
    wire.send(1, B.Ack(1))
    wire.call(1, Q.Declare(queue=queue, passive=True), Q.DeclareOk)
    wire.publish(1, "", queue, b"4")
    assert deliveries(wire, 1) == [("high", "4")]


def test_equal_priorities_take_turns_and_negative_ones_come_last(wire):
    queue = declared(wire)
    consume(wire, queue, "late", -1, no_ack=True)
    consume(wire, queue, "a", 3, no_ack=True)
    consume(wire, queue, "b", 3, no_ack=True)
    for number in range(4):
        wire.publish(1, "", queue, str(number).encode())
    assert sorted(tag for tag, _ in deliveries(wire, 4)) == ["a", "a", "b", "b"]
    for tag in ("a", "b"):
        wire.call(1, B.Cancel(tag), B.CancelOk)
    wire.publish(1, "", queue, b"4")
    assert deliveries(wire, 1) == [("late", "4")]


@pytest.mark.parametrize(("value", "kind"), [("a", "longstr"), (True, "bool")])
def test_a_consumer_priority_is_a_number(wire, value, kind):
    queue = declared(wire)
    wire.send(1, B.Consume(queue=queue, consumer_tag="c", arguments={"x-priority": value}))
    closed = wire.expect_channel_close(1)
    assert (closed.reply_code, closed.reply_text) == (
        406,
        f"PRECONDITION_FAILED - invalid arg 'x-priority' for queue '{queue}' in vhost '/': \"expected integer, got {kind}\"",
    )


# Messages.


def publish_all(wire, queue, priorities):
    for number, priority in enumerate(priorities):
        wire.publish(1, "", queue, str(number).encode(), properties=spec.BasicProperties(priority=priority))


def get_all(wire, queue):
    got = []
    while True:
        wire.send(1, B.Get(queue=queue, no_ack=True))
        answer = wire.read_frame().method
        if isinstance(answer, B.GetEmpty):
            return got
        got.append((int(wire.read_content()[1]), answer.message_count))


def test_the_highest_priority_leaves_first_and_the_oldest_among_equals(wire):
    queue = declared(wire, arguments={"x-max-priority": 3})
    publish_all(wire, queue, [0, None, 3, 9, 2, 3, 1, 200])
    assert get_all(wire, queue) == [(2, 7), (3, 6), (5, 5), (7, 4), (4, 3), (6, 2), (0, 1), (1, 0)]


def test_a_full_priority_queue_drops_from_its_head(wire):
    queue = declared(wire, arguments={"x-max-priority": 3, "x-max-length": 3})
    for number, priority in enumerate([0, 3, 2, 1, 3, 0]):
        wire.publish(1, "", queue, str(number).encode(), properties=spec.BasicProperties(priority=priority))
        wire.call(1, Q.Declare(queue=queue, passive=True), Q.DeclareOk)
    assert [number for number, _ in get_all(wire, queue)] == [3, 0, 5]


def test_returned_messages_stand_where_they_stood_among_their_equals(wire):
    queue = declared(wire, arguments={"x-max-priority": 3})
    publish_all(wire, queue, [1, 3, 1, 3])
    consume(wire, queue, "c")
    assert deliveries(wire, 4) == [("c", "1"), ("c", "3"), ("c", "0"), ("c", "2")]
    wire.call(1, B.Cancel("c"), B.CancelOk)
    wire.send(1, B.Nack(0, True, True))
    assert [number for number, _ in get_all(wire, queue)] == [1, 3, 0, 2]


def test_a_consumer_gets_the_next_best_after_each_ack(wire):
    queue = declared(wire, arguments={"x-max-priority": 9})
    publish_all(wire, queue, [1, 5, 9])
    wire.call(1, B.Qos(prefetch_count=1), B.QosOk)
    consume(wire, queue, "c")
    assert deliveries(wire, 1) == [("c", "2")]
    publish_all(wire, queue, [8])
    wire.call(1, Q.Declare(queue=queue, passive=True), Q.DeclareOk)
    wire.send(1, B.Ack(1))
    assert deliveries(wire, 1) == [("c", "0")]
    wire.send(1, B.Ack(2))
    assert deliveries(wire, 1) == [("c", "1")]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [("a", '"expected integer, got longstr"'), (-1, "{value_negative,-1}"), (256, "{max_value_exceeded,256}")],
)
def test_a_bad_maximum(wire, name, value, complaint):
    wire.send(1, Q.Declare(queue=name, durable=True, arguments={"x-max-priority": value}))
    closed = wire.expect_channel_close(1)
    assert (closed.reply_code, closed.reply_text) == (
        406,
        f"PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue '{name}' in vhost '/': {complaint}",
    )


@pytest.mark.needs_control
def test_priorities_outlive_a_restart(name):
    with connect() as connection:
        channel = connection.channel()
        channel.queue_declare(name, durable=True, arguments={"x-max-priority": 5})
        channel.confirm_delivery()
        for number in range(30):
            channel.basic_publish("", name, str(number).encode(), spec.BasicProperties(priority=number % 6, delivery_mode=2))
    control("restart")
    with connect() as connection:
        channel = connection.channel()
        got = [int(channel.basic_get(name, auto_ack=True)[2]) for _ in range(30)]
        assert got == sorted(range(30), key=lambda number: (-(number % 6), number))
        channel.queue_delete(name)
