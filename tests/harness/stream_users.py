"""Those who use streams of several nodes while these are in trouble: each node is where one is declared, and has a copy of each, but for one of
five that only three have.

What is published is known by its offset, so after every cycle each new offset of every copy is looked at, and now and then all of them.
Some wait for ever for what they are told: nobody may hear nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from .client import BROKEN, Client
from .cluster import Cluster, name
from .link import B, Q
from .stream_book import Book, Faults, body_of, code_of, told
from .stream_clients import READER, WINDOWS, StreamClients
from .stream_link import FIRST, LAST, METADATA, NEXT, NOT_AVAILABLE, Code, Entry, StreamLink, from_offset
from .users import PATIENCE_SECONDS, SERVES_WITHIN_SECONDS, Users, queue_of

STREAM = {"x-queue-type": "stream"}
# Of every other stream the oldest segments go.
KEPT = STREAM | {"x-stream-max-segment-size-bytes": 1_000_000}
SHORT = STREAM | {"x-stream-max-segment-size-bytes": 500_000, "x-max-length-bytes": 4_000_000}
# The last stream of five nodes is on so many of them.
FEW = 3
# A longer stream is deleted after a complete look, and declared anew.
LONGEST = 60_000
READERS = 3
ASKING = 2
ASKS_AGAIN_SECONDS = 0.1
PAUSE_SECONDS = 0.03
# Publishers take a node that confirms nothing for so long for lost.
CONFIRMS_WITHIN_SECONDS = 5
# A reader that is sent nothing for so long tries another node.
SENDS_WITHIN_SECONDS = 0.5
GENERATION = 1
T = TypeVar("T")


class StreamLedger:
    """The books of all streams, for those who publish to some of them at once."""

    def __init__(self):
        self.books: dict[str, Book] = {}
        self.last: dict[int, int] = defaultdict(int)
        self.queues_of: dict[tuple[int, int], tuple[str, ...]] = {}
        self.confirmed_total = 0

    def sending(self, publisher: int, queues: tuple[str, ...]) -> int:
        self.last[publisher] += 1
        number = self.last[publisher]
        self.queues_of[publisher, number] = queues
        for queue in queues:
            self.books[queue].sent[publisher] = number
        return number

    def body(self, publisher: int, number: int) -> bytes:
        return body_of(GENERATION, publisher, number)

    def confirm(self, publisher: int, number: int) -> None:
        self.confirmed_total += 1
        for queue in self.queues_of.pop((publisher, number)):
            self.books[queue].confirmed[publisher].add(number)

    def forget(self) -> None:
        """Nobody publishes any more, and what was not confirmed never will be."""
        self.queues_of.clear()


class StreamUsers(Users):
    """They publish over both protocols, and read on any node what is on any other one."""

    ENDS = (*BROKEN, Code)
    OF_EXTRA_QUEUES = STREAM
    PAUSE_SECONDS = PAUSE_SECONDS

    def __init__(self, cluster: Cluster, publishers: int):
        super().__init__(cluster, "stream", publishers, StreamLedger())
        self.faults = Faults()
        self.clients = StreamClients(self.stopping, self.faults, self.lock, PAUSE_SECONDS)
        # Of each stream's one publisher with a name.
        self.named: dict[str, int] = {}
        # The last message of each stream in a cycle.
        self.marks: dict[str, bytes] = {}

    def __str__(self) -> str:
        lengths = ", ".join(f"{book.base} to {book.end}" for book in self.books)
        total = self.ledger.confirmed_total + self.clients.confirmed_total
        return f"{total} confirmed, {self.clients.read_total} read, {self.clients.again_total} sent again, offsets {lengths}"

    @property
    def books(self) -> Iterable[Book]:
        return self.ledger.books.values()

    def arguments(self, node: int) -> dict:
        arguments = SHORT if node % 2 else KEPT
        return arguments if self.members(queue_of(node)) == len(self.nodes) else arguments | {"x-initial-cluster-size": FEW}

    def members(self, stream: str) -> int:
        """How many nodes are to have a stream."""
        return FEW if self.queues.index(stream) == 4 else len(self.nodes)

    def declare(self, client: Client, node: int) -> None:
        super().declare(client, node)
        stream = queue_of(node)
        self.named[stream] = next(self.ids)
        self.ledger.books[stream] = Book(stream, GENERATION, self.faults, (self.named[stream],), node % 2 == 0)

    def count(self, end: Exception) -> None:
        if isinstance(end, Code):
            with self.lock:
                self.reasons[str(end)] += 1

    # Where streams are.

    def link(self, node: int, timeout: float) -> StreamLink:
        return StreamLink(self.cluster.nodes[node].stream_port, timeout)

    def leader(self, stream: str, node: int, timeout: float = CONFIRMS_WITHIN_SECONDS) -> StreamLink:
        """A connection to the node that leads a stream, as this one says."""
        with self.link(node, timeout) as asked:
            port = asked.metadata(stream).leader
        if port is None:
            raise Code(METADATA, NOT_AVAILABLE)
        return StreamLink(port, timeout)

    def on_node(self, link: StreamLink, stream: str) -> list[int]:
        """The nodes that have everything of a stream, as the one says that is asked."""
        leader, replicas = link.metadata(stream)
        return [node for node in self.nodes if self.cluster.nodes[node].stream_port in (leader, *replicas)]

    def holders(self, stream: str) -> list[int]:
        """The same, once these are as many as there are to be."""

        def holders() -> list[int]:
            with self.link(self.nodes[0], CONFIRMS_WITHIN_SECONDS) as link:
                found = self.on_node(link, stream)
            if len(found) != self.members(stream):
                raise Code(METADATA, NOT_AVAILABLE)
            return found

        return self.until_answered(f"{stream} is not on {self.members(stream)} nodes", holders)

    # What goes on.

    def others(self, dice: random.Random) -> list[tuple[Callable, tuple]]:
        todo: list[tuple[Callable, tuple]] = [(self.publish_named, (stream,)) for stream in self.queues]
        todo += [(self.publish_nameless, ()), (self.publish_patiently, ()), (self.follow, ()), (self.follow_over_amqp, ())]
        todo += [(self.ask, ())] * ASKING
        todo += [(self.read_on, (stream,)) for stream in self.queues if self.ledger.books[stream].keeps_all]
        return todo + [(self.read_somewhere, ())] * dice.randrange(1, READERS + 1)

    def destinations(self, dice: random.Random) -> list[tuple[str, ...]]:
        """One for all messages of a publisher: so each stream knows whose it has."""
        return [dice.choice(super().destinations(dice))]

    def publish_named(self, stream: str, node: int, dice: random.Random) -> None:
        """Goes on with whichever node leads, and comes again now and then; or stays until it is told."""
        is_patient = dice.random() < 0.5
        with self.leader(stream, node) as link:
            link.socket.settimeout(PATIENCE_SECONDS if is_patient else CONFIRMS_WITHIN_SECONDS)
            try:
                self.clients.send_named(link, self.ledger.books[stream], self.named[stream], dice.choice(WINDOWS), dice)
            except TimeoutError:
                self.is_lost(f"the publisher with a name to {stream}, which {name(node)} has sent elsewhere,", is_patient)

    def publish_nameless(self, node: int, dice: random.Random) -> None:
        """Whatever happens, it hears of each message, or that the stream is led elsewhere, or the connection ends."""
        stream = dice.choice(self.queues)
        with self.lock:
            publisher = next(self.ids)
        with self.leader(stream, node) as link:
            link.socket.settimeout(PATIENCE_SECONDS)
            try:
                self.clients.send_nameless(link, self.ledger.books[stream], publisher, dice, is_patient=True)
            except TimeoutError:
                self.is_lost(f"a publisher to {stream}, which {name(node)} has sent elsewhere,")

    def is_lost(self, who: str, is_patient: bool = True) -> None:
        """Somebody is connected and hears nothing: those who are patient would wait for ever."""
        if is_patient:
            self.surprises.append(f"{who} is told nothing for {PATIENCE_SECONDS} s")

    def follow(self, node: int, dice: random.Random) -> None:
        """Whatever happens, a reader has everything up to the last message, or is told, or the connection ends."""
        book = self.ledger.books[dice.choice(self.queues)]
        start, position = dice.choice(((FIRST, 0 if book.keeps_all else None), (NEXT, None), (from_offset(book.end), book.end)))
        with self.link(node, PATIENCE_SECONDS) as link:
            try:
                self.clients.read_chunks(link, book, start, position, self.has_mark(book))
            except TimeoutError:
                self.is_lost(f"a reader of {book.stream} on {name(node)}")

    def follow_over_amqp(self, node: int, dice: random.Random) -> None:
        book = self.ledger.books[dice.choice(self.queues)]
        with Client(self.cluster, node, PATIENCE_SECONDS) as client:
            try:
                self.clients.read_messages(client, book, dice.choice(("first", "next", book.end)), self.has_mark(book))
            except TimeoutError:
                self.is_lost(f"a consumer of {book.stream} on {name(node)}")

    def ask(self, node: int, dice: random.Random) -> None:
        """Whatever happens, each question about a stream is answered, or the connection ends."""
        stream = dice.choice(self.queues)
        with self.link(node, PATIENCE_SECONDS) as link:
            while not self.stopping.wait(dice.random() * ASKS_AGAIN_SECONDS):
                question = dice.choice((link.stored_offset, link.sequence))
                try:
                    question(READER, stream)
                except Code as refusal:
                    self.count(refusal)
                except TimeoutError:
                    self.is_lost(f"somebody who asks {name(node)} for a {question.__name__} in {stream}")
                    return

    def has_mark(self, book: Book) -> Callable[[list[bytes]], bool]:
        return lambda bodies: self.marks.get(book.stream) in bodies

    def begin(self, dice: random.Random) -> None:
        self.marks.clear()
        super().begin(dice)

    def end(self) -> None:
        """Those who follow have the last message then."""
        self.stopping.set()
        try:
            for book in self.books:
                self.mark_end(book)
        finally:
            super().end()

    def read_on(self, stream: str, node: int, dice: random.Random) -> None:
        with self.link(node, SENDS_WITHIN_SECONDS) as link:
            self.clients.read_on(link, self.ledger.books[stream], dice, name(node))

    def read_somewhere(self, node: int, dice: random.Random) -> None:
        """From the beginning, from the end, from what is known, or from what another node's reader had last."""
        book = self.ledger.books[dice.choice(self.queues)]
        with self.lock:
            offset = dice.choice((dice.randrange(book.end + 1), max(book.seen, default=book.end)))
        if dice.random() < 0.4:
            with Client(self.cluster, node) as client:
                client.socket.settimeout(SENDS_WITHIN_SECONDS)
                self.clients.read_messages(client, book, dice.choice(("first", "last", "next", offset)))
            return
        start, position = dice.choice(((FIRST, 0 if book.keeps_all else None), (LAST, None), (NEXT, None), (from_offset(offset), offset)))
        with self.link(node, SENDS_WITHIN_SECONDS) as link:
            self.clients.read_chunks(link, book, start, position)

    # Whether all is served.

    def confirm_one_each(self, node: int) -> dict[str, tuple[int, int]]:
        """Those who read a node's copies have it then."""
        with contextlib.ExitStack() as ends:
            readers: dict[str, StreamLink] = {}
            for stream in self.queues:
                link = ends.enter_context(self.link(node, CONFIRMS_WITHIN_SECONDS))
                if node in self.on_node(link, stream):
                    link.subscribe(0, stream, NEXT)
                    readers[stream] = link
            sent = super().confirm_one_each(node)
            for stream, link in readers.items():
                body = self.ledger.body(*sent[stream])
                while not any(body in bodies for _, bodies in link.chunks()):
                    pass
        return sent

    def consume_one(self, node: int, queue: str) -> bool:
        with self.link(node, CONFIRMS_WITHIN_SECONDS) as link:
            if node not in self.on_node(link, queue):
                return True
        with Client(self.cluster, node, timeout=2) as client:
            client.call(1, B.Qos(prefetch_count=1), B.QosOk)
            client.send(1, B.Consume(queue=queue, consumer_tag="one", nowait=True, arguments={"x-stream-offset": "first"}))
            state: list = []
            try:
                while not client.deliveries(state):
                    pass
            except TimeoutError:
                return False
        return True

    # What stands there.

    def until_answered(self, what: str, ask: Callable[[], T]) -> T:
        """What is answered as soon as somebody does."""
        deadline = time.monotonic() + SERVES_WITHIN_SECONDS
        while True:
            try:
                return ask()
            except self.ENDS as end:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{what}: {end!r}") from None
                time.sleep(0.05)

    def mark_end(self, book: Book) -> int:
        """A message that is published and confirmed now: whoever has read so far has had everything that was confirmed before."""
        through = itertools.cycle(self.nodes)
        return self.until_answered(f"nothing is published to {book.stream}", lambda: self.mark(book, next(through)))

    def mark(self, book: Book, node: int) -> int:
        with self.leader(book.stream, node) as link:
            with self.lock:
                publisher = next(self.ids)
                (number,) = book.next_numbers(publisher, 1)
            self.marks[book.stream] = book.body(publisher, number)
            link.declare_publisher(1, book.stream)
            link.publish(1, [Entry(number, [book.body(publisher, number)])])
            self.clients.confirm(book, publisher, link.confirms())
        return code_of(publisher, number)

    def copy(self, book: Book, node: int, offset: int, mark: int) -> tuple[int, array]:
        """What a node has from an offset on, up to that message: the first offset, and the messages."""

        def read() -> tuple[int, array]:
            with self.link(node, 30) as link:
                return self.clients.read_up_to(link, book, offset, mark)

        try:
            return self.until_answered(f"{book.stream} is not read on {name(node)}", read)
        except AssertionError as error:
            raise AssertionError(f"{name(node)}: {error}\n{self.cluster.nodes[node].log_tail()}") from None

    def compare(self, book: Book, copies: dict[int, tuple[int, array]]) -> int:
        """All have the same wherever two of them have something. Returns who has most."""
        best = min(copies, key=lambda node: copies[node][0])
        first, codes = copies[best]
        for node, (begin, its) in copies.items():
            rest = codes[begin - first :]
            if its != rest:
                at = next((at for at, (one, other) in enumerate(zip(its, rest)) if one != other), min(len(its), len(rest)))
                here, there = (told(found[at]) if at < len(found) else "nothing" for found in (its, rest))
                self.faults.invented.append(f"{book.stream} at {begin + at}: {name(node)} has {here}, and {name(best)} {there}")
        return best

    def look_through(self, book: Book, again: bool) -> None:
        """What is new in every copy, or all that is there."""
        through = self.nodes[len(book.known) % len(self.nodes)]
        publisher = self.named[book.stream]

        def sequence() -> int:
            with self.leader(book.stream, through) as link:
                return link.sequence(f"publisher-{publisher}", book.stream)

        before = self.until_answered(f"{book.stream} has no leader", sequence)
        mark = self.mark_end(book)
        offset = 0 if again else book.end
        holders = self.holders(book.stream)
        copies = {node: self.copy(book, node, offset, mark) for node in holders}
        found = copies[self.compare(book, copies)]
        (book.judge_again if again else book.judge)(*found)
        after = self.until_answered(f"{book.stream} has no leader", sequence)
        if not before <= book.last.get(publisher, 0) <= after:
            last = book.last.get(publisher, 0)
            self.faults.tracking.append(f"{book.stream}: publisher {publisher} is told that it has come to {before}, then to {after}; what stands there last is {last}")
        if book.keeps_all:
            self.look_at_stored(book, holders)

    def look_at_stored(self, book: Book, holders: list[int]) -> None:
        """How far the reader has come, on which all nodes that have the stream agree sooner or later."""

        def answer(node: int) -> int | None:
            with self.link(node, CONFIRMS_WITHIN_SECONDS) as link:
                return link.stored_offset(READER, book.stream)

        deadline = time.monotonic() + CONFIRMS_WITHIN_SECONDS
        while True:
            answers = [self.until_answered(f"{name(node)} knows no offset of {book.stream}", lambda node=node: answer(node)) for node in holders]
            is_right = len(set(answers)) == 1 and book.may_be_stored(READER, answers[0])
            if is_right or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        if not is_right:
            loose, most = sorted(book.loose[READER]), max(book.stored[READER], default=None)
            self.faults.tracking.append(f"{book.stream}: the offset of {READER} is {answers} on the nodes; {book.safe.get(READER)} was safe, {loose} was on its way, {most} was stored at most")
        if answers[0] is not None:
            book.safe[READER] = answers[0]
        book.loose.clear()

    def judge(self, _: Callable[[str], bool]) -> int:
        self.ledger.forget()
        for book in self.books:
            self.look_through(book, again=False)
        return 0

    def verify(self, dice: random.Random) -> None:
        """Reads everything again. A long stream ends, and begins anew."""
        for book in list(self.books):
            self.look_through(book, again=True)
            if book.end > LONGEST:
                with Client(self.cluster, dice.choice(self.nodes)) as client:
                    client.call(1, Q.Delete(queue=book.stream), Q.DeleteOk)
                home = self.queues.index(book.stream)
                with Client(self.cluster, home) as client:
                    self.declare(client, home)

    def findings(self) -> list[tuple[str, list[str]]]:
        faults = self.faults
        return [
            ("nothing lost that was confirmed or read", faults.lost),
            ("nothing invented or changed, all copies alike", faults.invented),
            ("order kept, no offset left out, nothing of a publisher there twice", faults.disordered),
            ("numbers of publishers and offsets of readers as they were answered", faults.tracking),
        ]
