"""What is known to differ from RabbitMQ: `differences.toml`, by the names of the cases."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("differences.toml")


@dataclass(frozen=True)
class Difference:
    """Why a case differs, and whether it is then as in the older RabbitMQ."""

    reason: str
    as_older: bool


def listed(names: set[str]) -> dict[str, Difference]:
    """Each listed case with the reason, checked against the names that exist."""
    found: dict[str, Difference] = {}
    for kind, groups in tomllib.loads(FILE.read_text()).items():
        for group in groups:
            for name in group["cases"]:
                assert name in names, f"{FILE.name} lists {name!r}, which is no case"
                assert name not in found, f"{FILE.name} lists {name!r} twice"
                found[name] = Difference(f"{kind}: {group['reason']}", group.get("as") == "3.10")
    return found
