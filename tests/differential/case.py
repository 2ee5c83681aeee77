"""The register of cases. A case is a name and a script; its family is the file that it stands in."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from . import cases


@dataclass(frozen=True)
class Case:
    """One script."""

    family: str
    name: str
    script: Callable
    # What the product's name and version begin with whose answers count.
    reference: str


REGISTER: dict[str, Case] = {}
USUAL = "RabbitMQ 4.3"
OLDER = "RabbitMQ 3.10"


def add(name: str, script: Callable) -> None:
    """Registers a case under a name that nothing else has."""
    family = script.__module__.rsplit(".", 1)[1]
    assert name not in REGISTER, f"two cases are named {name!r}"
    reference = getattr(sys.modules[script.__module__], "REFERENCE", USUAL)
    REGISTER[name] = Case(family, name, script, reference)


def case(name: str):
    """A script's decorator."""

    def register(script: Callable) -> Callable:
        add(name, script)
        return script

    return register


def every_case() -> list[Case]:
    """All cases of all families."""
    for module in pkgutil.iter_modules(cases.__path__):
        importlib.import_module(f"{cases.__name__}.{module.name}")
    return list(REGISTER.values())
