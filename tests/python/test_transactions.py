"""Transactions: publishes and acknowledgements that take effect together."""

import pika
import pytest
from pika import spec

from conftest import connect, control
from wire import B, Q, connected


def transactional(wire, channel=1):
    wire.call(channel, spec.Tx.Select(), spec.Tx.SelectOk)


def commit(wire, channel=1):
    wire.call(channel, spec.Tx.Commit(), spec.Tx.CommitOk)


def test_nothing_is_seen_before_the_commit(channel, connection, queue):
    channel.tx_select()
    for number in range(100):
        channel.basic_publish("", queue, str(number), pika.BasicProperties(delivery_mode=1 + number % 2))
    other = connection.channel()
    assert other.basic_get(queue)[0] is None
    channel.tx_commit()
    bodies = [other.basic_get(queue, auto_ack=True)[2] for _ in range(100)]
    assert bodies == [str(number).encode() for number in range(100)]


def test_a_rollback_forgets_messages_and_acknowledgements(channel, connection, queue):
    channel.basic_publish("", queue, b"kept")
    channel.tx_select()
    method, _, _ = channel.basic_get(queue)
    channel.basic_ack(method.delivery_tag)
    channel.basic_publish("", queue, b"dropped")
    channel.tx_rollback()
    # The tag is unsettled again.
    channel.basic_ack(method.delivery_tag)
    channel.tx_commit()
    channel.close()
    assert connection.channel().basic_get(queue)[0] is None


def test_a_consumer_commits_what_it_took_and_what_it_made_of_it(wire, name):
    for queue in (name, f"{name}.out"):
        wire.call(1, Q.Declare(queue=queue, durable=True), Q.DeclareOk)
    for number in range(10):
        wire.publish(1, "", name, str(number).encode(), spec.BasicProperties(delivery_mode=2))
    transactional(wire)
    wire.call(1, B.Consume(queue=name, consumer_tag="c"), B.ConsumeOk)
    taken = [(wire.expect(B.Deliver, 1).delivery_tag, wire.read_content()[1]) for _ in range(10)]
    for tag, body in taken:
        wire.publish(1, "", f"{name}.out", b"done " + body, spec.BasicProperties(delivery_mode=2))
        wire.send(1, B.Ack(tag))
        commit(wire)
    assert wire.call(1, Q.Delete(queue=f"{name}.out"), Q.DeleteOk).message_count == 10
    wire.call(1, B.Cancel("c"), B.CancelOk)
    assert wire.call(1, Q.Delete(queue=name), Q.DeleteOk).message_count == 0


def test_a_transaction_larger_than_a_frame_and_than_a_read(channel, queue):
    channel.tx_select()
    for number in range(40):
        channel.basic_publish("", queue, bytes([number]) * 300_000)
    channel.tx_commit()
    for number in range(40):
        assert channel.basic_get(queue, auto_ack=True)[2] == bytes([number]) * 300_000
    channel.tx_commit()


def test_pipelined_commits_are_answered_in_order(wire, name):
    wire.call(1, Q.Declare(queue=name, durable=True), Q.DeclareOk)
    transactional(wire)
    for number in range(20):
        wire.publish(1, "", name, str(number).encode(), spec.BasicProperties(delivery_mode=2))
        wire.send(1, spec.Tx.Commit())
    for _ in range(20):
        wire.expect(spec.Tx.CommitOk, 1)
    assert wire.call(1, Q.Delete(queue=name), Q.DeleteOk).message_count == 20


def test_two_channels_have_two_transactions(wire, name):
    wire.call(1, Q.Declare(queue=name, durable=True), Q.DeclareOk)
    wire.channel(2)
    for channel in (1, 2):
        transactional(wire, channel)
        wire.publish(channel, "", name, b"x")
    wire.call(2, spec.Tx.Rollback(), spec.Tx.RollbackOk)
    commit(wire)
    commit(wire, 2)
    assert wire.call(1, Q.Delete(queue=name), Q.DeleteOk).message_count == 1


@pytest.mark.parametrize("end", ["channel", "connection", "socket"])
def test_what_ends_before_the_commit_never_was(name, end):
    keeper = connected()
    keeper.channel(1)
    keeper.call(1, Q.Declare(queue=name, durable=True), Q.DeclareOk)
    keeper.publish(1, "", name, b"first")
    wire = connected()
    wire.channel(1)
    transactional(wire)
    tag = wire.call(1, B.Get(queue=name), B.GetOk).delivery_tag
    wire.read_content()
    wire.send(1, B.Ack(tag))
    wire.publish(1, "", name, b"second")
    wire.call(1, spec.Channel.Flow(True), spec.Channel.FlowOk)
    if end == "channel":
        wire.call(1, spec.Channel.Close(200, "", 0, 0), spec.Channel.CloseOk)
    elif end == "connection":
        wire.call(0, spec.Connection.Close(200, "", 0, 0), spec.Connection.CloseOk)
    wire.close()
    # The message comes back when the broker has noticed the end: then a consumer gets it.
    keeper.call(1, B.Consume(queue=name, consumer_tag="c", no_ack=True), B.ConsumeOk)
    delivered = keeper.expect(B.Deliver, 1)
    assert (delivered.redelivered, keeper.read_content()[1]) == (True, b"first")
    keeper.call(1, B.Cancel("c"), B.CancelOk)
    assert keeper.call(1, Q.Delete(queue=name), Q.DeleteOk).message_count == 0
    keeper.close()


@pytest.mark.needs_control
def test_what_was_committed_survives_a_restart(name):
    connection = connect()
    channel = connection.channel()
    channel.queue_declare(name, durable=True)
    channel.tx_select()
    for number in range(5):
        channel.basic_publish("", name, str(number), pika.BasicProperties(delivery_mode=2))
    channel.tx_commit()
    channel.basic_publish("", name, b"not committed", pika.BasicProperties(delivery_mode=2))
    control("restart")
    channel = connect().channel()
    assert channel.queue_declare(name, passive=True).method.message_count == 5
    channel.queue_delete(name)
