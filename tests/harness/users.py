"""Those who use a cluster while it is in trouble: publishers, and others that declare and delete queues, through any node. What becomes of the
messages is for each kind of queue to say."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

from .client import BROKEN, Client, Refused
from .cluster import Cluster, name
from .link import Closed, Q, spec

EXCHANGE = "partition.all"
WINDOW = 64
# A node that has healed serves again long before; only a test that would never end is ended by this.
SERVES_WITHIN_SECONDS = 90
# Who is told nothing for so long though it is connected would wait for ever. No trouble takes half as long.
PATIENCE_SECONDS = 30
# An answer that does not come by then is not waited for: the node that was asked may stand still.
ANSWERS_WITHIN_SECONDS = 5


def queue_of(node: int) -> str:
    return f"partition.home.{name(node)}"


class Messages(Protocol):
    """What is known of messages, by those who publish them."""

    def sending(self, publisher: int, queues: tuple[str, ...]) -> int:
        """The number of the publisher's next message, which goes to these queues."""

    def body(self, publisher: int, number: int) -> bytes:
        """The one right body of a message."""

    def confirm(self, publisher: int, number: int) -> None:
        """It is safe in all its queues."""


class Users:
    """All of them, and what they know of each message. Each node is where one of the queues is declared."""

    # How a connection ends of which nobody need hear.
    ENDS: tuple[type[Exception], ...] = BROKEN
    # With what a queue is declared that comes and goes.
    OF_EXTRA_QUEUES: dict | None = None
    # Who publishes waits for up to so many seconds between two batches.
    PAUSE_SECONDS = 0.0

    def __init__(self, cluster: Cluster, kind: str, publishers: int, ledger: Messages):
        """`kind` is classic, quorum, mirrored or stream."""
        self.cluster, self.kind, self.publishers = cluster, kind, publishers
        self.nodes = range(len(cluster.nodes))
        self.queues = [queue_of(node) for node in self.nodes]
        self.ledger = ledger
        self.lock = threading.Lock()
        self.ids = itertools.count()
        self.stopping = threading.Event()
        self.jobs: list[threading.Thread] = []
        self.surprises: list[str] = []
        self.disagreed: list[str] = []
        self.reasons: Counter[str] = Counter()

    @property
    def replicated(self) -> bool:
        """Whether a node that is killed takes nothing of the queues along."""
        return self.kind != "classic"

    def arguments(self, node: int) -> dict | None:
        """Of the queue that is declared at a node."""
        raise NotImplementedError

    def declare_all(self) -> None:
        for node in self.nodes:
            with Client(self.cluster, node) as client:
                client.call(1, spec.Exchange.Declare(exchange=EXCHANGE, type="fanout", durable=True), spec.Exchange.DeclareOk)
                self.declare(client, node)

    def declare(self, client: Client, node: int) -> None:
        client.call(1, Q.Declare(queue=queue_of(node), durable=True, arguments=self.arguments(node)), Q.DeclareOk)
        client.call(1, Q.Bind(queue=queue_of(node), exchange=EXCHANGE), Q.BindOk)

    def others(self, dice: random.Random) -> list[tuple[Callable, tuple]]:
        """What is done besides publishing and declaring: by whom, and with what before the node."""
        raise NotImplementedError

    def begin(self, dice: random.Random) -> None:
        self.stopping.clear()
        todo = [(self.publish, ())] * self.publishers + self.others(dice) + [(self.define, ())]
        self.jobs = [threading.Thread(target=self.until_stopped, args=(job, arguments, random.Random(dice.random()))) for job, arguments in todo]
        for job in self.jobs:
            job.start()

    def end(self) -> None:
        self.stopping.set()
        for job in self.jobs:
            job.join()

    def until_stopped(self, job: Callable, arguments: tuple, dice: random.Random) -> None:
        """Does something through a node until that breaks, then through another one."""
        while not self.stopping.is_set():
            try:
                job(*arguments, dice.choice(self.nodes), dice)
            except Refused as refused:
                with self.lock:
                    self.reasons[" ".join(str(refused).split()[:2])] += 1
                self.stopping.wait(0.05)
            except self.ENDS as end:
                self.count(end)
                self.stopping.wait(0.05)
            except AssertionError as error:
                self.surprises.append(f"{job.__name__}: {error}")
                return

    def count(self, end: Exception) -> None:
        """A connection ended without a word."""

    def destinations(self, dice: random.Random) -> list[tuple[str, ...]]:
        """Where the messages of one publisher go: to one queue or to all."""
        return [*((queue,) for queue in self.queues), tuple(self.queues)]

    def publish(self, node: int, dice: random.Random, is_patient: bool = False) -> None:
        """Publishes with a window of unconfirmed messages, and if it is patient, waits for every answer. Each connection is a publisher of
        its own."""
        with self.lock:
            publisher = next(self.ids)
        waiting: deque[tuple[int, int]] = deque()
        with Client(self.cluster, node, PATIENCE_SECONDS if is_patient else 10) as client:
            client.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
            tag, destinations = 0, self.destinations(dice)
            while not self.stopping.is_set():
                batch = bytearray()
                for _ in range(dice.choice((1, 1, 8, 32))):
                    queues = dice.choice(destinations)
                    exchange, key = (EXCHANGE, "") if len(queues) > 1 else ("", queues[0])
                    with self.lock:
                        number = self.ledger.sending(publisher, queues)
                    tag += 1
                    waiting.append((tag, number))
                    batch += client.publish_bytes(exchange, key, self.ledger.body(publisher, number))
                client.send_bytes(batch)
                while len(waiting) > WINDOW:
                    self.take_answers(client, waiting, publisher)
                if self.PAUSE_SECONDS:
                    self.stopping.wait(dice.random() * self.PAUSE_SECONDS)
            while is_patient and waiting:
                self.take_answers(client, waiting, publisher)

    def publish_patiently(self, node: int, dice: random.Random) -> None:
        """Whatever happens, each message is confirmed or refused, or the connection ends."""
        try:
            self.publish(node, dice, is_patient=True)
        except TimeoutError:
            self.surprises.append(f"{name(node)} says nothing to a publisher for {PATIENCE_SECONDS} s")

    def take_answers(self, client: Client, waiting: deque, publisher: int) -> None:
        confirmed = client.confirms()
        self.settle(waiting, client.nacked, None)
        client.nacked.clear()
        self.settle(waiting, confirmed, publisher)

    def settle(self, waiting: deque, answers: list[tuple[int, bool]], publisher: int | None) -> None:
        """Takes answers off the window; with a publisher they are confirms, without one refusals."""
        with self.lock:
            for tag, multiple in answers:
                answered = [entry for entry in waiting if entry[0] == tag or (multiple and entry[0] < tag)]
                for entry in answered:
                    waiting.remove(entry)
                    if publisher is not None:
                        self.ledger.confirm(publisher, entry[1])

    def define(self, node: int, dice: random.Random) -> None:
        """What one node has answered is so on every other one that answers at all."""
        turn = 0
        with self.lock:
            number = next(self.ids)
        with Client(self.cluster, node) as client:
            while not self.stopping.is_set():
                queue = f"partition.extra.{number}.{turn}"
                turn += 1
                client.call(1, Q.Declare(queue=queue, durable=True, arguments=self.OF_EXTRA_QUEUES), Q.DeclareOk)
                self.look(queue, dice.choice(self.nodes), True)
                client.call(1, Q.Delete(queue=queue), Q.DeleteOk)
                self.look(queue, dice.choice(self.nodes), False)

    def look(self, queue: str, node: int, is_there: bool) -> None:
        try:
            with Client(self.cluster, node) as other:
                other.call(1, Q.Declare(queue=queue, passive=True), Q.DeclareOk)
                seen = True
        except Refused as refused:
            if "no queue" not in str(refused):
                return
            seen = False
        except BROKEN:
            return
        if seen != is_there:
            self.disagreed.append(f"{queue} was {'declared' if is_there else 'deleted'} and answered, and {name(node)} {'has' if seen else 'lacks'} it")

    def serve_all(self, node: int, when: str) -> None:
        """A node takes and confirms a message for every queue, sooner or later."""
        deadline = time.monotonic() + SERVES_WITHIN_SECONDS
        while True:
            try:
                self.confirm_one_each(node)
                return
            except self.ENDS as error:
                broker = self.cluster.nodes[node]
                if not broker.alive() or time.monotonic() > deadline:
                    raise RuntimeError(f"{when}: {name(node)} does not serve: {error!r}\n{broker.log_tail()}") from None
                time.sleep(0.05)

    def confirm_one_each(self, node: int) -> dict[str, tuple[int, int]]:
        """The publisher and the number of each queue's message."""
        with self.lock:
            publisher = next(self.ids)
        waiting: deque[tuple[int, int]] = deque()
        sent: dict[str, tuple[int, int]] = {}
        with Client(self.cluster, node) as client:
            client.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
            for tag, queue in enumerate(self.queues, start=1):
                with self.lock:
                    number = self.ledger.sending(publisher, (queue,))
                sent[queue] = (publisher, number)
                waiting.append((tag, number))
                client.send_bytes(client.publish_bytes("", queue, self.ledger.body(publisher, number)))
            while waiting:
                confirmed = client.confirms()
                if client.nacked:
                    raise Closed(f"a message was refused: {client.nacked}")
                self.settle(waiting, confirmed, publisher)
        return sent

    def consume_all(self, node: int) -> None:
        """A client of a node gets a message of every queue, sooner or later: others publish meanwhile."""
        deadline = time.monotonic() + SERVES_WITHIN_SECONDS
        for queue in self.queues:
            while True:
                try:
                    if self.consume_one(node, queue):
                        break
                except self.ENDS:
                    time.sleep(0.05)
                if time.monotonic() > deadline:
                    raise RuntimeError(f"without a link: a client of {name(node)} gets nothing of {queue}\n{self.cluster.nodes[node].log_tail()}")

    def consume_one(self, node: int, queue: str) -> bool:
        """Whether a client of a node gets a message of this queue."""
        raise NotImplementedError

    def judge(self, may_come_again: Callable[[str], bool]) -> int:
        """Looks at what there is to judge after each cycle, when all is well and nobody publishes. How many messages came to somebody again."""
        raise NotImplementedError

    def verify(self, dice: random.Random) -> None:
        """Looks at everything, when all is well and nobody publishes."""
        raise NotImplementedError

    def findings(self) -> list[tuple[str, list[str]]]:
        """What was to be so, and each time that it was not."""
        raise NotImplementedError
