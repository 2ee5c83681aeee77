"""The two distortions of PerfTest, measured on it and on leveret perf: what is asked of many slow producers and what they deliver,
and the bursts of a rate limiter that saves up; and what each tool tells of a broker that stood still for a second."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from pathlib import Path

from harness.broker import Broker
from harness.link import B, Closed, Link, Q

from .setting import Setting
from .tools import Tool, perftest

QUEUE = "distortions"
PRODUCERS = 14_000
RECEIVED = re.compile(r"time ([\d.]+) s, sent: ([\d.]+) msg/s")


def measure(setting: Setting, match: str) -> int:
    tools = [perftest(), setting.tool]
    for part in (slow_producers, bursts, stalls):
        if match in part.__name__:
            part(setting, tools)
    return 0


def slow_producers(setting: Setting, tools: list[Tool]) -> None:
    """Each at a message a second. Intervals in which connections were still being opened do not count."""
    print("\n| 14,000 producers at 1 msg/s each | tool | sent msg/s, whole intervals (lowest / median / highest) | confirm latency p50 / p95 / p99, ms | until all sent | CPU s | memory, MB | threads |")
    print("|---|---|---|---|---|---|---|---|")
    channels = ["-x", "350", "-X", "40", "-c", "1"]
    for name, flags in (
        ("350 connections of 40 channels, `-r 1`", [*channels, "-r", "1"]),
        ("350 connections of 40 channels, `-P 1`", [*channels, "-P", "1"]),
        ("14,000 connections, `-P 1`", ["-x", str(PRODUCERS), "-P", "1", "-c", "1"]),
    ):
        for tool in tools:
            # Without NIO the JVM would need some threads for each of so many connections.
            more = ["-niot", "2", "-hst", "2"] if tool.java else []
            run = setting.start(["-y", "0", "-s", "16", "-z", "20", "-u", QUEUE, "-k", QUEUE, *flags, *more], tool=tool)
            used = Used()
            run.await_output(lambda _, run=run, used=used: used.look(run.process.pid), 300)
            outcome = run.finish(300)
            begins = [float(found[1]) for found in RECEIVED.finditer(outcome.out)]
            sent = [float(found[2]) for found in RECEIVED.finditer(outcome.out)]
            whole = next((index for index, rate in enumerate(sent) if rate > 0.95 * PRODUCERS), None)
            steady = sorted(sent[whole + 1 : -1]) if whole is not None else []
            told = f"{steady[0]:,.0f} / {steady[len(steady) // 2]:,.0f} / {steady[-1]:,.0f}" if steady else f"never as many: {max(sent, default=0):,.0f}"
            latency = re.search(r"confirm latency min/median\S* \d+/(\d+)/\d+/(\d+)/(\d+)", outcome.out)
            shown = " / ".join(f"{int(value) / 1000:.2f}" for value in latency.groups()) if latency else "–"
            opened = f"{outcome.seconds - 20 + begins[whole]:.0f} s" if whole is not None else "–"
            print(f"| {name} | {tool.name} | {told} | {shown} | {opened} | {used.cpu_seconds:.0f} | {used.bytes / 1e6:.0f} | {used.threads} |", flush=True)


class Used:
    """What a process took of the machine, as far as it was looked at."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0
        self.bytes = self.threads = 0

    def look(self, pid: int) -> bool:
        """Never satisfied, so that a wait goes on until the process ends."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            status = Path(f"/proc/{pid}/status").read_text()
            self.bytes = max(self.bytes, int(status.split("VmHWM:")[1].split()[0]) * 1024)
            self.threads = max(self.threads, int(status.split("Threads:")[1].split()[0]))
            times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            self.cpu_seconds = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
        return False


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
            except (Closed, OSError, TimeoutError, AssertionError):
                # The queue went away, or the broker.
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
    """Messages leave at a fixed rate or in heaps: gaps as a consumer of our own sees them, from 1.5 s on but for the last column."""
    print("\n| Asked | tool | messages in the busiest 1 ms | 10 ms | 100 ms (even: rate ÷ 10) | gaps p50 / p99 / longest, ms | busiest 10 ms of the start |")
    print("|---|---|---|---|---|---|---|")
    flags = ["-y", "0", "-z", "6", "-s", "16", "-u", QUEUE, "-k", QUEUE, "-ad", "false", "-p"]
    loads = (("1 producer, 1,000 msg/s", 1000, ["-r", "1000"]), ("1 producer, 5,000 msg/s", 5000, ["-r", "5000"]), ("10 producers, 100 msg/s each", 1000, ["-x", "10", "-r", "100"]),
             ("100 producers, 10 msg/s each", 1000, ["-x", "100", "-r", "10"]))  # fmt: skip
    # The slow producers leave the queue behind, declared in their own way.
    setting.delete(QUEUE)
    for name, rate, more in loads:
        for tool in tools:
            watcher = Arrivals(setting.broker.port)
            watcher.start()
            watcher.ready.wait(10)
            outcome = setting.run([*flags, *more, "-e", "amq.direct"], tool=tool)
            watcher.done.set()
            if not watcher.moments:
                print(f"| {name} | {tool.name} | nothing came: {(outcome.err or outcome.out).strip().splitlines()[-1:]} | | | | |")
                continue
            begin, end = watcher.moments[0] + 1.5, watcher.moments[-1] - 0.1
            moments = [moment for moment in watcher.moments if begin <= moment <= end]
            gaps = sorted(b - a for a, b in zip(moments, moments[1:], strict=False))
            shown = " / ".join(f"{gaps[min(int(len(gaps) * share), len(gaps) - 1)] * 1000:.2f}" for share in (0.5, 0.99, 1.0)) if gaps else "–"
            counts = [most_within(moments, window) for window in (0.001, 0.01, 0.1)]
            start = most_within([moment for moment in watcher.moments if moment < begin], 0.01)
            print(f"| {name} ({len(moments) / (end - begin):,.0f} seen) | {tool.name} | {counts[0]} | {counts[1]} | {counts[2]} ({rate // 10}) | {shown} | {start} |", flush=True)
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
