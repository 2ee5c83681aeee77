"""The register of cases. A family is a file in `cases/`: what happens to the nodes, its ACTS, and scripts that go on meanwhile.

A script is given a `Trio`. It is a generator where it has parts: each `yield` is where the family's next act happens, for all of its scripts
at once. So a family costs its acts once, however many scripts it has.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from differential.case import USUAL

from . import cases


@dataclass
class Family:
    """What happens to the nodes, and what is done meanwhile."""

    name: str
    acts: list[str]
    # What the product's name and version begin with whose answers count.
    reference: str = USUAL
    scripts: dict[str, Callable] = field(default_factory=dict)


FAMILIES: dict[str, Family] = {}


def case(name: str):
    """A script's decorator."""

    def register(script: Callable) -> Callable:
        module = sys.modules[script.__module__]
        word = script.__module__.rsplit(".", 1)[1]
        family = FAMILIES.setdefault(word, Family(word, getattr(module, "ACTS", []), getattr(module, "REFERENCE", USUAL)))
        title = f"{word}: {name}"
        assert title not in family.scripts, f"two cases are named {title!r}"
        family.scripts[title] = script
        return script

    return register


def every_family() -> list[Family]:
    for module in pkgutil.iter_modules(cases.__path__):
        importlib.import_module(f"{cases.__name__}.{module.name}")
    return list(FAMILIES.values())
