"""Streams in the kill -9 loop: what publishers and readers of both protocols were told of them, and what stands in them afterwards.

A stream keeps everything, so what is there is known by its offsets, and each offset is looked at: after every crash those that are
new, with every complete check all of them. Publishers with a name ask how far they had come, and send some of it again.
"""

from __future__ import annotations

import random
import threading
import time
from array import array
from collections.abc import Callable

from pika import spec

from harness.link import Closed, Link, Q
from harness.stream_book import Book, Faults, code_of
from harness.stream_clients import READER, WINDOWS, StreamClients
from harness.stream_link import FIRST, NO_SUCH_STREAM, Code, Entry, StreamLink, from_offset

__all__ = ["Streams"]

# Of the one nothing may ever be gone, though it has many segments; the oldest segments of the other go.
KEPT = "crash.stream.kept"
SHORT = "crash.stream.short"
ARGUMENTS = {
    KEPT: {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 200_000},
    SHORT: {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 100_000, "x-max-length-bytes": 600_000},
}
# Which publisher writes to which stream: those with names and those without, over the stream protocol, and those over AMQP.
NAMED = {200: KEPT, 201: SHORT}
NAMELESS = {210: KEPT}
OVER_AMQP = {220: KEPT, 221: SHORT}
# Whoever looks for everything publishes, too, to see where the end is.
LOOKING = {230: KEPT, 231: SHORT}
STREAM_OF = NAMED | NAMELESS | OVER_AMQP
# A longer stream is deleted after a complete check, and declared anew.
LONGEST = 150_000
BROKEN = (Closed, OSError, TimeoutError)
START_SECONDS = 30


class Streams(StreamClients):
    """The streams of one run, those who write to them and those who read."""

    def __init__(self, ports: tuple[int, int], stopping: threading.Event):
        super().__init__(stopping, Faults(), threading.Lock())
        self.amqp_port, self.port = ports
        self.generation = 0
        self.books: dict[str, Book] = {}
        # Streams that come and go: what was answered of them.
        self.kept: dict[str, bool] = {}
        self.cycle = 0

    def __str__(self) -> str:
        lengths = ", ".join(f"{book.base} to {book.end}" for book in self.books.values())
        return f"{self.confirmed_total} confirmed, {self.read_total} read, {self.again_total} sent again, offsets {lengths}"

    def declare(self, stream: str) -> None:
        with Link(self.amqp_port) as link:
            link.call(1, Q.Declare(queue=stream, durable=True, arguments=ARGUMENTS[stream]), Q.DeclareOk)
        self.generation += 1
        self.books[stream] = Book(stream, self.generation, self.faults, NAMED, stream == KEPT)

    def declare_all(self) -> None:
        for stream in ARGUMENTS:
            self.declare(stream)

    def jobs(self, dice: random.Random) -> list[threading.Thread]:
        """What is done until the broker is killed."""
        self.cycle += 1
        tasks: list[tuple[Callable, tuple]] = [(self.churn, ())]
        tasks += [(self.publish_named, (publisher,)) for publisher in NAMED]
        tasks += [(self.publish_nameless, (publisher,)) for publisher in NAMELESS if dice.random() < 0.7]
        tasks += [(self.publish_over_amqp, (publisher,)) for publisher in OVER_AMQP if dice.random() < 0.7]
        tasks += [(self.read_on_here, (stream,)) for stream in ARGUMENTS]
        tasks.append((self.read_from_somewhere, (KEPT,)) if dice.random() < 0.5 else (self.read_over_amqp, (KEPT,)))
        return [threading.Thread(target=self.run, args=(task, (*arguments, random.Random(dice.random())))) for task, arguments in tasks]

    def run(self, task: Callable, arguments: tuple) -> None:
        try:
            task(*arguments)
        except BROKEN:
            pass
        except (AssertionError, Code) as error:
            self.faults.surprises.append(f"{task.__name__} {arguments[0]}: {error}")

    def connect(self) -> StreamLink:
        """A connection to a broker that may still be about to serve."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return StreamLink(self.port)
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    # Publishers.

    def publish_named(self, publisher: int, dice: random.Random) -> None:
        """Goes on where it had come to, and comes again now and then."""
        window = dice.choice(WINDOWS)
        while not self.stopping.is_set():
            with StreamLink(self.port) as link:
                self.send_named(link, self.books[STREAM_OF[publisher]], publisher, window, dice)
                if not self.stopping.is_set() and dice.random() < 0.5:
                    link.end()

    def publish_nameless(self, publisher: int, dice: random.Random) -> None:
        with StreamLink(self.port) as link:
            self.send_nameless(link, self.books[STREAM_OF[publisher]], publisher, dice)

    def publish_over_amqp(self, publisher: int, dice: random.Random) -> None:
        book = self.books[STREAM_OF[publisher]]
        waiting: dict[int, int] = {}
        tag, window = 0, dice.choice(WINDOWS)
        with Link(self.amqp_port) as link:
            link.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
            while not self.stopping.is_set():
                with self.lock:
                    numbers = book.next_numbers(publisher, dice.choice((1, 1, 8, 64)))
                batch = bytearray()
                for number in numbers:
                    tag += 1
                    waiting[tag] = number
                    batch += link.publish_bytes("", book.stream, book.body(publisher, number), headers={"number": number} if number % 3 else None)
                link.send_bytes(batch)
                while len(waiting) > window:
                    for confirmed, multiple in link.confirms():
                        tags = [one for one in waiting if one <= confirmed] if multiple else [confirmed]
                        self.confirm(book, publisher, [waiting.pop(one) for one in tags])

    # Readers.

    def read_on_here(self, stream: str, dice: random.Random) -> None:
        with StreamLink(self.port) as link:
            self.read_on(link, self.books[stream], dice)

    def somewhere(self, book: Book, dice: random.Random) -> int:
        """The beginning, or any other offset that is known."""
        return dice.choice((0, dice.randrange(book.end + 1)))

    def read_from_somewhere(self, stream: str, dice: random.Random) -> None:
        position = self.somewhere(self.books[stream], dice)
        with StreamLink(self.port) as link:
            self.read_chunks(link, self.books[stream], from_offset(position) if position else FIRST, position)

    def read_over_amqp(self, stream: str, dice: random.Random) -> None:
        position = self.somewhere(self.books[stream], dice)
        with Link(self.amqp_port) as link:
            self.read_messages(link, self.books[stream], position)

    # Streams that come and go.

    def churn(self, _: random.Random) -> None:
        turn = 0
        while not self.stopping.is_set():
            name = f"crash.stream.extra.{self.cycle}.{turn}"
            with StreamLink(self.port) as link:
                link.create(name)
                link.declare_publisher(0, name)
                link.publish(0, [Entry(1, [name.encode()])])
                link.confirms()
                self.kept[name] = True
                if turn % 2:
                    del self.kept[name]
                    link.delete(name)
                    self.kept[name] = False
            turn += 1

    def check_definitions(self, link: StreamLink) -> None:
        for name, expected in self.kept.items():
            try:
                link.subscribe(9, name, FIRST)
                found = list(link.chunks(credit=0)) if expected else []
                if found != [(0, [name.encode()])][: len(found)] or len(found) != expected:
                    self.faults.definitions.append(f"{name}: {'declared' if expected else 'deleted'}, answered, and after the crash it has {found}")
                link.unsubscribe(9)
                link.delete(name)
                # Its reader may have heard of it.
                link.unasked.clear()
            except Code as refusal:
                if expected or refusal.code != NO_SUCH_STREAM:
                    self.faults.definitions.append(f"{name}: {'declared' if expected else 'deleted'}, answered, and after the crash: {refusal}")
        self.kept.clear()

    # Complete looks.

    def everything_from(self, book: Book, offset: int) -> tuple[int, array]:
        """What stands in a stream from an offset on, or from where it begins, up to a message that is published for that: the first offset,
        and the messages."""
        publisher = next(publisher for publisher, stream in LOOKING.items() if stream == book.stream)
        with self.connect() as link:
            (number,) = book.next_numbers(publisher, 1)
            link.declare_publisher(1, book.stream)
            link.publish(1, [Entry(number, [book.body(publisher, number)])])
            book.confirmed[publisher].update(link.confirms())
            return self.read_up_to(link, book, offset, code_of(publisher, number))

    def judge(self) -> None:
        """After a crash: what is new stands there as it was told, and what is tracked, too."""
        with self.connect() as link:
            self.check_definitions(link)
            for book in self.books.values():
                sequences = {publisher: link.sequence(f"publisher-{publisher}", book.stream) for publisher in NAMED if NAMED[publisher] == book.stream}
                stored = link.stored_offset(READER, book.stream)
                book.judge(*self.everything_from(book, book.end))
                for publisher, sequence in sequences.items():
                    if sequence != book.last.get(publisher, 0):
                        self.faults.tracking.append(f"{book.stream}: publisher {publisher} is told that it has come to {sequence}; what stands there last is {book.last.get(publisher, 0)}")
                book.hears_stored(READER, stored, link)

    def verify(self) -> None:
        """Reads everything again. A long stream ends, and begins anew."""
        for stream, book in list(self.books.items()):
            first, codes = self.everything_from(book, 0)
            book.judge_again(first, codes)
            if book.end > LONGEST:
                with self.connect() as link:
                    link.delete(stream)
                self.declare(stream)
