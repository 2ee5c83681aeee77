"""The client suites: how each is installed and how it is run.

A suite is a command that prints one line per test (`ok   SUITE NAME`, `skip SUITE NAME: REASON`, `FAIL SUITE NAME`
followed by indented details) and reads where the broker is from its environment: AMQP_HOST, AMQP_PORT, ALARM_PORT (a broker
whose alarm the control port switches; in the lane `ALARMS` only), STREAM_PORT (where it speaks the stream protocol; absent for a cluster), OTHER_PORT (another node, if the broker is one of several), CONTROL_PORT (absent when nobody can restart the
broker) and LEVERET (0 for another broker, for which the tests of what is only ours skip themselves).

Suites of different lanes run beside each other, each lane with brokers of its own: two halves of the Python tests, which wait for most of their time, and
the pages. The short suites follow the second half.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
CACHE = TESTS / ".cache"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", TESTS.parent / "target"))


# What clients say by AMQP. The HTTP API of a cluster is tested elsewhere.
THROUGH_CLUSTER = (
    "aio_pika application celery consumer_timeout consuming dead_letters deduplication delayed direct_reply errors events exchanges expiry fairness firehose "
    "frames limits policies priorities publishing queues restart retries single_active transactions"
).split()

# The lane of whatever raises the alarm: this fills the disk that all brokers are on, and another broker with such a limit would hear of it.
ALARMS = 1
PAGES = 2

# These read, by the HTTP API, what only the node of a queue shows.
ASKS_OF_THE_QUEUES_NODE = ["test_consumer_timeout.py::test_the_api_shows_the_timeout_in_force_and_zero_without_one"]


@dataclass
class Suite:
    """A folder with a client's tests."""

    name: str
    folder: Path
    install: list[list[str]]
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    # Further arguments, and in place of them those against a node of a cluster that owns nothing; None: nothing of it is run there.
    arguments: list[str] = field(default_factory=list)
    through_cluster: list[str] | None = None
    # Whether it is run without a cluster, too.
    without_cluster: bool = True
    # Whether it asks what queues are to clients: so it may be run with quorum queues, too.
    of_clients: bool = True
    lane: int = ALARMS
    # Ends what hangs: several times what the suite takes on a quiet machine.
    time_limit_seconds: int = 480


def python_suites() -> list[Suite]:
    """The Python tests in two lanes. Those that use the same cluster have names that lie together."""
    lanes: list[list[str]] = [[], []]
    for file in sorted((TESTS / "python").glob("test_*.py")):
        what = file.stem.removeprefix("test_")
        lanes[ALARMS if what == "blocked" or what > "n" else 0].append(what)
    command = [sys.executable, "-m", "pytest", "-p", "no:terminal", "-p", "no:cacheprovider", "--timeout=240"]
    return [
        Suite(
            "python",
            TESTS / "python",
            [[str(TESTS / "python" / "install-slapd")], [str(TESTS / "python" / "install-faketime")]] if lane == 0 else [],
            command,
            {"PYTHONDONTWRITEBYTECODE": "1"},
            [f"test_{what}.py" for what in whats],
            [*(f"test_{what}.py" for what in whats if what in THROUGH_CLUSTER), *(f"--deselect={test}" for test in ASKS_OF_THE_QUEUES_NODE)],
            lane=lane,
            time_limit_seconds=1200,
        )
        for lane, whats in enumerate(lanes)
    ]


def client_suites() -> list[Suite]:
    python = sys.executable
    java_libraries = CACHE / "java"
    return [
        *python_suites(),
        Suite(
            "ui",
            TESTS.parent / "ui",
            [["sh", "tests/install.sh"]],
            ["node_modules/.bin/playwright", "test"],
            lane=PAGES,
            time_limit_seconds=600,
        ),
        Suite(
            "differential",
            TESTS,
            [],
            [python, "-u", "-m", "differential"],
            {"PYTHONDONTWRITEBYTECODE": "1"},
            # A stream is read on the node that has it.
            through_cluster=["--without", "streams"],
            of_clients=False,
        ),
        # It has three nodes of its own, which it stops and starts.
        Suite(
            "clustering",
            TESTS,
            [],
            [python, "-u", "-m", "clustering"],
            {"PYTHONDONTWRITEBYTECODE": "1"},
            through_cluster=[],
            without_cluster=False,
            of_clients=False,
        ),
        Suite("operating", TESTS, [], [python, "-u", "-m", "operating"], {"PYTHONDONTWRITEBYTECODE": "1"}),
        Suite("authorizing", TESTS, [], [python, "-u", "-m", "authorizing"], {"PYTHONDONTWRITEBYTECODE": "1"}),
        Suite(
            "rabbitmqadmin",
            TESTS,
            [[str(TESTS / "rabbitmqadmin" / "install")]],
            [python, "-u", "-m", "rabbitmqadmin"],
            {"PYTHONDONTWRITEBYTECODE": "1"},
        ),
        Suite("node", TESTS / "node", [["npm", "ci", "--silent", "--no-progress"]], ["node", "suite.js"], through_cluster=[]),
        Suite(
            "go",
            TESTS / "go",
            [["go", "test", "-c", "-o", str(CACHE / "go-suite"), "."]],
            [str(CACHE / "go-suite"), "-test.count=1"],
            {"GOFLAGS": "-mod=readonly"},
            through_cluster=[],
        ),
        Suite(
            "java",
            TESTS / "java",
            [["mvn", "-q", "-B", "-ntp", "compile", "dependency:copy-dependencies", f"-DoutputDirectory={java_libraries}"]],
            ["java", "-cp", f"{TESTS}/java/target/classes:{java_libraries}/*", "leveret.Suite"],
            through_cluster=[],
        ),
        Suite(
            "lapin",
            TESTS / "lapin",
            [["cargo", "build", "--quiet", "--locked", "--target-dir", str(TARGET)]],
            [str(TARGET / "debug" / "leveret-test-lapin")],
            through_cluster=[],
        ),
        Suite(
            "rust_stream",
            TESTS / "rust_stream",
            [["cargo", "build", "--quiet", "--locked", "--target-dir", str(TARGET)]],
            [str(TARGET / "debug" / "leveret-test-rust-stream")],
        ),
    ]
