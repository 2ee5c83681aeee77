"""What is known to differ from RabbitMQ: a `differences.toml` whose groups list lines."""

from __future__ import annotations

import tomllib
from pathlib import Path


def listed(file: Path) -> dict[str, str]:
    """Each line that may differ, with its reason."""
    found: dict[str, str] = {}
    for group in tomllib.loads(file.read_text()).get("differs", []):
        for line in group["lines"]:
            assert line not in found, f"{file.name} lists {line!r} twice"
            found[line] = group["reason"]
    return found
