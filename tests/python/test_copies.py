"""The headers CC and BCC, and alternate exchanges."""

import pika
import pytest
from pika import spec

from wire import B, Q, X


@pytest.fixture
def queues(wire, name):
    names = [f"{name}.{letter}" for letter in "abc"]
    for each in names:
        wire.call(1, Q.Declare(queue=each, exclusive=True), Q.DeclareOk)
    return names


def taken(wire, queue):
    got = wire.call(1, B.Get(queue=queue, no_ack=True), (B.GetOk, B.GetEmpty))
    return wire.read_content() if isinstance(got, B.GetOk) else None


def test_every_key_gets_a_copy_and_the_blind_ones_are_not_shown(wire, queues):
    a, b, c = queues
    headers = {"CC": [b, a], "BCC": [c], "order": 1}
    wire.publish(1, "", a, b"m", spec.BasicProperties(headers=headers, delivery_mode=2))
    for queue in queues:
        properties, body = taken(wire, queue)
        assert (properties.headers, body) == ({"CC": [b, a], "order": 1}, b"m")
        assert taken(wire, queue) is None


def test_each_copy_is_confirmed_and_one_is_enough_for_mandatory(wire, queues):
    wire.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
    for number in range(1, 101):
        properties = spec.BasicProperties(headers={"CC": queues[:2], "BCC": queues[2:]})
        wire.publish(1, "", "nowhere", b"m", properties, mandatory=True)
    confirmed = 0
    while confirmed < 100:
        confirmed = wire.expect(B.Ack, 1).delivery_tag
    for queue in queues:
        assert wire.call(1, Q.Delete(queue=queue), Q.DeleteOk).message_count == 100


def test_copies_are_kept_in_a_transaction(wire, queues):
    wire.call(1, spec.Tx.Select(), spec.Tx.SelectOk)
    wire.publish(1, "", queues[0], b"m", spec.BasicProperties(headers={"BCC": queues[1:]}))
    wire.call(1, spec.Tx.Commit(), spec.Tx.CommitOk)
    assert [taken(wire, queue)[1] for queue in queues] == [b"m"] * 3


def test_copies_and_plain_messages_keep_their_order(wire, queues):
    a, b, _ = queues
    for number in range(200):
        headers = {"CC": [b]} if number % 3 == 0 else {"n": number} if number % 3 == 1 else None
        wire.publish(1, "", a, str(number).encode(), spec.BasicProperties(headers=headers))
    assert [taken(wire, a)[1] for _ in range(200)] == [str(number).encode() for number in range(200)]
    assert [taken(wire, b)[1] for _ in range(67)] == [str(number).encode() for number in range(0, 200, 3)]


def test_an_alternate_exchange_survives_a_redeclaration_and_takes_what_is_left(channel, name):
    channel.exchange_declare(f"{name}.rest", "fanout")
    for _ in range(2):
        channel.exchange_declare(name, "topic", arguments={"alternate-exchange": f"{name}.rest"})
    queues = {key: channel.queue_declare("", exclusive=True).method.queue for key in ("a.#", "rest")}
    channel.queue_bind(queues["a.#"], name, "a.#")
    channel.queue_bind(queues["rest"], f"{name}.rest")
    channel.confirm_delivery()
    for key in ("a.b", "b.a", "a"):
        channel.basic_publish(name, key, key, mandatory=True)
    assert [channel.basic_get(queues["a.#"], auto_ack=True)[2] for _ in range(2)] == [b"a.b", b"a"]
    assert channel.basic_get(queues["rest"], auto_ack=True)[2] == b"b.a"
    channel.exchange_delete(f"{name}.rest")
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish(name, "b.a", b"", mandatory=True)
    channel.exchange_delete(name)


def test_an_exchange_declare_with_a_bad_alternate(wire, name):
    wire.send(1, X.Declare(exchange=name, arguments={"alternate-exchange": True}))
    closed = wire.expect_channel_close(1)
    assert closed.reply_text == f"PRECONDITION_FAILED - invalid type 'bool' for arg 'alternate-exchange' in exchange '{name}' in vhost '/'"
