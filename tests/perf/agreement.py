"""PerfTest and leveret perf in turns on one broker: the same lines, and below saturation the same rates. By hand: timing decides here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .output import fact_tests
from .setting import Setting, run_all
from .tools import Outcome, perftest

# The rates must agree within this.
TOLERANCE = 0.10
SIX = re.compile(r"(consumer|confirm) latency min/median\S* (\d+)/(\d+)/(\d+)/(\d+)/(\d+)")
INTERVAL = re.compile(r"sent: ([\d.]+) msg/s.*received: ([\d.]+) msg/s")


@dataclass
class Load:
    """Flags of a run below saturation, and how many messages a second it asks for."""

    name: str
    rate: int
    flags: list[str]


def loads() -> list[Load]:
    table = ["--autoack", "--size", "1000", "--queue-args", "x-max-length=10000"]
    windows = ["--confirm", "3000", "--multi-ack-every", "3000", "--qos", "3000", "--auto-delete", "true", "--flag", "persistent"]
    return [
        Load("1 to 1, 1 kB, automatic acks, 100 msg/s", 100, ["-r", "100", *table]),
        Load("1 to 1, 1 kB, automatic acks, 1,000 msg/s", 1000, ["-r", "1000", *table]),
        Load("1 to 1, 1 kB, automatic acks, 5,000 msg/s", 5000, ["-r", "5000", *table]),
        Load("10 to 1, 1 kB, automatic acks, 5,000 msg/s", 5000, ["-x", "10", "-r", "500", *table]),
        Load("1 to 10, 1 kB, automatic acks, 500 msg/s to each", 500, ["-y", "10", "-r", "500", *table]),
        Load("1 to 1, topic exchange, 1,000 msg/s", 1000, ["-t", "topic", "-r", "1000", *table]),
        Load("1 to 1, confirms in windows, persistent, 5,000 msg/s", 5000, ["-r", "5000", *windows]),
        Load("1 to 1, a confirm each, 500 msg/s", 500, ["-r", "500", "-c", "1", "-f", "persistent"]),
        Load("20 to 20 on 20 queues, every 0.1 s", 200,
             ["-x", "20", "-y", "20", "-P", "0.1", "-c", "10", "-A", "100", "-q", "100", "-qp", "agree-%d", "-qpf", "1", "-qpt", "20"]),
    ]  # fmt: skip


@dataclass
class Figures:
    """What both print: the median of the whole intervals' rates (the average of PerfTest's summary counts its warm-up), and the summary's latency."""

    sent: float
    received: float
    latency: dict[str, list[int]]

    @classmethod
    def of(cls, outcome: Outcome) -> Figures:
        # The first interval has the warm-up of the JVM, and connections that were still being opened.
        pairs = [tuple(map(float, found.groups())) for found in map(INTERVAL.search, outcome.lines()) if found][1:]
        middle = [sorted(values)[len(values) // 2] if values else 0.0 for values in (list(zip(*pairs, strict=True)) or [(), ()])]
        latency = {}
        for line in outcome.lines():
            if found := SIX.search(line):
                if "avg" not in line and " time " not in line and "from send time" not in line:
                    latency[found[1]] = [int(value) for value in found.groups()[1:]]
        return cls(*middle, latency)


def milliseconds(figures: Figures) -> str:
    if "consumer" not in figures.latency:
        return "–"
    _, median, _, p95, p99 = figures.latency["consumer"]
    return f"{median / 1000:.2f} / {p95 / 1000:.2f} / {p99 / 1000:.2f}"


def measure(setting: Setting, seconds: int, match: str) -> int:
    """Each load A B B A, `seconds` seconds and three more each. Prints the table; 1 if rates do not agree."""
    java = perftest()
    failed = run_all([test for test in fact_tests(java) + fact_tests() if match in test.name], setting, 2)
    print()
    print("| Load | asked | PerfTest sent / received | leveret perf sent / received | PerfTest p50 / p95 / p99, ms | leveret perf p50 / p95 / p99, ms |")
    print("|---|---|---|---|---|---|")
    for load in loads():
        if match not in load.name:
            continue
        found: dict[str, list[Figures]] = {java.name: [], setting.tool.name: []}
        for tool in (java, setting.tool, setting.tool, java):
            flags = [*load.flags, "-z", str(seconds + 3)]
            # PerfTest counts from the moment of sending; so must ours here.
            outcome = setting.run(flags if tool.java else [*flags, "--latency-from", "sent"], tool=tool)
            if outcome.code != 0:
                print(outcome.shown())
                failed += 1
            found[tool.name].append(Figures.of(outcome))
        theirs, ours = ([better(pair), pair] for pair in found.values())
        print(f"| {load.name} | {load.rate:,} | {rates(theirs[0])} | {rates(ours[0])} | {milliseconds(theirs[0])} | {milliseconds(ours[0])} |", flush=True)
        for name in ("sent", "received"):
            a, b = getattr(theirs[0], name), getattr(ours[0], name)
            if abs(a - b) > TOLERANCE * max(a, b):
                print(f"FAIL perf agreement: {load.name}: {name} {a} and {b} msg/s")
                failed += 1
    return 1 if failed else 0


def better(pair: list[Figures]) -> Figures:
    """Of two runs of the same, the one with the lower median latency: what disturbs a run only ever adds."""
    return min(pair, key=lambda figures: figures.latency.get("consumer", [0, 0])[1])


def rates(figures: Figures) -> str:
    return f"{figures.sent:,.0f} / {figures.received:,.0f}"
