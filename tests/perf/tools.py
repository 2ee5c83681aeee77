"""The two load generators as programs: how each is started, and what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
LIBRARIES = TESTS / ".cache" / "perf-test"
# A run that takes longer is stuck.
PATIENCE_SECONDS = 90


def install() -> None:
    """Fetches PerfTest and what it needs once."""
    stamp = LIBRARIES / "installed.xml"
    wanted = (TESTS / "perf" / "pom.xml").read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    command = ["mvn", "-q", "-B", "-ntp", "dependency:copy-dependencies", f"-DoutputDirectory={LIBRARIES}"]
    done = subprocess.run(command, cwd=TESTS / "perf", stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        print("FAIL perftest install")
        print(done.stdout + done.stderr)
        raise SystemExit(1)
    stamp.write_text(wanted)


@dataclass
class Outcome:
    """What became of a run."""

    command: list[str]
    code: int
    out: str
    err: str
    seconds: float
    report: dict | None = None
    csv: str = ""

    def lines(self) -> list[str]:
        return self.out.splitlines()

    def shown(self, most: int = 12) -> str:
        """The end of what it printed, for a fault."""
        both = [f"| {line}" for line in self.out.splitlines()[-most:]] + [f"! {line}" for line in self.err.splitlines()[-most:]]
        return "\n".join([f"exit code {self.code} after {self.seconds:.1f} s: {' '.join(self.command)}", *both])


class Run:
    """A run under way. What it prints goes into files: a pipe that nobody empties would hold it up."""

    def __init__(self, command: list[str], environment: dict[str, str] | None = None, folder: Path | None = None):
        self.command = command
        self.folder = folder or Path(tempfile.mkdtemp(prefix="leveret-perf-"))
        self.json, self.csv = self.folder / "report.json", self.folder / "report.csv"
        self.started = time.monotonic()
        # What one puts into the environment of a test must not be taken for PerfTest's options, nor its own left out.
        bare = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME")}
        with open(self.folder / "out", "wb") as out, open(self.folder / "err", "wb") as err:
            self.process = subprocess.Popen(command, env=bare | (environment or {}), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # fmt: skip

    def out(self) -> str:
        return (self.folder / "out").read_text(errors="replace")

    def await_output(self, good: Callable[[str], bool], seconds: float = 30) -> bool:
        """Waits until what was printed so far is good; False if it ended or took too long before."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if good(self.out()):
                return True
            if ended:
                return False
            time.sleep(0.02)
        return False

    def finish(self, patience_seconds: float = PATIENCE_SECONDS) -> Outcome:
        try:
            self.process.wait(max(self.started + patience_seconds - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        seconds = time.monotonic() - self.started
        report = None
        with contextlib.suppress(OSError, ValueError):
            report = json.loads(self.json.read_text())
        csv = self.csv.read_text() if self.csv.exists() else ""
        outcome = Outcome(self.command, self.process.returncode, self.out(), (self.folder / "err").read_text(errors="replace"), seconds, report, csv)
        shutil.rmtree(self.folder, ignore_errors=True)
        return outcome


@dataclass
class Tool:
    """A load generator. `CSV` and `JSON` among the flags stand for files in the run's own folder."""

    name: str
    program: list[str]
    # Whether it is PerfTest of Java, whose lines have the older form and whose JVM takes a while.
    java: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, flags: list[str], environment: dict[str, str] | None = None) -> Run:
        folder = Path(tempfile.mkdtemp(prefix="leveret-perf-"))
        names = {"CSV": str(folder / "report.csv"), "JSON": str(folder / "report.json")}
        command = [*self.program, *(names.get(flag, flag) for flag in flags)]
        return Run(command, self.environment | (environment or {}), folder)

    def run(self, flags: list[str], environment: dict[str, str] | None = None, patience_seconds: float = PATIENCE_SECONDS) -> Outcome:
        return self.start(flags, environment).finish(patience_seconds)


def leveret(binary: str) -> Tool:
    return Tool("leveret perf", [str(Path(binary).resolve()), "perf"])


def perftest() -> Tool:
    install()
    java = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Xmx768m", "-cp", f"{LIBRARIES}/*", "com.rabbitmq.perf.PerfTest"]
    return Tool("PerfTest", java, java=True)
