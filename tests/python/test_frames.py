"""Frames that are wrong in themselves, on a connection that is otherwise open."""

import struct

import pytest
from pika import frame as frames
from pika import spec

from wire import B, Closed, Q, connected, method_bytes, raw_frame

QUEUE = "frames"


def table(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


def declare(name: bytes, arguments: bytes) -> bytes:
    """queue.declare, exclusive, with these argument bytes."""
    head = struct.pack(">IH", Q.Declare.INDEX, 0) + bytes([len(name)]) + name + b"\x04"
    return raw_frame(1, 1, head + arguments)


def nested(depth: int, inner: bytes = b"") -> bytes:
    for _ in range(depth):
        inner = b"\x01aF" + table(inner)
    return table(inner)


def nested_arrays(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = b"A" + table(inner)
    return table(b"\x01a" + inner)


def publish_then(*then: bytes) -> bytes:
    return method_bytes(1, B.Publish(exchange="", routing_key=QUEUE)) + b"".join(then)


def header(size: int) -> bytes:
    return frames.Header(1, size, spec.BasicProperties()).marshal()


# (name, bytes, reply code, (class id, method id), start of the reply text)
HARD = [
    ("wrong frame end", raw_frame(1, 1, struct.pack(">HH", 50, 10), b"\x00"), 501, (0, 0), "FRAME_ERROR - type 1, all octets = <<0,50,0,10>>: {invalid_frame_end_marker,0}"),
    ("unknown frame type", raw_frame(9, 1, b"abc"), 501, (0, 0), 'FRAME_ERROR - type 9, all octets = <<"abc">>: unknown_frame'),
    ("obsolete frame type", raw_frame(4, 1, b"abc"), 501, (0, 0), 'FRAME_ERROR - type 4, all octets = <<"abc">>: unknown_frame'),
    ("frame above frame_max", raw_frame(3, 1, b"a" * 131080), 501, (0, 0), "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,131080,"),
    ("announced frame of 2 GiB", struct.pack(">BHI", 1, 1, 0x7FFFFFFF), 501, (0, 0), "FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,2147483647,"),
    ("announced frame of 4 GiB", struct.pack(">BHI", 1, 1, 0xFFFFFFFF), 501, (0, 0), "FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,4294967295,"),
    ("heartbeat on a channel", raw_frame(8, 1, b""), 505, (0, 0), "UNEXPECTED_FRAME - type 8, all octets = <<>>"),
    ("heartbeat with a payload", raw_frame(8, 0, b"x"), 501, (0, 0), 'FRAME_ERROR - type 8, all octets = <<"x">>: unknown_frame'),
    ("method frame of one byte", raw_frame(1, 1, b"\x00"), 501, (0, 0), "FRAME_ERROR - type 1, all octets = <<0>>: unknown_frame"),
    ("method without its fields", raw_frame(1, 1, struct.pack(">HH", 50, 10)), 501, (50, 10), "FRAME_ERROR - cannot decode <<>>"),
    ("method with bytes left over", raw_frame(1, 1, struct.pack(">IH", Q.Declare.INDEX, 0) + b"\x02tr\x08" + table(b"") + b"xxxx"), 501, (50, 10), "FRAME_ERROR - cannot decode <<0,0,2,116,114,8,0,0,0,0,120,120,120,120>>"),
    ("table longer than its frame", declare(b"ptb", struct.pack(">I", 0xFFFFFFF0)), 501, (50, 10), "FRAME_ERROR - cannot decode <<0,0,3,112,116,98,4,255,255,255,240>>"),
    ("name that is no UTF-8", declare(b"\xff\xfe", table(b"")), 501, (0, 0), "FRAME_ERROR - Malformed UTF-8 in shortstr"),
    ("body without publish", raw_frame(3, 1, b"abc"), 505, (0, 0), "UNEXPECTED_FRAME - expected method frame, got non method frame instead"),
    ("header without publish", header(3), 505, (0, 0), "UNEXPECTED_FRAME - expected method frame, got non method frame instead"),
    ("method instead of header", publish_then(method_bytes(1, Q.Declare(queue="z"))), 505, (60, 40), "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead"),
    ("body instead of header", publish_then(raw_frame(3, 1, b"abc")), 505, (60, 40), "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead"),
    ("header of another class", publish_then(raw_frame(2, 1, struct.pack(">HHQH", 50, 0, 3, 0))), 505, (60, 40), "UNEXPECTED_FRAME - expected content header for class 60, got one for class 50 instead"),
    ("method instead of body", publish_then(header(2), method_bytes(1, Q.Declare(queue="z"))), 505, (60, 40), "UNEXPECTED_FRAME - expected content body, got non content body frame instead"),
    ("body longer than announced", publish_then(header(2), raw_frame(3, 1, b"abc")), 501, (60, 40), "FRAME_ERROR - content body frame exceeds remaining content size"),
    ("header of three bytes", publish_then(raw_frame(2, 1, b"\x00\x3c\x00")), 501, (0, 0), "FRAME_ERROR - type 2, all octets = <<0,60,0>>: unknown_frame"),
    ("method on a channel never opened", method_bytes(2, Q.Declare(queue="z")), 504, (50, 10), "CHANNEL_ERROR - expected 'channel.open'"),
    ("channel.close on a channel never opened", method_bytes(2, spec.Channel.Close(0, "", 0, 0)), 504, (20, 40), "CHANNEL_ERROR - expected 'channel.open'"),
    ("queue method on channel 0", method_bytes(0, Q.Declare(queue="z")), 504, (50, 10), "CHANNEL_ERROR - unexpected method in connection state running"),
    ("channel.open on channel 0", method_bytes(0, spec.Channel.Open()), 504, (20, 10), "CHANNEL_ERROR - unexpected method in connection state running"),
    ("second connection.open", method_bytes(0, spec.Connection.Open("/")), 504, (10, 40), "CHANNEL_ERROR - unexpected method in connection state running"),
    ("channel.flow-ok that nobody asked for", method_bytes(1, spec.Channel.FlowOk(True)), 503, (20, 21), "COMMAND_INVALID - unimplemented method"),
    ("channel.close-ok that nobody asked for", method_bytes(1, spec.Channel.CloseOk()), 503, (20, 41), "COMMAND_INVALID - unimplemented method"),
    ("channel.close-ok on a channel never opened", method_bytes(2, spec.Channel.CloseOk()), 504, (20, 41), "CHANNEL_ERROR - expected 'channel.open'"),
    ("connection.close-ok that nobody asked for", method_bytes(0, spec.Connection.CloseOk()), 504, (10, 51), "CHANNEL_ERROR - unexpected method in connection state running"),
    ("connection.close-ok on a channel", method_bytes(1, spec.Connection.CloseOk()), 503, (10, 51), "COMMAND_INVALID - unimplemented method"),
    ("second start-ok", method_bytes(0, spec.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")), 504, (10, 11), "CHANNEL_ERROR - unexpected method in connection state running"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "code", "ids", "text"), [case[1:] for case in HARD], ids=[case[0] for case in HARD])
def test_malformed(wire, data, code, ids, text):
    with connected() as witness:
        witness.channel(1)
        wire.send_bytes(data)
        closed = wire.expect_connection_close()
        assert (closed.reply_code, (closed.class_id, closed.method_id)) == (code, ids), closed.reply_text
        assert closed.reply_text.startswith(text), closed.reply_text
        witness.call(1, Q.Declare(queue="", exclusive=True), Q.DeclareOk)


# RabbitMQ drops the socket at these; an answer in its own terms is as good.
HOPELESS = {
    "unknown method": raw_frame(1, 1, struct.pack(">HH", 50, 99)),
    "unknown class": raw_frame(1, 1, struct.pack(">HH", 99, 99)),
    "table value of an unknown type": declare(b"ptb", table(b"\x01a?zz")),
    "table value longer than the table": declare(b"ptb", table(b"\x01aS\xff\xff\xff\xff")),
    "table key longer than the table": declare(b"ptb", table(b"\xffab")),
    "properties without end": publish_then(raw_frame(2, 1, struct.pack(">HHQH", 60, 0, 3, 0xFFFF) + b"\xff"), raw_frame(3, 1, b"abc")),
}


@pytest.mark.parametrize("data", HOPELESS.values(), ids=HOPELESS.keys())
def test_hopeless(wire, data):
    wire.send_bytes(data)
    try:
        closed = wire.expect(spec.Connection.Close, 0)
        assert closed.reply_code in (501, 502, 503, 540, 541), closed
    except Closed:
        pass
    with connected() as other:
        other.channel(1)


@pytest.mark.parametrize("arguments", [nested(2), nested(10), nested(25), nested_arrays(10)], ids=["2 tables", "10 tables", "25 tables", "10 arrays"])
def test_nested_tables(wire, arguments):
    wire.send_bytes(declare(b"", arguments))
    wire.expect(Q.DeclareOk, 1)


@pytest.mark.parametrize("arguments", [nested(1000), nested(12000), nested_arrays(12000)], ids=["1,000 tables", "12,000 tables", "12,000 arrays"])
def test_a_very_deep_table_harms_nobody(wire, arguments):
    wire.send_bytes(declare(b"", arguments))
    try:
        answer = wire.read_frame().method
        assert isinstance(answer, Q.DeclareOk | spec.Connection.Close | spec.Channel.Close), answer
    except Closed:
        pass
    with connected() as other:
        other.channel(1)


def test_line_ends_are_cut_out_of_names(wire):
    name = wire.call(1, Q.Declare(queue="frames\r\n.crlf", exclusive=True), Q.DeclareOk).queue
    assert name == "frames.crlf"


def test_a_method_in_single_bytes(wire):
    for byte in method_bytes(1, Q.Declare(queue="", exclusive=True)):
        wire.send_bytes(bytes([byte]))
    wire.expect(Q.DeclareOk, 1)


def test_many_frames_in_one_write(wire):
    name = wire.call(1, Q.Declare(queue="", exclusive=True), Q.DeclareOk).queue
    publish = method_bytes(1, B.Publish(exchange="", routing_key=name)) + wire.content(1, b"abc")
    wire.send_bytes(publish * 2000 + method_bytes(1, Q.Purge(queue=name)))
    assert wire.expect(Q.PurgeOk, 1).message_count == 2000


def test_interleaved_contents_of_two_channels(wire):
    """A body may come in pieces between which another channel talks."""
    wire.channel(2)
    name = wire.call(1, Q.Declare(queue="", exclusive=True), Q.DeclareOk).queue
    wire.send(1, B.Publish(exchange="", routing_key=name))
    wire.send(2, B.Publish(exchange="", routing_key=name))
    wire.send_bytes(header(4) + raw_frame(3, 1, b"ab"))
    wire.send_bytes(frames.Header(2, 2, spec.BasicProperties()).marshal() + raw_frame(3, 2, b"zz"))
    wire.call(2, Q.Declare(queue=name, passive=True), Q.DeclareOk)
    wire.send_bytes(raw_frame(3, 1, b"cd"))
    wire.call(1, Q.Declare(queue=name, passive=True), Q.DeclareOk)
    bodies = []
    for _ in range(2):
        wire.call(1, B.Get(queue=name, no_ack=True), B.GetOk)
        bodies.append(wire.read_content()[1])
    assert bodies == [b"zz", b"abcd"]


def test_frames_after_a_channel_error_are_ignored_until_close_ok(wire):
    """What was under way when the channel failed must not fail again."""
    wire.send(1, Q.Declare(queue="frames.missing", passive=True))
    for _ in range(3):
        wire.publish(1, "nope", "k")
    wire.send(1, Q.Declare(queue="frames.missing", passive=True))
    closed = wire.expect(spec.Channel.Close, 1)
    assert closed.reply_code == 404
    wire.publish(1, "nope", "k")
    wire.send(1, spec.Channel.CloseOk())
    wire.channel(1)


def test_all_properties_come_back(wire):
    """All fourteen properties, every table type, and back."""
    properties = spec.BasicProperties(
        content_type="text/plain", content_encoding="utf-8", headers={"i": 1, "s": "text", "t": {"n": [1, "two", True]}, "v": None, "big": 1 << 40, "neg": -5},
        delivery_mode=2, priority=3, correlation_id="c", reply_to="r", message_id="m",
        timestamp=1700000000, type="t", user_id="guest", app_id="a", cluster_id="x",
    )  # fmt: skip
    name = wire.call(1, Q.Declare(queue="", exclusive=True), Q.DeclareOk).queue
    wire.publish(1, "", name, b"", properties)
    got = wire.call(1, B.Get(queue=name, no_ack=True), B.GetOk)
    assert (got.exchange, got.routing_key, got.redelivered, got.message_count) == ("", name, False, 0)
    back, body = wire.read_content()
    assert body == b""
    assert back == properties
