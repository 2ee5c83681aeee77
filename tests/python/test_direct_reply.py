"""Direct reply-to: requests and answers without a queue for the answers."""

import threading

import pika
import pytest
from pika import spec

from conftest import connect, elsewhere
from wire import B, Q, connected

REPLY_TO = "amq.rabbitmq.reply-to"


@pytest.fixture
def server(name):
    """Answers each request with its body in capitals, on a connection of its own, to another node if there is one."""
    ready = threading.Event()
    connection = connect(elsewhere())

    def answer(channel, method, properties, body):
        reply = pika.BasicProperties(correlation_id=properties.correlation_id)
        channel.basic_publish("", properties.reply_to, body.upper(), reply, mandatory=True)

    def serve():
        channel = connection.channel()
        channel.queue_declare(name, exclusive=True)
        channel.basic_consume(name, answer, auto_ack=True)
        connection.add_callback_threadsafe(ready.set)
        channel.start_consuming()

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(10)
    yield name
    connection.add_callback_threadsafe(connection.close)
    thread.join(10)


def ask(channel, queue, bodies, replies):
    """Sends requests and waits until there is a reply to each."""
    for number, body in enumerate(bodies):
        channel.basic_publish("", queue, body, pika.BasicProperties(reply_to=REPLY_TO, correlation_id=str(number)))
    while len(replies) < len(bodies):
        channel.connection.process_data_events(time_limit=10)


def test_many_requests_are_answered_in_order(channel, server):
    replies = []
    channel.basic_consume(REPLY_TO, lambda _c, _m, properties, body: replies.append((properties.correlation_id, body)), auto_ack=True)
    ask(channel, server, [f"question {n}".encode() for n in range(300)], replies)
    assert replies == [(str(n), f"QUESTION {n}".encode()) for n in range(300)]


def test_a_large_answer(channel, server):
    replies = []
    channel.basic_consume(REPLY_TO, lambda _c, _m, _p, body: replies.append(body), auto_ack=True)
    ask(channel, server, [b"x" * 1_000_000], replies)
    assert replies == [b"X" * 1_000_000]


def test_each_channel_gets_its_own_answers(connection, server):
    channels = [connection.channel() for _ in range(3)]
    got = {}
    for number, channel in enumerate(channels):
        got[number] = []
        channel.basic_consume(REPLY_TO, lambda _c, _m, _p, body, box=got[number]: box.append(body), auto_ack=True)
        for turn in range(10):
            channel.basic_publish("", server, f"{number}.{turn}", pika.BasicProperties(reply_to=REPLY_TO))
    while sum(map(len, got.values())) < 30:
        connection.process_data_events(time_limit=10)
    assert got == {number: [f"{number}.{turn}".encode() for turn in range(10)] for number in range(3)}


def request(wire, queue):
    """Asks something; the address that the request carries."""
    wire.publish(1, "", queue, b"?", spec.BasicProperties(reply_to=REPLY_TO))
    wire.call(1, B.Get(queue=queue, no_ack=True), B.GetOk)
    return wire.read_content()[0].reply_to


def test_an_address_cannot_be_guessed_and_changes(wire, name):
    wire.call(1, Q.Declare(queue=name, exclusive=True), Q.DeclareOk)
    addresses = set()
    for turn in range(5):
        wire.call(1, B.Consume(queue=REPLY_TO, consumer_tag=f"r{turn}", no_ack=True), B.ConsumeOk)
        addresses |= {request(wire, name), request(wire, name)}
        wire.call(1, B.Cancel(f"r{turn}"), B.CancelOk)
    assert all(address.startswith(f"{REPLY_TO}.") and len(address) >= len(REPLY_TO) + 23 for address in addresses)
    assert len(addresses) == 5 or len(addresses) == 1, "one for each consumer, or one for the channel (RabbitMQ)"


def test_an_answer_after_the_end_of_the_channel_is_not_misdelivered(wire, name):
    wire.call(1, Q.Declare(queue=name, exclusive=True), Q.DeclareOk)
    wire.call(1, B.Consume(queue=REPLY_TO, consumer_tag="r", no_ack=True), B.ConsumeOk)
    address = request(wire, name)
    wire.call(1, spec.Channel.Close(200, "", 0, 0), spec.Channel.CloseOk)
    wire.channel(1)
    wire.call(1, B.Consume(queue=REPLY_TO, consumer_tag="r", no_ack=True), B.ConsumeOk)
    late = connected()
    late.channel(1)
    late.publish(1, "", address, b"late")
    late.call(1, spec.Channel.Flow(True), spec.Channel.FlowOk)
    late.close()
    fresh = request(wire, name)
    wire.publish(1, "", fresh, b"in time")
    assert wire.expect(B.Deliver, 1).routing_key == fresh
    assert wire.read_content()[1] == b"in time"


def test_the_address_is_of_its_vhost_and_the_default_exchange(wire, name):
    wire.call(1, Q.Declare(queue=name, exclusive=True), Q.DeclareOk)
    wire.call(1, B.Consume(queue=REPLY_TO, consumer_tag="r", no_ack=True), B.ConsumeOk)
    address = request(wire, name)
    wire.publish(1, "amq.direct", address, b"nowhere", mandatory=True)
    assert wire.expect(B.Return, 1).reply_code == 312
    wire.read_content()
    wire.publish(1, "", address, b"here", mandatory=True)
    wire.expect(B.Deliver, 1)
    assert wire.read_content()[1] == b"here"


def test_the_capability_is_announced(wire):
    fresh = connected()
    fresh.close()
    other = type(wire)()
    assert other.start().server_properties["capabilities"]["direct_reply_to"] is True
    other.close()
