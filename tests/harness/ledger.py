"""What the kill -9 loop knows of every message, and how it judges what comes back."""

from __future__ import annotations

import random
import zlib
from collections import defaultdict
from collections.abc import Callable

SIZES = [0, 10, 100, 1000, 1000, 1000, 5000, 20000]


class Ledger:
    """Published, confirmed and acknowledged messages per queue, as (publisher, number)."""

    def __init__(self, seed: int):
        self.seed = seed
        self.next_number: dict[int, int] = defaultdict(int)
        self.queues_of: dict[tuple[int, int], tuple[str, ...]] = {}
        self.confirmed: dict[str, set[tuple[int, int]]] = defaultdict(set)
        self.acked: dict[str, set[tuple[int, int]]] = defaultdict(set)
        self.given: dict[str, set[tuple[int, int]]] = defaultdict(set)
        self.consumers: dict[str, list[Session]] = defaultdict(list)
        self.lost: list[str] = []
        self.invented: list[str] = []
        self.disordered: list[str] = []
        self.unmarked: list[str] = []
        self.again: list[tuple[str, str]] = []
        self.confirmed_total = 0
        self.consumed_total = 0

    def body(self, publisher: int, number: int) -> bytes:
        """The one right body of a message: its name, then padding that depends on nothing but its name and the seed."""
        dice = random.Random(self.seed * 1_000_003 + publisher * 7_919 + number)
        size = 300_000 if dice.random() < 0.001 else dice.choice(SIZES)
        head = b"%d:%d:" % (publisher, number)
        padding = zlib.crc32(head).to_bytes(4, "big") * (size // 4)
        return head + padding

    def sending(self, publisher: int, queues: tuple[str, ...]) -> int:
        number = self.next_number[publisher]
        self.next_number[publisher] = number + 1
        self.queues_of[publisher, number] = queues
        return number

    def confirm(self, publisher: int, number: int) -> None:
        self.confirmed_total += 1
        for queue in self.queues_of[publisher, number]:
            self.confirmed[queue].add((publisher, number))

    def identify(self, queue: str, body: bytes) -> tuple[int, int] | None:
        """Which message this is; None, and a note, if nobody published it to this queue or its bytes are not what was published."""
        try:
            publisher, number = (int(part) for part in body.split(b":", 2)[:2])
        except ValueError:
            self.invented.append(f"{queue}: a body that nobody wrote: {body[:60]!r}")
            return None
        if queue not in self.queues_of.get((publisher, number), ()):
            self.invented.append(f"{queue}: message {number} of publisher {publisher}, which was not published to it")
            return None
        if body != self.body(publisher, number):
            self.invented.append(f"{queue}: message {number} of publisher {publisher} with a changed body of {len(body)} bytes")
            return None
        return publisher, number

    def session(self, queue: str, ordered: bool = True) -> Session:
        return Session(self, queue, ordered)

    def session_among_others(self, queue: str) -> Session:
        """One of several consumers: order is judged as long as the queue has had no other one."""
        session = Session(self, queue)
        session.who = "a consumer"
        self.consumers[queue].append(session)
        for consumer in self.consumers[queue]:
            consumer.is_alone = len(self.consumers[queue]) == 1
        return session

    def judge_drained(self, queue: str, seen: set[tuple[int, int]]) -> None:
        """After everything was consumed: each confirmed message that was not acknowledged must have come."""
        for publisher, number in sorted(self.confirmed[queue] - self.acked[queue] - seen):
            self.lost.append(f"{queue}: message {number} of publisher {publisher} was confirmed, never acknowledged, and is gone")

    def begins_anew(self, queue: str, safe: set[tuple[int, int]]) -> None:
        """The queue's node was killed, and starts again. What it gave before and had not confirmed may never have been on its disk: the node
        of its publisher sends it again, as the publisher himself would, and then it comes as if for the first time. Consumers of other nodes
        stay; to them, too, may come again, marked, what they had: an acknowledgement just before the kill need not be on its disk either."""
        self.given[queue] &= safe
        for consumer in self.consumers[queue]:
            consumer.seen.clear()
            consumer.last.clear()

    def judge_again(self, may_come_again: Callable[[str], bool]) -> int:
        """Says of what came to a consumer again, marked, whether its queue had reason for that, and returns how much it was. A queue gives
        again what a consumer on another node holds or has acknowledged if that node was cut off for long enough."""
        self.disordered += [fault for queue, fault in self.again if not may_come_again(queue)]
        count = len(self.again)
        self.again.clear()
        return count

    def forget(self) -> None:
        """After a drain and a clean restart nothing may come back, so nothing needs to be remembered."""
        self.queues_of.clear()
        self.confirmed.clear()
        self.acked.clear()
        self.given.clear()
        self.consumers.clear()


class Session:
    """One consumer's view of one queue between two crashes: order and duplicates are judged within it. Another consumer may give back what
    came before, whether anybody has seen it or not."""

    def __init__(self, ledger: Ledger, queue: str, ordered: bool = True):
        self.ledger = ledger
        self.ordered = ordered
        self.queue = queue
        self.is_alone = True
        self.who = "the one that looks for all"
        self.last: dict[int, int] = {}
        self.seen: set[tuple[int, int]] = set()

    def take(self, body: bytes, redelivered: bool) -> tuple[int, int] | None:
        message = self.ledger.identify(self.queue, body)
        if message is None:
            return None
        self.ledger.consumed_total += 1
        publisher, number = message
        if self.ordered and message in self.seen:
            known = {"marked": redelivered, "acknowledged before": message in self.ledger.acked[self.queue], "confirmed": message in self.ledger.confirmed[self.queue]}
            fault = f"{self.queue}: message {number} of publisher {publisher} came twice to one consumer: {known}"
            if redelivered:
                self.ledger.again.append((self.queue, fault))
            else:
                self.ledger.disordered.append(fault)
        elif self.ordered and self.is_alone and number < self.last.get(publisher, -1):
            self.ledger.disordered.append(f"{self.queue}: message {number} of publisher {publisher} came after {self.last[publisher]} to {self.who}, which had had {len(self.seen)}{', marked' if redelivered else ''}")
        if self.ordered and not redelivered and message in self.ledger.given[self.queue]:
            self.ledger.unmarked.append(f"{self.queue}: message {number} of publisher {publisher} came again, not marked as redelivered")
        self.ledger.given[self.queue].add(message)
        self.last[publisher] = max(number, self.last.get(publisher, -1))
        self.seen.add(message)
        return message
