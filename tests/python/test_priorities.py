"""Priorities of consumers."""

import pytest

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
