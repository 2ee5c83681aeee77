"""Publisher confirms and returns."""

import pika
import pytest
from pika import spec

from wire import B, Q, X, connected


def test_confirm_of_a_single_message(channel, queue):
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"x", pika.BasicProperties(delivery_mode=2))
    assert channel.queue_declare(queue, passive=True).method.message_count == 1


def confirms(wire, channel, upto):
    """Collects confirms until this tag: the tags in the order in which they were covered."""
    covered = []
    while len(covered) < upto:
        ack = wire.expect(B.Ack, channel)
        fresh = range(1, ack.delivery_tag + 1) if ack.multiple else [ack.delivery_tag]
        fresh = [tag for tag in fresh if tag not in set(covered)]
        assert fresh, f"confirmed twice: {ack}"
        covered += fresh
    return covered


@pytest.mark.parametrize("delivery_mode", [1, 2], ids=["transient", "persistent"])
def test_confirms_of_many_cover_each_tag_once(wire, name, delivery_mode):
    wire.call(1, Q.Declare(queue=name, durable=True), Q.DeclareOk)
    wire.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
    wire.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
    for number in range(500):
        wire.publish(1, "", name, str(number).encode(), spec.BasicProperties(delivery_mode=delivery_mode))
    assert sorted(confirms(wire, 1, 500)) == list(range(1, 501))
    assert wire.call(1, Q.Delete(queue=name), Q.DeleteOk).message_count == 500


def test_confirm_tags_count_per_channel(wire):
    wire.channel(2)
    for channel in (1, 2):
        wire.call(channel, spec.Confirm.Select(), spec.Confirm.SelectOk)
    wire.publish(2, "", "nowhere")
    assert wire.expect(B.Ack, 2).delivery_tag == 1
    wire.publish(1, "", "nowhere")
    assert wire.expect(B.Ack, 1).delivery_tag == 1
    wire.publish(2, "", "nowhere")
    assert wire.expect(B.Ack, 2).delivery_tag == 2


def test_tags_count_from_confirm_select(wire):
    wire.publish(1, "", "nowhere")
    wire.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
    wire.publish(1, "", "nowhere")
    assert wire.expect(B.Ack, 1).delivery_tag == 1


def test_select_without_answer(wire):
    wire.send(1, spec.Confirm.Select(nowait=True))
    wire.publish(1, "", "nowhere")
    assert wire.expect(B.Ack, 1).delivery_tag == 1


def test_a_mandatory_message_returns_before_its_confirm(wire):
    wire.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
    properties = spec.BasicProperties(content_type="text/plain", headers={"n": 1}, delivery_mode=2)
    wire.publish(1, "amq.direct", "no such key", b"come back", properties, mandatory=True)
    returned = wire.expect(B.Return, 1)
    assert (returned.reply_code, returned.reply_text, returned.exchange, returned.routing_key) == (312, "NO_ROUTE", "amq.direct", "no such key")
    assert wire.read_content() == (properties, b"come back")
    ack = wire.expect(B.Ack, 1)
    assert (ack.delivery_tag, ack.multiple) == (1, False)


def test_a_mandatory_message_returns_without_confirms_too(wire):
    wire.publish(1, "", "nowhere", b"", mandatory=True)
    assert wire.expect(B.Return, 1).reply_code == 312
    assert wire.read_content()[1] == b""


def test_a_routed_mandatory_message_does_not_return(channel, queue):
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"x", mandatory=True)
    with pytest.raises(pika.exceptions.UnroutableError) as unroutable:
        channel.basic_publish("", f"{queue}.nowhere", b"y", mandatory=True)
    assert [message.body for message in unroutable.value.messages] == [b"y"]


def test_a_message_to_several_queues_is_confirmed_once(wire):
    queues = [wire.call(1, Q.Declare(queue="", exclusive=True), Q.DeclareOk).queue for _ in range(5)]
    for queue in queues:
        wire.call(1, Q.Bind(queue=queue, exchange="amq.fanout"), Q.BindOk)
    wire.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
    wire.publish(1, "amq.fanout", "")
    assert wire.expect(B.Ack, 1).delivery_tag == 1
    wire.publish(1, "amq.fanout", "")
    assert wire.expect(B.Ack, 1).delivery_tag == 2


def test_an_empty_body_and_a_large_one(channel, queue):
    channel.confirm_delivery()
    large = bytes(range(256)) * 8192
    for body in (b"", b"x", large, b""):
        channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2))
    assert [channel.basic_get(queue, auto_ack=True)[2] for _ in range(4)] == [b"", b"x", large, b""]


def test_confirms_go_on_while_a_consumer_does_not_read(name):
    """A consumer that leaves its socket full must not hold up what publishers are told."""
    with connected() as stuck, connected() as publisher:
        stuck.channel(1)
        publisher.channel(1)
        publisher.call(1, Q.Declare(queue=name), Q.DeclareOk)
        stuck.call(1, B.Consume(queue=name, consumer_tag="s", no_ack=True), B.ConsumeOk)
        publisher.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
        body = b"x" * 100_000
        for number in range(1, 301):
            publisher.publish(1, "", name, body)
            if number % 10 == 0:
                confirms_seen = 0
                while confirms_seen < number:
                    confirms_seen = publisher.expect(B.Ack, 1).delivery_tag
        publisher.call(1, Q.Delete(queue=name), Q.DeleteOk)


def test_everything_without_answers(wire, name):
    wire.send(1, X.Declare(exchange=name, type="fanout", nowait=True))
    wire.send(1, Q.Declare(queue=name, exclusive=True, nowait=True))
    wire.send(1, Q.Bind(queue=name, exchange=name, nowait=True))
    wire.send(1, X.Bind(destination=name, source="amq.direct", routing_key=name, nowait=True))
    wire.publish(1, "amq.direct", name, b"through both")
    wire.send(1, Q.Purge(queue=name, nowait=True))
    wire.send(1, X.Unbind(destination=name, source="amq.direct", routing_key=name, nowait=True))
    wire.send(1, B.Consume(queue=name, consumer_tag="c", nowait=True))
    wire.send(1, B.Cancel("c", nowait=True))
    wire.send(1, X.Delete(exchange=name, nowait=True))
    wire.send(1, Q.Delete(queue=name, nowait=True))
    wire.call(1, Q.Delete(queue=name), Q.DeleteOk)
