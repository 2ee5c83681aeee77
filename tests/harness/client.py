"""A client of a cluster: a quick connection to one of its nodes, which may be over at any time."""

from __future__ import annotations

import struct

from .cluster import Cluster
from .link import Closed, Link, spec

__all__ = ["BROKEN", "Client", "Refused"]

BROKEN = (Closed, OSError, TimeoutError)
CLOSES = {(10, 50): "connection.close", (20, 40): "channel.close", (60, 30): "basic.cancel"}
NACK = (60, 120)
# A node holds publishers back, and lets them go on.
BLOCKS = ((10, 60), (10, 61))


class Refused(Closed):
    """The broker ended the connection, the channel or the consumer, and said why."""


class Client(Link):
    """A connection to a node that may say at any time that something is over."""

    def __init__(self, cluster: Cluster, node: int, timeout: float = 10.0):
        self.nacked: list[tuple[int, bool]] = []
        super().__init__(cluster.nodes[node].port, timeout)

    def frames(self):
        for kind, channel, payload in super().frames():
            method = struct.unpack_from(">HH", payload) if kind == 1 else None
            if method in CLOSES:
                what = CLOSES[method]
                told = "" if method == (60, 30) else f" {struct.unpack_from('>H', payload, 4)[0]}"
                raise Refused(what + told)
            if method == NACK:
                tag, bits = struct.unpack_from(">QB", payload, 4)
                self.nacked.append((tag, bool(bits & 1)))
                continue
            if method in BLOCKS:
                continue
            yield kind, channel, payload

    def call(self, channel: int, method, answer):
        """What a passive declaration or a declaration is answered, or why it is refused."""
        self.send(channel, method)
        got = self.read_frame()
        said = getattr(got, "method", got)
        if isinstance(said, (spec.Channel.Close, spec.Connection.Close)):
            raise Refused(f"{type(said).__qualname__} {said.reply_code} {said.reply_text}")
        assert isinstance(said, answer), f"expected {answer.__qualname__}, got {said}"
        return said
