"""What is known of a stream: what was sent to it, confirmed, read and stored, and what stands at each of its offsets."""

from __future__ import annotations

import zlib
from array import array
from collections import defaultdict
from collections.abc import Collection

from .stream_link import StreamLink

SIZES = (0, 10, 100, 100, 100, 500, 500, 3000)


def code_of(publisher: int, number: int) -> int:
    return publisher << 40 | number


def told(code: int) -> str:
    return f"message {code & (1 << 40) - 1} of publisher {code >> 40}"


def body_of(generation: int, publisher: int, number: int) -> bytes:
    """The one right body of a message."""
    head = b"%d:%d:%d:" % (generation, publisher, number)
    check = zlib.crc32(head)
    size = 200_000 if check % 5_000 == 0 else SIZES[check % len(SIZES)]
    return head + check.to_bytes(4, "big") * (size // 4)


class Book:
    """What is known of one stream. Publishers with a name (`named`) are those of which everything stands there, once."""

    def __init__(self, stream: str, generation: int, faults: Faults, named: Collection[int], keeps_all: bool):
        """Of a stream that does not keep all, the oldest segments go."""
        self.stream = stream
        self.generation = generation
        self.faults = faults
        self.named = named
        self.keeps_all = keeps_all
        # From offset `base` on: what stood there when it was looked at.
        self.base = 0
        self.known = array("Q")
        self.last: dict[int, int] = {}
        # Since then: what readers had, what was sent and what was confirmed.
        self.seen: dict[int, int] = {}
        self.sent: dict[int, int] = defaultdict(int)
        self.confirmed: dict[int, set[int]] = defaultdict(set)
        self.stored: dict[str, set[int]] = defaultdict(set)
        # What was stored over a connection that ended before it was heard of: it may arrive behind what was stored later.
        self.loose: dict[str, set[int]] = defaultdict(set)
        self.safe: dict[str, int] = {}

    @property
    def end(self) -> int:
        return self.base + len(self.known)

    def body(self, publisher: int, number: int) -> bytes:
        return body_of(self.generation, publisher, number)

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
        if generation != self.generation or not 0 < number <= self.sent.get(publisher, 0):
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
        elif not self.may_be_stored(reference, offset):
            self.faults.tracking.append(f"{self.stream}: the offset of {reference} is {offset}; {safe} was safe, and {max(self.stored[reference], default=None)} was stored at most")
        if offset is not None:
            self.safe[reference] = offset

    def may_be_stored(self, reference: str, offset: int | None) -> bool:
        """Whether this may be how far a reader has come: no less than what was told of it, or something that was on its way for long."""
        safe = self.safe.get(reference)
        if offset == safe or offset in self.loose[reference]:
            return True
        return offset is not None and offset > (-1 if safe is None else safe) and offset in self.stored[reference]

    def hears_stored_late(self, reference: str, offset: int | None, where: str) -> None:
        """A reader was told how far it has come by a node that may know it a moment later than others: that was so once."""
        if offset is None:
            return
        if offset not in self.stored[reference]:
            self.faults.tracking.append(f"{self.stream}: {where} says that the offset of {reference} is {offset}, which nobody has stored")
        self.safe[reference] = max(offset, self.safe.get(reference, -1))

    def judge(self, first: int, codes: array) -> None:
        """What stands in the stream from its known end on, or from `first` on if that is later."""
        has_gap = first > self.end
        if has_gap and self.keeps_all:
            self.faults.lost.append(f"{self.stream}: the offsets from {self.end} to {first} are gone")
        least: dict[int, int] = {}
        for at, code in enumerate(codes):
            publisher, number = code >> 40, code & (1 << 40) - 1
            if code == 0:
                continue
            before = self.last.get(publisher, 0)
            follows = number == before + 1 or (has_gap and publisher not in least)
            if number <= before or (publisher in self.named and not follows):
                self.faults.disordered.append(f"{self.stream} at {first + at}: {told(code)} stands behind number {before}")
            least.setdefault(publisher, number)
            self.last[publisher] = number
        there = set(codes)
        for publisher, numbers in self.confirmed.items():
            if publisher in self.named:
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


    def judge_again(self, first: int, codes: array) -> None:
        """Everything was read once more, what is new with it."""
        if self.keeps_all and first != 0:
            self.faults.lost.append(f"{self.stream}: it begins with offset {first}")
        known = self.known[max(first - self.base, 0) :]
        if codes[: len(known)] != known:
            at = next(at for at, code in enumerate(known) if codes[at : at + 1] != array("Q", [code]))
            self.faults.lost.append(f"{self.stream} at {first + at}: {told(known[at])} is something else by now, or gone")
        self.judge(max(first, self.end), codes[len(known) :])


class Faults:
    """What was found that must not be."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self.invented: list[str] = []
        self.disordered: list[str] = []
        self.tracking: list[str] = []
        self.definitions: list[str] = []
        self.surprises: list[str] = []
