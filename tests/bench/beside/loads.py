"""What drives the brokers: our lean loader, or RabbitMQ's PerfTest to check that the loader's figures are no artefact."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

from .cases import Case
from .contestants import BENCH, ROOT, TESTS, Contestant, cpu_seconds, prefer_session

WARMUP_SECONDS = 1
# A JVM needs longer until it is compiled; the broker's cost per message depends on how fast it is driven.
PERFTEST_WARMUP_SECONDS = 4
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "bench"
JAVA_LIBRARIES = TESTS / ".cache" / "bench-perftest"
INTERVAL = re.compile(r"time ([0-9.]+) s, (?:sent: ([0-9.]+) msg/s)?(?:.*?received: ([0-9.]+) msg/s)?")


class LoadFailed(Exception):
    """The load did not run to its end, or messages were lost or invented."""


def preference(niceness: int) -> Callable[[], None] | None:
    """What a load does before it begins: a session of its own, with the priority of the brokers."""
    if niceness == 0:
        return None

    def prefer() -> None:
        os.setsid()
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
        prefer_session("self", niceness)

    return prefer


class Loader:
    """The Rust program beside this folder."""

    name = "loader"

    def __init__(self, seconds: float, niceness: int, build: bool):
        self.seconds = seconds
        self.niceness = niceness
        self.program = TARGET / "release" / "loader"
        if build:
            manifest = BENCH / "loader" / "Cargo.toml"
            command = ["cargo", "build", "--quiet", "--release", "--manifest-path", manifest, "--target-dir", TARGET]
            subprocess.run(command, check=True)

    def command(self, case: Case) -> str:
        return f"loader {case.loader} --warmup {WARMUP_SECONDS} --seconds {self.seconds:g}"

    def run(self, case: Case, broker: Contestant) -> dict:
        arguments = shlex.split(self.command(case))[1:]
        place = ["--host", broker.host, "--port", str(broker.port), "--pid", str(broker.pid)]
        done = subprocess.run(
            [self.program, *place, *arguments], capture_output=True, text=True, preexec_fn=preference(self.niceness), timeout=self.seconds + 240
        )
        if done.returncode != 0:
            raise LoadFailed(f"{broker.name}, {case.name}: {done.stderr.strip()}")
        return json.loads(done.stdout)


class PerfTest:
    """`com.rabbitmq:perf-test` from Maven Central. It has no bound on what is underway, so a backlog may build up."""

    name = "perftest"

    def __init__(self, seconds: float, niceness: int):
        self.seconds = seconds
        self.niceness = niceness
        if not list(JAVA_LIBRARIES.glob("perf-test-*.jar")):
            maven = ["mvn", "-q", "-B", "-Dstyle.color=never", "dependency:copy-dependencies", f"-DoutputDirectory={JAVA_LIBRARIES}"]
            subprocess.run(maven, cwd=BENCH / "perftest", check=True)

    def command(self, case: Case) -> str:
        limit = PERFTEST_WARMUP_SECONDS + round(self.seconds) + 2
        return f"PerfTest {case.perftest} --queue bench.perftest.{case.name} --time {limit}"

    def run(self, case: Case, broker: Contestant) -> dict:
        arguments = shlex.split(self.command(case))[1:]
        command = ["java", "-cp", f"{JAVA_LIBRARIES}/*", "com.rabbitmq.perf.PerfTest", "-h", f"amqp://{broker.host}:{broker.port}", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=preference(self.niceness))
        seen: list[str] = []
        try:
            result = self.follow(process, broker, seen)
        finally:
            process.stdout.read()
            code = process.wait(60)
        if code != 0 or result is None:
            raise LoadFailed(f"{broker.name}, {case.name}: PerfTest ended with {code}\n" + "\n".join(seen[-10:]))
        return result

    def follow(self, process: subprocess.Popen, broker: Contestant, seen: list[str]) -> dict | None:
        """Takes the CPU time when PerfTest prints an interval, so that both cover the same time."""
        begin: tuple[float, float] | None = None
        last, sent, received, cpu = 0.0, 0.0, 0.0, 0.0
        for line in process.stdout:
            seen.append(line.rstrip())
            match = INTERVAL.search(line)
            if not match:
                continue
            now = float(match[1])
            if begin is None:
                if now >= PERFTEST_WARMUP_SECONDS:
                    begin = (now, cpu_seconds(broker.pid))
            else:
                sent += float(match[2] or 0) * (now - last)
                received += float(match[3] or 0) * (now - last)
                cpu = cpu_seconds(broker.pid) - begin[1]
                if now - begin[0] >= self.seconds:
                    last = now
                    break
            last = now
        if begin is None or sent == 0:
            return None
        seconds = last - begin[0]
        messages = (sent + received) / 2 if received else sent
        return {
            "published": round(sent),
            "consumed": round(received),
            "seconds": seconds,
            "publish_rate": sent / seconds,
            "consume_rate": received / seconds,
            "cpu_us_per_message": cpu * 1e6 / messages,
        }


