"""AMQP 0-9-1 frame by frame, for what a well-behaved client library refuses to do.

Only the encoding of single methods is borrowed from pika; the conversation itself is this file's own, so a test may
break any rule of it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct

from pika import frame as frames
from pika import spec

HEADER = b"AMQP\x00\x00\x09\x01"
CAPABILITIES = {
    "publisher_confirms": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}
Q = spec.Queue
X = spec.Exchange
B = spec.Basic


def address() -> tuple[str, int]:
    return os.environ.get("AMQP_HOST", "127.0.0.1"), int(os.environ.get("AMQP_PORT", "5672"))


def raw_frame(kind: int, channel: int, payload: bytes, end: bytes = b"\xce") -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + end


def method_bytes(channel: int, method) -> bytes:
    return frames.Method(channel, method).marshal()


class Closed(Exception):
    """The peer closed the socket."""


class Wire:
    """One socket to the broker. Every read has a deadline, so a silent broker fails the test instead of hanging it."""

    def __init__(self, timeout: float = 10.0, where: tuple[str, int] | str | None = None):
        if isinstance(where, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(where)
        else:
            self.socket = socket.create_connection(where or address(), timeout=timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.frame_max = 131072

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Bytes.

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read_some(self) -> bytes:
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed
        return data

    def read_exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self.buffer += self.read_some()
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def read_until_closed(self) -> bytes:
        """Everything that still comes before the peer closes the socket."""
        data, self.buffer = bytes(self.buffer), bytearray()
        with contextlib.suppress(Closed):
            while True:
                data += self.read_some()
        return data

    # Frames.

    def read_raw_frame(self) -> tuple[int, int, bytes]:
        kind, channel, size = struct.unpack(">BHI", self.read_exactly(7))
        payload = self.read_exactly(size)
        assert self.read_exactly(1) == b"\xce", "frame end"
        return kind, channel, payload

    def read_frame(self):
        """The next frame that is no heartbeat, decoded."""
        while True:
            kind, channel, payload = self.read_raw_frame()
            if kind != spec.FRAME_HEARTBEAT:
                return frames.decode_frame(raw_frame(kind, channel, payload))[1]

    def send(self, channel: int, method) -> None:
        self.send_bytes(method_bytes(channel, method))

    def expect(self, kind, channel: int | None = None):
        """The next frame, which must be this method."""
        got = self.read_frame()
        method = getattr(got, "method", got)
        assert isinstance(method, kind), f"expected {kind.__qualname__}, got {method}"
        if channel is not None:
            assert got.channel_number == channel, f"on channel {got.channel_number}: {method}"
        return method

    def call(self, channel: int, method, answer):
        self.send(channel, method)
        return self.expect(answer, channel)

    def content(self, channel: int, body: bytes = b"x", properties=None) -> bytes:
        parts = [frames.Header(channel, len(body), properties or spec.BasicProperties()).marshal()]
        piece = self.frame_max - 8
        parts += [frames.Body(channel, body[at : at + piece]).marshal() for at in range(0, len(body), piece)]
        return b"".join(parts)

    def publish(self, channel: int, exchange: str, key: str, body: bytes = b"x", properties=None, **flags) -> None:
        method = B.Publish(exchange=exchange, routing_key=key, **flags)
        self.send_bytes(method_bytes(channel, method) + self.content(channel, body, properties))

    def read_content(self):
        """Header and body after a deliver, return or get-ok."""
        header = self.read_frame()
        body = b""
        while len(body) < header.body_size:
            body += self.read_frame().fragment
        return header.properties, body

    # Conversations.

    def start(self) -> spec.Connection.Start:
        self.send_bytes(HEADER)
        return self.expect(spec.Connection.Start, 0)

    def login(self, mechanism="PLAIN", response="\0guest\0guest", capabilities=None):
        properties = {"product": "wire", "capabilities": CAPABILITIES if capabilities is None else capabilities}
        self.send(0, spec.Connection.StartOk(properties, mechanism, response, "en_US"))

    def open(self, vhost="/", frame_max=131072, heartbeat=0, channel_max=2047, **login) -> Wire:
        """The whole handshake."""
        self.start()
        self.login(**login)
        self.expect(spec.Connection.Tune, 0)
        self.frame_max = frame_max
        self.send(0, spec.Connection.TuneOk(channel_max, frame_max, heartbeat))
        self.call(0, spec.Connection.Open(vhost), spec.Connection.OpenOk)
        return self

    def channel(self, number: int = 1) -> int:
        self.call(number, spec.Channel.Open(), spec.Channel.OpenOk)
        return number

    def expect_channel_close(self, channel: int = 1):
        closed = self.expect(spec.Channel.Close, channel)
        self.send(channel, spec.Channel.CloseOk())
        return closed

    def expect_connection_close(self):
        """connection.close, answered; afterwards the broker closes the socket."""
        closed = self.expect(spec.Connection.Close, 0)
        self.send(0, spec.Connection.CloseOk())
        assert self.read_until_closed() == b"", "nothing may follow connection.close"
        return closed


def connected(**options) -> Wire:
    return Wire().open(**options)
