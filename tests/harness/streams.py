"""Streams in the kill -9 loop: what publishers and readers of both protocols were told of them, and what stands in them afterwards.

A stream keeps everything, so what is there is known by its offsets, and each offset is looked at: after every crash those that are
new, with every complete check all of them. Publishers with a name ask how far they had come, and send some of it again.
"""

from __future__ import annotations

import random
import threading
import time
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable

from pika import spec

from harness.link import B, Closed, Link, Q
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
STREAM_OF = NAMED | NAMELESS | OVER_AMQP | LOOKING
# So much a publisher has unconfirmed at most.
WINDOWS = (0, 20, 250)
SIZES = (0, 10, 100, 100, 100, 500, 500, 3000)
# A longer stream is deleted after a complete check, and declared anew.
LONGEST = 150_000
BROKEN = (Closed, OSError, TimeoutError)
START_SECONDS = 30


def code_of(publisher: int, number: int) -> int:
    return publisher << 40 | number


def told(code: int) -> str:
    return f"message {code & (1 << 40) - 1} of publisher {code >> 40}"


class Book:
    """What is known of one stream."""

    def __init__(self, stream: str, generation: int, faults: Faults):
        self.stream = stream
        self.generation = generation
        self.faults = faults
        # From offset `base` on: what stood there when it was looked at.
        self.base = 0
        self.known = array("Q")
        self.last: dict[int, int] = {}
        # Since then: what readers had, what was sent and what was confirmed.
        self.seen: dict[int, int] = {}
        self.sent: dict[int, int] = defaultdict(int)
        self.confirmed: dict[int, set[int]] = defaultdict(set)
        self.stored: dict[str, set[int]] = defaultdict(set)
        self.safe: dict[str, int] = {}

    @property
    def end(self) -> int:
        return self.base + len(self.known)

    def body(self, publisher: int, number: int) -> bytes:
        """The one right body of a message."""
        head = b"%d:%d:%d:" % (self.generation, publisher, number)
        check = zlib.crc32(head)
        size = 200_000 if check % 5_000 == 0 else SIZES[check % len(SIZES)]
        return head + check.to_bytes(4, "big") * (size // 4)

    def next_numbers(self, publisher: int, count: int) -> range:
        first = self.sent[publisher] + 1
        self.sent[publisher] += count
        return range(first, first + count)

    def identify(self, offset: int, body: bytes) -> int:
        """Which message this is; 0, and a note, if nobody published it or its bytes are not what was published."""
        where = f"{self.stream} at {offset}"
        try:
            generation, publisher, number = (int(part) for part in body.split(b":", 3)[:3])
        except ValueError:
            self.faults.invented.append(f"{where}: a body that nobody wrote: {body[:60]!r}")
            return 0
        code = code_of(publisher, number)
        if generation != self.generation or STREAM_OF.get(publisher) != self.stream or not 0 < number <= self.sent[publisher]:
            self.faults.invented.append(f"{where}: {told(code)} of generation {generation}, which was not published to it")
            return 0
        if body != self.body(publisher, number):
            self.faults.invented.append(f"{where}: {told(code)} with a changed body of {len(body)} bytes")
            return 0
        return code

    def observe(self, offset: int, code: int) -> None:
        """A reader had this: it was safe, and is what stands there for good."""
        at = offset - self.base
        before = (self.known[at] if at < len(self.known) else self.seen.setdefault(offset, code)) if at >= 0 else code
        if before != code:
            self.faults.invented.append(f"{self.stream} at {offset}: {told(before)} has become {told(code)}")

    def hears_sequence(self, publisher: int, sequence: int) -> None:
        """A publisher with a name was told how far it has come: all of that is safe."""
        least = max(self.confirmed[publisher], default=self.last.get(publisher, 0))
        if not least <= sequence <= self.sent[publisher]:
            self.faults.tracking.append(f"{self.stream}: publisher {publisher} is told that it has come to {sequence}; {least} was safe, {self.sent[publisher]} was sent")
        self.confirmed[publisher].add(sequence)

    def hears_stored(self, reference: str, offset: int | None, link: StreamLink) -> None:
        """A reader was told how far it has come, which is safe from now on. What lies below the first offset is forgotten."""
        safe = self.safe.get(reference)
        if offset is None and safe is not None and safe < link.first_offset(self.stream):
            self.safe.pop(reference)
        elif offset != safe and (offset is None or offset < (safe or 0) or offset not in self.stored[reference]):
            self.faults.tracking.append(f"{self.stream}: the offset of {reference} is {offset}; {safe} was safe, and {max(self.stored[reference], default=None)} was stored at most")
        if offset is not None:
            self.safe[reference] = offset

    def judge(self, first: int, codes: array) -> None:
        """What stands in the stream from its known end on, or from `first` on if that is later."""
        has_gap = first > self.end
        if has_gap and self.stream == KEPT:
            self.faults.lost.append(f"{self.stream}: the offsets from {self.end} to {first} are gone")
        least: dict[int, int] = {}
        for at, code in enumerate(codes):
            publisher, number = code >> 40, code & (1 << 40) - 1
            if code == 0:
                continue
            before = self.last.get(publisher, 0)
            follows = number == before + 1 or (has_gap and publisher not in least)
            if number <= before or (publisher in NAMED and not follows):
                self.faults.disordered.append(f"{self.stream} at {first + at}: {told(code)} stands behind number {before}")
            least.setdefault(publisher, number)
            self.last[publisher] = number
        there = set(codes)
        for publisher, numbers in self.confirmed.items():
            if publisher in NAMED:
                # They have no holes: all below their last one was found.
                numbers = {number for number in numbers if number > self.last.get(publisher, 0)}
            for number in numbers:
                may_be_gone = has_gap and number < least.get(publisher, number + 1)
                if code_of(publisher, number) not in there and not may_be_gone:
                    self.faults.lost.append(f"{self.stream}: {told(code_of(publisher, number))} was confirmed, and is gone")
        for offset, code in self.seen.items():
            if offset >= first + len(codes) or (offset >= first and codes[offset - first] != code):
                self.faults.lost.append(f"{self.stream} at {offset}: {told(code)} was read before the crash, and is gone")
        self.confirmed.clear()
        self.seen.clear()
        if has_gap:
            self.base, self.known = first, array("Q")
        self.known += codes


class Faults:
    """What was found that must not be."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self.invented: list[str] = []
        self.disordered: list[str] = []
        self.tracking: list[str] = []
        self.definitions: list[str] = []
        self.surprises: list[str] = []


class Streams:
    """The streams of one run, those who write to them and those who read."""

    def __init__(self, ports: tuple[int, int], stopping: threading.Event):
        self.amqp_port, self.port = ports
        self.stopping = stopping
        self.lock = threading.Lock()
        self.faults = Faults()
        self.generation = 0
        self.books: dict[str, Book] = {}
        # Streams that come and go: what was answered of them.
        self.kept: dict[str, bool] = {}
        self.cycle = 0
        self.confirmed_total = 0
        self.read_total = 0
        self.again_total = 0

    def __str__(self) -> str:
        lengths = ", ".join(f"{book.base} to {book.end}" for book in self.books.values())
        return f"{self.confirmed_total} confirmed, {self.read_total} read, {self.again_total} sent again, offsets {lengths}"

    def declare(self, stream: str) -> None:
        with Link(self.amqp_port) as link:
            link.call(1, Q.Declare(queue=stream, durable=True, arguments=ARGUMENTS[stream]), Q.DeclareOk)
        self.generation += 1
        self.books[stream] = Book(stream, self.generation, self.faults)

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
        tasks += [(self.read_on, (stream,)) for stream in ARGUMENTS]
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
        """Goes on where it had come to, with some that are there already, and comes again now and then."""
        book, reference = self.books[STREAM_OF[publisher]], f"publisher-{publisher}"
        window = dice.choice(WINDOWS)
        while not self.stopping.is_set():
            with StreamLink(self.port) as link:
                link.declare_publisher(0, book.stream, reference)
                sequence = link.sequence(reference, book.stream)
                with self.lock:
                    book.hears_sequence(publisher, sequence)
                number = max(sequence - dice.randrange(40), 0)
                self.again_total += sequence - number
                waiting = 0
                for _ in range(dice.choice((20, 200, 2_000))):
                    if self.stopping.is_set():
                        return
                    count = dice.choice((1, 1, 8, 64))
                    entries = [Entry(one, [book.body(publisher, one)]) for one in range(number + 1, number + 1 + count)]
                    number += count
                    with self.lock:
                        book.sent[publisher] = max(book.sent[publisher], number)
                    if dice.random() < 0.1:
                        entries += entries[dice.randrange(count) :]
                        self.again_total += len(entries) - count
                    link.publish(0, entries)
                    waiting += len(entries)
                    while waiting > window:
                        ids = link.confirms()
                        waiting -= len(ids)
                        self.confirm(book, publisher, ids)
                if dice.random() < 0.5:
                    link.end()

    def publish_nameless(self, publisher: int, dice: random.Random) -> None:
        """Single messages, and several as one entry."""
        book = self.books[STREAM_OF[publisher]]
        waiting: dict[int, range] = {}
        entry, window = 0, dice.choice(WINDOWS)
        with StreamLink(self.port) as link:
            link.declare_publisher(7, book.stream)
            while not self.stopping.is_set():
                entries = []
                for _ in range(dice.choice((1, 4, 16))):
                    with self.lock:
                        numbers = book.next_numbers(publisher, dice.choice((1, 1, 5, 20)))
                    entry += 1
                    waiting[entry] = numbers
                    entries.append(Entry(entry, [book.body(publisher, number) for number in numbers], dice.random() < 0.5))
                link.publish(7, entries)
                while len(waiting) > window:
                    for one in link.confirms():
                        self.confirm(book, publisher, waiting.pop(one))

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

    def confirm(self, book: Book, publisher: int, numbers: list[int] | range) -> None:
        with self.lock:
            book.confirmed[publisher].update(numbers)
            self.confirmed_total += len(numbers)

    # Readers.

    def take(self, book: Book, position: int | None, chunk: tuple[int, list[bytes]], first: int = 0) -> int:
        """A reader has had everything below `position`, or nothing yet, and is sent this chunk. Returns what comes next."""
        offset, bodies = chunk
        if position is not None and (offset > position if book.stream == KEPT else offset + len(bodies) <= position):
            self.faults.disordered.append(f"{book.stream}: a reader that had come to {position} is sent {len(bodies)} messages from {offset} on")
        with self.lock:
            for at, body in enumerate(bodies, offset):
                if at >= max(first, position or 0) and (code := book.identify(at, body)):
                    book.observe(at, code)
            self.read_total += len(bodies)
        return offset + len(bodies)

    def read_on(self, stream: str, dice: random.Random) -> None:
        """Goes on where it had stored that it was, and stores where it is."""
        book, reference = self.books[stream], "reader"
        with StreamLink(self.port) as link:
            stored = link.stored_offset(reference, stream)
            with self.lock:
                book.hears_stored(reference, stored, link)
            link.subscribe(3, stream, FIRST if stored is None else from_offset(stored + 1))
            position = 0 if stored is None and stream == KEPT else None if stored is None else stored + 1
            while not self.stopping.is_set():
                for chunk in link.chunks():
                    position = self.take(book, position, chunk)
                if dice.random() < 0.3 and position:
                    with self.lock:
                        book.stored[reference].add(position - 1)
                    link.store_offset(reference, stream, position - 1)
                    if dice.random() < 0.5:
                        answer = link.stored_offset(reference, stream)
                        if answer != position - 1:
                            self.faults.tracking.append(f"{stream}: {reference} stores {position - 1}, asks, and is told {answer}")
                        with self.lock:
                            book.hears_stored(reference, answer, link)

    def read_from_somewhere(self, stream: str, dice: random.Random) -> None:
        """Reads from the beginning, or from any other offset that is known."""
        book = self.books[stream]
        position = dice.choice((0, dice.randrange(book.end + 1)))
        with StreamLink(self.port) as link:
            link.subscribe(0, stream, from_offset(position) if position else FIRST)
            while not self.stopping.is_set():
                for chunk in link.chunks():
                    position = self.take(book, position, chunk)

    def read_over_amqp(self, stream: str, dice: random.Random) -> None:
        book = self.books[stream]
        position = dice.choice((0, dice.randrange(book.end + 1)))
        state: list = []
        headers: list = []
        with Link(self.amqp_port) as link:
            link.call(1, B.Qos(prefetch_count=500), B.QosOk)
            link.send(1, B.Consume(queue=stream, consumer_tag="c", nowait=True, arguments={"x-stream-offset": position}))
            while not self.stopping.is_set():
                tag = 0
                for tag, _, body in link.deliveries(state, headers):
                    properties = spec.BasicProperties()
                    properties.decode(headers.pop(0), 12)
                    position = self.take(book, position, (properties.headers["x-stream-offset"], [body]))
                if tag:
                    link.ack(tag, multiple=True)

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
        codes = array("Q")
        first: int | None = None
        with self.connect() as link:
            (number,) = book.next_numbers(publisher, 1)
            link.declare_publisher(1, book.stream)
            link.publish(1, [Entry(number, [book.body(publisher, number)])])
            book.confirmed[publisher].update(link.confirms())
            mark = code_of(publisher, number)
            link.subscribe(2, book.stream, from_offset(offset), credit=50)
            while mark not in codes[-1:]:
                try:
                    came = list(link.chunks())
                except TimeoutError:
                    raise AssertionError(f"{book.stream}: nothing more comes from offset {offset + len(codes)} on, though something was confirmed since") from None
                for at, bodies in came:
                    first = max(at, offset) if first is None else first
                    if first + len(codes) != max(at, first):
                        raise AssertionError(f"{book.stream}: the chunk with offset {at} follows offset {first + len(codes) - 1}")
                    codes.extend(book.identify(one, body) for one, body in enumerate(bodies, at) if one >= first)
        return first or 0, codes

    def judge(self) -> None:
        """After a crash: what is new stands there as it was told, and what is tracked, too."""
        with self.connect() as link:
            self.check_definitions(link)
            for book in self.books.values():
                sequences = {publisher: link.sequence(f"publisher-{publisher}", book.stream) for publisher in NAMED if NAMED[publisher] == book.stream}
                stored = link.stored_offset("reader", book.stream)
                book.judge(*self.everything_from(book, book.end))
                for publisher, sequence in sequences.items():
                    if sequence != book.last.get(publisher, 0):
                        self.faults.tracking.append(f"{book.stream}: publisher {publisher} is told that it has come to {sequence}; what stands there last is {book.last.get(publisher, 0)}")
                book.hears_stored("reader", stored, link)

    def verify(self) -> None:
        """Reads everything again. A long stream ends, and begins anew."""
        for stream, book in list(self.books.items()):
            first, codes = self.everything_from(book, 0)
            if stream == KEPT and first != 0:
                self.faults.lost.append(f"{stream}: it begins with offset {first}")
            known = book.known[max(first - book.base, 0) :]
            if codes[: len(known)] != known:
                at = next(at for at, code in enumerate(known) if codes[at : at + 1] != array("Q", [code]))
                self.faults.lost.append(f"{stream} at {first + at}: {told(known[at])} is something else by now, or gone")
            book.judge(max(first, book.end), codes[len(known) :])
            if book.end > LONGEST:
                with self.connect() as link:
                    link.delete(stream)
                self.declare(stream)
