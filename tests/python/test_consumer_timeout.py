"""Deadlines of acknowledgements (x-consumer-timeout), which RabbitMQ 4.3 has in quorum queues only."""

import time

import pika
import pytest

from api import Api
from conftest import connect

pytestmark = pytest.mark.leveret_only("RabbitMQ has them in quorum queues only")


def until(channel, condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        channel.connection.process_data_events(0.05)


def declare(channel, name, timeout):
    channel.queue_declare(name, durable=True, arguments={"x-consumer-timeout": timeout})


def test_a_slow_consumer_is_cancelled_and_another_gets_its_message(channel, name):
    declare(channel, name, 300)
    cancelled, got = [], []
    channel.add_on_cancel_callback(cancelled.append)
    channel.basic_consume(name, lambda _channel, method, _properties, body: got.append((method, body)), consumer_tag="slow")
    channel.basic_publish("", name, b"m")
    until(channel, lambda: got)
    until(channel, lambda: cancelled)
    assert channel.is_open
    channel.basic_ack(got[0][0].delivery_tag)
    method, _, body = channel.basic_get(name)
    assert body == b"m" and method.redelivered
    channel.basic_ack(method.delivery_tag)
    channel.queue_delete(name)


def test_qos_is_a_sign_of_life(channel, name):
    declare(channel, name, 600)
    cancelled, got = [], []
    channel.add_on_cancel_callback(cancelled.append)
    channel.basic_consume(name, lambda _channel, method, *_: got.append(method), consumer_tag="long")
    channel.basic_publish("", name, b"m")
    until(channel, lambda: got)
    start = time.monotonic()
    while time.monotonic() < start + 1.5:
        channel.basic_qos(prefetch_count=10)
        channel.connection.process_data_events(0.1)
    assert not cancelled
    channel.basic_ack(got[0].delivery_tag)
    channel.queue_delete(name)


def test_a_consumer_says_itself_how_long_it_needs(channel, name):
    channel.queue_declare(name, durable=True)
    cancelled = []
    channel.add_on_cancel_callback(cancelled.append)
    channel.basic_consume(name, lambda *_: None, consumer_tag="quick", arguments={"x-consumer-timeout": 200})
    channel.basic_publish("", name, b"m")
    until(channel, lambda: cancelled)
    assert channel.queue_declare(name, passive=True).method.message_count == 1
    channel.queue_delete(name)


def test_a_client_that_knows_no_cancelled_consumers_loses_its_channel(name):
    properties = {"capabilities": {"consumer_cancel_notify": False}}
    connection = connect(client_properties=properties)
    channel = connection.channel()
    declare(channel, name, 200)
    channel.basic_consume(name, lambda *_: None)
    channel.basic_publish("", name, b"m")
    end = time.monotonic() + 10
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        while time.monotonic() < end:
            connection.process_data_events(0.05)
            if not channel.is_open:
                raise channel._impl._closing_reason
    assert closed.value.reply_code == 406
    assert "delivery acknowledgement on channel 1 timed out. Timeout value used: 200 ms." in closed.value.reply_text
    channel = connection.channel()
    assert channel.queue_declare(name, passive=True).method.message_count == 1
    channel.queue_delete(name)
    connection.close()


def test_the_api_shows_the_timeout_in_force_and_zero_without_one(channel, name):
    channel.queue_declare(name, durable=True)
    channel.basic_consume(name, lambda *_: None, consumer_tag="patient")
    channel.basic_consume(name, lambda *_: None, consumer_tag="quick", arguments={"x-consumer-timeout": 70000})
    shown = {it["consumer_tag"]: it["consumer_timeout"] for it in Api().get(f"/queues/%2F/{name}").json["consumer_details"]}
    assert shown == {"patient": 0, "quick": 70000}
    channel.queue_delete(name)
