"""Streams as queues of AMQP 0-9-1: how they are declared, written, read from where, and what is refused."""

import datetime
import time

import pika
import pytest

from conftest import connect, control
from waiting import until

STREAM = {"x-queue-type": "stream"}


def declare(channel, name, **arguments):
    return channel.queue_declare(name, durable=True, arguments=STREAM | {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()})


@pytest.fixture
def channel(connection):
    """In confirm mode, so that what was published is in the stream."""
    channel = connection.channel()
    channel.confirm_delivery()
    return channel


@pytest.fixture
def stream(channel, name):
    declare(channel, name)
    yield name
    with connect() as connection:
        connection.channel().queue_delete(name)


@pytest.fixture
def filled(channel, stream):
    """With the numbers from 0 to 9, a chunk each."""
    fill(channel, stream, range(10))
    return stream


def fill(channel, stream, numbers):
    for number in numbers:
        channel.basic_publish("", stream, str(number).encode())


class Reader:
    """A consumer on a channel of its own, with what came to it."""

    def __init__(self, connection, stream, offset=None, prefetch=100, acks=True, **arguments):
        said = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        if offset is not None:
            said["x-stream-offset"] = offset
        self.channel = connection.channel()
        self.channel.basic_qos(prefetch_count=prefetch)
        self.acks, self.got, self.cancelled = acks, [], []
        self.channel.add_on_cancel_callback(lambda frame: self.cancelled.append(frame.method.consumer_tag))
        self.tag = self.channel.basic_consume(stream, self.take, arguments=said)

    def take(self, channel, method, properties, body):
        self.got.append((method, properties, body))
        if self.acks:
            channel.basic_ack(method.delivery_tag)

    def pump(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.channel.connection.process_data_events(left)

    def first(self, count, patience=15):
        end = time.monotonic() + patience
        while len(self.got) < count:
            assert time.monotonic() < end, f"{len(self.got)} of {count} came: {self.bodies()[-3:]}"
            self.channel.connection.process_data_events(0.05)
        return self.got[:count]

    def bodies(self):
        return [body.decode() for _, _, body in self.got]

    def numbers(self, count):
        return [int(body) for _, _, body in self.first(count)]

    def nothing_more(self, seconds=0.5):
        before = len(self.got)
        self.pump(seconds)
        assert self.bodies()[before:] == []


def refusal(act):
    """The code and the text of what closes a channel or a connection, and which of them."""
    with pytest.raises((pika.exceptions.ChannelClosedByBroker, pika.exceptions.ConnectionClosedByBroker)) as caught:
        act()
    scope = "channel" if caught.errisinstance(pika.exceptions.ChannelClosedByBroker) else "connection"
    return scope, caught.value.reply_code, caught.value.reply_text


FLAGS = {
    "transient": ({"durable": False}, "invalid property 'non-durable' for queue '{}' in vhost '/'"),
    "exclusive": ({"exclusive": True}, "invalid property 'exclusive-owner' for queue '{}' in vhost '/'"),
    "auto-delete": ({"auto_delete": True}, "invalid property 'auto-delete' for queue '{}' in vhost '/'"),
}


@pytest.mark.parametrize("what", FLAGS)
def test_flags_that_are_refused(channel, name, what):
    flags, text = FLAGS[what]
    told = refusal(lambda: channel.queue_declare(name, arguments=STREAM, **({"durable": True} | flags)))
    assert told == ("channel", 406, f"PRECONDITION_FAILED - {text.format(name)}")


def test_a_stream_needs_a_name(channel):
    told = refusal(lambda: channel.queue_declare("", durable=True, arguments=STREAM))
    assert told == ("channel", 406, "PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_stream_queue")


FOREIGN = {
    "x-message-ttl": 1000,
    "x-expires": 1000,
    "x-max-length": 5,
    "x-dead-letter-exchange": "amq.fanout",
    "x-dead-letter-routing-key": "k",
    "x-max-priority": 5,
    "x-overflow": "drop-head",
    "x-single-active-consumer": True,
    "x-queue-mode": "lazy",
    "x-delivery-limit": 3,
    "x-quorum-initial-group-size": 1,
    "x-consumer-timeout": 60000,
}


@pytest.mark.parametrize("argument", FOREIGN)
def test_arguments_of_other_types_are_refused(channel, name, argument):
    told = refusal(lambda: channel.queue_declare(name, durable=True, arguments=STREAM | {argument: FOREIGN[argument]}))
    assert told == ("channel", 406, f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{name}' in vhost '/' of queue type rabbit_stream_queue")


NO_INTEGER = '"expected integer, got longstr"'
BAD = [
    ("x-max-length-bytes", -1, "{value_negative,-1}"),
    ("x-max-length-bytes", "a", NO_INTEGER),
    ("x-max-age", "x", "invalid_max_age"),
    ("x-max-age", "-1h", "invalid_max_age"),
    ("x-max-age", "0s", "invalid_max_age"),
    ("x-max-age", 5, "{unacceptable_type,signedint}"),
    ("x-stream-max-segment-size-bytes", -1, "{value_negative,-1}"),
    ("x-stream-max-segment-size-bytes", "a", NO_INTEGER),
    ("x-stream-filter-size-bytes", "a", NO_INTEGER),
    ("x-initial-cluster-size", 0, "{value_zero,0}"),
    ("x-initial-cluster-size", "a", NO_INTEGER),
    ("x-queue-leader-locator", "nowhere", "invalid_queue_locator_arg"),
]


@pytest.mark.parametrize("argument, value, why", BAD)
def test_values_that_are_refused(channel, name, argument, value, why):
    told = refusal(lambda: channel.queue_declare(name, durable=True, arguments=STREAM | {argument: value}))
    assert told == ("channel", 406, f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{name}' in vhost '/': {why}")


OUTSIDE = [
    ("x-stream-max-segment-size-bytes", 3_000_000_001, "Exceeded max value for x-stream-max-segment-size-bytes"),
    ("x-stream-filter-size-bytes", 15, "Invalid value for x-stream-filter-size-bytes"),
    ("x-stream-filter-size-bytes", 256, "Invalid value for x-stream-filter-size-bytes"),
]


@pytest.mark.parametrize("argument, value, why", OUTSIDE)
def test_sizes_out_of_range(channel, name, argument, value, why):
    told = refusal(lambda: channel.queue_declare(name, durable=True, arguments=STREAM | {argument: value}))
    assert told == ("channel", 406, f"PRECONDITION_FAILED - {why}")


GOOD = [
    {"max_length_bytes": 0},
    {"max_length_bytes": 20_000_000_000},
    {"max_age": "1D"},
    {"max_age": "1Y"},
    {"stream_max_segment_size_bytes": 3_000_000_000},
    {"stream_filter_size_bytes": 16},
    {"stream_filter_size_bytes": 255},
    {"initial_cluster_size": 1},
    {"queue_leader_locator": "client-local"},
    {"queue_leader_locator": "balanced"},
    {"unheard_of": 1},
]


@pytest.mark.parametrize("arguments", GOOD, ids=lambda value: " ".join(f"{key}={size}" for key, size in value.items()))
def test_values_that_are_taken_and_hold_when_it_is_declared_again(channel, name, arguments):
    try:
        for _ in range(2):
            told = declare(channel, name, **arguments).method
            assert (told.queue, told.message_count, told.consumer_count) == (name, 0, 0)
    finally:
        channel.queue_delete(name)


def test_ages_are_times_and_not_texts(connection, name):
    declare(connection.channel(), name, max_age="7200s")
    try:
        declare(connection.channel(), name, max_age="2h")
        declare(connection.channel(), name, max_age="120m")
        prefix = f"PRECONDITION_FAILED - inequivalent arg 'x-max-age' for queue '{name}' in vhost '/': received"
        assert refusal(lambda: declare(connection.channel(), name, max_age="1D"))[2] == f"{prefix} '86400000' but current is '7200000'"
        assert refusal(lambda: declare(connection.channel(), name))[2] == f"{prefix} none but current is the value '7200000' of type 'longstr'"
    finally:
        connection.channel().queue_delete(name)


def test_another_type_is_refused(connection, stream):
    told = refusal(lambda: connection.channel().queue_declare(stream, durable=True))
    text = f"PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue '{stream}' in vhost '/': received 'classic' but current is 'stream'"
    assert told == ("channel", 406, text)


NOT_IMPLEMENTED = {
    "basic.get": (lambda channel, stream: channel.basic_get(stream), "basic.get not supported by stream queues queue '{}' in vhost '/'"),
    "queue.purge": (lambda channel, stream: channel.queue_purge(stream), "queue.purge not supported by stream queues queue '{}' in vhost '/'"),
    "consuming without acknowledgements": (
        lambda channel, stream: (channel.basic_qos(prefetch_count=10), channel.basic_consume(stream, print, auto_ack=True)),
        "automatic acknowledgement not supported by stream queue '{}' in vhost '/'",
    ),
}


@pytest.mark.parametrize("what", NOT_IMPLEMENTED)
def test_what_is_not_implemented_ends_the_connection(stream, what):
    act, text = NOT_IMPLEMENTED[what]
    told = refusal(lambda: act(connect().channel(), stream))
    assert told == ("connection", 540, f"NOT_IMPLEMENTED - {text.format(stream)}")


@pytest.mark.parametrize("auto_ack", [False, True])
def test_a_consumer_needs_a_prefetch(connection, stream, auto_ack):
    told = refusal(lambda: connection.channel().basic_consume(stream, print, auto_ack=auto_ack))
    assert told == ("channel", 406, f"PRECONDITION_FAILED - consumer prefetch count is not set for stream queue '{stream}' in vhost '/'")


def test_a_consumer_has_no_priority(connection, stream):
    told = refusal(lambda: Reader(connection, stream, priority=5))
    assert told == ("channel", 406, f"PRECONDITION_FAILED - invalid arg 'x-priority' for queue '{stream}' in vhost '/' of queue type rabbit_stream_queue")


@pytest.mark.parametrize("offset", ["junk", "", "10", "1 hour", "h", "1w"])
def test_offsets_that_are_refused(connection, stream, offset):
    told = refusal(lambda: Reader(connection, stream, offset))
    shown = f'"{offset}"' if offset else ""
    assert told == ("channel", 406, f"PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue '{stream}' in vhost '/': {{invalid_stream_offset_arg,{{longstr,<<{shown}>>}}}}")


def ago(**parts):
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - datetime.timedelta(**parts)


FROM = [
    ("first", range(10)),
    ("last", [9]),
    ("next", []),
    (None, []),
    (0, range(10)),
    (4, range(4, 10)),
    (10, []),
    ("1h", range(10)),
    ("1Y", range(10)),
    ("20m", range(10)),
    (lambda: ago(hours=1), range(10)),
    (lambda: ago(hours=-1), []),
]


@pytest.mark.parametrize("offset, wanted", FROM, ids=lambda value: str(value) if isinstance(value, (str, int, type(None))) else "")
def test_where_a_consumer_begins(connection, channel, filled, offset, wanted):
    reader = Reader(connection, filled, offset() if callable(offset) else offset)
    assert reader.numbers(len(wanted)) == list(wanted)
    reader.nothing_more(0.3)
    # And it goes on.
    fill(channel, filled, [10])
    assert reader.numbers(len(wanted) + 1)[-1] == 10


def test_an_offset_beyond_the_end_is_waited_for(connection, channel, filled):
    reader = Reader(connection, filled, 15)
    fill(channel, filled, range(10, 18))
    assert reader.numbers(3) == [15, 16, 17]
    reader.nothing_more(0.2)


def test_a_moment_between_two_messages(connection, channel, stream):
    fill(channel, stream, [0])
    time.sleep(2.5)
    fill(channel, stream, [1])
    # AMQP tells whole seconds.
    assert Reader(connection, stream, ago(seconds=1)).numbers(1) == [1]
    assert Reader(connection, stream, "2s").numbers(1) == [1]


def test_deliveries_tell_their_offset_and_come_again_for_every_consumer(connection, channel, filled):
    for _ in range(2):
        reader = Reader(connection, filled, "first")
        got = reader.first(10)
        assert [properties.headers for _, properties, _ in got] == [{"x-stream-offset": number} for number in range(10)]
        assert {(method.exchange, method.routing_key, method.redelivered) for method, _, _ in got} == {("", filled, False)}
        assert [method.delivery_tag for method, _, _ in got] == list(range(1, 11))


def test_acknowledgements_are_credit(connection, channel, filled):
    reader = Reader(connection, filled, "first", prefetch=3, acks=False)
    assert reader.numbers(3) == [0, 1, 2]
    reader.nothing_more()
    reader.channel.basic_ack(1)
    assert reader.numbers(4)[-1] == 3
    reader.nothing_more()
    reader.channel.basic_ack(4, multiple=True)
    assert reader.numbers(7) == list(range(7))
    reader.nothing_more()


@pytest.mark.parametrize("way", ["nack", "nack and requeue", "reject", "reject and requeue"])
def test_whatever_is_said_of_a_message_it_counts_as_taken(connection, channel, filled, way):
    reader = Reader(connection, filled, "first", prefetch=2, acks=False)
    reader.first(2)
    settle = reader.channel.basic_nack if way.startswith("nack") else reader.channel.basic_reject
    settle(1, requeue="requeue" in way)
    assert reader.numbers(3) == [0, 1, 2]
    reader.nothing_more()
    assert not any(method.redelivered for method, _, _ in reader.got)


def test_an_unknown_delivery_tag(connection, channel, filled):
    reader = Reader(connection, filled, "first", acks=False)
    reader.first(10)
    reader.channel.basic_ack(99)
    until(lambda: reader.pump(0.05) or reader.channel.is_closed, what="the channel stays")


def test_exclusive_consumers_are_consumers_like_others(connection, channel, filled):
    for _ in range(2):
        one = connection.channel()
        one.basic_qos(prefetch_count=10)
        one.basic_consume(filled, lambda *_: None, exclusive=True, arguments={"x-stream-offset": "first"})
    assert Reader(connection, filled, "first").numbers(10) == list(range(10))


def test_a_cancelled_consumer_gets_no_more_and_another_goes_on_elsewhere(connection, channel, filled):
    reader = Reader(connection, filled, "first", prefetch=2, acks=False)
    reader.first(2)
    reader.channel.basic_cancel(reader.tag)
    reader.channel.basic_ack(2, multiple=True)
    reader.nothing_more()
    assert Reader(connection, filled, 2).numbers(8) == list(range(2, 10))


def test_many_consumers_on_one_channel(connection, channel, filled):
    one = connection.channel()
    one.basic_qos(prefetch_count=4)
    got = {}
    for number in range(8):
        got[str(number)] = []
        one.basic_consume(
            filled,
            lambda channel, method, _, body: (got[method.consumer_tag].append(int(body)), channel.basic_ack(method.delivery_tag)),
            consumer_tag=str(number),
            arguments={"x-stream-offset": number},
        )
    until(lambda: connection.process_data_events(0.05) or {tag: len(bodies) for tag, bodies in got.items()}, {str(n): 10 - n for n in range(8)}.__eq__, what="not all came")
    assert all(bodies == list(range(int(tag), 10)) for tag, bodies in got.items())


def test_a_deleted_stream_cancels_its_consumers(connection, channel, filled):
    reader = Reader(connection, filled, "first")
    reader.first(10)
    channel.queue_delete(filled)
    until(lambda: reader.pump(0.05) or reader.cancelled, what="no cancel")
    assert reader.cancelled == [reader.tag]


def test_every_property_comes_back(connection, channel, stream):
    sent = pika.BasicProperties(
        content_type="text/plain",
        content_encoding="gzip",
        headers={"text": "täxt", "int": 5, "long": 1 << 40, "yes": True, "x-own": "x", "nothing": None, "list": [1, "two"], "table": {"a": {"b": 1}}},
        delivery_mode=2,
        priority=5,
        correlation_id="correlation",
        reply_to="reply",
        expiration="60000",
        message_id="message",
        timestamp=1_600_000_000,
        type="type",
        user_id="guest",
        app_id="app",
    )
    channel.basic_publish("", stream, b"\x00\x80\xff", sent)
    _, got, body = Reader(connection, stream, "first").first(1)[0]
    assert body == b"\x00\x80\xff"
    # A stream keeps no lists and tables.
    kept = {header: value for header, value in sent.headers.items() if not isinstance(value, (list, dict))}
    assert got.headers == kept | {"x-stream-offset": 0}
    fields = "content_type content_encoding delivery_mode priority correlation_id reply_to expiration message_id timestamp type user_id app_id".split()
    assert {field: getattr(got, field) for field in fields} == {field: getattr(sent, field) for field in fields}


def test_plain_and_transient_and_empty_messages(connection, channel, stream):
    channel.basic_publish("", stream, b"")
    channel.basic_publish("", stream, b"transient", pika.BasicProperties(delivery_mode=1))
    channel.basic_publish("", stream, b"x" * 1_000_000)
    got = Reader(connection, stream, "first").first(3)
    assert [len(body) for _, _, body in got] == [0, 9, 1_000_000]
    assert [properties.delivery_mode for _, properties, _ in got] == [1, 1, 1]


def test_bindings_and_mandatory_publishing(connection, channel, stream, name):
    channel.queue_bind(stream, "amq.topic", f"{name}.*")
    channel.basic_publish("amq.topic", f"{name}.a", b"bound", mandatory=True)
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("amq.topic", f"{name}.a.b", b"lost", mandatory=True)
    method, _, body = Reader(connection, stream, "first").first(1)[0]
    assert (method.exchange, method.routing_key, body) == ("amq.topic", f"{name}.a", b"bound")


def test_dead_letters_into_a_stream(connection, channel, stream, name):
    queue = f"{name}.dying"
    channel.queue_declare(queue, exclusive=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": stream, "x-max-length": 1})
    for body in (b"1", b"2", b"3"):
        channel.basic_publish("", queue, body)
    got = Reader(connection, stream, "first").first(2)
    assert [body for _, _, body in got] == [b"1", b"2"]
    death = got[0][1].headers["x-death"][0]
    assert (death["reason"], death["queue"], death["count"]) == ("maxlen", queue, 1)


def values(channel, stream, *kinds):
    for kind in kinds:
        headers = {"x-stream-filter-value": kind} if kind else {}
        channel.basic_publish("", stream, (kind or "none").encode(), pika.BasicProperties(headers=headers))


FILTERS = [
    ("apple", None, ["apple", "apple"]),
    (["apple", "plum"], None, ["apple", "plum", "apple"]),
    ("nothing", None, []),
    ("plum", True, ["none", "plum", "none"]),
    ("plum", False, ["plum"]),
    (None, None, ["apple", "none", "pear", "plum", "none", "apple"]),
]


@pytest.mark.parametrize("wanted, unfiltered, comes", FILTERS)
def test_filters_leave_out_chunks(connection, channel, stream, wanted, unfiltered, comes):
    values(channel, stream, "apple", None, "pear", "plum", None, "apple")
    arguments = ({"stream_filter": wanted} if wanted else {}) | ({} if unfiltered is None else {"stream_match_unfiltered": unfiltered})
    reader = Reader(connection, stream, "first", **arguments)
    reader.first(len(comes))
    reader.nothing_more(0.3)
    assert reader.bodies() == comes
    values(channel, stream, "apple", "plum", "nothing")
    more = [kind for kind in ("apple", "plum", "nothing") if wanted is None or kind in wanted]
    reader.first(len(comes) + len(more))
    assert reader.bodies()[len(comes) :] == more


def test_the_value_of_a_filter_is_a_header_like_others(connection, channel, stream):
    values(channel, stream, "apple")
    _, properties, _ = Reader(connection, stream, "first").first(1)[0]
    assert properties.headers == {"x-stream-filter-value": "apple", "x-stream-offset": 0}


def test_what_was_confirmed_before_a_transaction_and_in_one(connection, channel, stream):
    fill(channel, stream, [0])
    writer = connection.channel()
    writer.tx_select()
    fill(writer, stream, [1, 2])
    reader = Reader(connection, stream, "first")
    assert reader.numbers(1) == [0]
    reader.nothing_more(0.2)
    writer.tx_commit()
    assert reader.numbers(3) == [0, 1, 2]


@pytest.mark.needs_control
def test_streams_survive_a_restart(name):
    with connect() as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        declare(channel, name)
        for number in range(100):
            channel.basic_publish("", name, str(number).encode(), pika.BasicProperties(delivery_mode=1, headers={"x-stream-filter-value": "a"}))
    control("restart")
    with connect() as connection:
        reader = Reader(connection, name, "first", stream_filter="a")
        assert reader.numbers(100) == list(range(100))
        channel = connection.channel()
        channel.confirm_delivery()
        fill(channel, name, [100])
        assert Reader(connection, name, "last").first(1)[0][1].headers["x-stream-offset"] == 100
        channel.queue_delete(name)


def test_old_segments_go(connection, channel, name):
    declare(channel, name, max_length_bytes=300_000, stream_max_segment_size_bytes=100_000)
    try:
        for _ in range(40):
            channel.basic_publish("", name, b"x" * 50_000)

        def oldest():
            return Reader(connection, name, "first", prefetch=1, acks=False).first(1)[0][1].headers["x-stream-offset"]

        until(oldest, lambda offset: offset >= 20, what="nothing went")
        # What is gone is not waited for.
        assert Reader(connection, name, 0, prefetch=1, acks=False).first(1)[0][1].headers["x-stream-offset"] >= 20
    finally:
        channel.queue_delete(name)
