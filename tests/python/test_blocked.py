"""Alarms: publishers are told and held, consumers go on."""

import os
import time

import pytest
from pika import spec

from conftest import connect, control
from wire import B, Q, Wire, address

pytestmark = pytest.mark.needs_control
# A disk is looked at every few seconds only.
NOTICE_SECONDS = 30


def alarm_address():
    return address()[0], int(os.environ["ALARM_PORT"])


@pytest.fixture
def alarm():
    control("alarm-on")
    yield
    control("alarm-off")


def publish_until_blocked(wire, queue):
    """Publishes until the broker says that it is blocked; how many that took."""
    wire.socket.settimeout(0.2)
    deadline = time.monotonic() + NOTICE_SECONDS
    published = 0
    while time.monotonic() < deadline:
        wire.publish(1, "", queue, b"x")
        published += 1
        try:
            blocked = wire.expect(spec.Connection.Blocked, 0)
        except TimeoutError:
            continue
        wire.socket.settimeout(NOTICE_SECONDS)
        return published, blocked.reason
    raise AssertionError("no connection.blocked")


def test_a_publisher_is_told_and_a_consumer_goes_on(name, alarm):
    with Wire(where=alarm_address()) as publisher, Wire(where=alarm_address()) as consumer:
        publisher.open().channel(1)
        consumer.open().channel(1)
        publisher.call(1, Q.Declare(queue=name, exclusive=False), Q.DeclareOk)
        published, reason = publish_until_blocked(publisher, name)
        assert reason == "low on disk"
        # What the blocked connection still sends is read only after the alarm.
        publisher.publish(1, "", name, b"later")
        # Consumers, acknowledgements and declarations of other connections do not notice.
        ready = consumer.call(1, Q.Declare(queue=name, passive=True), Q.DeclareOk).message_count
        assert ready == published - 1, "the message that found out waits"
        consumer.call(1, B.Qos(prefetch_count=1), B.QosOk)
        consumer.call(1, B.Consume(queue=name, consumer_tag="c"), B.ConsumeOk)
        for _ in range(ready):
            tag = consumer.expect(B.Deliver, 1).delivery_tag
            consumer.read_content()
            consumer.send(1, B.Ack(tag))
        assert consumer.call(1, Q.Declare(queue=name, passive=True), Q.DeclareOk).message_count == 0
        control("alarm-off")
        publisher.expect(spec.Connection.Unblocked, 0)
        bodies = []
        consumer.socket.settimeout(NOTICE_SECONDS)
        while b"later" not in bodies:
            tag = consumer.expect(B.Deliver, 1).delivery_tag
            bodies.append(consumer.read_content()[1])
            consumer.send(1, B.Ack(tag))
        consumer.call(1, Q.Delete(queue=name), Q.DeleteOk)


def test_a_publisher_without_the_capability_is_held_silently(name, alarm):
    with Wire(where=alarm_address()) as told, Wire(where=alarm_address()) as untold:
        told.open().channel(1)
        untold.open(capabilities={}).channel(1)
        untold.call(1, Q.Declare(queue=name, exclusive=True), Q.DeclareOk)
        publish_until_blocked(told, "nowhere")
        untold.publish(1, "", name, b"x")
        untold.socket.settimeout(1)
        untold.send(1, Q.Declare(queue=name, passive=True))
        with pytest.raises(TimeoutError):
            untold.read_frame()
        control("alarm-off")
        untold.socket.settimeout(NOTICE_SECONDS)
        untold.expect(Q.DeclareOk, 1)


def test_pika_calls_back_on_blocked_and_unblocked(name, alarm):
    connection = connect(port=alarm_address()[1], blocked_connection_timeout=60)
    heard = []
    connection.add_on_connection_blocked_callback(lambda _, frame: heard.append(frame.method.reason))
    connection.add_on_connection_unblocked_callback(lambda *_: heard.append("unblocked"))
    channel = connection.channel()
    deadline = time.monotonic() + NOTICE_SECONDS
    while not heard and time.monotonic() < deadline:
        channel.basic_publish("", "nowhere", b"x")
        connection.process_data_events(time_limit=0.2)
    assert heard == ["low on disk"]
    control("alarm-off")
    while len(heard) < 2 and time.monotonic() < deadline + NOTICE_SECONDS:
        connection.process_data_events(time_limit=0.2)
    assert heard == ["low on disk", "unblocked"]
    connection.close()
