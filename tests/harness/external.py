"""A broker that somebody else started: tests run against it, for comparison with RabbitMQ.

What such a broker is told (restart, alarm) goes through shell commands given on the command line; a command that is
missing makes the tests that need it skip themselves.
"""

from __future__ import annotations

import subprocess


class ExternalBroker:
    """Host, port and the commands that control a foreign broker."""

    # Nobody can start another one.
    binary = None

    def __init__(self, host: str, port: int, restart: str = "", alarm_on: str = "", alarm_off: str = ""):
        self.host = host
        self.port = port
        # As RabbitMQ's ports lie: 5672 and 15672.
        self.http_port = port + 10_000
        self.metrics_port = port + 10_020
        self.commands = {"restart": restart, "alarm-on": alarm_on, "alarm-off": alarm_off}

    def can(self, verb: str) -> bool:
        return bool(self.commands[verb])

    def run(self, verb: str) -> None:
        subprocess.run(self.commands[verb], shell=True, check=True, stdout=subprocess.DEVNULL, timeout=120)

    def restart(self) -> None:
        self.run("restart")

    def crash(self) -> None:
        """Nobody can kill a foreign broker: it is restarted."""
        self.run("restart")

    def alarm_on(self) -> None:
        self.run("alarm-on")

    def alarm_off(self) -> None:
        self.run("alarm-off")

    def alive(self) -> bool:
        return True

    def panics(self) -> list[str]:
        return []

    def log_tail(self, lines: int = 30) -> str:
        return ""

    def close(self) -> None:
        return None
