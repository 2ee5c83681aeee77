"""x-fair-key: groups take turns by bytes."""

import pytest
from pika import spec

from wire import B, Q, connected

pytestmark = pytest.mark.leveret_only("RabbitMQ has no fair queues")


@pytest.fixture
def wire():
    opened = connected()
    opened.channel(1)
    yield opened
    opened.close()


def publish(wire, queue, tenant, number, size=1000):
    headers = {} if tenant is None else {"tenant": tenant}
    body = f"{tenant} {number} ".encode().ljust(size, b"x")
    wire.publish(1, "", queue, body, properties=spec.BasicProperties(headers=headers))


def get_all(wire, queue, count):
    wire.call(1, B.Consume(queue=queue, consumer_tag="c", no_ack=True), B.ConsumeOk)
    got = []
    for _ in range(count):
        wire.expect(B.Deliver, 1)
        tenant, number, _ = wire.read_content()[1].split(b" ", 2)
        got.append((tenant.decode(), int(number)))
    return got


def test_a_flood_does_not_keep_the_others_waiting(wire):
    queue = wire.call(1, Q.Declare(queue="", exclusive=True, arguments={"x-fair-key": "tenant"}), Q.DeclareOk).queue
    for number in range(2000):
        publish(wire, queue, "flood", number)
    for number in range(5):
        publish(wire, queue, "small", number)
        publish(wire, queue, None, number)
        publish(wire, queue, 7, number)
    got = get_all(wire, queue, 2015)
    for tenant in ("small", "None", "7"):
        mine = [(place, number) for place, (who, number) in enumerate(got) if who == tenant]
        assert [number for _, number in mine] == [0, 1, 2, 3, 4]
        assert mine[-1][0] < 60, mine
    assert [number for who, number in got if who == "flood"] == list(range(2000))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"x-fair-key": ""}, "empty_name"),
        ({"x-fair-key": 5}, "{unacceptable_type,signedint}"),
        ({"x-fair-key": "tenant", "x-max-priority": 5}, "fair_key_and_max_priority_defined"),
    ],
    ids=["empty", "a number", "with priorities"],
)
def test_a_bad_key(wire, name, arguments, complaint):
    wire.send(1, Q.Declare(queue=name, durable=True, arguments=arguments))
    closed = wire.expect_channel_close(1)
    assert (closed.reply_code, closed.reply_text) == (
        406,
        f"PRECONDITION_FAILED - invalid arg 'x-fair-key' for queue '{name}' in vhost '/': {complaint}",
    )
