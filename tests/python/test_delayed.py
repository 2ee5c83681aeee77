"""The exchange type x-delayed-message, as RabbitMQ's plugin has it."""

import time

import pika
import pytest

from conftest import connect, control
from waiting import until

pytestmark = pytest.mark.leveret_only("this exchange type is a plugin there")


def delay(ms, **properties) -> pika.BasicProperties:
    return pika.BasicProperties(headers={"x-delay": ms}, **properties)


@pytest.fixture
def later(channel, name):
    channel.exchange_declare(name, "x-delayed-message", arguments={"x-delayed-type": "direct"})
    yield name
    channel.connection.channel().exchange_delete(name)


@pytest.fixture
def queue(channel, later):
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, later, "k")
    return queue


def fetch(channel, queue):
    return until(lambda: (message := channel.basic_get(queue, auto_ack=True))[0] and message)


def test_messages_come_when_they_are_due_and_not_before(channel, later, queue):
    channel.confirm_delivery()
    begin = time.monotonic()
    for number, ms in enumerate((600, 200, 400)):
        channel.basic_publish(later, "k", str(number), delay(ms), mandatory=True)
    channel.basic_publish(later, "k", b"now")
    assert channel.basic_get(queue, auto_ack=True)[2] == b"now"
    came = [(fetch(channel, queue), time.monotonic() - begin) for _ in range(3)]
    assert [body for (_, _, body), _ in came] == [b"1", b"2", b"0"]
    for (method, properties, _), at in came:
        waited = -properties.headers["x-delay"] / 1000
        assert waited <= at < waited + 1
        assert (method.exchange, method.routing_key, method.redelivered) == (later, "k", False)
        assert list(properties.headers) == ["x-delay"]


@pytest.mark.parametrize("header", [0, -5, "100", None, True], ids=str)
def test_what_is_no_delay_does_not_wait(channel, later, queue, header):
    channel.basic_publish(later, "k", b"x", delay(header))
    method, properties, _ = channel.basic_get(queue, auto_ack=True)
    assert properties.headers == {"x-delay": header}


def test_bindings_count_when_the_delay_is_over(channel, later, queue):
    channel.basic_publish(later, "new", b"x", delay(300))
    channel.queue_bind(queue, later, "new")
    assert fetch(channel, queue)[2] == b"x"


def test_a_time_to_live_begins_after_the_delay(channel, later, queue):
    channel.basic_publish(later, "k", b"x", delay(200, expiration="60000"))
    assert fetch(channel, queue)[1].expiration == "60000"


def test_topic_fanout_and_headers_exchanges_are_delayed_too(channel, name):
    for kind, key, arguments in (("topic", "a.*", {}), ("fanout", "", {}), ("headers", "", {"h": 1})):
        exchange = f"{name}.{kind}"
        channel.exchange_declare(exchange, "x-delayed-message", arguments={"x-delayed-type": kind}, auto_delete=True)
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, exchange, key, arguments)
        channel.basic_publish(exchange, "a.b", b"x", pika.BasicProperties(headers={"x-delay": 50, "h": 1}))
        assert fetch(channel, queue)[2] == b"x"


def test_copies_wait_too_and_blind_ones_stay_blind(channel, later, queue):
    others = {key: f"{later}.{key}" for key in ("open", "blind")}
    for key, other in others.items():
        channel.queue_declare(other, exclusive=True)
        channel.queue_bind(other, later, key)
    channel.basic_publish(later, "k", b"x", pika.BasicProperties(headers={"x-delay": 100, "CC": ["open"], "BCC": ["blind"]}))
    for where in (queue, *others.values()):
        _, properties, body = fetch(channel, where)
        assert body == b"x"
        assert properties.headers == {"x-delay": -100, "CC": ["open"]}


def test_a_deleted_exchange_takes_what_waits_with_it(channel, later, queue):
    channel.basic_publish(later, "k", b"x", delay(100))
    channel.exchange_delete(later)
    channel.exchange_declare(later, "x-delayed-message", arguments={"x-delayed-type": "direct"})
    channel.queue_bind(queue, later, "k")
    channel.basic_publish(later, "k", b"y", delay(200))
    assert fetch(channel, queue)[2] == b"y"
    assert channel.basic_get(queue)[0] is None


@pytest.mark.needs_control
@pytest.mark.parametrize("how", ["restart", "crash"])
def test_what_was_confirmed_survives(name, how):
    opened = connect()
    channel = opened.channel()
    exchange, queue = name, f"{name}.q"
    channel.exchange_declare(exchange, "x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"})
    channel.queue_declare(queue, durable=True)
    channel.queue_bind(queue, exchange, "k")
    channel.confirm_delivery()
    for number in range(20):
        channel.basic_publish(exchange, "k", str(number), delay(1500 if number < 10 else 3_600_000, delivery_mode=2))
    control(how)
    channel = connect().channel()
    came = sorted(int(fetch(channel, queue)[2]) for _ in range(10))
    assert came == list(range(10))
    assert channel.basic_get(queue)[0] is None
    channel.queue_delete(queue)
    channel.exchange_delete(exchange)
    channel.connection.close()
