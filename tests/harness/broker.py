"""One broker process under test: its configuration, data directory, start, stop, kill and restart."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# Generous, for on a disk that others write to a single sync can take half a minute.
START_DEADLINE_SECONDS = 90
STOP_DEADLINE_SECONDS = 20


def ports_for_listeners() -> Iterator[int]:
    """Ports below those that the system hands out: it may hand out the same one twice, or give it to a client before the listener stands. Each is given
    once, from a random place on, because other test runs look here too."""
    first_of_clients = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = range(10_000, max(first_of_clients, 20_000))
    start = random.randrange(len(ports))
    return itertools.cycle([*ports[start:], *ports[:start]])


PORTS = ports_for_listeners()


def free_port() -> int:
    """A TCP port that nobody listens on and no client is given."""
    for port in PORTS:
        with contextlib.closing(socket.socket()) as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def accepts(host: str, port: int) -> bool:
    """Whether something listens there. The probe says nothing, so the broker logs at most one short line."""
    with contextlib.closing(socket.socket()) as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


class Broker:
    """A leveret process on a port and a data directory of its own.

    `settings` are further lines of the configuration file, in rabbitmq.conf syntax.
    """

    def __init__(self, binary: str, settings: dict[str, str] | None = None, directory: Path | None = None):
        self.binary = str(Path(binary).resolve())
        self.host = "127.0.0.1"
        self.port = free_port()
        self.http_port = free_port()
        self.metrics_port = free_port()
        self.stream_port = free_port()
        self.settings = settings or {}
        self.environment: dict[str, str] = {}
        self.own_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="leveret-test-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.data = self.directory / "data"
        self.log_path = self.directory / "broker.log"
        self.process: subprocess.Popen | None = None

    def write_config(self) -> Path:
        lines = {
            "listeners.tcp.default": f"{self.host}:{self.port}",
            "management.tcp.ip": self.host,
            "management.tcp.port": str(self.http_port),
            "prometheus.tcp.ip": self.host,
            "prometheus.tcp.port": str(self.metrics_port),
            "stream.listeners.tcp.default": f"{self.host}:{self.stream_port}",
            "stream.advertised_host": self.host,
            "stream.advertised_port": str(self.stream_port),
            "data_dir": str(self.data),
            "log.console.level": "info",
        } | self.settings
        path = self.directory / "leveret.conf"
        path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        return path

    def spawn(self) -> None:
        """Starts the process without waiting until it serves."""
        config = self.write_config()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "server", "--config", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=os.environ | {"RUST_BACKTRACE": "1"} | self.environment,
                start_new_session=True,
            )

    def start(self) -> Broker:
        self.spawn()
        self.wait_until_serving()
        return self

    def wait_until_serving(self, deadline_seconds: float = START_DEADLINE_SECONDS) -> None:
        deadline = time.monotonic() + deadline_seconds
        while not (accepts(self.host, self.port) and accepts(self.host, self.http_port)):
            if self.process.poll() is not None:
                raise RuntimeError(f"the broker exited with {self.process.returncode} at start\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"the broker did not serve within {deadline_seconds} s\n{self.log_tail()}")
            time.sleep(0.005)

    def stop(self) -> int:
        """SIGTERM and the exit code; 0 is what a clean stop gives."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"SIGTERM did not stop the broker within {STOP_DEADLINE_SECONDS} s\n{self.log_tail()}") from None

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to flush anything."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def kill_one(self) -> None:
        """What clients are connected to, and if there are others, not these."""
        self.kill()

    def restart(self) -> None:
        code = self.stop()
        if code != 0:
            raise RuntimeError(f"a clean stop exits with 0, not {code}\n{self.log_tail()}")
        self.start()

    def crash(self) -> None:
        self.kill()
        self.start()

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def rss_bytes(self) -> int:
        """Resident memory of the process, from the kernel."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS in /proc")

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(self.log_text().splitlines()[-lines:])

    def panics(self) -> list[str]:
        """Log lines that tell of a panic; there must never be one."""
        return [line for line in self.log_text().splitlines() if "panicked at" in line]

    def close(self, keep: bool = False) -> None:
        """Ends the process whatever its state and removes its directory, unless that is kept."""
        self.kill()
        if self.own_directory and not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
