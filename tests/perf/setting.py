"""What a test gets: the tool, a broker to send to, and the ways to say that something is wrong."""

from __future__ import annotations

import itertools
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

import pika

from .tools import Outcome, Run, Tool


class Skip(Exception):
    """Why a test does not concern this broker."""


class Fault(AssertionError):
    """What is wrong, with the run that shows it."""

    def __init__(self, what: str, outcome: Outcome | None = None):
        super().__init__(what + (f"\n{outcome.shown()}" if outcome else ""))


def expect(good: object, what: str, outcome: Outcome | None = None) -> None:
    if not good:
        raise Fault(what, outcome)


@dataclass
class Setting:
    """A tool and a broker."""

    tool: Tool
    binary: str
    broker: object
    leveret: bool
    numbers: itertools.count = field(default_factory=itertools.count)

    @property
    def uri(self) -> str:
        return f"amqp://guest:guest@{self.broker.host}:{self.broker.port}/%2F"

    def queue(self) -> str:
        """A name that no other test uses."""
        return f"perf-tool-{next(self.numbers)}"

    def start(self, flags: list[str], environment: dict[str, str] | None = None, tool: Tool | None = None) -> Run:
        return (tool or self.tool).start([*flags, "--uri", self.uri], environment)

    def run(self, flags: list[str], environment: dict[str, str] | None = None, tool: Tool | None = None, patience_seconds: float = 60) -> Outcome:
        return self.start(flags, environment, tool).finish(patience_seconds)

    def report(self, flags: list[str], code: int = 0, patience_seconds: float = 60) -> tuple[Outcome, dict]:
        """A run that must end with this exit code and write its JSON."""
        outcome = self.run([*flags, "--json", "JSON"], patience_seconds=patience_seconds)
        expect(outcome.code == code, f"exit code {outcome.code}, not {code}", outcome)
        expect(outcome.report is not None, "no JSON was written", outcome)
        expect(outcome.report["exit_code"] == code, f"the JSON says exit code {outcome.report['exit_code']}", outcome)
        return outcome, outcome.report

    def delete(self, *queues: str) -> None:
        parameters = pika.ConnectionParameters(host=self.broker.host, port=self.broker.port)
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            for queue in queues:
                channel.queue_delete(queue)

    def count(self, queue: str) -> int:
        parameters = pika.ConnectionParameters(host=self.broker.host, port=self.broker.port)
        with pika.BlockingConnection(parameters) as connection:
            return connection.channel().queue_declare(queue, passive=True).method.message_count


@dataclass
class Test:
    """A named check; it raises `Fault` (or anything) or `Skip`."""

    name: str
    check: Callable[[Setting], object]
    # Runs while nothing else does: it wants the machine's cores.
    alone: bool = False


def tests_of(*modules) -> list[Test]:
    """All functions of modules named `test_…`, in their order; their docstring's first line is the name."""
    found = []
    for module in modules:
        for name, value in vars(module).items():
            if name.startswith("test_") and callable(value):
                found.append(Test(name.removeprefix("test_").replace("_", " "), value, getattr(value, "alone", False)))
    return found


def alone(check: Callable[[Setting], object]) -> Callable[[Setting], object]:
    check.alone = True
    return check


def attempt(test: Test, setting: Setting) -> tuple[str, str, list[str]]:
    """`ok`, `skip` or `FAIL`, what to say after the name, and details."""
    started = time.monotonic()
    try:
        said = test.check(setting)
    except Skip as reason:
        return "skip", f": {reason}", []
    except Fault as fault:
        return "FAIL", "", str(fault).splitlines()
    except Exception:
        return "FAIL", "", traceback.format_exc().splitlines()
    return "ok  ", f" ({time.monotonic() - started:.1f} s){': ' + said if isinstance(said, str) else ''}", []


def run_all(tests: list[Test], setting: Setting, at_a_time: int) -> int:
    """Runs them and prints a line for each; how many failed. Most of them wait most of the time, so some run at a time."""
    failed = 0
    lock = threading.Lock()

    def tell(test: Test, result: tuple[str, str, list[str]]) -> int:
        verdict, more, details = result
        with lock:
            print("\n".join([f"{verdict} perf {test.name}{more}", *(f"     {line}" for line in details)]), flush=True)
        return verdict == "FAIL"

    with ThreadPoolExecutor(at_a_time) as pool:
        under_way = {pool.submit(attempt, test, setting): test for test in tests if not test.alone}
        for done in as_completed(under_way):
            failed += tell(under_way[done], done.result())
    for test in tests:
        if test.alone:
            failed += tell(test, attempt(test, setting))
    return failed
