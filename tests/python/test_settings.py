"""Settings that change what clients see: mechanisms, the anonymous user, what the node writes into messages."""

import time

import pytest
from pika import frame as frames
from pika import spec

from test_process import at, broker, pytestmark  # noqa: F401 - a fixture and a mark
from waiting import until
from wire import B, Q, method_bytes, raw_frame

INTERCEPT = "message_interceptors.incoming"


def offered(one):
    with at(one) as wire:
        mechanisms = wire.start().mechanisms
    return (mechanisms if isinstance(mechanisms, str) else mechanisms.decode()).split()


def test_the_mechanisms_of_the_configuration_are_offered_in_its_order(broker):  # noqa: F811
    one = broker({"auth_mechanisms.2": "PLAIN", "auth_mechanisms.1": "AMQPLAIN"}).start()
    assert offered(one) == ["AMQPLAIN", "PLAIN"]
    with at(one) as wire:
        wire.start()
        wire.login(mechanism="ANONYMOUS", response="")
        closed = wire.expect_connection_close()
        assert (closed.reply_code, closed.reply_text) == (503, "COMMAND_INVALID - unknown authentication mechanism 'ANONYMOUS'")


def test_anonymous_logins_can_be_turned_off(broker):  # noqa: F811
    assert offered(broker({"anonymous_login_user": "none"}).start()) == ["PLAIN", "AMQPLAIN"]


@pytest.mark.parametrize("settings", [{"anonymous_login_user": "nobody"}, {"anonymous_login_pass": "wrong"}], ids=["no such user", "wrong password"])
def test_an_anonymous_login_needs_its_user(broker, settings):  # noqa: F811
    one = broker(settings).start()
    with at(one) as wire:
        wire.start()
        wire.login(mechanism="ANONYMOUS", response="")
        assert wire.expect_connection_close().reply_code == 403


def test_external_is_not_offered_without_tls(broker):  # noqa: F811
    one = broker({"auth_mechanisms.1": "EXTERNAL", "auth_mechanisms.2": "PLAIN"}).start()
    assert offered(one) == ["PLAIN"]
    assert "auth_mechanisms contains EXTERNAL" in one.log_text()


def passed(one, properties):
    """What comes out of a queue of what was published, through a transaction and without."""
    got = []
    with at(one) as wire:
        wire.open().channel(1)
        wire.call(1, Q.Declare(queue="q", exclusive=True), Q.DeclareOk)
        wire.publish(1, "", "q", b"m", properties)
        wire.call(1, spec.Tx.Select(), spec.Tx.SelectOk)
        wire.publish(1, "", "q", b"m", properties)
        wire.call(1, spec.Tx.Commit(), spec.Tx.CommitOk)
        for _ in range(2):
            wire.call(1, B.Get(queue="q", no_ack=True), B.GetOk)
            got.append(wire.read_content()[0])
    return got


def test_messages_say_when_and_where_they_came_in(broker):  # noqa: F811
    one = broker({f"{INTERCEPT}.set_header_timestamp.overwrite": "false", f"{INTERCEPT}.set_header_routing_node.overwrite": "false"}).start()
    before = int(time.time() * 1000)
    for properties in passed(one, spec.BasicProperties(headers={"a": 1}, delivery_mode=2)):
        # The broker follows a wall clock that is set by little, slowly.
        assert before - 1000 <= properties.headers["timestamp_in_ms"] <= time.time() * 1000 + 1000
        assert properties.timestamp == properties.headers["timestamp_in_ms"] // 1000
        assert properties.headers["x-routed-by"].startswith("rabbit@")
        assert (properties.headers["a"], properties.delivery_mode) == (1, 2)


def test_what_the_publisher_says_stays_unless_it_is_to_be_overwritten(broker):  # noqa: F811
    sent = spec.BasicProperties(headers={"timestamp_in_ms": 5, "x-routed-by": "me"}, timestamp=7)
    one = broker({f"{INTERCEPT}.set_header_timestamp.overwrite": "false", f"{INTERCEPT}.set_header_routing_node.overwrite": "false"}).start()
    for properties in passed(one, sent):
        assert (properties.headers, properties.timestamp) == ({"timestamp_in_ms": 5, "x-routed-by": "me"}, 7)
    one = broker({f"{INTERCEPT}.set_header_timestamp.overwrite": "true"}).start()
    for properties in passed(one, sent):
        assert properties.headers["x-routed-by"] == "me"
        assert properties.headers["timestamp_in_ms"] > 1_600_000_000_000
        assert properties.timestamp > 1_600_000_000


def announced(channel, size):
    """The beginning of a message of this size."""
    return method_bytes(channel, B.Publish(exchange="", routing_key="q")) + frames.Header(channel, size, spec.BasicProperties()).marshal()


def test_what_is_never_finished_has_a_limit(broker):  # noqa: F811
    one = broker({"max_message_size": "1048576", "max_unfinished_size": "8MiB"}).start()
    with at(one) as wire, at(one) as other:
        other.open().channel(1)
        other.call(1, Q.Declare(queue="q", exclusive=False), Q.DeclareOk)
        wire.open()
        for number in range(1, 101):
            wire.channel(number)
        for number in range(1, 101):
            body = raw_frame(3, number, b"x" * 131_000)
            wire.send_bytes(announced(number, 1 << 20) + 8 * body)
        closed = wire.expect_connection_close()
        text = "RESOURCE_ERROR - messages that are still incomplete on this connection take more than 8388608 bytes (max_unfinished_size)"
        assert (closed.reply_code, closed.class_id, closed.method_id, closed.reply_text) == (506, 60, 40, text)
        assert text in one.log_text()
        # What hundreds of channels send in turns is no more than that at any time, and all of it arrives.
        for number in range(2, 301):
            other.channel(number)
        for _ in range(3):
            for number in range(2, 301):
                other.send_bytes(announced(number, 20_000))
            for _ in range(4):
                for number in range(2, 301):
                    other.send_bytes(raw_frame(3, number, b"y" * 5_000))
        until(lambda: other.call(1, Q.Declare(queue="q", passive=True), Q.DeclareOk).message_count, wanted=lambda it: it == 3 * 299, what="not all arrived")
