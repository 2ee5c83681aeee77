"""Consumers, acknowledgements, prefetch, get, cancel."""

import pika
import pytest
from pika import spec

from conftest import connect
from waiting import until
from wire import B, CAPABILITIES, Q, Wire, connected


class Consumer:
    """A wire connection with a queue that holds the messages 0, 1, 2 …"""

    def __init__(self, messages: int):
        self.wire = connected()
        self.wire.channel(1)
        self.queue = self.wire.call(1, Q.Declare(queue="", exclusive=True), Q.DeclareOk).queue
        for number in range(messages):
            self.wire.publish(1, "", self.queue, str(number).encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def consume(self, tag="c", channel=1, **options):
        self.wire.call(channel, B.Consume(queue=self.queue, consumer_tag=tag, **options), B.ConsumeOk)

    def deliveries(self, count):
        """The next deliveries as (body, tag, redelivered)."""
        got = []
        for _ in range(count):
            method = self.wire.expect(B.Deliver)
            got.append((int(self.wire.read_content()[1]), method.delivery_tag, method.redelivered))
        return got

    def deliveries_around(self, count, answer):
        """That many deliveries as (body, redelivered), and one answer somewhere among them."""
        got, answered = [], False
        while len(got) < count or not answered:
            frame = self.wire.read_frame()
            if isinstance(frame.method, answer):
                answered = True
                continue
            assert isinstance(frame.method, B.Deliver), frame.method
            got.append((int(self.wire.read_content()[1]), frame.method.redelivered))
        return got

    def nothing_comes(self, channel=1):
        """A round trip through the queue, with no delivery before its answer."""
        return self.wire.call(channel, Q.Declare(queue=self.queue, passive=True), Q.DeclareOk).message_count

    def comes_to(self, count):
        """That many are ready, and nothing comes. A queue of another node counts what a channel gives back once it has come there."""
        until(self.nothing_comes, count.__eq__, what="so many are ready")

    def get(self, channel=1, **options):
        self.wire.send(channel, B.Get(queue=self.queue, **options))
        answer = self.wire.read_frame().method
        if isinstance(answer, B.GetEmpty):
            return None
        return int(self.wire.read_content()[1]), answer.delivery_tag, answer.redelivered, answer.message_count

    def get_all(self):
        """Bodies and redelivered flags of all that is ready."""
        got = []
        while (message := self.get(no_ack=True)) is not None:
            got.append((message[0], message[2]))
        return got


def test_deliveries_come_in_order_with_tags_from_one():
    with Consumer(100) as c:
        c.consume(no_ack=True)
        assert c.deliveries(100) == [(n, n + 1, False) for n in range(100)]


def test_deliver_tells_consumer_exchange_and_key(wire):
    queue = wire.call(1, Q.Declare(queue="", exclusive=True), Q.DeclareOk).queue
    wire.call(1, Q.Bind(queue=queue, exchange="amq.topic", routing_key="a.#"), Q.BindOk)
    tag = wire.call(1, B.Consume(queue=queue, consumer_tag=""), B.ConsumeOk).consumer_tag
    assert tag.startswith("amq.ctag-")
    wire.publish(1, "amq.topic", "a.b", b"body")
    deliver = wire.expect(B.Deliver, 1)
    assert (deliver.consumer_tag, deliver.delivery_tag, deliver.redelivered, deliver.exchange, deliver.routing_key) == (tag, 1, False, "amq.topic", "a.b")
    assert wire.read_content()[1] == b"body"


def test_ack_single_multiple_and_all():
    with Consumer(10) as c:
        c.consume()
        c.deliveries(10)
        c.wire.send(1, B.Ack(3))
        c.wire.send(1, B.Ack(5, True))
        c.wire.send(1, B.Ack(10))
        c.wire.call(1, B.Recover(True), B.RecoverOk)
        assert [(body, redelivered) for body, _, redelivered in c.deliveries(4)] == [(5, True), (6, True), (7, True), (8, True)]
        c.wire.send(1, B.Ack(0, True))
        c.wire.call(1, B.Recover(True), B.RecoverOk)
        assert c.nothing_comes() == 0


def test_a_tag_can_be_acked_once():
    with Consumer(1) as c:
        c.consume()
        c.deliveries(1)
        c.wire.send(1, B.Ack(1))
        c.wire.send(1, B.Ack(1))
        closed = c.wire.expect_channel_close(1)
        assert (closed.reply_code, closed.reply_text) == (406, "PRECONDITION_FAILED - unknown delivery tag 1")


def test_a_no_ack_delivery_cannot_be_acked():
    with Consumer(1) as c:
        c.consume(no_ack=True)
        c.deliveries(1)
        c.wire.send(1, B.Ack(1))
        assert c.wire.expect_channel_close(1).reply_code == 406


@pytest.mark.parametrize("how", ["nack", "nack multiple", "reject", "recover", "recover-async", "close"])
def test_requeue_goes_to_the_original_position(how):
    with Consumer(6) as c:
        tags = [c.get()[1] for _ in range(4)]
        assert tags == [1, 2, 3, 4]
        if how == "nack":
            for tag in (3, 1, 4, 2):
                c.wire.send(1, B.Nack(tag, False, True))
        elif how == "nack multiple":
            c.wire.send(1, B.Nack(4, True, True))
        elif how == "reject":
            for tag in (2, 4, 1, 3):
                c.wire.send(1, B.Reject(tag, True))
        elif how == "recover":
            c.wire.call(1, B.Recover(True), B.RecoverOk)
        elif how == "recover-async":
            c.wire.send(1, B.RecoverAsync(True))
        else:
            c.wire.call(1, spec.Channel.Close(200, "", 0, 0), spec.Channel.CloseOk)
            c.wire.channel(1)
        assert c.get_all() == [(0, True), (1, True), (2, True), (3, True), (4, False), (5, False)]


def test_a_dropped_connection_requeues(queue):
    publisher = connect()
    channel = publisher.channel()
    channel.confirm_delivery()
    for number in range(5):
        channel.basic_publish("", queue, str(number).encode())
    dropped = connected()
    dropped.channel(1)
    dropped.call(1, B.Consume(queue=queue, consumer_tag="c"), B.ConsumeOk)
    for _ in range(5):
        dropped.expect(B.Deliver)
        dropped.read_content()
    dropped.close()
    until(lambda: channel.queue_declare(queue, passive=True).method.message_count == 5)
    got = [channel.basic_get(queue, auto_ack=True) for _ in range(5)]
    assert [(body, method.redelivered) for method, _, body in got] == [(str(n).encode(), True) for n in range(5)]
    publisher.close()


def test_reject_and_nack_without_requeue_drop():
    with Consumer(4) as c:
        for _ in range(4):
            c.get()
        c.wire.send(1, B.Reject(1, False))
        c.wire.send(1, B.Nack(3, True, False))
        c.wire.call(1, B.Recover(True), B.RecoverOk)
        assert c.get_all() == [(3, True)]


def test_nack_of_everything():
    with Consumer(3) as c:
        for _ in range(3):
            c.get()
        c.wire.send(1, B.Nack(0, True, True))
        assert c.get_all() == [(0, True), (1, True), (2, True)]


def test_a_requeued_message_comes_back_to_the_consumer_first():
    with Consumer(5) as c:
        c.wire.call(1, B.Qos(prefetch_count=2), B.QosOk)
        c.consume()
        assert c.deliveries(2) == [(0, 1, False), (1, 2, False)]
        c.wire.send(1, B.Nack(1, False, True))
        assert c.deliveries(1) == [(0, 3, True)]
        c.wire.send(1, B.Ack(3, True))
        assert c.deliveries(2) == [(2, 4, False), (3, 5, False)]


# Prefetch.


def test_prefetch_per_consumer():
    with Consumer(20) as c:
        c.wire.call(1, B.Qos(prefetch_count=3), B.QosOk)
        c.consume("a")
        c.deliveries(3)
        assert c.nothing_comes() == 17
        # The new value holds for later consumers; the old consumer keeps its own.
        c.wire.call(1, B.Qos(prefetch_count=5), B.QosOk)
        c.consume("b")
        c.deliveries(5)
        assert c.nothing_comes() == 12
        c.wire.send(1, B.Ack(1))
        assert c.deliveries(1) == [(8, 9, False)]
        assert c.nothing_comes() == 11


@pytest.mark.leveret_only("RabbitMQ 4.3 treats a global prefetch as one per consumer")
def test_prefetch_per_channel():
    with Consumer(20) as c:
        c.wire.call(1, B.Qos(prefetch_count=4, global_qos=True), B.QosOk)
        c.consume("a")
        c.deliveries(4)
        c.consume("b")
        c.comes_to(16)
        c.wire.send(1, B.Ack(2, True))
        c.deliveries(2)
        c.comes_to(14)


@pytest.mark.leveret_only("RabbitMQ 4.3 treats a global prefetch as one per consumer")
@pytest.mark.parametrize(("raised", "more"), [(6, 2), (12, 8), (0, 16)], ids=["a little", "a lot", "to no limit"])
def test_raising_the_prefetch_of_a_channel_lets_more_through_at_once(raised, more):
    with Consumer(20) as c:
        c.wire.call(1, B.Qos(prefetch_count=4, global_qos=True), B.QosOk)
        c.consume("a")
        c.deliveries(4)
        c.consume("b")
        c.wire.send(1, B.Qos(prefetch_count=raised, global_qos=True))
        assert len(c.deliveries_around(more, B.QosOk)) == more
        c.comes_to(16 - more)


@pytest.mark.leveret_only("RabbitMQ 4.3 treats a global prefetch as one per consumer")
def test_both_prefetches_hold():
    with Consumer(20) as c:
        c.wire.call(1, B.Qos(prefetch_count=3), B.QosOk)
        c.wire.call(1, B.Qos(prefetch_count=5, global_qos=True), B.QosOk)
        c.consume("a")
        c.deliveries(3)
        c.comes_to(17)
        c.consume("b")
        c.deliveries(2)
        c.comes_to(15)


def test_no_ack_consumers_and_gets_know_no_prefetch():
    with Consumer(20) as c:
        c.wire.call(1, B.Qos(prefetch_count=1), B.QosOk)
        for n in range(5):
            assert c.get()[0] == n
        c.consume(no_ack=True)
        assert len(c.deliveries(15)) == 15


def test_consumers_take_turns():
    with Consumer(0) as c:
        c.wire.call(1, B.Qos(prefetch_count=1), B.QosOk)
        for tag in ("a", "b", "c"):
            c.consume(tag)
        order = []
        for number in range(9):
            c.wire.publish(1, "", c.queue, str(number).encode())
            method = c.wire.expect(B.Deliver)
            c.wire.read_content()
            order.append(method.consumer_tag)
            c.wire.send(1, B.Ack(method.delivery_tag))
            assert c.nothing_comes() == 0
        assert {tag: order.count(tag) for tag in "abc"} == {"a": 3, "b": 3, "c": 3}, order


def test_a_consumer_without_credit_is_passed_over():
    with Consumer(0) as c:
        c.wire.call(1, B.Qos(prefetch_count=1), B.QosOk)
        c.consume("busy")
        c.wire.publish(1, "", c.queue, b"0")
        c.deliveries(1)
        c.wire.call(1, B.Qos(prefetch_count=0), B.QosOk)
        c.consume("free")
        for number in range(1, 6):
            c.wire.publish(1, "", c.queue, str(number).encode())
            assert c.wire.expect(B.Deliver).consumer_tag == "free"
            c.wire.read_content()


# Get.


def test_get_counts_what_is_left_and_tells_when_empty():
    with Consumer(3) as c:
        assert c.get() == (0, 1, False, 2)
        assert c.get(no_ack=True) == (1, 2, False, 1)
        assert c.get() == (2, 3, False, 0)
        assert c.get() is None
        c.wire.send(1, B.Ack(3, True))
        c.wire.call(1, B.Recover(True), B.RecoverOk)
        assert c.get() is None


# Cancel.


def test_cancel_stops_deliveries_and_keeps_what_was_delivered():
    with Consumer(2) as c:
        c.wire.call(1, B.Qos(prefetch_count=1), B.QosOk)
        c.consume("c")
        c.deliveries(1)
        c.wire.call(1, B.Cancel("c"), B.CancelOk)
        c.wire.send(1, B.Ack(1))
        assert c.nothing_comes() == 1
        c.consume("c")
        assert c.deliveries(1) == [(1, 2, False)]


def test_a_consumer_learns_that_its_queue_was_deleted(queue):
    with connected() as consumer, connected() as other:
        consumer.channel(1)
        other.channel(1)
        consumer.call(1, B.Consume(queue=queue, consumer_tag="told"), B.ConsumeOk)
        other.call(1, Q.Delete(queue=queue), Q.DeleteOk)
        cancel = consumer.expect(B.Cancel, 1)
        assert (cancel.consumer_tag, cancel.nowait) == ("told", True)
        consumer.call(1, B.Recover(True), B.RecoverOk)


def test_a_consumer_that_did_not_ask_is_not_told(queue):
    capabilities = {key: value for key, value in CAPABILITIES.items() if key != "consumer_cancel_notify"}
    with Wire() as consumer, connected() as other:
        consumer.open(capabilities=capabilities).channel(1)
        other.channel(1)
        consumer.call(1, B.Consume(queue=queue, consumer_tag="untold"), B.ConsumeOk)
        other.call(1, Q.Delete(queue=queue), Q.DeleteOk)
        consumer.call(1, B.Recover(True), B.RecoverOk)
        consumer.call(1, Q.Delete(queue=queue), Q.DeleteOk)


def test_exclusive_consumer(channel, queue, connection):
    tag = channel.basic_consume(queue, lambda *_: None, exclusive=True)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        connection.channel().basic_consume(queue, lambda *_: None)
    assert closed.value.reply_code == 403
    channel.basic_cancel(tag)
    again = connection.channel()
    again.basic_cancel(again.basic_consume(queue, lambda *_: None))


def test_the_same_tag_on_another_channel():
    with Consumer(0) as c:
        c.wire.channel(2)
        c.consume("same", channel=1)
        c.consume("same", channel=2)
        c.wire.publish(1, "", c.queue, b"0")
        c.wire.publish(1, "", c.queue, b"1")
        channels = []
        for _ in range(2):
            frame = c.wire.read_frame()
            channels.append(frame.channel_number)
            c.wire.read_content()
        assert sorted(channels) == [1, 2]


def test_closing_a_channel_moves_its_messages_to_the_others():
    with Consumer(6) as c:
        c.wire.channel(2)
        c.wire.call(1, B.Qos(prefetch_count=3), B.QosOk)
        c.consume("first", channel=1)
        c.deliveries(3)
        c.consume("second", channel=2)
        c.deliveries(3)
        c.wire.send(1, spec.Channel.Close(200, "", 0, 0))
        assert c.deliveries_around(3, spec.Channel.CloseOk) == [(0, True), (1, True), (2, True)]


def test_a_slow_consumer_catches_up(name):
    """A backlog beyond every socket buffer waits for a client that reads late."""
    with connected() as slow, connected() as publisher:
        slow.channel(1)
        publisher.channel(1)
        publisher.call(1, Q.Declare(queue=name), Q.DeclareOk)
        publisher.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
        slow.call(1, B.Qos(prefetch_count=200), B.QosOk)
        slow.call(1, B.Consume(queue=name, consumer_tag="slow"), B.ConsumeOk)
        publish_confirmed(publisher, name, 300)
        # Nothing was read so far; now read 100 and acknowledge them: 100 more come.
        for count in (100, 200):
            for _ in range(count):
                tag = slow.expect(B.Deliver, 1).delivery_tag
                slow.read_content()
            slow.send(1, B.Ack(tag, True))
        slow.call(1, Q.Delete(queue=name), Q.DeleteOk)


def publish_confirmed(wire, queue, count):
    for _ in range(count):
        wire.publish(1, "", queue, b"x" * 50_000)
    confirmed = 0
    while confirmed < count:
        confirmed = wire.expect(B.Ack, 1).delivery_tag


def test_a_slow_consumer_does_not_stall_its_connections_other_channel(name, queue):
    """While deliveries of channel 1 clog the socket, what the client settles on channel 2 must still be taken."""
    flood = f"{name}.flood"
    with connected() as clogged, connected() as publisher:
        clogged.channel(1)
        clogged.channel(2)
        publisher.channel(1)
        publisher.call(1, Q.Declare(queue=flood), Q.DeclareOk)
        for _ in range(10):
            publisher.publish(1, "", queue, b"held")
        publisher.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
        for _ in range(10):
            clogged.call(2, B.Get(queue=queue), B.GetOk)
            clogged.read_content()
        clogged.call(1, B.Consume(queue=flood, consumer_tag="slow", no_ack=True), B.ConsumeOk)
        publish_confirmed(publisher, flood, 400)
        clogged.send(2, B.Nack(0, True, True))
        ready = lambda: publisher.call(1, Q.Declare(queue=queue, passive=True), Q.DeclareOk).message_count  # noqa: E731
        until(lambda: ready() == 10, what="the nack on the other channel was not taken")
        publisher.call(1, Q.Delete(queue=flood), Q.DeleteOk)
