"""Plays series of HTTP calls and command lines on a broker and compares its answers with RabbitMQ's.

    python -m operating BINARY                       a broker of its own, against the recorded answers
    python -m operating --show BINARY                prints what differs, listed or not, with both answers
    python -m operating --settle BINARY              takes lines off the list that have vanished
    python -m operating --record AMQP HTTP --tools PREFIX --root DIR
                                                     writes what a RabbitMQ answers that holds nothing: its ports, what stands before the
                                                     names of its tools, and the folder that these see as /

What is known to differ stands in differences.toml, by the lines that this prints. A difference that is not listed fails, and so does a
listed one that has vanished.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

from harness.broker import Broker
from harness.listed import listed

from . import calls, commands
from .play import Http, Place, Tools, name_steps
from .shapes import differences

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
TOOLS = ["rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-queues", "rabbitmq-streams", "rabbitmq-plugins", "rabbitmq-upgrade"]


def call_differences(call: calls.Call, name: str, theirs: dict, ours: dict) -> list[str]:
    """Differences in fields are the object's; those in outcomes are the call's."""
    lines = []
    for part in ("status", "location"):
        if theirs.get(part) != ours.get(part):
            lines.append(f"{name} -> {part} {ours.get(part)} instead of {theirs.get(part)}")
    if lines:
        return lines
    if ("body" in theirs) != ("body" in ours):
        return [f"{name} -> {'a' if 'body' in ours else 'no'} body"]
    about = call.about if isinstance(theirs["status"], int) and theirs["status"] < 300 else name
    return [f"{about}: {line}" for line in differences(theirs.get("body", {}), ours.get("body", {}))]


def command_differences(name: str, theirs: dict, ours: dict) -> list[str]:
    if theirs["code"] != ours["code"]:
        return [f"{name} -> code {ours['code']} instead of {theirs['code']}"]
    lines = [f"{name} -> {part}" for part in ("out", "err") if theirs.get(part) != ours.get(part)]
    return lines + [f"{name}: {line}" for line in differences(theirs.get("shape", {}), ours.get("shape", {}))]


def explain(name: str, theirs: dict, ours: dict) -> str:
    return "\n".join(
        f"     {who} {part}: {answer.get(part)}"
        for part in ("status", "code", "out", "err")
        for who, answer in (("RabbitMQ", theirs), ("ours    ", ours))
        if theirs.get(part) != ours.get(part)
    )


def play_own(binary: str) -> dict[str, dict[str, dict]]:
    """Both series, each on a fresh broker."""
    answers = {}
    for kind in ("http", "tools"):
        with tempfile.TemporaryDirectory(prefix="leveret-tools-") as folder:
            broker = Broker(binary).start()
            try:
                links = Path(folder) / "bin"
                links.mkdir()
                for tool in TOOLS:
                    (links / tool).symlink_to(broker.binary)
                seen = Path(folder) / "files"
                place = Place(
                    broker.port,
                    broker.http_port,
                    lambda words, links=links: [str(links / words[0]), *words[1:]],
                    seen,
                    seen,
                    {"LEVERET_DATA_DIR": str(broker.data)},
                )
                answers[kind] = Http(place).play(calls.SERIES) if kind == "http" else Tools(place).play(commands.SERIES)
            finally:
                broker.stop()
    return answers


def record(options) -> int:
    root = Path(options.root)
    folder = root / "tmp" / "leveret-compared"
    prefix = shlex.split(options.tools)
    amqp, http = options.record
    place = Place(amqp, http, lambda words: [*prefix, *words], folder, Path("/") / folder.relative_to(root))
    RECORDED.mkdir(exist_ok=True)
    series = {"http": lambda: Http(place).play(calls.SERIES), "tools": lambda: Tools(place).play(commands.SERIES)}
    for kind in options.only or series:
        answers = series[kind]()
        (RECORDED / f"{kind}.json").write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
        print(f"{len(answers)} answers recorded")
    return 0


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


def compare(binary: str, is_shown: bool, is_settled: bool) -> int:
    known, seen, failures = listed(HERE / "differences.toml"), set(), 0
    answers = play_own(binary)
    for kind, steps in (("http", calls.SERIES), ("tools", commands.SERIES)):
        recorded = json.loads((RECORDED / f"{kind}.json").read_text())
        for name, step in name_steps(steps):
            theirs, ours = recorded.get(name), answers[kind][name]
            if theirs is None:
                lines = [f"{name} -> nothing recorded; record it"]
            elif kind == "http":
                lines = call_differences(step, name, theirs, ours)
            else:
                lines = command_differences(name, theirs, ours)
            new = [line for line in lines if line not in known and line not in seen]
            seen.update(lines)
            failures += bool(new)
            if new or is_shown and lines:
                print("\n     ".join([f"FAIL operating {name}", *(new or lines)]))
                print(explain(name, theirs or {}, ours))
            elif lines:
                print(f"skip operating {name}: {known.get(lines[0], 'told already')}")
            else:
                print(f"ok   operating {name}")
    vanished = set(known) - seen
    if is_settled:
        settle(vanished)
        print(f"{len(vanished)} lines taken off the list")
        return failures
    for line in sorted(vanished):
        failures += 1
        print(f"FAIL operating {line}: is as RabbitMQ, but differences.toml lists it")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m operating", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", default=os.environ.get("LEVERET_BINARY"))
    parser.add_argument("--show", action="store_true", help="prints listed differences too")
    parser.add_argument("--settle", action="store_true", help="takes lines off the list that have vanished")
    parser.add_argument("--record", nargs=2, type=int, metavar=("AMQP", "HTTP"))
    parser.add_argument("--only", action="append", choices=["http", "tools"], help="records one series only")
    parser.add_argument("--tools", default="", help="what stands before the names of RabbitMQ's tools")
    parser.add_argument("--root", default="/", help="the folder that RabbitMQ's tools see as /")
    options = parser.parse_args()
    if options.record:
        return record(options)
    if not options.binary:
        print("skip operating everything: needs the executable")
        return 0
    return 1 if compare(options.binary, options.show, options.settle) else 0


if __name__ == "__main__":
    sys.exit(main())
