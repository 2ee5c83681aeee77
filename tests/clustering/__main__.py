"""Plays the cases on a cluster of three nodes and compares its answers with the recorded ones of a RabbitMQ cluster of three.

    tests/cluster BINARY [CASE...]                   three nodes of its own, against the recorded answers
    tests/cluster --show BINARY [CASE...]            prints listed differences too
    tests/cluster --settle BINARY                    takes lines off the list that have vanished
    tests/cluster --play BINARY [CASE...]            prints what it answers
    tests/cluster --record AMQP:HTTP,AMQP:HTTP,AMQP:HTTP --names NAME,NAME,NAME --tools PREFIX --control COMMAND [CASE...]
                                                     writes what a RabbitMQ of three nodes answers that runs: its ports, the names of its nodes,
                                                     what stands before the names of its tools ({name} is the node's), and a command that is
                                                     called with a node's place (from 0 on) and stop, kill, start or replace

CASE is a family or the beginning of a case's name. What is known to differ stands in differences.toml, line by line. A difference that is not
listed fails, and so does a listed one that has vanished.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from differential.play import ask  # noqa: E402
from harness.listed import listed  # noqa: E402

from .nodes import Nodes, Others, Ours  # noqa: E402
from .play import play  # noqa: E402
from .story import Family, every_family  # noqa: E402

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
# RabbitMQ without a majority takes half a minute to say so.
THEIR_SECONDS, OUR_SECONDS = 100.0, 20.0


def chosen(wanted: list[str]) -> list[tuple[Family, list[str]]]:
    picked = [(family, [name for name in family.scripts if not wanted or any(name.startswith(word) for word in wanted)]) for family in every_family()]
    return [(family, names) for family, names in picked if names]


def recorded(family: Family) -> dict:
    path = RECORDED / f"{family.name}.json"
    return json.loads(path.read_text())["cases"] if path.exists() else {}


def lines_of(name: str, theirs: list[str], ours: list[str]) -> list[str]:
    return [f"{name}: {line}" for line in difflib.ndiff(theirs, ours) if line[0] in "+-"]


def record(nodes: Nodes, families: list[tuple[Family, list[str]]], is_whole: bool) -> int:
    """Plays each case twice, and writes what both runs agree on."""
    unsteady = count = 0
    told = ask(("127.0.0.1", nodes.http[0]), "GET", "/overview", None)[1]
    broker = f"{told['product_name']} {told['product_version']}"
    for family, names in families:
        if not broker.startswith(family.reference):
            continue
        first, second = (play(nodes, family, names, THEIR_SECONDS) for _ in range(2))
        kept = {} if is_whole else recorded(family)
        for name in names:
            count += 1
            kept[name] = first[name]
            if first[name] != second[name]:
                unsteady += 1
                print("\n     ".join([f"FAIL clustering {name}: two runs differ", *difflib.ndiff(first[name], second[name])]))
            elif any(line.startswith("ended by") for line in first[name]):
                unsteady += 1
                print("\n     ".join([f"FAIL clustering {name}: no answer", *first[name]]))
        text = json.dumps({"cases": dict(sorted(kept.items()))}, indent=1, ensure_ascii=False)
        (RECORDED / f"{family.name}.json").write_text(f"{text}\n")
    print(f"{count} cases recorded, {unsteady} unsteady")
    return 1 if unsteady else 0


def settle(vanished: set[str]) -> None:
    """Takes lines off the list, and groups that have none left."""
    path = HERE / "differences.toml"
    head, *groups = path.read_text().split("\n[[differs]]\n")
    kept = []
    for group in groups:
        lines = [line for line in group.splitlines() if not line.startswith("    ") or json.loads(line.strip().rstrip(",")) not in vanished]
        if any(line.startswith("    ") for line in lines):
            kept.append("\n".join(lines) + "\n")
    path.write_text("\n[[differs]]\n".join([head, *kept]))


def compare(nodes: Nodes, families: list[tuple[Family, list[str]]], options: argparse.Namespace) -> int:
    """Prints a line for each case; the number of failures."""
    known, seen, failures = listed(HERE / "differences.toml"), set(), 0
    played = set()
    for family, names in families:
        began = time.monotonic()
        answers, theirs = play(nodes, family, names, OUR_SECONDS), recorded(family)
        for name in names:
            played.add(name)
            lines = lines_of(name, theirs[name], answers[name]) if name in theirs else [f"{name}: no recorded answer; record it"]
            new = [line for line in lines if line not in known]
            seen.update(lines)
            failures += bool(new)
            if new or options.show and lines:
                print("\n     ".join([f"FAIL clustering {name}: not as RabbitMQ (-) but so (+)", *(json.dumps(line, ensure_ascii=False) for line in new or lines)]))
            elif lines:
                print(f"skip clustering {name}: {known[lines[0]]}")
            else:
                print(f"ok   clustering {name}")
        print(f"     {family.name}: {time.monotonic() - began:.1f} s")
    vanished = {line for line in known if line not in seen and any(line.startswith(f"{name}: ") for name in played)}
    if options.settle:
        settle(vanished)
        print(f"{len(vanished)} lines taken off the list")
        return failures
    for line in sorted(vanished):
        failures += 1
        print(f"FAIL clustering {line}: is as RabbitMQ, but differences.toml lists it")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="the executable, unless LEVERET_BINARY or --record says which nodes; then cases")
    parser.add_argument("--show", action="store_true", help="prints listed differences too")
    parser.add_argument("--settle", action="store_true", help="takes lines off the list that have vanished")
    parser.add_argument("--play", action="store_true", help="prints the answers")
    parser.add_argument("--record", help="ports of a RabbitMQ's nodes")
    parser.add_argument("--names", help="the names of these nodes")
    parser.add_argument("--tools", default="", help="what stands before the names of RabbitMQ's tools")
    parser.add_argument("--control", default="", help="stops and starts a node")
    options = parser.parse_args()
    if options.record:
        ports = [tuple(int(port) for port in pair.split(":")) for pair in options.record.split(",")]
        nodes: Nodes = Others(ports, options.names.split(","), options.tools, options.control)
    else:
        nodes = Ours(os.environ.get("LEVERET_BINARY") or options.cases.pop(0))
    families = chosen(options.cases)
    assert families, "no such case"
    with nodes:
        if options.play:
            for family, names in families:
                for name, notes in play(nodes, family, names, THEIR_SECONDS if options.record else OUR_SECONDS).items():
                    print("\n     ".join([name, *notes]))
            return 0
        return record(nodes, families, not options.cases) if options.record else min(compare(nodes, families, options), 1)


if __name__ == "__main__":
    sys.exit(main())
