"""What PerfTest prints, written down by looking at it: the form of 2.25, whose console differs from 2.22's in the maximum
(a sixth latency) and the compact format's date. `tests/perf_tool --facts HOST:PORT` runs PerfTest and compares this list with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .template import Line

SIX = "min/median/75th/95th/99th/max"
CSV_UNITS = ",".join(f"{point} {kind} latency (UNIT)" for kind in ("consumer", "confirm") for point in ("min", "median", "75th p.", "95th p.", "99th p."))
CSV_HEADER = "id,time (s),published (msg/s),returned (msg/s),confirmed (msg/s),nacked (msg/s),received (msg/s)," + CSV_UNITS


@dataclass
class Fact:
    """A run: its flags, what stands on stdout, and in the CSV file if there is one (`CSV` in the flags is the file's name)."""

    name: str
    flags: list[str]
    lines: list[Line]
    csv: list[Line] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    # Queues that stay behind, to be deleted.
    leaves: list[str] = field(default_factory=list)
    # What it wants of the broker.
    transactions: bool = False
    # We tell something about the flags on stderr.
    noted: bool = False


def starts(consumers: int = 1, producers: int = 1, consumer_channels: int = 1, producer_channels: int = 1) -> list[Line]:
    lines = []
    for kind, count, channels in (("consumer", consumers, consumer_channels), ("producer", producers, producer_channels)):
        for number in range(count):
            lines.append(Line(f"id: {{id}}, starting {kind} #{number}"))
            lines += [Line(f"id: {{id}}, starting {kind} #{number}, channel #{channel}") for channel in range(channels)]
    return lines


def interval(*rates: str, latencies: str = "", unit: str = "µs") -> Line:
    text = "id: {id}, time {time} s" + "".join(f", {name}: {{rate}} msg/s" for name in rates)
    for index, kind in enumerate(latencies.split()):
        text += (f", {SIX} " if index == 0 else ", ") + f"{kind} latency: {{six}} {unit}"
    return Line(text, many=True)


def perhaps(line: Line) -> Line:
    """A run that is over within a second has no interval; on a slow machine it may take longer."""
    return Line(line.text, line.many, line.free, maybe=True)


def compact_header(*rates: str, latencies: str = "") -> Line:
    text = "time".ljust(19) + "".join(f"{name:>13}" for name in rates) + "".join(f"{kind + ' latency':>27}" for kind in latencies.split())
    return Line(text)


def compact(*rates: str, latencies: str = "", unit: str = "µs") -> Line:
    return Line("{date} " + " ".join(["{rate} msg/s"] * len(rates)) + f" {{six}} {unit}" * len(latencies.split()), many=True, free=True)


def summary(*latencies: str, reason: str = "Reached time limit", prefix: str = "id: {id}, ", unit: str = "µs") -> list[Line]:
    lines = [Line(f"test stopped ({reason})"), Line(f"{prefix}sending rate avg: {{rate}} msg/s"), Line(f"{prefix}receiving rate avg: {{rate}} msg/s")]
    return lines + [Line(f"{prefix}{kind} latency {SIX} {{six}} {unit}") for kind in latencies]


BOTH = ("sent", "received")
CONFIRMED = ("sent", "confirmed", "nacked", "received")
ALL = ("sent", "returned", "confirmed", "nacked", "received")
LATENCIES = "consumer confirm"


def csv(columns: str, unit: str = "µs") -> list[Line]:
    """`columns`: a letter each from `published` on; r a rate, l a latency, - nothing."""
    cells = {"r": "{rate}", "l": "{n}", "-": ""}
    row = "{id},{time}," + ",".join(cells[column] for column in columns)
    return [Line(CSV_HEADER.replace("UNIT", unit)), Line(row, many=True)]


def facts() -> list[Fact]:
    slow = ["-z", "2", "-r", "20"]
    return [
        Fact("defaults", slow, [*starts(), interval(*BOTH, latencies="consumer"), *summary("consumer")]),
        Fact("confirms and returns", [*slow, "-c", "10", "-f", "mandatory", "--id", "abc"], [*starts(), interval(*ALL, latencies=LATENCIES), *summary("consumer", "confirm")]),
        Fact("an id of its own", [*slow, "--id", "abc"], [Line(line.text.replace("{id}", "abc"), line.many) for line in [*starts(), interval(*BOTH, latencies="consumer"), *summary("consumer")]]),
        Fact("producers alone", [*slow, "-y", "0", "-u", "facts-p"], [*starts(0), interval("sent"), *summary()], leaves=["facts-p"]),
        Fact("producers alone with confirms", [*slow, "-y", "0", "-c", "10", "-u", "facts-c"],
             [*starts(0), interval("sent", "confirmed", "nacked", latencies="confirm"), *summary("confirm")], leaves=["facts-c"]),
        Fact("producers alone, returned", [*slow, "-y", "0", "-f", "mandatory", "-k", "nowhere", "-sb", "-u", "facts-r"], [*starts(0), interval("sent", "returned"), *summary()], leaves=["facts-r"]),
        Fact("consumers alone", ["-z", "1", "-x", "0"], [*starts(1, 0), *summary("consumer")]),
        Fact("compact", [*slow, "-mf", "compact", "-c", "10"],
             [*starts(), compact_header(*CONFIRMED, latencies=LATENCIES), compact(*CONFIRMED, latencies=LATENCIES), *summary("consumer", "confirm", prefix="")]),
        Fact("compact with returns", [*slow, "-mf", "compact", "-f", "mandatory"],
             [*starts(), compact_header("sent", "returned", "received", latencies="consumer"), compact("sent", "returned", "received", latencies="consumer"), *summary("consumer", prefix="")]),
        Fact("compact, producers alone", [*slow, "-mf", "compact", "-y", "0", "-u", "facts-k"], [*starts(0), compact_header("sent"), compact("sent"), *summary(prefix="")], leaves=["facts-k"]),
        Fact("compact in milliseconds", [*slow, "-mf", "compact", "-c", "10", "-ms"],
             [*starts(), compact_header(*CONFIRMED, latencies=LATENCIES), compact(*CONFIRMED, latencies=LATENCIES, unit="ms"), *summary("consumer", "confirm", prefix="", unit="ms")]),
        Fact("milliseconds", ["-z", "2", "-r", "5", "--use-millis"], [*starts(), interval(*BOTH, latencies="consumer", unit="ms"), *summary("consumer", unit="ms")]),
        Fact("no rate at all", ["-z", "1", "-r", "0"], [*starts(), *summary("consumer")]),
        Fact("a message every half second", ["-z", "3", "-P", "0.5"], [*starts(), interval(*BOTH, latencies="consumer"), *summary("consumer")]),
        Fact("message limit of producers, idle consumers", ["-C", "100", "-x", "2", "-y", "3", "-ew", "idle", "-u", "facts-i"],
             [*starts(3, 2), interval(*BOTH, latencies="consumer"), *summary("consumer", reason="Producer reached message limit [2], Consumer is idle for more than 1 second [3]")]),
        Fact("message limit of consumers", ["-D", "50", "-r", "100"], [*starts(), perhaps(interval(*BOTH, latencies="consumer")), *summary("consumer", reason="Consumer reached message limit")]),
        Fact("channels", ["-C", "100", "-D", "100", "-X", "2", "-Y", "2", "-z", "5"],
             [*starts(consumer_channels=2, producer_channels=2), perhaps(interval(*BOTH, latencies="consumer")), *summary("consumer", reason="Producer reached message limit [2], Consumer reached message limit [2]")]),
        Fact("until the queue is empty", ["-x", "0", "-ew", "empty", "-u", "facts-e"], [*starts(1, 0), *summary("consumer", reason="Consumer queue(s) empty")]),
        Fact("an interval of two seconds", ["-z", "5", "-r", "20", "-i", "2"], [*starts(), interval(*BOTH, latencies="consumer"), *summary("consumer")]),
        Fact("rates and sizes that change", ["-z", "3", "-vr", "100:1", "-vr", "10:1", "-vs", "10:1", "-vs", "1000:1"], [*starts(), interval(*BOTH, latencies="consumer"), *summary("consumer")]),
        Fact("transactions", [*slow, "-m", "5", "-n", "5"], [*starts(), interval(*BOTH, latencies="consumer"), *summary("consumer")], transactions=True),
        Fact("polling", [*slow, "-po", "-pi", "10"], [*starts(), interval(*BOTH, latencies="consumer"), *summary("consumer")]),
        Fact("CSV with everything", [*slow, "-c", "10", "-f", "mandatory", "-o", "CSV"], [*starts(), interval(*ALL, latencies=LATENCIES), *summary("consumer", "confirm")], csv=csv("rrrrr" + "l" * 10)),
        Fact("CSV in milliseconds", [*slow, "-ms", "-o", "CSV"], [*starts(), interval(*BOTH, latencies="consumer", unit="ms"), *summary("consumer", unit="ms")], csv=csv("r---rlllll-----", "ms")),
        Fact("CSV of producers alone", [*slow, "-y", "0", "-u", "facts-v", "-o", "CSV"], [*starts(0), interval("sent"), *summary()], csv=csv("r" + "-" * 14), leaves=["facts-v"]),
        Fact("environment variables", [], [*starts(), interval(*BOTH, latencies="consumer"), *summary("consumer")], environment={"TIME": "2", "RATE": "20", "ID": "fromenv", "AUTOACK": "true"}),
        Fact("environment variables with a prefix", [], [*starts(), interval(*BOTH, latencies="consumer"), *summary("consumer")],
             environment={"RABBITMQ_PERF_TEST_ENV_PREFIX": "PT_", "PT_TIME": "2", "PT_RATE": "20", "TIME": "1000", "METRICS_FORMAT": "compact"}),
        Fact("arguments that are none of its own", [*slow, "foo", "bar"], [*starts(), interval(*BOTH, latencies="consumer"), *summary("consumer")], noted=True),
        Fact("a quorum queue", [*slow, "-qq", "-u", "facts-q", "-c", "10"], [*starts(), interval(*CONFIRMED, latencies=LATENCIES), *summary("consumer", "confirm")], leaves=["facts-q"]),
    ]  # fmt: skip
