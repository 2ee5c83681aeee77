"""What makes clocks jump and disks slow or full for one process at a time, without being root: a small library between it and its system."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

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
        self.numbers(node).write_bytes(struct.pack("=qqq", 0, 0, 0))
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
