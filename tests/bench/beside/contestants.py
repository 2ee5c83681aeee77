"""The brokers that are compared: each can start, say its process, settle and stop."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
TESTS = BENCH.parent
ROOT = TESTS.parent
# Ignored by Git: data directories and results.
VAR = BENCH / "var"

sys.path.insert(0, str(TESTS))
from harness.broker import Broker, accepts  # noqa: E402

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process since its start."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def prefer_session(pid: int | str, niceness: int) -> None:
    """Where the kernel groups processes by session (sched_autogroup), a priority counts only within its session."""
    with contextlib.suppress(FileNotFoundError):
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))


class Contestant:
    """A broker on this machine."""

    name: str
    host = "127.0.0.1"
    port: int
    pid: int

    def settle(self, deadline_seconds: float = 15) -> None:
        """Waits until the broker has nothing to do any more: what one run leaves behind is not the next one's cost."""
        deadline = time.monotonic() + deadline_seconds
        while time.monotonic() < deadline:
            before = cpu_seconds(self.pid)
            time.sleep(0.3)
            if cpu_seconds(self.pid) - before <= 0.03:
                return

    def prefer(self, niceness: int) -> None:
        """Gives all its threads a priority, so that other programs on the machine disturb less."""
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(task.name), niceness)
        prefer_session(self.pid, niceness)


class Leveret(Contestant):
    """Our binary with default settings and a data directory of its own."""

    name = "Leveret"

    def __init__(self, binary: Path):
        self.binary = binary
        directory = VAR / "leveret"
        shutil.rmtree(directory, ignore_errors=True)
        self.broker = Broker(str(binary), directory=directory)

    @property
    def data(self) -> Path:
        return self.broker.directory

    def start(self) -> None:
        self.broker.start()
        self.port, self.pid = self.broker.port, self.broker.process.pid

    def stop(self) -> None:
        self.broker.stop()
        shutil.rmtree(self.broker.directory, ignore_errors=True)

    def version(self) -> str:
        said = subprocess.run([self.binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        git = ["git", "-C", str(ROOT), "log", "-1", "--format=%h"]
        return f"{said} ({subprocess.run(git, capture_output=True, text=True).stdout.strip() or 'no commit'})"


class RabbitMQ(Contestant):
    """RabbitMQ 4.3 as the script `PEER_RABBITMQ` runs it: default settings, transient non-exclusive queues permitted."""

    name = "RabbitMQ"

    def __init__(self, script: Path, port: int):
        self.script = script
        self.port = port
        self.ours = False
        # Away from the script's own ports: somebody else may run it for another purpose.
        ports = {"AMQP_PORT": port, "MGMT_PORT": port + 10_000, "STREAM_PORT": port + 10_001, "DIST_PORT": port + 20_000}
        self.environment = os.environ | {key: str(value) for key, value in ports.items()}

    def command(self, *arguments: str) -> str:
        done = subprocess.run([self.script, *arguments], env=self.environment, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.strip()

    def start(self) -> None:
        if not accepts(self.host, self.port):
            self.command("start")
            self.ours = True
            # Erlang's start goes on for a while after the port is open.
            time.sleep(5)
        self.pid = int(self.command("pid"))

    def stop(self) -> None:
        if self.ours:
            self.command("stop")

    def version(self) -> str:
        credit = "credit flow off" if os.environ.get("CREDIT") == "off" else "default credit flow"
        return f"RabbitMQ {self.command('ctl', 'version').splitlines()[-1]}, {credit}"
