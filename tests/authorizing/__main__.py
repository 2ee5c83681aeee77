"""Asks who may do what, and compares the answers with RabbitMQ's.

    python -m authorizing BINARY                  a broker of its own, against the recorded answers
    python -m authorizing --settle BINARY         the same, and takes lines off the list of differences that have vanished
    python -m authorizing --record HOST AMQP HTTP [--anew]
                                             writes what a RabbitMQ answers to the rows that nothing is recorded for, or to all; it makes the virtual hosts `access` and `acc` and users for them,
                                             and takes them away

What is known to differ stands in differences.toml, by the lines that this prints, each with its reason. A difference that is not listed
fails, and so does a listed one that has vanished. Endpoints that only we have are held against the right that endpoints.txt names.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

from harness.broker import Broker
from harness.listed import listed

from .endpoints import COLUMNS, Matrix, Row, lets_in, rows
from .grants import Grants
from .operations import OPERATIONS

HERE = Path(__file__).parent
HTTP, AMQP = HERE / "recorded" / "http.txt", HERE / "recorded" / "amqp.txt"


def write_http(answers: dict[str, dict[str, str]]) -> None:
    """One line a row: nobody and a wrong password, then three answers a tag (all permissions, none that match, none)."""
    lines = [
        "# What RabbitMQ answers to each row of endpoints.txt: nobody, a wrong password | the tags none | impersonator | management |",
        "# policymaker | monitoring | administrator, each with all permissions, some that match nothing, none. A plus: what is in the",
        "# virtual host can be seen.",
    ]
    for name, cells in answers.items():
        texts = [cells[column] for column in COLUMNS]
        groups = [texts[:2]] + [texts[at : at + 3] for at in range(2, len(texts), 3)]
        lines.append(f"{name}: " + " | ".join(" ".join(group) for group in groups))
    HTTP.write_text("\n".join(lines) + "\n")


def read_http() -> dict[str, dict[str, str]]:
    found = {}
    for line in HTTP.read_text().splitlines():
        if not line.startswith("#"):
            name, _, cells = line.rpartition(": ")
            found[name] = dict(zip(COLUMNS, cells.replace("|", " ").split(), strict=True))
    return found


def read_amqp() -> dict[str, str]:
    lines = (line.rpartition(": ") for line in AMQP.read_text().splitlines() if not line.startswith("#"))
    return {name: needs for name, _, needs in lines}


def row_differences(row: Row, ours: dict[str, str], recorded: dict[str, dict[str, str]]) -> list[str]:
    if row.right is not None:
        wrong = [column for column in COLUMNS if ours[column] != "-" and (ours[column] not in ("401", "404")) != lets_in(row.right, column)]
        return [f"{row.name} {column}: {ours[column]}, which is not what the right '{row.right}' gives" for column in wrong]
    theirs = recorded.get(row.name)
    if theirs is None:
        return [f"{row.name}: nothing is recorded. Write `tests/authorize --record`, or `ours RIGHT` behind it in endpoints.txt if RabbitMQ hasn't got it"]
    differing: dict[str, list[str]] = {}
    for column in COLUMNS:
        if ours[column] != theirs[column]:
            differing.setdefault(f"{ours[column]} instead of {theirs[column]}", []).append(column)
    return [f"{row.name}: {what} for {', '.join(columns)}" for what, columns in differing.items()]


class Tally:
    def __init__(self) -> None:
        self.known, self.seen, self.failures = listed(HERE / "differences.toml"), set(), 0

    def see(self, name: str, lines: list[str]) -> None:
        self.seen.update(lines)
        new = [line for line in lines if line not in self.known]
        if new:
            self.failures += 1
            print("\n     ".join([f"FAIL authorizing {name}", *new]))
        elif lines:
            print(f"skip authorizing {name}: {self.known[lines[0]]}")
        else:
            print(f"ok   authorizing {name}")


def settle(vanished: set[str]) -> None:
    path = HERE / "differences.toml"
    text = path.read_text()
    for line in vanished:
        text = text.replace(f'    "{line}",\n', "")
    path.write_text(re.sub(r'\[\[differs\]\]\nreason = "[^"]*"\nlines = \[\n\]\n\n?', "", text))


def compare(binary: str, is_settled: bool) -> int:
    tally, table = Tally(), rows()
    # What is asked here needs no disk, and there are thousands of changes of permissions, each of which is synced.
    memory = Path("/dev/shm")
    folder = tempfile.TemporaryDirectory(prefix="leveret-authorizing-", dir=memory if memory.is_dir() else None)
    with folder as directory, Broker(binary, directory=Path(directory)) as broker:
        ours = Matrix(broker.host, broker.port, broker.http_port).play(table)
        needs = Grants(broker.host, broker.port, broker.http_port).play(OPERATIONS)
        for line in broker.panics():
            tally.see("the broker panicked", [line])
    recorded = read_http()
    for row in table:
        tally.see(row.name, row_differences(row, ours[row.name], recorded))
    theirs = read_amqp()
    for name, need in needs.items():
        tally.see(name, [] if theirs.get(name) == need else [f"{name}: {need} instead of {theirs.get(name, 'nothing recorded')}"])
    vanished = set(tally.known) - tally.seen
    if is_settled:
        settle(vanished)
        print(f"{len(vanished)} lines taken off the list")
        return tally.failures
    for line in sorted(vanished):
        tally.failures += 1
        print(f"FAIL authorizing {line}: is as RabbitMQ, but differences.toml lists it")
    return tally.failures


def record(host: str, amqp: int, http: int, is_anew: bool) -> None:
    HTTP.parent.mkdir(exist_ok=True)
    answers = {} if is_anew else read_http()
    table = [row for row in rows() if row.right is None]
    new = [row for row in table if row.name not in answers]
    answers |= Matrix(host, amqp, http).play(new)
    write_http({row.name: answers[row.name] for row in table})
    needs = {} if is_anew else read_amqp()
    unknown = [operation for operation in OPERATIONS if operation.name not in needs]
    if unknown:
        needs |= Grants(host, amqp, http).play(unknown)
        head = "# What RabbitMQ asks for: the smallest sets of permissions with which an operation succeeds.\n"
        AMQP.write_text(head + "".join(f"{name}: {need}\n" for name, need in needs.items()))
    print(f"{len(new)} endpoints and {len(unknown)} operations recorded")


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/authorize", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", default=os.environ.get("LEVERET_BINARY"))
    parser.add_argument("--settle", action="store_true", help="takes lines off the list that have vanished")
    parser.add_argument("--record", nargs=3, metavar=("HOST", "AMQP", "HTTP"))
    parser.add_argument("--anew", action="store_true", help="records everything")
    options = parser.parse_args()
    if options.record:
        host, amqp, http = options.record
        record(host, int(amqp), int(http), options.anew)
        return 0
    if not options.binary:
        print("skip authorizing everything: needs the executable")
        return 0
    return 1 if compare(options.binary, options.settle) else 0


if __name__ == "__main__":
    sys.exit(main())
