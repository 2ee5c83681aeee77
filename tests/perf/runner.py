"""Runs one PerfTest command and judges it: exit code, output, and whether as much was received as was sent."""

from __future__ import annotations

import contextlib
import http.client
import re
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.broker import free_port

from .rows import Row

TROUBLE = re.compile(r"exception|error|refused|failed|nacked: [1-9]|timed? ?out", re.IGNORECASE)
RECEIVED = re.compile(r"^perftest_latency_seconds_count(?:\{[^}]*\})? ([0-9.E+]+)$", re.MULTILINE)
# A run that takes longer than this is stuck.
BACKSTOP_SECONDS = 60
# Hundreds of connections and durable queues take their time before the clock of a run starts.
SETUP_SECONDS = 120


@dataclass
class Verdict:
    """What became of a run."""

    faults: list[str]
    summary: str
    output: str


def received_so_far(port: int) -> int | None:
    """How many messages the consumers have measured; None while, or when no longer, anyone answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as answer:
            found = RECEIVED.search(answer.read().decode())
    except (OSError, http.client.HTTPException):
        return None
    return int(float(found.group(1))) if found else None


class Runner:
    """PerfTest on a broker."""

    def __init__(self, libraries: Path, host: str, *ports: int):
        self.java = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Xmx768m", "-cp", f"{libraries}/*", "com.rabbitmq.perf.PerfTest"]
        # Connections of a cluster go to all of its nodes.
        uris = [f"amqp://guest:guest@{host}:{port}/%2F" for port in ports]
        self.uri = ["--uris", ",".join(uris)] if len(uris) > 1 else ["--uri", *uris]

    def run(self, row: Row, seconds: int | None, watch: Callable[[int], None] = lambda _: None) -> Verdict:
        """Bounded if `seconds` is None, else for that long. `watch` is called again and again meanwhile, with the number of messages received."""
        metrics = free_port()
        command = [*self.java, *row.flags, *self.uri, "--metrics-prometheus", "--metrics-prometheus-port", str(metrics)]
        if seconds is None:
            command += ["--pmessages", str(row.messages)] if row.producers else []
            command += [*row.ends, "--time", str(BACKSTOP_SECONDS)]
        else:
            command += ["--time", str(seconds)]
        started = time.monotonic()
        received = 0
        # Into a file: a pipe that nobody empties meanwhile would stop a run with many lines.
        with tempfile.TemporaryFile("w+", errors="replace") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
            try:
                while process.poll() is None and time.monotonic() - started < (seconds or BACKSTOP_SECONDS) + SETUP_SECONDS:
                    received = max(received, received_so_far(metrics) or 0)
                    watch(received)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(0.15)
            finally:
                process.kill()
                process.wait()
            out.seek(0)
            output = out.read()
        return self.judge(row, process.returncode, received, output, seconds)

    def judge(self, row: Row, code: int, received: int, output: str, seconds: int | None) -> Verdict:
        faults = [] if code == 0 else [f"exit code {code}"]
        faults += [f"output: {line}" for line in output.splitlines() if TROUBLE.search(line)][:5]
        sent = row.messages * (row.producers or 1)
        if seconds is None:
            stopped = re.search(r"test stopped \((.*)\)", output)
            reached = re.search(r"Producer reached message limit(?: \[(\d+)\])?", output)
            if stopped is None:
                faults.append("no end told")
            elif row.producers and (reached is None or int(reached.group(1) or 1) != row.producers):
                faults.append(f"stopped because of {stopped.group(1)}")
            if row.compares and received != sent:
                faults.append(f"sent {sent}, received {received}")
        elif row.compares and received == 0:
            faults.append("nothing was received")
        rates = re.findall(r"(sending|receiving) rate avg: (\d+) msg/s", output)
        latency = re.search(r"consumer latency (min/median\S*) ([\d/]+ \S+)\s*$", output, re.MULTILINE)
        summary = ", ".join(f"{what} {rate} msg/s" for what, rate in rates)
        if latency:
            summary += f", {latency.group(1)} {latency.group(2)}"
        return Verdict(faults, f"{received} received, {summary}", output)
