"""Those who use a cluster while it is in trouble: publishers, consumers, and others that declare and delete queues, through any node."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter, deque

from .client import BROKEN, Client, Refused
from .cluster import Cluster, name
from .ledger import Ledger
from .link import Api, B, Closed, Q, spec

CONSUMERS = 3
EXCHANGE = "partition.all"
WINDOW = 64
# A node that has healed serves again long before; only a test that would never end is ended by this.
SERVES_WITHIN_SECONDS = 90
# An answer that does not come by then is not waited for: the node that was asked may stand still.
ANSWERS_WITHIN_SECONDS = 5
QUORUM = {"x-queue-type": "quorum"}
# No test takes so long. A node whose clock is set by more than that must not take it for the time that has passed.
LIVES_MS = 3_600_000


def queue_of(node: int) -> str:
    return f"partition.home.{name(node)}"


def mirror(cluster: Cluster, node: int, definition: dict | None) -> int:
    """Has a policy say which nodes are to have the classic queues; or takes it away. The status of the answer."""
    api = Api(root=f"http://127.0.0.1:{cluster.nodes[node].http_port}", timeout=ANSWERS_WITHIN_SECONDS)
    path = "/api/policies/%2F/partition"
    if definition is None:
        return api("DELETE", path).status
    return api("PUT", path, {"pattern": "^partition[.]", "apply-to": "queues", "definition": definition}).status


def wait_for_mirrors(cluster: Cluster, node: int, queue: str, mirrors: int) -> None:
    """Until so many have everything."""
    api = Api(root=f"http://127.0.0.1:{cluster.nodes[node].http_port}")
    deadline = time.monotonic() + SERVES_WITHIN_SECONDS
    while len((answer := api("GET", f"/api/queues/%2F/{queue}")).json.get("synchronised_slave_nodes", [])) != mirrors:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{queue} does not get its mirrors: {answer.text[:2000]}")
        time.sleep(0.05)


class Users:
    """All of them, and what they know of each message. Each node is where one of the queues is declared."""

    def __init__(self, cluster: Cluster, seed: int, kind: str, publishers: int):
        """`kind` is classic, quorum or mirrored."""
        self.cluster, self.kind, self.publishers = cluster, kind, publishers
        self.nodes = range(len(cluster.nodes))
        self.queues = [queue_of(node) for node in self.nodes]
        self.ledger = Ledger(seed)
        self.lock = threading.Lock()
        self.ids = itertools.count()
        self.stopping = threading.Event()
        self.jobs: list[threading.Thread] = []
        self.surprises: list[str] = []
        self.disagreed: list[str] = []
        self.reasons: Counter[str] = Counter()

    def arguments(self, node: int) -> dict | None:
        """Of the queue that is declared at a node: every other one has a copy on each, and every third one lets messages die of age."""
        if self.kind != "quorum":
            return None
        # Consumers go away so often with what they hold that any limit on returns would be reached.
        size = {"x-quorum-initial-group-size": len(self.nodes)} if node % 2 == 0 else {}
        return QUORUM | {"x-delivery-limit": -1} | size | ({"x-message-ttl": LIVES_MS} if node % 3 == 0 else {})

    @property
    def replicated(self) -> bool:
        """Whether a node that is killed takes nothing of the queues along."""
        return self.kind != "classic"

    def members(self, queue: str) -> int:
        """How many nodes are to have a quorum queue."""
        return len(self.nodes) if self.queues.index(queue) % 2 == 0 else min(3, len(self.nodes))

    def declare_all(self) -> None:
        for node in self.nodes:
            with Client(self.cluster, node) as client:
                client.call(1, spec.Exchange.Declare(exchange=EXCHANGE, type="fanout", durable=True), spec.Exchange.DeclareOk)
                client.call(1, Q.Declare(queue=queue_of(node), durable=True, arguments=self.arguments(node)), Q.DeclareOk)
                client.call(1, Q.Bind(queue=queue_of(node), exchange=EXCHANGE), Q.BindOk)
        if self.kind == "mirrored":
            mirror(self.cluster, 0, {"ha-mode": "all"})
            for queue in self.queues:
                wait_for_mirrors(self.cluster, 0, queue, len(self.nodes) - 1)

    def begin(self, dice: random.Random) -> None:
        self.stopping.clear()
        todo = [self.publish] * self.publishers + [self.consume] * dice.randrange(CONSUMERS + 1) + [self.define]
        self.jobs = [threading.Thread(target=self.until_stopped, args=(job, random.Random(dice.random()))) for job in todo]
        for job in self.jobs:
            job.start()

    def end(self) -> None:
        self.stopping.set()
        for job in self.jobs:
            job.join()

    def until_stopped(self, job, dice: random.Random) -> None:
        """Does something through a node until that breaks, then through another one."""
        while not self.stopping.is_set():
            try:
                job(dice.choice(self.nodes), dice)
            except Refused as refused:
                with self.lock:
                    self.reasons[" ".join(str(refused).split()[:2])] += 1
                self.stopping.wait(0.05)
            except BROKEN:
                self.stopping.wait(0.05)
            except AssertionError as error:
                self.surprises.append(f"{job.__name__}: {error}")
                return

    def publish(self, node: int, dice: random.Random) -> None:
        """Publishes with a window of unconfirmed messages. Each connection is a publisher of its own."""
        with self.lock:
            publisher = next(self.ids)
        waiting: deque[tuple[int, int]] = deque()
        with Client(self.cluster, node) as client:
            client.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
            tag = 0
            while not self.stopping.is_set():
                batch = bytearray()
                for _ in range(dice.choice((1, 1, 8, 32))):
                    queues = dice.choice([*((queue,) for queue in self.queues), tuple(self.queues)])
                    exchange, key = (EXCHANGE, "") if len(queues) > 1 else ("", queues[0])
                    with self.lock:
                        number = self.ledger.sending(publisher, queues)
                    tag += 1
                    waiting.append((tag, number))
                    batch += client.publish_bytes(exchange, key, self.ledger.body(publisher, number))
                client.send_bytes(batch)
                while len(waiting) > WINDOW:
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

    def consume(self, node: int, dice: random.Random) -> None:
        """Consumes from a queue and acknowledges all but a few."""
        queue = dice.choice(self.queues)
        with self.lock:
            session = self.ledger.session_among_others(queue)
        state: list = []
        held: list[tuple[int, tuple[int, int]]] = []
        with Client(self.cluster, node) as client:
            client.call(1, B.Qos(prefetch_count=200), B.QosOk)
            client.send(1, B.Consume(queue=queue, consumer_tag="c", nowait=True))
            client.socket.settimeout(0.5)
            while not self.stopping.is_set():
                try:
                    arrived = client.deliveries(state)
                except TimeoutError:
                    continue
                for tag, redelivered, body in arrived:
                    with self.lock:
                        message = session.take(body, redelivered)
                    held.append((tag, message))
                if len(held) < 50:
                    continue
                cut = held[: dice.randrange(1, len(held))]
                with self.lock:
                    self.ledger.acked[queue].update(message for _, message in cut)
                client.ack(cut[-1][0], multiple=True)
                held = held[len(cut) :]

    def define(self, node: int, dice: random.Random) -> None:
        """What one node has answered is so on every other one that answers at all."""
        turn = 0
        with self.lock:
            number = next(self.ids)
        with Client(self.cluster, node) as client:
            while not self.stopping.is_set():
                queue = f"partition.extra.{number}.{turn}"
                turn += 1
                client.call(1, Q.Declare(queue=queue, durable=True, arguments=QUORUM if self.kind == "quorum" else None), Q.DeclareOk)
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
                return self.confirm_one_each(node)
            except BROKEN as error:
                broker = self.cluster.nodes[node]
                if not broker.alive() or time.monotonic() > deadline:
                    raise RuntimeError(f"{when}: {name(node)} does not serve: {error!r}\n{broker.log_tail()}") from None
                time.sleep(0.05)

    def confirm_one_each(self, node: int) -> None:
        with self.lock:
            publisher = next(self.ids)
        waiting: deque[tuple[int, int]] = deque()
        with Client(self.cluster, node) as client:
            client.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
            for tag, queue in enumerate(self.queues, start=1):
                with self.lock:
                    number = self.ledger.sending(publisher, (queue,))
                waiting.append((tag, number))
                client.send_bytes(client.publish_bytes("", queue, self.ledger.body(publisher, number)))
            while waiting:
                confirmed = client.confirms()
                if client.nacked:
                    raise Closed(f"a message was refused: {client.nacked}")
                self.settle(waiting, confirmed, publisher)

    def consume_all(self, node: int) -> None:
        """A client of a node gets a message of every queue, sooner or later: others publish meanwhile."""
        deadline = time.monotonic() + SERVES_WITHIN_SECONDS
        for queue in self.queues:
            while True:
                try:
                    if self.consume_one(node, queue):
                        break
                except BROKEN:
                    time.sleep(0.05)
                if time.monotonic() > deadline:
                    raise RuntimeError(f"without a link: a client of {name(node)} gets nothing of {queue}\n{self.cluster.nodes[node].log_tail()}")

    def consume_one(self, node: int, queue: str) -> bool:
        with self.lock:
            session = self.ledger.session_among_others(queue)
        state: list = []
        with Client(self.cluster, node, timeout=2) as client:
            client.call(1, B.Qos(prefetch_count=1), B.QosOk)
            client.send(1, B.Consume(queue=queue, consumer_tag="one", nowait=True))
            try:
                while not (arrived := client.deliveries(state)):
                    pass
            except TimeoutError:
                return False
            tag, redelivered, body = arrived[0]
            with self.lock:
                self.ledger.acked[queue].add(session.take(body, redelivered))
            client.ack(tag)
            client.send(1, spec.Channel.Close(200, "", 0, 0))
            # The next message may be on its way: nobody has looked at it.
            while not isinstance(getattr(got := client.read_frame(), "method", got), spec.Channel.CloseOk):
                pass
        return True

    def until_left_alone(self, queue: str, node: int) -> None:
        """Consumers that have gone have given back what they held."""
        deadline = time.monotonic() + SERVES_WITHIN_SECONDS
        with Client(self.cluster, node) as client:
            while held_by := client.call(1, Q.Declare(queue=queue, passive=True), Q.DeclareOk).consumer_count:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{queue} has {held_by} consumers, and nobody consumes")
                time.sleep(0.02)

    def drain(self, queue: str, node: int) -> None:
        session = self.ledger.session(queue)
        state: list = []
        with Client(self.cluster, node, timeout=30) as client:
            total = client.count(queue)
            client.call(1, B.Qos(prefetch_count=2000), B.QosOk)
            client.send(1, B.Consume(queue=queue, consumer_tag="drain", nowait=True))
            got = 0
            while got < total:
                batch = client.deliveries(state)
                for _, redelivered, body in batch:
                    session.take(body, redelivered)
                got += len(batch)
                if batch:
                    client.ack(batch[-1][0], multiple=True)
            client.call(1, B.Cancel("drain"), B.CancelOk)
            if left := client.count(queue):
                self.surprises.append(f"{queue}: {left} messages beyond the {total} it had told of")
            client.call(1, spec.Channel.Close(200, "", 0, 0), spec.Channel.CloseOk)
        self.ledger.judge_drained(queue, session.seen)

    def verify(self, dice: random.Random) -> None:
        """Consumes everything through any node, and expects nothing to be left for the others."""
        for node in self.nodes:
            # What others sent through it before is where it belongs now.
            self.serve_all(node, "before all is consumed")
        for queue in self.queues:
            self.until_left_alone(queue, dice.choice(self.nodes))
            self.drain(queue, dice.choice(self.nodes))
        self.ledger.judge_again(lambda queue: False)
        for node in self.nodes:
            with Client(self.cluster, node) as client:
                for queue in self.queues:
                    if left := client.count(queue):
                        self.ledger.invented.append(f"{queue}: {name(node)} tells of {left} messages after everything was consumed")
        self.ledger.forget()
