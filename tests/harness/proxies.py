"""Connections between nodes that a test can cut: a proxy for each ordered pair of nodes, which holds bytes back instead of closing sockets.

A cut is what a network does: bytes stay away, and nobody is told. What is held comes when the cut is healed, as TCP would send it again.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter

from .broker import free_port


class Gates:
    """Which direction between which nodes is open."""

    def __init__(self) -> None:
        # How many have cut each.
        self.closed: Counter[tuple[int, int]] = Counter()
        self.changed = threading.Condition()
        self.ended = False

    def cut(self, source: int, target: int) -> None:
        """Bytes from one node to the other stay away from now on."""
        with self.changed:
            self.closed[source, target] += 1

    def mend(self, source: int, target: int) -> None:
        """One cut less. Bytes pass again unless somebody else has cut the direction, too."""
        with self.changed:
            self.closed[source, target] -= 1
            self.changed.notify_all()

    def heal(self) -> None:
        with self.changed:
            self.closed.clear()
            self.changed.notify_all()

    def end(self) -> None:
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def pass_through(self, source: int, target: int) -> None:
        """Waits while the direction is cut."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended or not self.closed[source, target])


class Proxy:
    """The port at which one node dials another one."""

    def __init__(self, gates: Gates, source: int, target: int, target_port: int):
        self.gates, self.source, self.target, self.target_port = gates, source, target, target_port
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                dialled, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(dialled,), daemon=True).start()

    def serve(self, dialled: socket.socket) -> None:
        # A connection needs both directions before anything can be said.
        self.gates.pass_through(self.source, self.target)
        self.gates.pass_through(self.target, self.source)
        try:
            answering = socket.create_connection(("127.0.0.1", self.target_port))
        except OSError:
            dialled.close()
            return
        for one in (dialled, answering):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self.pump, args=(answering, dialled, self.target, self.source), daemon=True).start()
        self.pump(dialled, answering, self.source, self.target)

    def pump(self, reader: socket.socket, writer: socket.socket, source: int, target: int) -> None:
        with contextlib.suppress(OSError):
            while data := reader.recv(1 << 16):
                self.gates.pass_through(source, target)
                writer.sendall(data)
        # That a node is gone does not get through a cut either.
        self.gates.pass_through(source, target)
        for one in (writer, reader):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        writer.close()

    def close(self) -> None:
        self.listener.close()
