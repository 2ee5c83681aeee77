"""The rows of the published tables as PerfTest commands.

A row of the smoke is bounded: each producer sends so many messages and the run ends when nothing has come for a second.
Then as many must have been received as were sent, so the numbers stay below the queues' x-max-length, which would drop.
The same row of a full run goes on for some seconds at the table's own rate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# The queue of the first text keeps 10,000 messages; a bounded run never publishes more.
LIMIT = 10_000


@dataclass
class Row:
    """One command: its name, its flags, how many producers send how many messages in the smoke."""

    name: str
    flags: list[str]
    producers: int = 1
    messages: int = LIMIT
    smoke: bool = True
    # Durable queues that stay; the runner deletes them.
    leaves: list[str] = field(default_factory=list)
    # A run that only fills or only empties has nothing to compare, but must leave so many messages in the queue.
    compares: bool = True
    left: tuple[str, int] | None = None
    ends: list[str] = field(default_factory=lambda: ["--exit-when", "idle"])


def low_latency(name: str, *more: str, producers: int = 1, consumers: int = 1, rate: int | None = None, size: int = 1000,
                queues: int = 1, autoack: bool = True, smoke: bool = True, messages: int | None = None, arguments: str = "x-max-length=10000",
                leaves: list[str] | None = None) -> Row:  # fmt: skip
    """A row of the low-latency text: one non-durable queue, direct exchange, no confirms, unless told otherwise."""
    flags = ["--autoack"] if autoack else []
    flags += ["--interval", "15", "--size", str(size), "--queue-args", arguments]
    # With several queues the key is each queue's name; one common key would copy every message to all of them.
    flags += ["--routing-key", "perf-test"] if queues == 1 else []
    flags += ["--metrics-tags", "type=publisher,type=consumer,deployment=low-latency"]
    flags += ["--queue-pattern", "perf-test-%d", "--queue-pattern-from", "0", "--queue-pattern-to", str(queues - 1)]
    flags += ["--consumers", str(consumers), "--producers", str(producers)]
    if rate is not None:
        flags += ["--rate", str(max(rate // producers, 1))]
    total = messages or min(LIMIT, rate * 2 if rate else LIMIT)
    return Row(f"000 {name}", [*flags, *more], producers, max(total // producers, 1), smoke, leaves or [])


def low_latency_rows() -> list[Row]:
    rows = [low_latency(f"rate {rate}", rate=rate, smoke=rate in (100, 10000)) for rate in (100, 1000, 10000, 20000, 30000, 40000, 50000, 60000)]
    rows.append(low_latency("rate unlimited"))
    rates = (10000, 20000, 30000, 40000, 50000)
    counts = (1, 2, 5, 10, 100, 500)
    rows += [low_latency(f"{count} consumers at {rate}", consumers=count, rate=rate, smoke=(count, rate) in ((2, 20000), (10, 10000), (500, 10000))) for rate in rates for count in counts]
    rows += [low_latency(f"{count} producers at {rate}", producers=count, rate=rate, smoke=(count, rate) in ((2, 20000), (10, 10000), (500, 10000))) for rate in rates for count in counts]
    rows += [low_latency(f"{count} queues at 50000", producers=count, consumers=count, queues=count, rate=50000, smoke=count in (2, 10, 100)) for count in (1, 2, 5, 10, 100)]
    kinds = {"non-durable": [], "durable": ["--flag", "persistent", "--auto-delete", "false"], "lazy": ["--flag", "persistent", "--auto-delete", "false"]}
    for kind, flags in kinds.items():
        arguments = "x-max-length=10000" + (",x-queue-mode=lazy" if kind == "lazy" else "")
        leaves = ["perf-test-0"] if flags else []
        rows += [low_latency(f"{kind} queue, 10 kB at {rate}", *flags, rate=rate, size=10000, arguments=arguments, leaves=leaves, messages=5000, smoke=rate == 10000) for rate in rates]
    batches = (1, 2, 5, 10, 100, 500)
    rows += [low_latency(f"confirms every {n}", "--confirm", str(n), rate=50000, messages=3000 if n == 1 else None, smoke=n in (1, 10, 500)) for n in batches]
    rows += [low_latency(f"acks every {n}", "--qos", str(2 * n), "--multi-ack-every", str(n), autoack=False, rate=50000, smoke=n in (1, 10, 500)) for n in batches]
    rows += [low_latency(f"{kind} exchange at {rate}", "--type", kind, rate=rate, smoke=rate == 20000) for rate in (20000, 30000, 40000, 50000) for kind in ("direct", "fanout", "topic", "headers")]
    return rows


def sizes(seconds: int) -> list[str]:
    return [flag for size in (10, 100, 1000, 5000) for flag in ("--variable-size", f"{size}:{seconds}")]


def release_rows(queues: int, seconds: int) -> list[Row]:
    """Scenarios 1 to 3 with classic queues of the text on the 3.10 release."""
    durable = ["--auto-delete", "false", "--flag", "persistent"]
    names = [f"cq-{n}" for n in range(1, queues + 1)]
    windows = ["--confirm", "3000", "--multi-ack-every", "3000", "--qos", "3000"]
    many = ["--producers", str(queues), "--consumers", str(queues), "--publishing-interval", "0.1", "--confirm", "10", "--multi-ack-every", "100", "--qos", "100"]
    pattern = ["--queue-pattern", "cq-%d", "--queue-pattern-from", "1", "--queue-pattern-to", str(queues)]
    return [
        Row("002 scenario 1, two producers and consumers", ["--producers", "2", "--consumers", "2", *windows, *sizes(seconds), *durable, "--queue", "cq"], 2, 40_000, leaves=["cq"]),
        Row("002 scenario 2, 10000 msg/s", ["--rate", "10000", *windows, *sizes(seconds), *durable, "--queue", "cq"], 1, 45_000, leaves=["cq"]),
        Row(f"002 scenario 3, {queues} queues", [*many, *sizes(seconds), *pattern, *durable], queues, 45, leaves=names),
    ]


def quorum_rows(seconds: int) -> list[Row]:
    """Scenarios 1 and 2 with a quorum queue, as the text on the 3.10 release has them."""
    windows = ["--confirm", "3000", "--multi-ack-every", "3000", "--qos", "3000"]
    flags = [*windows, *sizes(seconds), "--quorum-queue", "--queue", "qq"]
    return [
        Row("002 scenario 1 with a quorum queue", ["--producers", "2", "--consumers", "2", *flags], 2, 40_000, leaves=["qq"]),
        Row("002 scenario 2 with a quorum queue, 10000 msg/s", ["--rate", "10000", *flags], 1, 45_000, smoke=False, leaves=["qq"]),
    ]


def drain_rows() -> list[Row]:
    """The drain text: three producers and consumers on one long queue; then fill alone and drain alone."""
    queue = ["--queue", "drain", "--queue-args", "x-max-length=2000000", "--auto-delete", "false"]
    common = ["--size", "1024", *queue]
    consuming = ["--consumers", "3", "--qos", "100", "--multi-ack-every", "10"]
    return [
        Row("004 three producers and consumers at 10000 each", ["--producers", "3", "--rate", "10000", *consuming, *common], 3, 30_000, leaves=["drain"]),
        Row("004 fill", ["--producers", "3", "--consumers", "0", "--rate", "10000", *common], 3, 20_000, compares=False, left=("drain", 60_000), ends=[]),
        Row("004 drain", ["--producers", "0", *consuming, *common], 0, leaves=["drain"], compares=False, left=("drain", 0), ends=["--exit-when", "empty"]),
    ]
