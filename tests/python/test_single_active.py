"""x-single-active-consumer, and exclusive consumers beside it."""

import pika
import pytest

from conftest import connect
from wire import B, Q, connected

SINGLE = {"x-single-active-consumer": True}


class Waiting:
    """Connections that consume from one queue, and what each of them got."""

    def __init__(self, arguments=SINGLE):
        self.first = connected()
        self.first.channel(1)
        self.queue = self.first.call(1, Q.Declare(queue="", arguments=arguments, durable=True), Q.DeclareOk).queue
        self.wires = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for wire in self.wires.values():
            wire.close()
        self.first.call(1, Q.Delete(queue=self.queue), Q.DeleteOk)
        self.first.close()

    def consume(self, tag, **options):
        wire = connected()
        wire.channel(1)
        wire.call(1, B.Consume(queue=self.queue, consumer_tag=tag, **options), B.ConsumeOk)
        self.wires[tag] = wire

    def publish(self, *bodies):
        for body in bodies:
            self.first.publish(1, "", self.queue, body)

    def delivered(self, tag):
        self.wires[tag].expect(B.Deliver, 1)
        return self.wires[tag].read_content()[1]

    def cancel(self, tag):
        self.wires[tag].call(1, B.Cancel(tag), B.CancelOk)

    def ready(self):
        return self.first.call(1, Q.Declare(queue=self.queue, passive=True), Q.DeclareOk).message_count


def test_one_consumer_gets_everything_and_the_next_one_takes_over():
    with Waiting() as it:
        it.consume("a", no_ack=True)
        it.consume("b", no_ack=True)
        it.publish(b"1", b"2", b"3")
        assert [it.delivered("a") for _ in range(3)] == [b"1", b"2", b"3"]
        it.cancel("a")
        it.publish(b"4")
        assert it.delivered("b") == b"4"


def test_a_closed_connection_hands_over_with_what_it_held():
    with Waiting() as it:
        it.consume("a")
        it.consume("b", no_ack=True)
        it.publish(b"1", b"2")
        assert [it.delivered("a") for _ in range(2)] == [b"1", b"2"]
        it.wires.pop("a").close()
        assert [it.delivered("b") for _ in range(2)] == [b"1", b"2"]


def test_the_highest_priority_takes_over_but_does_not_displace():
    with Waiting() as it:
        it.consume("low", no_ack=True, arguments={"x-priority": 1})
        it.consume("mid", no_ack=True, arguments={"x-priority": 5})
        it.consume("high", no_ack=True, arguments={"x-priority": 10})
        it.publish(b"1")
        assert it.delivered("low") == b"1"
        it.cancel("low")
        it.publish(b"2")
        assert it.delivered("high") == b"2"


def test_a_full_active_consumer_leaves_the_rest_in_the_queue():
    with Waiting() as it:
        it.consume("a")
        it.cancel("a")
        wire = it.wires["a"]
        wire.call(1, B.Qos(prefetch_count=1), B.QosOk)
        wire.call(1, B.Consume(queue=it.queue, consumer_tag="a"), B.ConsumeOk)
        it.consume("b")
        it.publish(b"1", b"2")
        assert it.delivered("a") == b"1"
        assert it.ready() == 1


def test_no_exclusive_consumer():
    with Waiting() as it:
        wire = connected()
        wire.channel(1)
        wire.send(1, B.Consume(queue=it.queue, consumer_tag="x", exclusive=True))
        closed = wire.expect_channel_close(1)
        assert (closed.reply_code, closed.reply_text) == (403, f"ACCESS_REFUSED - queue '{it.queue}' in vhost '/' in exclusive use")
        wire.close()


def test_get_is_allowed():
    with Waiting() as it:
        it.publish(b"1")
        it.first.send(1, B.Get(queue=it.queue, no_ack=True))
        it.first.expect(B.GetOk, 1)
        assert it.first.read_content()[1] == b"1"


@pytest.mark.parametrize(("value", "kind"), [(1, "signedint"), ("true", "longstr")])
def test_the_argument_is_a_boolean(channel, name, value, kind):
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.queue_declare(name, durable=True, arguments={"x-single-active-consumer": value})
    assert closed.value.reply_code == 406
    assert closed.value.reply_text == f"PRECONDITION_FAILED - invalid arg 'x-single-active-consumer' for queue '{name}' in vhost '/': {{unacceptable_type,{kind}}}"


def test_a_repeated_declaration_must_say_it_again(channel, name):
    channel.queue_declare(name, durable=True, arguments=SINGLE)
    channel.queue_declare(name, durable=True, arguments=SINGLE)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.queue_declare(name, durable=True)
    assert closed.value.reply_text == (
        f"PRECONDITION_FAILED - inequivalent arg 'x-single-active-consumer' for queue '{name}' in vhost '/': "
        "received none but current is the value 'true' of type 'bool'"
    )
    cleaner = connect()
    cleaner.channel().queue_delete(name)
    cleaner.close()
