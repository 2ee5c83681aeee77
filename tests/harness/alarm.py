"""A broker whose disk alarm a test can switch on and off while it runs.

Its `disk_free_limit` lies a little below what is free now; a large file beside its data then crosses the limit, and
deleting the file lifts the alarm. So the alarm goes the way it goes in real life, without any management call.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from .broker import Broker

# Room for what other processes write meanwhile (a compiler, say), so that nobody else trips the alarm or lifts it. A quarter of
# what is free where that is less.
MARGIN_BYTES = 8 << 30


class AlarmBroker(Broker):
    """A broker with a switch for its disk alarm."""

    def __init__(self, binary: str, settings: dict[str, str] | None = None):
        directory = Path(tempfile.mkdtemp(prefix="leveret-test-"))
        free = shutil.disk_usage(directory).free
        self.margin_bytes = min(MARGIN_BYTES, free // 4)
        limit = free - self.margin_bytes
        super().__init__(binary, {"disk_free_limit.absolute": str(limit)} | (settings or {}), directory)
        self.own_directory = True
        self.ballast = directory / "ballast"

    def alarm_on(self) -> None:
        free = shutil.disk_usage(self.directory).free
        size = min(2 * self.margin_bytes, max(free - (64 << 20), 0))
        with open(self.ballast, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)

    def alarm_off(self) -> None:
        self.ballast.unlink(missing_ok=True)
