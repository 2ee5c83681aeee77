"""The client suites on a broker whose queues are quorum queues unless something else is said, and what they find different there."""

from __future__ import annotations

import tomllib
from pathlib import Path

QUORUM = {"default_queue_type": "quorum"}
LIST = Path(__file__).resolve().parent.parent / "quorum.toml"


class Differing:
    """The listed tests, of which those that differ are taken off as they are seen."""

    def __init__(self, cluster: bool):
        groups = tomllib.loads(LIST.read_text())["differs"]
        here = [group for group in groups if cluster or group.get("where") != "cluster"]
        self.reasons = {line: group["reason"] for group in here for line in group["lines"]}
        self.seen: set[str] = set()

    def judge(self, line: str) -> str:
        """A line of a suite, which tells of a failure no more if the test is listed."""
        told = line.removeprefix("FAIL ")
        if told == line:
            return line
        for begin, reason in self.reasons.items():
            if told.startswith(begin) and told[len(begin) :][:1] in ("", " ", "\n"):
                self.seen.add(begin)
                return f"differs {told.rstrip()}: {reason}\n"
        return line

    def unseen(self, suites: set[str]) -> list[str]:
        """What is listed of these suites and did not differ."""
        return [line for line in self.reasons if line.split()[0] in suites and line not in self.seen]
