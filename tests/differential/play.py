"""Plays a case: sends what its script says, and notes what comes back.

A script speaks through a `Stage`: one channel of one connection. Each call notes one line: what was asked, and the answer. What comes
unasked (deliveries, returns, confirms, cancellations) waits until the script asks for it, so the notes don't depend on timing. An error
that closes the channel or the connection is noted, and the next call opens another.
"""

from __future__ import annotations

import base64
import contextlib
import html
import json
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections import deque

from pika import spec
from pika import frame as frames
from wire import B, Closed, Q, Wire, X, raw_frame

from .form import given, properties, settled

HANDSHAKE_SECONDS = 30.0


class Ended(Exception):
    """The case can't go on; what was noted until now counts."""


class Peer:
    """A connection of a case, with what came unasked on each of its channels."""

    def __init__(self, play: Play, options: dict, where: tuple[str, int] | None = None):
        self.play, self.options = play, options
        self.where = where or play.where
        self.wire: Wire | None = None
        self.open: set[int] = set()
        self.inbox: dict[int, deque] = {}
        # The confirms that came, by channel and number.
        self.told: dict[int, dict[int, str]] = {}

    def connect(self) -> Wire:
        if self.wire is None:
            self.wire = Wire(timeout=HANDSHAKE_SECONDS, where=self.where).open(**self.options)
            self.wire.socket.settimeout(self.play.deadline_seconds)
            self.open = set()
        return self.wire

    def hang_up(self) -> None:
        if self.wire is not None:
            self.wire.close()
        self.wire, self.open = None, set()

    def frame(self):
        """The next frame: its channel, the method, and for contents the properties as text and the body."""
        wire = self.wire
        while True:
            kind, channel, payload = wire.read_raw_frame()
            if kind != spec.FRAME_HEARTBEAT:
                break
        assert kind == spec.FRAME_METHOD, f"frame of type {kind} instead of a method"
        method = frames.decode_frame(raw_frame(kind, channel, payload))[1].method
        if not isinstance(method, (B.Deliver, B.Return, B.GetOk)):
            return channel, method, None
        kind, _, header = wire.read_raw_frame()
        assert kind == spec.FRAME_HEADER, "a content header follows"
        size, body = int.from_bytes(header[4:12], "big"), b""
        while len(body) < size:
            kind, _, piece = wire.read_raw_frame()
            assert kind == spec.FRAME_BODY, "a body frame follows"
            body += piece
        return channel, method, (properties(header), body)


UNASKED = (B.Deliver, B.Return, B.Ack, B.Nack, B.Cancel)


class Stage:
    """One channel, as a script sees it."""

    def __init__(self, play: Play, peer: Peer, channel: int, label: str):
        self.play, self.peer, self.number, self.label = play, peer, channel, label
        self.last_tag = 0

    # Further channels and connections.

    def channel(self, number: int) -> Stage:
        """Another channel of this connection."""
        return type(self)(self.play, self.peer, number, f"{self.label}channel {number}: ")

    def connection(self, name: str, **options) -> Stage:
        """Another connection; options are those of `wire.Wire.open`."""
        peer = Peer(self.play, options)
        self.play.peers.append(peer)
        return Stage(self.play, peer, 1, f"{name}: ")

    # Conversation.

    def note(self, text: str) -> None:
        self.play.notes.append(self.play.settled(self.label + text))

    def ready(self) -> Wire:
        wire = self.peer.connect()
        if self.number not in self.peer.open:
            wire.call(self.number, spec.Channel.Open(), spec.Channel.OpenOk)
            self.peer.open.add(self.number)
            self.peer.inbox[self.number] = deque()
            self.peer.told.pop(self.number, None)
        return wire

    def take(self, what: str):
        """The next frame for this channel that is not unasked for; errors are noted, and are None."""
        try:
            while True:
                channel, method, content = self.peer.frame()
                if isinstance(method, spec.Connection.Close):
                    self.note(f"{what} -> connection closed: {self.error(method)}")
                    # A server that stops may be gone by then.
                    with contextlib.suppress(OSError):
                        self.peer.wire.send(0, spec.Connection.CloseOk())
                    self.peer.hang_up()
                    return None
                if isinstance(method, spec.Channel.Close):
                    self.note(f"{what} -> channel closed: {self.error(method)}")
                    self.peer.wire.send(channel, spec.Channel.CloseOk())
                    self.peer.open.discard(channel)
                    if channel == self.number:
                        return None
                elif isinstance(method, UNASKED):
                    self.peer.inbox.setdefault(channel, deque()).append((method, content))
                    if channel == self.number:
                        return method, content
                else:
                    return method, content
        except TimeoutError:
            self.note(f"{what} -> silence")
            raise Ended from None
        except Closed:
            self.note(f"{what} -> hung up")
            self.peer.hang_up()
            return None

    @staticmethod
    def error(method) -> str:
        return f"{method.reply_code} ({method.class_id}, {method.method_id}) {method.reply_text}"

    def call(self, what: str, method, answers: tuple, note: bool = True):
        wire = self.ready()
        wire.send(self.number, method)
        return self.answered(what, answers, note)

    def answered(self, what: str, answers: tuple, note: bool = True):
        """Waits for one of these answers and notes it."""
        while (taken := self.take(what)) is not None:
            method, content = taken
            if isinstance(method, UNASKED):
                continue
            if not isinstance(method, answers):
                self.note(f"{what} -> unexpected {method}")
                raise Ended
            if note:
                self.note(f"{what} -> {self.shown(method, content)}")
            return method
        return None

    @staticmethod
    def shown(method, content) -> str:
        name = method.NAME.split(".")[1]
        parts = [f"{key}={value!r}" for key, value in vars(method).items() if not key.startswith("_")]
        if content is not None:
            parts += [f"<{content[0]}>", repr(content[1]) if len(content[1]) <= 40 else f"{len(content[1])} bytes"]
        return " ".join([name, *parts])

    def given(self, value):
        return self.play.given(value)

    # Topology.

    def queue(self, name: str, durable=True, passive=False, exclusive=False, auto_delete=False, arguments=None, note=True):
        self.play.queues.add(self.given(name))
        flags = [word for word, on in (("durable", durable), ("passive", passive), ("exclusive", exclusive), ("auto-delete", auto_delete)) if on]
        method = Q.Declare(
            queue=self.given(name), durable=durable, passive=passive, exclusive=exclusive, auto_delete=auto_delete, arguments=self.given(arguments or {})
        )
        return self.call(f"declare queue {name} {' '.join(flags)} {arguments or ''}".rstrip(), method, (Q.DeclareOk,), note)

    def exchange(self, name: str, kind="direct", durable=True, passive=False, auto_delete=False, internal=False, arguments=None):
        self.play.exchanges.add(self.given(name))
        flags = [word for word, on in (("durable", durable), ("passive", passive), ("auto-delete", auto_delete), ("internal", internal)) if on]
        method = X.Declare(
            exchange=self.given(name), type=kind, durable=durable, passive=passive, auto_delete=auto_delete, internal=internal, arguments=self.given(arguments or {})
        )
        return self.call(f"declare {kind} exchange {name} {' '.join(flags)} {arguments or ''}".rstrip(), method, (X.DeclareOk,))

    def bind(self, queue: str, exchange: str, key="", arguments=None):
        method = Q.Bind(queue=self.given(queue), exchange=self.given(exchange), routing_key=self.given(key), arguments=self.given(arguments or {}))
        return self.call(f"bind {queue} to {exchange} by {key!r} {arguments or ''}".rstrip(), method, (Q.BindOk,))

    def unbind(self, queue: str, exchange: str, key="", arguments=None):
        method = Q.Unbind(queue=self.given(queue), exchange=self.given(exchange), routing_key=self.given(key), arguments=self.given(arguments or {}))
        return self.call(f"unbind {queue} from {exchange} by {key!r}", method, (Q.UnbindOk,))

    def bind_exchange(self, destination: str, source: str, key="", arguments=None):
        method = X.Bind(destination=self.given(destination), source=self.given(source), routing_key=self.given(key), arguments=self.given(arguments or {}))
        return self.call(f"bind exchange {destination} to {source} by {key!r}", method, (X.BindOk,))

    def unbind_exchange(self, destination: str, source: str, key="", arguments=None):
        method = X.Unbind(destination=self.given(destination), source=self.given(source), routing_key=self.given(key), arguments=self.given(arguments or {}))
        return self.call(f"unbind exchange {destination} from {source} by {key!r}", method, (X.UnbindOk,))

    def delete_queue(self, name: str, if_unused=False, if_empty=False):
        return self.call(f"delete queue {name}", Q.Delete(queue=self.given(name), if_unused=if_unused, if_empty=if_empty), (Q.DeleteOk,))

    def delete_exchange(self, name: str, if_unused=False):
        return self.call(f"delete exchange {name}", X.Delete(exchange=self.given(name), if_unused=if_unused), (X.DeleteOk,))

    def purge(self, name: str):
        return self.call(f"purge {name}", Q.Purge(queue=self.given(name)), (Q.PurgeOk,))

    def counts(self, name: str):
        """Notes how many messages and consumers the queue has."""
        # RabbitMQ's queues answer this before what came earlier; they have handled that by the second question.
        self.sync(name)
        return self.queue(name, passive=True)

    def until(self, name: str, count: int) -> None:
        """Waits until so many messages are ready: what a channel or a connection left behind comes back some time after it."""
        end = time.monotonic() + self.play.deadline_seconds
        while (declared := self.queue(name, passive=True, note=False)) is not None and declared.message_count != count:
            if time.monotonic() > end:
                self.note(f"{name} has {declared.message_count} messages instead of {count}")
                raise Ended

    # Publishing.

    def publish(self, exchange: str, key: str, body: str | bytes = "m", mandatory=False, immediate=False, **properties) -> None:
        """Sends a message and notes nothing; errors come out of the next call."""
        wire = self.ready()
        body = body.encode() if isinstance(body, str) else body
        sent = spec.BasicProperties(**{name: self.given(value) for name, value in properties.items()})
        wire.publish(self.number, self.given(exchange), self.given(key), body, sent, mandatory=mandatory, immediate=immediate)

    def fill(self, queue: str, count: int, **properties) -> None:
        """Publishes messages straight to a queue; their bodies are their numbers, from 0."""
        for number in range(count):
            self.publish("", queue, str(number), **properties)

    def confirm_select(self, nowait=False):
        if nowait:
            return self.ready().send(self.number, spec.Confirm.Select(nowait=True))
        return self.call("confirm.select", spec.Confirm.Select(), (spec.Confirm.SelectOk,))

    def confirms(self, upto: int) -> None:
        """Waits until all publishes up to this number are confirmed, and notes which were not accepted."""
        self.ready()
        told = self.peer.told.setdefault(self.number, {})
        while len([number for number in told if number <= upto]) < upto:
            for method, _ in self.unasked((B.Ack, B.Nack), "confirms"):
                first = 1 if method.multiple else method.delivery_tag
                for number in range(first, method.delivery_tag + 1):
                    told.setdefault(number, "ack" if isinstance(method, B.Ack) else "nack")
        self.note("confirms -> " + ", ".join(f"{number} {word}" for number, word in sorted(told.items())))

    def unasked(self, kinds: tuple, what: str) -> list:
        """What came of these kinds; at least one."""
        box = self.peer.inbox.setdefault(self.number, deque())
        while True:
            found = [item for item in box if isinstance(item[0], kinds)]
            if found:
                for item in found:
                    box.remove(item)
                return found
            if self.take(what) is None:
                raise Ended
            box = self.peer.inbox.setdefault(self.number, deque())

    def expect(self, kinds: tuple, count: int, what: str) -> list:
        found: list = []
        while len(found) < count:
            found += self.unasked(kinds, what)
        for extra in reversed(found[count:]):
            self.peer.inbox[self.number].appendleft(extra)
        return found[:count]

    def returns(self, count: int) -> None:
        """Waits for so many returned messages and notes them."""
        for method, content in self.expect((B.Return,), count, "returns"):
            self.note(f"returned: {self.shown(method, content)}")

    def cancelled(self) -> None:
        """Waits for the server to cancel a consumer."""
        for method, _ in self.expect((B.Cancel,), 1, "cancel"):
            self.note(f"cancelled: {method.consumer_tag}")

    def closed(self) -> None:
        """Waits for the server to close the channel or the connection."""
        self.ready()
        while self.take("waiting") is not None:
            pass

    # Transactions.

    def tx_select(self):
        return self.call("tx.select", spec.Tx.Select(), (spec.Tx.SelectOk,))

    def tx_commit(self):
        return self.call("tx.commit", spec.Tx.Commit(), (spec.Tx.CommitOk,))

    def tx_rollback(self):
        return self.call("tx.rollback", spec.Tx.Rollback(), (spec.Tx.RollbackOk,))

    # Consuming.

    def get(self, queue: str, no_ack=False) -> int:
        method = self.call(f"get {queue}", B.Get(queue=self.given(queue), no_ack=no_ack), (B.GetOk, B.GetEmpty))
        if isinstance(method, B.GetOk):
            self.last_tag = method.delivery_tag
        return self.last_tag

    def consume(self, queue: str, tag="c", no_ack=False, exclusive=False, no_local=False, arguments=None):
        method = B.Consume(queue=self.given(queue), consumer_tag=tag, no_ack=no_ack, exclusive=exclusive, no_local=no_local, arguments=self.given(arguments or {}))
        words = [word for word, on in (("no-ack", no_ack), ("exclusive", exclusive)) if on]
        return self.call(f"consume {queue} as {tag} {' '.join(words)} {arguments or ''}".rstrip(), method, (B.ConsumeOk,))

    def cancel(self, tag="c"):
        return self.call(f"cancel {tag}", B.Cancel(tag), (B.CancelOk,))

    def deliveries(self, count: int) -> list[int]:
        """Waits for so many deliveries, notes them, and gives their tags."""
        found = self.expect((B.Deliver,), count, "deliveries")
        for method, content in found:
            self.note(self.shown(method, content))
        return [method.delivery_tag for method, _ in found]

    def no_deliveries(self, queue: str) -> None:
        """Notes what was delivered by now, the queue having been asked: usually nothing."""
        self.sync(queue)
        box = self.peer.inbox.get(self.number, deque())
        found = [item for item in box if isinstance(item[0], B.Deliver)]
        for method, content in found:
            box.remove((method, content))
            self.note(self.shown(method, content))
        if not found:
            self.note("no delivery")

    def sync(self, queue: str | None = None) -> None:
        """Waits until everything sent before was handled by the channel, and by the queue."""
        if queue is not None and self.queue(queue, passive=True, note=False) is None:
            return
        self.call("flow on", spec.Channel.Flow(True), (spec.Channel.FlowOk,), note=False)

    def qos(self, count: int, whole_channel=False, size=0):
        return self.call(f"qos {count}", B.Qos(prefetch_size=size, prefetch_count=count, global_qos=whole_channel), (B.QosOk,))

    def ack(self, tag: int, multiple=False) -> None:
        self.ready().send(self.number, B.Ack(tag, multiple))

    def nack(self, tag: int, multiple=False, requeue=True) -> None:
        self.ready().send(self.number, B.Nack(tag, multiple, requeue))

    def reject(self, tag: int, requeue=True) -> None:
        self.ready().send(self.number, B.Reject(tag, requeue))

    def recover(self, requeue=True):
        return self.call("recover", B.Recover(requeue), (B.RecoverOk,))

    # The HTTP API.

    def http(self, method: str, path: str, body=None, members: list | None = None) -> None:
        """Notes the status, the reason if it was refused, and these members of what came back."""
        assert self.play.http_at is not None, "the case needs the HTTP API"
        status, answer = ask(self.play.http_at, method, self.given(path), self.given(body))
        shown = {name: answer.get(name) for name in members or [] if status < 300}
        reason = answer.get("reason") if status >= 400 else None
        self.note(" ".join([method, path, f"{body or ''} -> {status}", *[f"{name}={json.dumps(value, sort_keys=True)}" for name, value in shown.items()], *([html.unescape(str(reason)).strip()] if reason else [])]))

    # Ends.

    def close_channel(self):
        done = self.call("close channel", spec.Channel.Close(200, "", 0, 0), (spec.Channel.CloseOk,))
        self.peer.open.discard(self.number)
        return done

    def close_connection(self) -> None:
        self.ready()
        self.peer.wire.send(0, spec.Connection.Close(200, "", 0, 0))
        self.answered("close connection", (spec.Connection.CloseOk,))
        self.peer.hang_up()

    def hang_up(self) -> None:
        """Closes the socket without a word."""
        self.peer.hang_up()


def ask(where: tuple[str, int], method: str, path: str, body):
    """One call of the HTTP API: the status, and the document that came back."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{where[0]}:{where[1]}/api{path}", data=data, method=method)
    request.add_header("Authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            status, text = reply.status, reply.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    return status, json.loads(text) if text else {}


class Play:
    """One run of one case on one broker. What doesn't come within the deadline is noted as silence, and ends the case."""

    def __init__(self, where: tuple[str, int], deadline_seconds: float = 20.0, http_at: tuple[str, int] | None = None):
        self.where, self.deadline_seconds, self.http_at = where, deadline_seconds, http_at
        self.prefix = f"d{uuid.uuid4().hex[:8]}."
        self.notes: list[str] = []
        self.queues: set[str] = set()
        self.exchanges: set[str] = set()
        self.peers: list[Peer] = []

    def given(self, value):
        """A script's value as it is sent."""
        return given(value, self.prefix)

    def settled(self, text: str) -> str:
        """What is observed, without what belongs to this run."""
        return settled(text, self.prefix)

    def run(self, script) -> list[str]:
        peer = Peer(self, {})
        self.peers.append(peer)
        stage = Stage(self, peer, 1, "")
        try:
            script(stage)
            for each in self.peers:
                self.leftovers(each)
        except Ended:
            pass
        except (AssertionError, OSError, Closed) as error:
            self.notes.append(self.settled(f"ended by {type(error).__name__}: {error}"))
        finally:
            for each in self.peers:
                each.hang_up()
            self.clean()
        return self.notes

    def leftovers(self, peer: Peer) -> None:
        """Notes what came unasked and was not asked for."""
        if peer.wire is None:
            return
        for number in sorted(peer.open):
            stage = Stage(self, peer, number, "at the end: ")
            stage.sync()
            for method, content in peer.inbox.get(number, ()):
                if not isinstance(method, (B.Ack, B.Nack)):
                    stage.note(stage.shown(method, content))

    def clean(self) -> None:
        """Deletes what the script declared, on a connection that this thread's plays share."""
        wire = getattr(CLEANER, str(self.where), None)
        if wire is None:
            wire = Wire(timeout=HANDSHAKE_SECONDS, where=self.where).open()
            wire.channel(1)
            setattr(CLEANER, str(self.where), wire)
        for queue in sorted(name for name in self.queues if name.startswith(self.prefix)):
            wire.send(1, Q.Delete(queue=queue))
            # An exclusive queue may still be another connection's that was only just hung up.
            if isinstance(wire.read_frame().method, spec.Channel.Close):
                wire.send(1, spec.Channel.CloseOk())
                wire.channel(1)
        for exchange in sorted(name for name in self.exchanges if name.startswith(self.prefix)):
            wire.call(1, X.Delete(exchange=exchange), X.DeleteOk)


CLEANER = threading.local()
