"""Those who use queues that are consumed, while their cluster is in trouble: classic, quorum and mirrored ones."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from .client import Client
from .cluster import Cluster, name
from .ledger import Ledger
from .link import Api, B, Q, spec
from .users import ANSWERS_WITHIN_SECONDS, SERVES_WITHIN_SECONDS, Users

CONSUMERS = 3
QUORUM = {"x-queue-type": "quorum"}
# No test takes so long. A node whose clock is set by more than that must not take it for the time that has passed.
LIVES_MS = 3_600_000


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


class QueueUsers(Users):
    """They consume what is published, and acknowledge a part."""

    def __init__(self, cluster: Cluster, seed: int, kind: str, publishers: int):
        super().__init__(cluster, kind, publishers, Ledger(seed))
        self.OF_EXTRA_QUEUES = QUORUM if kind == "quorum" else None

    def arguments(self, node: int) -> dict | None:
        """Of the queue that is declared at a node: every other one has a copy on each, and every third one lets messages die of age."""
        if self.kind != "quorum":
            return None
        # Consumers go away so often with what they hold that any limit on returns would be reached.
        size = {"x-quorum-initial-group-size": len(self.nodes)} if node % 2 == 0 else {}
        return QUORUM | {"x-delivery-limit": -1} | size | ({"x-message-ttl": LIVES_MS} if node % 3 == 0 else {})

    def members(self, queue: str) -> int:
        """How many nodes are to have a quorum queue."""
        return len(self.nodes) if self.queues.index(queue) % 2 == 0 else min(3, len(self.nodes))

    def declare_all(self) -> None:
        super().declare_all()
        if self.kind == "mirrored":
            mirror(self.cluster, 0, {"ha-mode": "all"})
            for queue in self.queues:
                wait_for_mirrors(self.cluster, 0, queue, len(self.nodes) - 1)

    def others(self, dice: random.Random) -> list[tuple[Callable, tuple]]:
        return [(self.consume, ())] * dice.randrange(CONSUMERS + 1)

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

    def judge(self, may_come_again: Callable[[str], bool]) -> int:
        return self.ledger.judge_again(may_come_again)

    def findings(self) -> list[tuple[str, list[str]]]:
        ledger = self.ledger
        return [
            ("no confirmed message lost", ledger.lost),
            ("none invented, none changed, none left", ledger.invented),
            ("order kept, nothing doubled", ledger.disordered),
            ("what came before is marked as redelivered", ledger.unmarked),
        ]

    def __str__(self) -> str:
        return f"{self.ledger.confirmed_total} confirmed, {self.ledger.consumed_total} consumed"
