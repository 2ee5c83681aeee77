"""The two distortions of PerfTest, measured on it and on leveret perf: what is asked of many slow producers and what they deliver,
and the bursts of a rate limiter that saves up; and what each tool tells of a broker that stood still for a second."""

from __future__ import annotations

import re
import signal
import threading
import time

from harness.broker import Broker
from harness.link import B, Closed, Link, Q

from .setting import Setting
from .tools import Tool, perftest

QUEUE = "distortions"
PRODUCERS = (1_000, 4_000, 14_000)
RECEIVED = re.compile(r"time ([\d.]+) s, sent: ([\d.]+) msg/s")


def measure(setting: Setting) -> int:
    tools = [perftest(), setting.tool]
    slow_producers(setting, tools)
    bursts(setting, tools)
    stalls(setting, tools)
    return 0


def slow_producers(setting: Setting, tools: list[Tool]) -> None:
    """Each at a message a second. Intervals in which connections were still being opened do not count."""
    print("\n| Producers at 1 msg/s each | tool | flags | sent msg/s, whole intervals (lowest, median, highest) | of what was asked |")
    print("|---|---|---|---|---|")
    for count in PRODUCERS:
        for tool in tools:
            for name, flags in (("--publishing-interval 1", ["-P", "1"]), ("--rate 1", ["-r", "1"])):
                if tool.java and count > 4_000 and "--rate" in name:
                    # A thread for each producer is more than this JVM can have.
                    continue
                common = ["-x", str(count), "-y", "1", "-z", "15", "-s", "16", "-a", "-u", QUEUE, "-k", QUEUE, "-hst", "4"]
                outcome = setting.run([*common, *flags], tool=tool, patience_seconds=240)
                sent = sorted(float(found[2]) for found in RECEIVED.finditer(outcome.out) if float(found[1]) > 4)
                told = f"{sent[0]:,.0f}, {sent[len(sent) // 2]:,.0f}, {sent[-1]:,.0f}" if sent else f"failed: {(outcome.err or outcome.out).strip().splitlines()[-1:]}"
                share = f"{sent[len(sent) // 2] / count:.1%}" if sent else "–"
                print(f"| {count:,} | {tool.name} | `{name}` | {told} | {share} |", flush=True)


class Arrivals(threading.Thread):
    """A consumer of its own that notes when each message came. The broker passes messages on as they come, so these are the sender's gaps."""

    def __init__(self, port: int):
        super().__init__(daemon=True)
        self.moments: list[float] = []
        self.ready = threading.Event()
        self.done = threading.Event()
        self.port = port

    def run(self) -> None:
        state: list = []
        with Link(self.port) as link:
            link.call(1, Q.Declare(queue=QUEUE, auto_delete=False, durable=False, exclusive=False), Q.DeclareOk)
            link.send(1, B.Consume(queue=QUEUE, consumer_tag="watch", no_ack=True, nowait=True))
            self.ready.set()
            try:
                while not self.done.is_set():
                    batch = link.deliveries(state)
                    now = time.monotonic()
                    self.moments += [now] * len(batch)
            except (Closed, OSError, TimeoutError):
                return


def most_within(moments: list[float], window: float) -> int:
    """The most messages in any window of so many seconds."""
    most, first = 0, 0
    for last, moment in enumerate(moments):
        while moment - moments[first] > window:
            first += 1
        most = max(most, last - first + 1)
    return most


def bursts(setting: Setting, tools: list[Tool]) -> None:
    """Messages leave at a fixed rate or in heaps: gaps as a consumer of our own sees them, after a second of warm-up."""
    print("\n| Asked | tool | messages in the busiest 1 ms | 10 ms | 100 ms (even: rate ÷ 10) | gaps p50 / p99 / longest, ms |")
    print("|---|---|---|---|---|---|")
    flags = ["-y", "0", "-z", "6", "-s", "16", "-u", QUEUE, "-k", QUEUE, "-ad", "false", "-p"]
    loads = (("1 producer, 1,000 msg/s", 1000, ["-r", "1000"]), ("1 producer, 5,000 msg/s", 5000, ["-r", "5000"]), ("10 producers, 100 msg/s each", 1000, ["-x", "10", "-r", "100"]),
             ("100 producers, 10 msg/s each", 1000, ["-x", "100", "-r", "10"]))  # fmt: skip
    for name, rate, more in loads:
        for tool in tools:
            watcher = Arrivals(setting.broker.port)
            watcher.start()
            watcher.ready.wait(10)
            outcome = setting.run([*flags, *more, "-e", "amq.direct"], tool=tool)
            watcher.done.set()
            if not watcher.moments:
                print(f"| {name} | {tool.name} | nothing came: {(outcome.err or outcome.out).strip().splitlines()[-1:]} | | | |")
                continue
            begin, end = watcher.moments[0] + 1.5, watcher.moments[-1] - 0.1
            moments = [moment for moment in watcher.moments if begin <= moment <= end]
            gaps = sorted(b - a for a, b in zip(moments, moments[1:], strict=False))
            shown = " / ".join(f"{gaps[min(int(len(gaps) * share), len(gaps) - 1)] * 1000:.2f}" for share in (0.5, 0.99, 1.0)) if gaps else "–"
            counts = [most_within(moments, window) for window in (0.001, 0.01, 0.1)]
            print(f"| {name} ({len(moments) / (end - begin):,.0f} seen) | {tool.name} | {counts[0]} | {counts[1]} | {counts[2]} ({rate // 10}) | {shown} |", flush=True)
    setting.delete(QUEUE)


def stalls(setting: Setting, tools: list[Tool]) -> None:
    """A Leveret of its own stands still for a second (SIGSTOP) in a run of ten at 1,000 msg/s."""
    print("\n| A broker that stood still for 1 s of 10, 1,000 msg/s | consumer latency p50 / p75 / p95 / p99, ms | busiest interval after it, sent msg/s |")
    print("|---|---|---|")
    variants = [(tool, [], tool.name) for tool in tools] + [(tools[1], ["--latency-from", "sent"], f"{tools[1].name} --latency-from sent")]
    for tool, more, name in variants:
        with Broker(setting.binary) as broker:
            # With confirms a blocked publisher is held, and a tool that counts from the sending sees one late window and no more.
            run = tool.start(["--uri", f"amqp://127.0.0.1:{broker.port}", "-r", "1000", "-c", "100", "-z", "10", *more])
            run.await_output(lambda out: " time 4." in out)
            broker.process.send_signal(signal.SIGSTOP)
            time.sleep(1)
            broker.process.send_signal(signal.SIGCONT)
            outcome = run.finish()
        told = re.search(r"consumer latency min/median\S* \d+/(\d+)/(\d+)/(\d+)/(\d+)", outcome.out)
        shown = " / ".join(f"{int(value) / 1000:.1f}" for value in told.groups()) if told else "–"
        highest = max((float(found[2]) for found in RECEIVED.finditer(outcome.out)), default=0)
        print(f"| {name} | {shown} | {highest:,.0f} |", flush=True)
