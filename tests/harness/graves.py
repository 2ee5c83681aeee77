"""Dead letters in the kill -9 loop: queues whose messages expire, are rejected or have no room, and the one queue they go to.

A confirmed message is in its queue until its dead letter is safe in the other, so after any crash it is found in at least one
of them. A crash between the two leaves it in both: so often, and no oftener, may it come twice.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

from pika import spec

from harness.ledger import Ledger
from harness.link import B, Link, Q

GRAVES = "crash.graves"
# For each queue: what ends its messages, the publisher that is its own, its arguments, and the expirations of its messages.
MORTAL = {
    "crash.expiring": ("expired", 100, {"x-message-ttl": 150}, (None, None, "20")),
    "crash.short": ("maxlen", 101, {"x-max-length": 40}, (None,)),
    "crash.refused": ("rejected", 102, {"x-max-priority": 3}, (None, None, "60", "400")),
    "crash.retried": ("delivery_limit", 103, {"x-delivery-limit": 2, "x-retry-delay": {"initial": 20, "cap": 80, "jitter": 25}}, (None,)),
}
# By then whatever waits for its next try is ready, in seconds.
RETRIED = 0.3
# So many messages a consumer holds at least, except when they do not come.
HELD = 60


class Graves:
    """What happens in those queues, and what has been seen of it since the last complete check."""

    def __init__(self, ledger: Ledger, lock: threading.Lock):
        self.ledger = ledger
        self.lock = lock
        self.kills = 0
        self.sent_before: dict[tuple[int, int], int] = {}
        self.doubled: list[str] = []
        self.untrue: list[str] = []
        self.buried_total = 0
        self.twice_total = 0
        self.round = 0

    @staticmethod
    def declare(link: Link) -> None:
        link.call(1, Q.Declare(queue=GRAVES, durable=True), Q.DeclareOk)
        to_graves = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": GRAVES}
        for queue, (_, _, arguments, _) in MORTAL.items():
            link.call(1, Q.Declare(queue=queue, durable=True, arguments=arguments | to_graves), Q.DeclareOk)

    @staticmethod
    def routes(publisher: int) -> list[tuple]:
        """Where this publisher's messages go: exchange, key, queues, expiration."""
        return [
            ("", queue, (queue, GRAVES), expiration)
            for queue, (_, its, _, expirations) in MORTAL.items()
            if its == publisher
            for expiration in expirations
        ]

    @staticmethod
    def priority(number: int) -> int:
        """The priority of a message; the markers have the lowest, so that they come last."""
        return number % 5

    @staticmethod
    def publishers() -> list[int]:
        return [publisher for _, publisher, _, _ in MORTAL.values()]

    def sending(self, message: tuple[int, int]) -> None:
        self.sent_before[message] = self.kills

    def consume(self, link: Link, queue: str, dice: random.Random, stopping: threading.Event) -> None:
        """Acknowledges a part, rejects a part in every way there is, gives some back, and holds the rest."""
        state: list = []
        held: list[tuple[int, tuple[int, int]]] = []
        link.call(1, B.Qos(prefetch_count=4 * HELD), B.QosOk)
        link.send(1, B.Consume(queue=queue, consumer_tag="c", nowait=True))
        while not stopping.is_set():
            for tag, _, body in link.deliveries(state):
                with self.lock:
                    held.append((tag, self.ledger.identify(queue, body)))
            if len(held) < HELD:
                continue
            cut, held = held[: HELD // 2], held[HELD // 2 :]
            done = cut[: len(cut) // 3]
            with self.lock:
                self.ledger.acked[queue].update(message for _, message in done)
            for tag, _ in done:
                link.ack(tag)
            again = 0.7 if "x-retry-delay" in MORTAL[queue][2] else 0.2
            for tag, _ in cut[len(done) : -10]:
                link.send(1, B.Reject(tag, requeue=dice.random() < again))
            link.send(1, B.Nack(cut[-1][0], multiple=True, requeue=dice.random() < 0.1))

    def verify(self, port: int) -> None:
        """Empties every queue and finds each confirmed message in one of them."""
        self.round += 1
        seen = {queue: self.empty(port, queue) for queue in MORTAL}
        copies = self.exhume(port)
        for queue, (_, publisher, _, _) in MORTAL.items():
            found = self.ledger.acked[queue] | seen[queue] | {message for message in copies if message[0] == publisher}
            self.ledger.judge_drained(queue, found)
        for message, count in copies.items():
            self.twice_total += count - 1
            crashes = self.kills - self.sent_before[message]
            if count > 1 + crashes:
                self.doubled.append(f"message {message[1]} of publisher {message[0]} is buried {count} times after {crashes} crashes")
        self.buried_total += copies.total()
        self.sent_before.clear()

    def marker(self, queue: str) -> bytes:
        return f"marker {self.round} {queue}".encode()

    def empty(self, port: int, queue: str) -> set[tuple[int, int]]:
        """Takes what lives in the queue; a marker behind it becomes its last dead letter."""
        seen: set[tuple[int, int]] = set()
        expires = "x-message-ttl" in MORTAL[queue][2]
        with Link(port) as link:
            while expires and link.count(queue):
                time.sleep(0.02)
            if "x-retry-delay" in MORTAL[queue][2]:
                time.sleep(RETRIED)
            link.send_bytes(link.publish_bytes("", queue, self.marker(queue)))
            if expires:
                link.count(queue)
                return seen
            state: list = []
            link.send(1, B.Consume(queue=queue, consumer_tag="drain", nowait=True))
            while True:
                for tag, _, body in link.deliveries(state):
                    if body == self.marker(queue):
                        link.send(1, B.Reject(tag, requeue=False))
                        link.call(1, spec.Channel.Close(200, "", 0, 0), spec.Channel.CloseOk)
                        return seen
                    seen.add(self.ledger.identify(queue, body))
                    link.ack(tag)

    def exhume(self, port: int) -> Counter:
        """Takes all dead letters, up to the markers and what is behind them, and reads their histories."""
        copies: Counter = Counter()
        missing = {self.marker(queue) for queue in MORTAL}
        with Link(port) as link:
            state: list = []
            headers: list = []
            link.send(1, B.Consume(queue=GRAVES, consumer_tag="drain", nowait=True))
            while missing:
                for tag, _, body in link.deliveries(state, headers):
                    link.ack(tag)
                    if body in missing:
                        missing.remove(body)
                    elif message := self.ledger.identify(GRAVES, body):
                        copies[message] += 1
                    self.read_history(body, headers.pop(0))
            link.call(1, B.Cancel("drain"), B.CancelOk)
            link.call(1, spec.Channel.Close(200, "", 0, 0), spec.Channel.CloseOk)
        return copies

    def read_history(self, body: bytes, header: bytes) -> None:
        """A dead letter names the queue it died in, once, and a reason that ends messages there."""
        properties = spec.BasicProperties()
        properties.decode(header, 12)
        deaths = [(death["queue"], death["reason"], death["count"]) for death in (properties.headers or {}).get("x-death", ())]
        if len(deaths) == 1 and deaths[0][0] in MORTAL and deaths[0][2] == 1:
            queue, reason, _ = deaths[0]
            its, publisher, _, expirations = MORTAL[queue]
            mine = body.startswith(b"%d:" % publisher) or body == self.marker(queue)
            if mine and reason in {its, "rejected"} | ({"expired"} if any(expirations) else set()):
                return
        self.untrue.append(f"{body[:30]!r} tells of {deaths}")
