"""What survives a restart of the broker and what does not."""

import pika
import pytest

from conftest import connect, control

pytestmark = pytest.mark.needs_control


def exists(kind: str, name: str) -> bool:
    connection = connect()
    channel = connection.channel()
    try:
        if kind == "queue":
            channel.queue_declare(name, passive=True)
        else:
            channel.exchange_declare(name, passive=True)
    except pika.exceptions.ChannelClosedByBroker as closed:
        assert closed.reply_code == 404
        connection.close()
        return False
    connection.close()
    return True


def test_durable_things_survive_a_restart(name):
    connection = connect()
    channel = connection.channel()
    channel.confirm_delivery()
    limited, transient, brief = f"{name}.limited", f"{name}.transient", f"{name}.brief"
    channel.queue_declare(name, durable=True)
    # A quorum queue would keep what is transient.
    channel.queue_declare(brief, durable=True, arguments={"x-queue-type": "classic"})
    channel.queue_declare(limited, durable=True, arguments={"x-max-length": 2})
    channel.queue_declare(transient)
    channel.exchange_declare(name, "topic", durable=True)
    channel.exchange_declare(limited, "fanout", durable=True)
    channel.exchange_declare(transient, "topic")
    channel.exchange_bind(limited, name, "all.#")
    channel.queue_bind(name, name, "a.*")
    channel.queue_bind(limited, limited, "")
    for number in range(100):
        channel.basic_publish("", name, f"persistent {number}".encode(), pika.BasicProperties(delivery_mode=2, headers={"n": number}))
        channel.basic_publish("", brief, b"transient", pika.BasicProperties(delivery_mode=1))
    # One settled, one held by a consumer that never settles it.
    settled, _, _ = channel.basic_get(name)
    channel.basic_ack(settled.delivery_tag)
    channel.basic_get(name)
    held, _, _ = channel.basic_get(name)
    assert held is not None
    connection.close()

    control("restart")

    connection = connect()
    channel = connection.channel()
    channel.confirm_delivery()
    got = []
    while (message := channel.basic_get(name, auto_ack=True))[0] is not None:
        got.append((message[2].decode(), message[1].headers["n"], message[1].delivery_mode))
    assert got == [(f"persistent {number}", number, 2) for number in range(1, 100)]
    channel.basic_publish(name, "a.b", b"bound", mandatory=True)
    assert channel.basic_get(name, auto_ack=True)[2] == b"bound"
    for number in range(3):
        channel.basic_publish(name, "all.of.it", str(number).encode(), pika.BasicProperties(delivery_mode=2))
    assert [channel.basic_get(limited, auto_ack=True)[2] for _ in range(2)] == [b"1", b"2"], "the limit was kept"
    channel.queue_declare(limited, durable=True, arguments={"x-max-length": 2})
    assert not exists("queue", transient)
    assert channel.queue_declare(brief, passive=True).method.message_count == 0
    channel.queue_delete(brief)
    channel.queue_delete(name)
    channel.queue_delete(limited)
    channel.exchange_delete(name)
    channel.exchange_delete(limited)
    channel.exchange_delete(transient)
    connection.close()


@pytest.mark.leveret_only("RabbitMQ 4.3 keeps transient exchanges")
def test_a_transient_exchange_does_not_survive(name):
    connection = connect()
    connection.channel().exchange_declare(name, "topic")
    connection.close()
    control("restart")
    assert not exists("exchange", name)


def test_deletions_survive_a_restart(name):
    connection = connect()
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare(name, durable=True)
    channel.queue_declare(f"{name}.purged", durable=True)
    channel.exchange_declare(name, "direct", durable=True)
    channel.queue_bind(f"{name}.purged", "amq.direct", name)
    channel.queue_unbind(f"{name}.purged", "amq.direct", name)
    for _ in range(10):
        channel.basic_publish("", f"{name}.purged", b"x", pika.BasicProperties(delivery_mode=2))
    channel.queue_purge(f"{name}.purged")
    channel.queue_delete(name)
    channel.exchange_delete(name)
    connection.close()

    control("restart")

    assert not exists("queue", name)
    assert not exists("exchange", name)
    connection = connect()
    channel = connection.channel()
    channel.confirm_delivery()
    assert channel.queue_declare(f"{name}.purged", passive=True).method.message_count == 0
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("amq.direct", name, b"", mandatory=True)
    channel.queue_delete(f"{name}.purged")
    connection.close()


def test_connections_are_told_that_the_broker_stops():
    connection = connect()
    control("restart", answering=False)
    with pytest.raises(pika.exceptions.ConnectionClosed) as closed:
        connection.process_data_events(time_limit=5)
    assert closed.value.reply_code == 320, closed.value


def test_large_messages_survive_a_restart(name):
    connection = connect()
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare(name, durable=True)
    bodies = [bytes([number]) * size for number, size in enumerate((0, 1, 4095, 4096, 131072, 3_000_000))]
    for body in bodies:
        channel.basic_publish("", name, body, pika.BasicProperties(delivery_mode=2))
    connection.close()
    control("restart")
    connection = connect()
    channel = connection.channel()
    assert [channel.basic_get(name, auto_ack=True)[2] for _ in bodies] == bodies
    channel.queue_delete(name)
    connection.close()


@pytest.mark.parametrize("how, again", [(["restart"], [True, True, False, False]), (["crash"], [True] * 4), (["crash", "restart"], [True] * 4)])
def test_what_may_have_been_delivered_before_is_marked(name, how, again):
    """Nobody writes down who was given what: after a crash, a message without the mark must be one that was never delivered."""
    channel = connect().channel()
    channel.confirm_delivery()
    channel.queue_declare(name, durable=True)
    for number in range(4):
        channel.basic_publish("", name, str(number).encode(), pika.BasicProperties(delivery_mode=2))
    channel.basic_get(name)
    channel.basic_get(name)
    for verb in how:
        control(verb)
    connection = connect()
    channel = connection.channel()
    assert [channel.basic_get(name, auto_ack=True)[0].redelivered for _ in again] == again
    channel.queue_delete(name)
    connection.close()
