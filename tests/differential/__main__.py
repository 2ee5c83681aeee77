"""Plays the cases on a broker and compares its answers with RabbitMQ's: recorded ones, or those of one that runs beside.

    tests/differ [CASE...]                        the broker of AMQP_HOST and AMQP_PORT, against the recorded answers
    tests/differ --at HOST:PORT [CASE...]         another broker
    tests/differ --beside HOST:PORT [CASE...]     against a RabbitMQ that runs
    tests/differ --record HOST:PORT --http HOST:PORT [CASE...]
                                                  writes the answers of a RabbitMQ that runs, 4.3 or 3.10: of the cases whose reference it is,
                                                  and of what differences.toml says is as in 3.10
    tests/differ --play HOST:PORT [CASE...]       prints what a broker answers

CASE is the beginning of a case's name, or a family.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from wire import Wire, address  # noqa: E402

from .case import OLDER, USUAL, Case, every_case  # noqa: E402
from .listed import Difference, listed  # noqa: E402
from .play import Play  # noqa: E402

RECORDED = Path(__file__).with_name("recorded")
AT_A_TIME = 4


def place(text: str) -> tuple[str, int]:
    host, port = text.rsplit(":", 1)
    return host, int(port)


def chosen(cases: list[Case], wanted: list[str]) -> list[Case]:
    return [case for case in cases if not wanted or any(case.name.startswith(word) or case.family == word for word in wanted)]


def recorded(family: str, older: bool = False) -> dict:
    path = (RECORDED / "3.10" if older else RECORDED) / f"{family}.json"
    return json.loads(path.read_text()) if path.exists() else {"broker": "", "cases": {}}


def record(where: tuple[str, int], http: tuple[str, int] | None, cases: list[Case], known: dict[str, Difference], whole: bool) -> int:
    """Plays each case twice, and writes what both runs agree on."""
    with Wire(where=where) as wire:
        properties = wire.start().server_properties
    broker = f"{properties['product']} {properties['version']}"
    older = broker.startswith(OLDER)
    cases = [case for case in cases if broker.startswith(case.reference) or (older and case.name in known and known[case.name].as_older)]
    unsteady = 0
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        answers = list(pool.map(lambda case: (Play(where, http_at=http).run(case.script), Play(where, http_at=http).run(case.script)), cases))
    for family, aside in sorted({(case.family, older and case.reference != OLDER) for case in cases}):
        kept = {} if whole else recorded(family, aside)["cases"]
        for case, (first, second) in zip(cases, answers, strict=True):
            if case.family != family:
                continue
            kept[case.name] = first
            if first != second:
                unsteady += 1
                print(f"FAIL differential {case.name}: two runs differ")
                print("\n".join(difference(first, second)))
            elif any(" -> silence" in line or line.startswith("ended by") for line in first):
                unsteady += 1
                print(f"FAIL differential {case.name}: no answer\n     " + "\n     ".join(first))
        text = json.dumps({"broker": broker, "cases": dict(sorted(kept.items()))}, indent=1, ensure_ascii=False)
        path = (RECORDED / "3.10" if aside else RECORDED) / f"{family}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{text}\n")
    print(f"{len(cases)} cases recorded, {unsteady} unsteady")
    return 1 if unsteady else 0


def difference(theirs: list[str], ours: list[str]) -> list[str]:
    return [f"     {line}" for line in difflib.ndiff(theirs, ours) if not line.startswith("?")]


def compare(where: tuple[str, int], http: tuple[str, int] | None, beside: tuple[str, int] | None, cases: list[Case], known: dict[str, Difference]) -> int:
    """Prints a line for each case; the number of failures."""

    def play(case: Case) -> tuple[list[str] | None, list[str]]:
        theirs = Play(beside, http_at=http).run(case.script) if beside else recorded(case.family)["cases"].get(case.name)
        # What is known to differ may differ by silence, which need not be waited for long.
        return theirs, Play(where, 2.0 if case.name in known else 20.0, http).run(case.script)

    failures = 0
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for case, (theirs, ours) in zip(cases, pool.map(play, cases), strict=True):
            trouble: list[str] = []
            if theirs is None:
                verdict = "no recorded answer; record it"
            elif theirs != ours and case.name not in known:
                verdict, trouble = "not as RabbitMQ (-) but so (+)", difference(theirs, ours)
            elif theirs == ours and case.name in known:
                verdict = "is as RabbitMQ, but differences.toml lists it"
            elif theirs != ours and known[case.name].as_older and ours != (older := recorded(case.family, older=True)["cases"].get(case.name)):
                verdict, trouble = f"not as {OLDER} (-) but so (+)", difference(older or [], ours)
            elif theirs != ours:
                print(f"skip differential {case.name}: {known[case.name].reason}")
                continue
            else:
                print(f"ok   differential {case.name}")
                continue
            failures += 1
            print(f"FAIL differential {case.name}: {verdict}")
            print("\n".join(trouble))
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/differ", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--at", type=place, help="the broker to be compared")
    parser.add_argument("--beside", type=place, help="a RabbitMQ that runs")
    parser.add_argument("--record", type=place, help="writes the answers of this RabbitMQ")
    parser.add_argument("--play", type=place, help="prints the answers of this broker")
    parser.add_argument("--http", type=place, help="its HTTP API")
    parser.add_argument("--without", help="a family to leave out")
    options = parser.parse_args()
    every = every_case()
    cases = [case for case in chosen(every, options.cases) if case.family != options.without]
    every_difference = listed({case.name for case in every})
    if options.record:
        return record(options.record, options.http, cases, every_difference, whole=not options.cases)
    if options.play:
        for case in cases:
            print("\n     ".join([f"{case.family}: {case.name}", *Play(options.play, http_at=options.http).run(case.script)]))
        return 0
    # Another broker than ours is held against the answers without our list.
    ours = os.environ.get("LEVERET") != "0"
    http = options.http or (address()[0], int(os.environ["HTTP_PORT"])) if options.http or "HTTP_PORT" in os.environ else None
    cases = [case for case in cases if (ours and not options.beside) or case.reference == USUAL]
    return 1 if compare(options.at or address(), http, options.beside, cases, every_difference if ours else {}) or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
