"""What clients do with streams over a connection that they have, whichever node it leads to, until they are stopped or it breaks."""

from __future__ import annotations

import random
import threading
from array import array
from collections.abc import Callable

from .link import B, Link, spec
from .stream_book import Book, Faults
from .stream_link import FIRST, Entry, StreamLink, from_offset

# So much a publisher has unconfirmed at most.
WINDOWS = (0, 20, 250)
READER = "reader"
# Whether a reader that has these messages need have no more.
AreLast = Callable[[list[bytes]], bool]


class StreamClients:
    """All of them, and how much they did."""

    def __init__(self, stopping: threading.Event, faults: Faults, lock: threading.Lock, pause_seconds: float = 0.0):
        """Publishers pause for up to so many seconds between two batches."""
        self.stopping, self.faults, self.lock, self.pause_seconds = stopping, faults, lock, pause_seconds
        self.confirmed_total = 0
        self.read_total = 0
        self.again_total = 0

    # Publishers.

    def send_named(self, link: StreamLink, book: Book, publisher: int, window: int, dice: random.Random) -> None:
        """Goes on where it had come to, with some that are there already, for a while."""
        reference = f"publisher-{publisher}"
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
            self.pause(dice)

    def send_nameless(self, link: StreamLink, book: Book, publisher: int, dice: random.Random, is_patient: bool = False) -> None:
        """Single messages, and several as one entry; if it is patient, it waits for every confirm."""
        waiting: dict[int, range] = {}
        entry, window = 0, dice.choice(WINDOWS)
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
                self.take_confirms(link, book, publisher, waiting)
            self.pause(dice)
        while is_patient and waiting:
            self.take_confirms(link, book, publisher, waiting)

    def take_confirms(self, link: StreamLink, book: Book, publisher: int, waiting: dict[int, range]) -> None:
        for one in link.confirms():
            self.confirm(book, publisher, waiting.pop(one))

    def pause(self, dice: random.Random) -> None:
        if self.pause_seconds:
            self.stopping.wait(dice.random() * self.pause_seconds)

    def confirm(self, book: Book, publisher: int, numbers: list[int] | range) -> None:
        with self.lock:
            book.confirmed[publisher].update(numbers)
            self.confirmed_total += len(numbers)

    # Readers.

    def take(self, book: Book, position: int | None, chunk: tuple[int, list[bytes]], first: int = 0) -> int:
        """A reader has had everything below `position`, or nothing yet, and is sent this chunk. Returns what comes next."""
        offset, bodies = chunk
        if position is not None and (offset > position if book.keeps_all else offset + len(bodies) <= position):
            self.faults.disordered.append(f"{book.stream}: a reader that had come to {position} is sent {len(bodies)} messages from {offset} on")
        with self.lock:
            for at, body in enumerate(bodies, offset):
                if at >= max(first, position or 0) and (code := book.identify(at, body)):
                    book.observe(at, code)
            self.read_total += len(bodies)
        return offset + len(bodies)

    def read_chunks(self, link: StreamLink, book: Book, start: bytes, position: int | None, are_last: AreLast | None = None) -> None:
        """Reads by the stream protocol from there on, which is at this offset if that is known; until it is stopped or has the last ones."""
        link.subscribe(0, book.stream, start)
        while are_last or not self.stopping.is_set():
            for chunk in link.chunks():
                position = self.take(book, position, chunk)
                if are_last and are_last(chunk[1]):
                    return

    @staticmethod
    def read_up_to(link: StreamLink, book: Book, offset: int, mark: int) -> tuple[int, array]:
        """What stands in a stream from an offset on, or from where it begins, up to this message, which is confirmed: the first offset, and
        the messages."""
        codes = array("Q")
        first: int | None = None
        link.subscribe(2, book.stream, from_offset(offset), credit=50)
        while True:
            try:
                came = list(link.chunks())
            except TimeoutError:
                raise AssertionError(f"{book.stream}: nothing more comes from offset {offset + len(codes)} on, though something was confirmed since") from None
            for at, bodies in came:
                first = max(at, offset) if first is None else first
                if first + len(codes) != max(at, first):
                    raise AssertionError(f"{book.stream}: the chunk with offset {at} follows offset {first + len(codes) - 1}")
                new = [book.identify(one, body) for one, body in enumerate(bodies, at) if one >= first]
                if mark in new:
                    codes.extend(new[: new.index(mark) + 1])
                    return first, codes
                codes.extend(new)

    def read_messages(self, link: Link, book: Book, start: int | str, are_last: AreLast | None = None) -> None:
        """Reads over AMQP from an offset, or from where this word says; until it is stopped or has the last ones."""
        position = start if isinstance(start, int) else None
        state: list = []
        headers: list = []
        link.call(1, B.Qos(prefetch_count=500), B.QosOk)
        link.send(1, B.Consume(queue=book.stream, consumer_tag="c", nowait=True, arguments={"x-stream-offset": start}))
        while are_last or not self.stopping.is_set():
            tag = 0
            for tag, _, body in link.deliveries(state, headers):
                properties = spec.BasicProperties()
                properties.decode(headers.pop(0), 12)
                position = self.take(book, position, (properties.headers["x-stream-offset"], [body]))
                if are_last and are_last([body]):
                    return
            if tag:
                link.ack(tag, multiple=True)

    def read_on(self, link: StreamLink, book: Book, dice: random.Random, where: str = "") -> None:
        """Goes on where it had stored that it was, and stores where it is. A node is named that may know of that a moment later only: then
        nothing is stored that lies behind what has been."""
        stored = link.stored_offset(READER, book.stream)
        self.hear_stored(book, stored, link, where)
        position = 0 if stored is None and book.keeps_all else None if stored is None else stored + 1
        link.subscribe(3, book.stream, FIRST if stored is None else from_offset(stored + 1))
        unheard: set[int] = set()
        try:
            while not self.stopping.is_set():
                for chunk in link.chunks():
                    position = self.take(book, position, chunk)
                if position and dice.random() < 0.3 and not (where and position <= max(book.stored[READER], default=-1) + 1):
                    self.store(link, book, position - 1, dice.random() < 0.5, unheard, where)
        finally:
            with self.lock:
                book.loose[READER] |= unheard if where else set()

    def store(self, link: StreamLink, book: Book, offset: int, is_asked_for: bool, unheard: set[int], where: str) -> None:
        with self.lock:
            book.stored[READER].add(offset)
        unheard.add(offset)
        link.store_offset(READER, book.stream, offset)
        if not is_asked_for:
            return
        answer = link.stored_offset(READER, book.stream)
        # What lies below the first offset is forgotten, and a reader that is slow may stand there.
        is_forgotten = answer is None and not where and offset < link.first_offset(book.stream)
        if answer != offset and not where and not is_forgotten:
            self.faults.tracking.append(f"{book.stream}: {READER} stores {offset}, asks, and is told {answer}")
        self.hear_stored(book, answer, link, where)
        if answer == offset:
            unheard.clear()

    def hear_stored(self, book: Book, offset: int | None, link: StreamLink, where: str) -> None:
        with self.lock:
            if where:
                book.hears_stored_late(READER, offset, where)
            else:
                book.hears_stored(READER, offset, link)
