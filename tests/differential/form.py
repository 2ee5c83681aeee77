"""What is observed, as text: frames with the types of their fields, and nothing that differs from run to run."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from pika import data

FLAGS = [
    ("content_type", "s"), ("content_encoding", "s"), ("headers", "F"), ("delivery_mode", "o"), ("priority", "o"),
    ("correlation_id", "s"), ("reply_to", "s"), ("expiration", "s"), ("message_id", "s"), ("timestamp", "T"),
    ("type", "s"), ("user_id", "s"), ("app_id", "s"), ("cluster_id", "s"),
]  # fmt: skip
NUMBERS = {"b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I", "l": ">q", "L": ">Q", "f": ">f", "d": ">d"}


@dataclass(frozen=True)
class Typed:
    """A field value of exactly this type, which pika's own encoder would not choose."""

    code: str
    value: object


def _encode(pieces: list[bytes], value: object, plain=data.encode_value) -> int:
    if not isinstance(value, Typed):
        return plain(pieces, value)
    code = value.code.encode()
    piece = code + (struct.pack(">Q", value.value) if code == b"T" else struct.pack(NUMBERS[value.code], value.value))
    pieces.append(piece)
    return len(piece)


data.encode_value = _encode


class Reader:
    """Decodes field tables without losing the types, which pika's decoder does."""

    def __init__(self, raw: bytes):
        self.raw, self.at = raw, 0

    def take(self, count: int) -> bytes:
        piece = self.raw[self.at : self.at + count]
        assert len(piece) == count, "the frame ends within a field"
        self.at += count
        return piece

    def number(self, form: str):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def short(self) -> str:
        return self.take(self.number(">B")).decode(errors="backslashreplace")

    def long(self) -> bytes:
        return self.take(self.number(">I"))

    def value(self) -> str:
        code = self.take(1).decode()
        if code in NUMBERS:
            return f"{code}:{self.number(NUMBERS[code])}"
        match code:
            case "t":
                return "true" if self.take(1) != b"\0" else "false"
            case "S" | "x":
                return f"{'x' if code == 'x' else ''}{self.long().decode(errors='backslashreplace')!r}"
            case "T":
                self.take(8)
                return "T:a time"
            case "D":
                return f"D:{self.number('>B')},{self.number('>i')}"
            case "V":
                return "void"
            case "A":
                inner, values = Reader(self.long()), []
                while inner.at < len(inner.raw):
                    values.append(inner.value())
                return f"[{', '.join(values)}]"
            case "F":
                return table(self.long())
        raise AssertionError(f"field type {code!r}")


def table(raw: bytes, in_order: bool = True) -> str:
    """A table's fields, in the order in which they came or by name."""
    inner, fields = Reader(raw), []
    while inner.at < len(inner.raw):
        fields.append((inner.short(), inner.value()))
    return f"{{{', '.join(f'{name}={value}' for name, value in (fields if in_order else sorted(fields)))}}}"


def properties(payload: bytes) -> str:
    """The properties of a content header frame."""
    reader = Reader(payload)
    reader.take(12)
    flags = reader.number(">H")
    shown = []
    for position, (name, kind) in enumerate(FLAGS):
        if flags & (1 << (15 - position)):
            match kind:
                case "s":
                    value = repr(reader.short())
                case "o":
                    value = str(reader.number(">B"))
                case "T":
                    value = str(reader.number(">Q"))
                case _:
                    # RabbitMQ sorts a message's headers, ours leaves them as they came; no client can tell by the order.
                    value = table(reader.long(), in_order=False)
            shown.append(f"{name}={value}")
    return " ".join(shown)


VOLATILE = [
    (re.compile(r"amq\.gen-[A-Za-z0-9_-]{22}"), "amq.gen-*"),
    (re.compile(r"amq\.ctag-[A-Za-z0-9_-]{22}"), "amq.ctag-*"),
    (re.compile(r"amq\.rabbitmq\.reply-to\.[A-Za-z0-9+/=_.-]+"), "amq.rabbitmq.reply-to.*"),
    (re.compile(r"'(rabbit|leveret|peer\d+)@[\w.-]+'"), "'a node'"),
    (re.compile(r"\btimestamp_in_ms=l:\d+"), "timestamp_in_ms=l:now"),
]


def settled(text: str, prefix: str) -> str:
    """Without the prefix of this run's names, and without what the server makes up."""
    text = text.replace(prefix, "~")
    for pattern, shown in VOLATILE:
        text = pattern.sub(shown, text)
    return text


def given(value, prefix: str):
    """A script's value as it is sent: a tilde stands for the prefix of this run's names."""
    match value:
        case str():
            return value.replace("~", prefix)
        case dict():
            return {given(key, prefix): given(inner, prefix) for key, inner in value.items()}
        case list():
            return [given(inner, prefix) for inner in value]
    return value
