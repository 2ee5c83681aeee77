"""Delivery limits and delayed retries of classic queues, which are Leveret's own there."""

import time

import pika
import pytest

from conftest import connect, control

pytestmark = pytest.mark.leveret_only("RabbitMQ has them in quorum queues only")


def fetch(channel, queue, seconds=5):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = channel.basic_get(queue)
        if got[0]:
            return got
    raise AssertionError(f"nothing came to {queue}")


def declare(channel, name, **arguments):
    channel.queue_delete(name)
    channel.queue_declare(name, durable=True, arguments={"x-" + key.replace("_", "-"): value for key, value in arguments.items()})


def test_a_message_says_how_often_it_came_back_and_is_dead_lettered_after_that(channel, name):
    dead = name + ".dead"
    declare(channel, dead)
    declare(channel, name, delivery_limit=2, dead_letter_exchange="", dead_letter_routing_key=dead)
    channel.basic_publish("", name, b"m", pika.BasicProperties(headers={"mine": 1}))
    for times in range(3):
        method, properties, _ = fetch(channel, name)
        assert method.redelivered == (times > 0)
        assert properties.headers["mine"] == 1
        assert properties.headers.get("x-delivery-count", 0) == times
        (channel.basic_nack if times % 2 else channel.basic_reject)(method.delivery_tag, requeue=True)
    _, properties, body = fetch(channel, dead)
    assert body == b"m"
    assert properties.headers["x-death"][0]["reason"] == "delivery_limit"
    assert properties.headers["x-first-death-queue"] == name
    channel.queue_delete(name)
    channel.queue_delete(dead)


def test_a_channel_that_ends_counts_too(channel, name):
    declare(channel, name, delivery_limit=1)
    channel.basic_publish("", name, b"m")
    for times in range(2):
        other = channel.connection.channel()
        _, properties, _ = fetch(other, name)
        assert (properties.headers or {}).get("x-delivery-count", 0) == times
        other.close()
    assert channel.queue_declare(name, passive=True).method.message_count == 0
    channel.queue_delete(name)


def test_what_comes_back_waits_and_the_others_go_past_it(channel, name):
    declare(channel, name, retry_delay={"initial": 300, "factor": 2})
    for body in (b"bad", b"good"):
        channel.basic_publish("", name, body)
    method, _, _ = fetch(channel, name)
    for times, delay in ((1, 0.3), (2, 0.6)):
        began = time.monotonic()
        channel.basic_nack(method.delivery_tag, requeue=True)
        if times == 1:
            assert fetch(channel, name)[2] == b"good"
        assert channel.basic_get(name)[0] is None
        method, properties, body = fetch(channel, name)
        assert body == b"bad" and time.monotonic() - began >= delay - 0.01
        assert properties.headers["x-delivery-count"] == times
    channel.queue_delete(name)


def test_a_consumer_gets_it_when_the_time_has_come(channel, name):
    declare(channel, name, retry_delay=200, delivery_limit=2)
    channel.basic_publish("", name, b"m")
    got = []

    def failing(its, method, properties, _):
        got.append((time.monotonic(), (properties.headers or {}).get("x-delivery-count", 0)))
        its.basic_nack(method.delivery_tag, requeue=True)

    channel.basic_consume(name, failing)
    end = time.monotonic() + 10
    while len(got) < 3 and time.monotonic() < end:
        channel.connection.process_data_events(time_limit=0.1)
    assert [count for _, count in got] == [0, 1, 2]
    assert all(later - earlier >= 0.19 for (earlier, _), (later, _) in zip(got, got[1:]))
    channel.queue_delete(name)


def test_counts_and_delays_outlive_a_restart(name):
    channel = connect().channel()
    counted, delayed = name + ".counted", name + ".delayed"
    declare(channel, counted, delivery_limit=-1)
    declare(channel, delayed, retry_delay=600_000)
    channel.confirm_delivery()
    for queue in (counted, delayed):
        channel.basic_publish("", queue, b"m", pika.BasicProperties(delivery_mode=2))
        channel.basic_nack(fetch(channel, queue)[0].delivery_tag, requeue=True)
        # Confirmed after the return is recorded.
        channel.basic_publish("", queue, b"after", pika.BasicProperties(delivery_mode=2))
    channel.connection.close()
    control("restart")
    channel = connect().channel()
    _, properties, body = fetch(channel, counted)
    assert body == b"m" and properties.headers["x-delivery-count"] == 1
    assert fetch(channel, delayed)[2] == b"after"
    assert channel.basic_get(delayed)[0] is None
    for queue in (counted, delayed):
        channel.queue_delete(queue)
    channel.connection.close()
