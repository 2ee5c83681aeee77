"""A quick connection for load from Python: publishes with confirms and consumes without decoding more than it must."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from api import Api  # noqa: E402
from pika import spec  # noqa: E402
from wire import B, Closed, Q, Wire, method_bytes  # noqa: E402

__all__ = ["Api", "B", "Closed", "Link", "Q", "spec"]

DELIVER = struct.pack(">HH", 60, 60)
ACK = struct.pack(">HH", 60, 80)


def table(headers: dict[str, int | str]) -> bytes:
    """A field table of small integers and texts."""
    entries = bytearray()
    for name, value in headers.items():
        entries += struct.pack(">B", len(name)) + name.encode()
        entries += struct.pack(">ci", b"I", value) if isinstance(value, int) else struct.pack(">cI", b"S", len(value)) + value.encode()
    return struct.pack(">I", len(entries)) + bytes(entries)


def persistent(expiration: str | None, priority: int = 0, headers: dict[str, int | str] | None = None) -> bytes:
    """The property flags and values of a persistent message, which may expire."""
    flags = 0x1800 | (0x2000 if headers else 0) | (0x0100 if expiration is not None else 0)
    properties = struct.pack(">H", flags) + (table(headers) if headers else b"") + struct.pack(">BB", 2, priority)
    if expiration is not None:
        properties += struct.pack(">B", len(expiration)) + expiration.encode()
    return properties


class Link(Wire):
    """A logged-in connection with channel 1 open."""

    def __init__(self, port: int, timeout: float = 30.0):
        super().__init__(timeout=timeout, where=("127.0.0.1", port))
        self.open().channel(1)

    def frames(self):
        """All complete frames of what one more read brings: (type, channel, payload)."""
        self.buffer += self.read_some()
        view, at, end = bytes(self.buffer), 0, len(self.buffer)
        while end - at >= 8:
            kind, channel, size = struct.unpack_from(">BHI", view, at)
            if end - at < size + 8:
                break
            yield kind, channel, view[at + 7 : at + 7 + size]
            at += size + 8
        del self.buffer[:at]

    def confirms(self) -> list[tuple[int, bool]]:
        """The publisher confirms that one read brings: (tag, multiple)."""
        found = []
        for kind, _, payload in self.frames():
            if kind == 1 and payload[:4] == ACK:
                tag, bits = struct.unpack_from(">QB", payload, 4)
                found.append((tag, bool(bits & 1)))
            elif kind != 8:
                raise AssertionError(f"unexpected frame of type {kind}: {payload[:40]!r}")
        return found

    def publish_bytes(
        self, exchange: str, key: str, body: bytes, expiration: str | None = None, priority: int = 0, headers: dict[str, int | str] | None = None
    ) -> bytes:
        """A persistent publish, ready to be sent."""
        header = struct.pack(">HHQ", 60, 0, len(body)) + persistent(expiration, priority, headers)
        pieces = [method_bytes(1, B.Publish(exchange=exchange, routing_key=key))]
        pieces += [struct.pack(">BHI", 2, 1, len(header)), header, b"\xce"]
        step = self.frame_max - 8
        for at in range(0, len(body), step):
            piece = body[at : at + step]
            pieces += [struct.pack(">BHI", 3, 1, len(piece)), piece, b"\xce"]
        return b"".join(pieces)

    def deliveries(self, state: list, headers: list | None = None) -> list[tuple[int, bool, bytes]]:
        """The complete deliveries after one more read: (tag, redelivered, body). `state` keeps a begun one between calls;
        `headers`, kept likewise, gets the header of each."""
        done = []
        for kind, _, payload in self.frames():
            if kind == 1 and payload[:4] == DELIVER:
                at = 5 + payload[4]
                tag, bits = struct.unpack_from(">QB", payload, at)
                state[:] = [tag, bool(bits & 1), 0, b""]
            elif kind == 2 and state:
                if headers is not None:
                    headers.append(payload)
                state[2] = struct.unpack_from(">Q", payload, 4)[0]
                if state[2] == 0:
                    done.append((state[0], state[1], b""))
                    state.clear()
            elif kind == 3 and state:
                state[3] += payload
                if len(state[3]) >= state[2]:
                    done.append((state[0], state[1], state[3]))
                    state.clear()
            elif kind != 8:
                raise AssertionError(f"unexpected frame of type {kind}: {payload[:40]!r}")
        return done

    def ack(self, tag: int, multiple: bool = False) -> None:
        self.send(1, B.Ack(tag, multiple))

    def count(self, queue: str) -> int:
        """Ready messages."""
        return self.call(1, Q.Declare(queue=queue, passive=True), Q.DeclareOk).message_count
