"""A quick connection of the stream protocol: it waits for one answer at a time, and keeps what comes unasked meanwhile."""

from __future__ import annotations

import gzip
import struct
import time
import zlib
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from .link import Closed, Wire

__all__ = ["FIRST", "LAST", "METADATA_UPDATE", "NEXT", "NOT_AVAILABLE", "NO_SUCH_STREAM", "PUBLISH_CONFIRM", "Closed", "Code", "Entry", "Places", "StreamLink", "from_offset"]

PUBLISH_CONFIRM, PUBLISH_ERROR, DELIVER, METADATA_UPDATE, TUNE, CLOSE, HEARTBEAT = 3, 4, 8, 0x10, 0x14, 0x16, 0x17
OK, NO_SUCH_STREAM, NOT_AVAILABLE, NO_OFFSET = 1, 2, 6, 0x13
METADATA, NO_LEADER = 0x0F, 0xFFFF
CONSUMER_UPDATE = 0x1A
GZIP = 1
CHUNK = struct.Struct(">BBHIqQQIIIB3x")
# Where a reader begins.
FIRST, LAST, NEXT = (struct.pack(">H", way) for way in (1, 2, 3))


def from_offset(offset: int) -> bytes:
    return struct.pack(">HQ", 4, offset)


def string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def entries_of(properties: dict[str, str]) -> bytes:
    return struct.pack(">I", len(properties)) + b"".join(string(key) + string(value) for key, value in properties.items())


class Code(Exception):
    """A command was refused, or something that had been taken is not any more."""

    def __init__(self, key: int, code: int):
        super().__init__(f"command {key:#x} is answered with code {code:#x}")
        self.code = code


class Entry(NamedTuple):
    """What stands in a chunk: one message, or several that were published together."""

    publishing_id: int
    bodies: list[bytes]
    compressed: bool = False

    def encoded(self) -> bytes:
        messages = [data_section(body) for body in self.bodies]
        if len(messages) == 1:
            return struct.pack(">QI", self.publishing_id, len(messages[0])) + messages[0]
        plain = b"".join(struct.pack(">I", len(message)) + message for message in messages)
        inside = gzip.compress(plain, 1) if self.compressed else plain
        kind = 0x80 | (GZIP << 4 if self.compressed else 0)
        return struct.pack(">QBHII", self.publishing_id, kind, len(messages), len(plain), len(inside)) + inside


class Places(NamedTuple):
    """Where a stream is: the port of the node that leads, if there is one, and those of the others that have it."""

    leader: int | None
    replicas: list[int]

    @classmethod
    def read(cls, answer: bytes) -> Places:
        """From what one stream was asked for with."""
        ports: dict[int, int] = {}
        (count,), at = struct.unpack_from(">I", answer), 4
        for _ in range(count):
            reference, host = struct.unpack_from(">Hh", answer, at)
            ports[reference] = struct.unpack_from(">I", answer, at + 4 + host)[0]
            at += 8 + host
        count, name = struct.unpack_from(">Ih", answer, at)
        assert count == 1, f"an answer for {count} streams, not for one"
        code, leader, replicas = struct.unpack_from(">HHI", answer, at + 6 + name)
        if code != OK:
            raise Code(METADATA, code)
        others = struct.unpack_from(f">{replicas}H", answer, at + 14 + name)
        return cls(None if leader == NO_LEADER else ports[leader], [ports[other] for other in others])


def data_section(body: bytes) -> bytes:
    """A message of AMQP 1.0 that is only a body."""
    return b"\x00\x53\x75\xb0" + struct.pack(">I", len(body)) + body


def body_of(message: bytes) -> bytes:
    """The body of a message of AMQP 1.0. What stands before it is passed over."""
    at = 0
    while True:
        assert message[at : at + 2] == b"\x00\x53", f"no section at byte {at} of {message[:80]!r}"
        section, constructor = message[at + 2], message[at + 3]
        at += 4
        if constructor in (0xA0, 0xC0, 0xC1):
            size, at = message[at], at + 1
        elif constructor in (0xB0, 0xD0, 0xD1):
            size, at = struct.unpack_from(">I", message, at)[0], at + 4
        else:
            assert constructor == 0x45, f"constructor {constructor:#x} in {message[:80]!r}"
            size = 0
        if section == 0x75:
            return message[at : at + size]
        at += size


def messages_of(chunk: bytes) -> tuple[int, list[bytes]]:
    """The offset of a chunk, and its messages' bodies."""
    magic, kind, entries, records, _, _, first, crc, length, _, _ = CHUNK.unpack_from(chunk)
    assert (magic, kind) == (0x50, 0), f"a chunk begins with {chunk[:2]!r}"
    data = chunk[CHUNK.size : CHUNK.size + length]
    assert len(data) == length and zlib.crc32(data) == crc, f"the chunk at offset {first} has another checksum than it says"
    bodies: list[bytes] = []
    at = 0
    for _ in range(entries):
        if data[at] & 0x80:
            kind, count, plain, size = struct.unpack_from(">BHII", data, at)
            at += 11
            inside = data[at : at + size]
            inside = gzip.decompress(inside) if kind >> 4 & 7 == GZIP else inside
            assert len(inside) == plain, f"a batch at offset {first + len(bodies)} has {len(inside)} bytes, not {plain}"
            inner = 0
            for _ in range(count):
                one = struct.unpack_from(">I", inside, inner)[0]
                bodies.append(body_of(inside[inner + 4 : inner + 4 + one]))
                inner += 4 + one
        else:
            size = struct.unpack_from(">I", data, at)[0]
            at += 4
            bodies.append(body_of(data[at : at + size]))
        at += size
    assert len(bodies) == records, f"the chunk at offset {first} has {len(bodies)} messages, not {records}"
    return first, bodies


def refuse(key: int, payload: bytes) -> None:
    """Raises what is said unasked of a stream or of messages that come to nothing."""
    if key == METADATA_UPDATE:
        raise Code(key, struct.unpack_from(">H", payload)[0])
    if key == PUBLISH_ERROR:
        raise Code(key, struct.unpack_from(">H", payload, 13)[0])


class StreamLink(Wire):
    """A logged-in connection to `/`. A load balancer in front of it would begin with `introduction`."""

    def __init__(self, port: int, timeout: float = 30.0, introduction: bytes = b""):
        super().__init__(timeout=timeout, where=("127.0.0.1", port))
        self.send_bytes(introduction)
        self.correlation = 0
        self.unasked: deque[tuple[int, bytes]] = deque()
        self.call(0x11, entries_of({"product": "crash"}))
        self.call(0x12)
        login = b"\0guest\0guest"
        self.call(0x13, string("PLAIN") + struct.pack(">I", len(login)) + login)
        while (came := self.next_frame())[0] != TUNE:
            pass
        self.send_frame(TUNE, came[1])
        self.call(0x15, string("/"))

    def end(self) -> None:
        """Says that it is over. A connection that is only closed has not said so."""
        self.call(CLOSE, struct.pack(">H", OK) + string("done"))

    # Frames.

    def send_frame(self, key: int, payload: bytes, version: int = 1) -> None:
        self.send_bytes(struct.pack(">IHH", len(payload) + 4, key, version) + payload)

    def next_frame(self) -> tuple[int, bytes]:
        """The next frame that is no heartbeat: its key, and what comes behind its version. Heartbeats don't prolong the wait."""
        deadline = time.monotonic() + (self.socket.gettimeout() or 0)
        while True:
            size = struct.unpack(">I", self.read_exactly(4))[0]
            frame = self.read_exactly(size)
            key = struct.unpack_from(">H", frame)[0]
            assert key != CLOSE, f"the broker closes the connection: {frame[8:]!r}"
            if key != HEARTBEAT:
                return key, frame[4:]
            if self.socket.gettimeout() and time.monotonic() > deadline:
                raise TimeoutError("nothing but heartbeats")

    def ask(self, key: int, payload: bytes = b"") -> bytes:
        """What a command is answered, behind the number of the question."""
        self.correlation += 1
        self.send_frame(key, struct.pack(">I", self.correlation) + payload)
        while True:
            came, answer = self.next_frame()
            if came != key | 0x8000:
                self.unasked.append((came, answer))
                continue
            (correlation,) = struct.unpack_from(">I", answer)
            assert correlation == self.correlation, f"an answer to {correlation}, not to {self.correlation}"
            return answer[4:]

    def call(self, key: int, payload: bytes = b"") -> bytes:
        """What a command is answered, behind its code, which must be OK."""
        answer = self.ask(key, payload)
        (code,) = struct.unpack_from(">H", answer)
        if code != OK:
            raise Code(key, code)
        return answer[2:]

    def unasked_frames(self) -> Iterator[tuple[int, bytes]]:
        """What has come unasked, or one frame that comes."""
        if not self.unasked:
            self.unasked.append(self.next_frame())
        while self.unasked:
            yield self.unasked.popleft()

    # Streams.

    def create(self, stream: str, arguments: dict[str, str] | None = None) -> None:
        self.call(0x0D, string(stream) + entries_of(arguments or {}))

    def delete(self, stream: str) -> None:
        self.call(0x0E, string(stream))

    def metadata(self, stream: str) -> Places:
        return Places.read(self.ask(METADATA, struct.pack(">I", 1) + string(stream)))

    def first_offset(self, stream: str) -> int:
        """The offset with which a stream begins that has something."""
        statistics = self.call(0x1C, string(stream))
        at = statistics.index(string("first_chunk_id")) + len(string("first_chunk_id"))
        return struct.unpack_from(">q", statistics, at)[0]

    # Publishing.

    def declare_publisher(self, publisher: int, stream: str, reference: str = "") -> None:
        self.call(0x01, struct.pack(">B", publisher) + string(reference) + string(stream))

    def sequence(self, reference: str, stream: str) -> int:
        """The last publishing id of this reference; 0 if there is none."""
        return struct.unpack(">Q", self.call(0x05, string(reference) + string(stream)))[0]

    def publish(self, publisher: int, entries: list[Entry]) -> None:
        self.send_frame(0x02, struct.pack(">BI", publisher, len(entries)) + b"".join(entry.encoded() for entry in entries))

    def confirms(self) -> list[int]:
        """The publishing ids that what comes next confirms."""
        ids: list[int] = []
        for key, payload in self.unasked_frames():
            refuse(key, payload)
            assert key == PUBLISH_CONFIRM, f"a frame with key {key:#x} comes to a publisher: {payload[:40]!r}"
            count = struct.unpack_from(">I", payload, 1)[0]
            ids += struct.unpack_from(f">{count}Q", payload, 5)
        return ids

    # Reading.

    def subscribe(self, subscription: int, stream: str, offset: bytes, credit: int = 10) -> None:
        self.call(0x07, struct.pack(">B", subscription) + string(stream) + offset + struct.pack(">H", credit))

    def join(self, subscription: int, stream: str, offset: bytes, group: str, credit: int = 10) -> None:
        """Subscribes as one of a group of which one at a time is active."""
        properties = entries_of({"single-active-consumer": "true", "name": group})
        self.call(0x07, struct.pack(">B", subscription) + string(stream) + offset + struct.pack(">H", credit) + properties)

    def update(self, offset: bytes) -> bool:
        """Whether a subscription is active, as the broker says next; it answers that it begins there."""
        key, payload = self.unasked.popleft() if self.unasked else self.next_frame()
        assert key == CONSUMER_UPDATE, f"a frame with key {key:#x} comes: {payload[:40]!r}"
        correlation, _, active = struct.unpack(">IBB", payload)
        self.send_frame(CONSUMER_UPDATE | 0x8000, struct.pack(">IH", correlation, OK) + offset)
        return bool(active)

    def unsubscribe(self, subscription: int) -> None:
        self.call(0x0C, struct.pack(">B", subscription))

    def chunks(self, credit: int = 1) -> Iterator[tuple[int, list[bytes]]]:
        """The chunks that have come, or one that comes: the first one's offset and the messages. Each gives new credit."""
        for key, payload in self.unasked_frames():
            refuse(key, payload)
            assert key == DELIVER, f"a frame with key {key:#x} comes to a reader: {payload[:40]!r}"
            if credit:
                self.send_frame(0x09, payload[:1] + struct.pack(">H", credit))
            yield messages_of(payload[1:])

    def store_offset(self, reference: str, stream: str, offset: int) -> None:
        self.send_frame(0x0A, string(reference) + string(stream) + struct.pack(">Q", offset))

    def stored_offset(self, reference: str, stream: str) -> int | None:
        try:
            return struct.unpack(">Q", self.call(0x0B, string(reference) + string(stream)))[0]
        except Code as refusal:
            if refusal.code != NO_OFFSET:
                raise
            return None
