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

# Room for what other processes write meanwhile, so that nobody else trips the alarm or lifts it.
MARGIN_BYTES = 1 << 30
BALLAST_BYTES = 2 * MARGIN_BYTES


class AlarmBroker(Broker):
    """A broker with a switch for its disk alarm."""

    def __init__(self, binary: str):
        directory = Path(tempfile.mkdtemp(prefix="leveret-test-"))
        free = shutil.disk_usage(directory).free
        limit = max(free - MARGIN_BYTES, free // 2)
        super().__init__(binary, {"disk_free_limit.absolute": str(limit)}, directory)
        self.own_directory = True
        self.ballast = directory / "ballast"

    def alarm_on(self) -> None:
        free = shutil.disk_usage(self.directory).free
        size = min(BALLAST_BYTES, max(free - (64 << 20), 0))
        with open(self.ballast, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)

    def alarm_off(self) -> None:
        self.ballast.unlink(missing_ok=True)
