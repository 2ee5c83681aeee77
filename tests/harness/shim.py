"""What makes clocks jump, disks slow or full and power go for one process at a time, without being root: a small library between it and its
system."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parent / "shim.c"


class Shim:
    """A library, made by the C compiler, and a file of numbers for each node, which it looks at with every call."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.library = directory / "shim.so"
        done = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library, SOURCE, "-ldl"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"cc makes no {self.library.name} of {SOURCE}:\n{done.stderr}")

    @staticmethod
    def can_be_had() -> bool:
        return shutil.which("cc") is not None

    def numbers(self, node: int) -> Path:
        return self.directory / f"shim-{node + 1}"

    def environment(self, node: int) -> dict[str, str]:
        self.numbers(node).write_bytes(struct.pack("=qqqq", 0, 0, 0, 0))
        return {"LD_PRELOAD": str(self.library), "LEVERET_SHIM": str(self.numbers(node))}

    def set(self, node: int, place: int, value: int) -> None:
        """One of the numbers from now on."""
        with open(self.numbers(node), "r+b", buffering=0) as numbers:
            numbers.seek(8 * place)
            numbers.write(struct.pack("=q", value))

    def clock(self, node: int, ahead_ms: int) -> None:
        self.set(node, 0, ahead_ms)

    def slow(self, node: int, sync_ms: int) -> None:
        self.set(node, 1, sync_ms)

    def full(self, node: int, is_full: bool) -> None:
        self.set(node, 2, int(is_full))

    def notes(self, node: int) -> Path:
        return self.numbers(node).with_name(f"{self.numbers(node).name}.notes")

    def take_notes(self, node: int) -> None:
        """What is written from now on and not synced is gone when the power is cut."""
        self.set(node, 3, 1)

    def cut_power(self, node: int, data: Path, dice: random.Random) -> int:
        """The node was killed: takes back what it has written and not synced, all of it or a part. How many bytes that was."""
        self.set(node, 3, 0)
        notes = self.notes(node)
        if not notes.exists():
            return 0
        content = notes.read_bytes()
        notes.unlink()
        written, safe = noted(content)
        paths = {path.stat().st_ino: path for path in data.rglob("*") if path.is_file()}
        taken = 0
        for inode, writes in written.items():
            unsafe = [write for write in writes if write.place >= safe.get(inode, 0)]
            # In the order in which they were made: the disk may have some of them, and a part of the first one that it has not.
            first = 0 if dice.random() < 0.5 else dice.randrange(len(unsafe) + 1)
            if inode in paths and unsafe[first:]:
                taken += sum(write.length for write in unsafe[first:])
                take_back(paths[inode], unsafe[first:], dice)
        return taken


class Write(NamedTuple):
    """Something that was written, and what stood there before, if the file was that long."""

    place: int
    offset: int
    length: int
    old: bytes


NOTE = struct.Struct("=qQqqq")


def noted(content: bytes) -> tuple[dict[int, list[Write]], dict[int, int]]:
    """What was written to each file, and up to which place in the notes all of it is safe."""
    written: dict[int, list[Write]] = defaultdict(list)
    safe: dict[int, int] = {}
    at = 0
    while at + NOTE.size <= len(content):
        is_sync, inode, offset, length, old = NOTE.unpack_from(content, at)
        if at + NOTE.size + old > len(content):
            # The node was killed while it noted this, and has not written it.
            break
        if is_sync:
            safe[inode] = max(offset, safe.get(inode, 0))
        else:
            written[inode].append(Write(at, offset, length, content[at + NOTE.size : at + NOTE.size + old]))
        at += NOTE.size + old
    return written, safe


def take_back(path: Path, writes: list[Write], dice: random.Random) -> None:
    """Of what was written to a file nothing is there, or the beginning of it; where there was nothing before are zeros, or the end."""
    first = writes[0]
    kept = dice.randrange(first.length + 1) if dice.random() < 0.5 else 0
    grown = [write.offset + len(write.old) for write in writes if len(write.old) < write.length]
    with open(path, "r+b") as file:
        length = os.fstat(file.fileno()).st_size
        beginning = os.pread(file.fileno(), kept, first.offset)
        for write in reversed(writes):
            # It may have been cut since.
            os.pwrite(file.fileno(), write.old.ljust(write.length, b"\0")[: max(length - write.offset, 0)], write.offset)
        if grown and dice.random() < 0.5:
            file.truncate(min(length, *grown))
        os.pwrite(file.fileno(), beginning, first.offset)
