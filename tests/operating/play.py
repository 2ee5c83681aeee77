"""Plays both series on a broker and notes what it answers."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pika

from .calls import CONNECT, DISCONNECT, Call
from .commands import DEFINITIONS, Command
from .shapes import plain, shape

# How long a broker that publishes its numbers now and then may take with that.
UNTIL_SECONDS = 7.0
COMMAND_SECONDS = 60.0


@dataclass
class Place:
    """A broker: its ports, and how its tools are called. A folder of the tools' root is seen by them without that prefix."""

    amqp: int
    http: int
    tools: Callable[[list[str]], list[str]]
    folder: Path
    seen: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> dict[str, str]:
        return {str(self.amqp): "AMQP_PORT", str(self.http): "HTTP_PORT", str(self.seen): "FOLDER"}


def name_steps(steps) -> list[tuple[str, object]]:
    """The steps with names of their own: one that comes again is numbered."""
    named, seen = [], {}
    for step in steps:
        seen[step.name] = seen.get(step.name, 0) + 1
        named.append((step.name if seen[step.name] == 1 else f"{step.name} ({seen[step.name]})", step))
    return named


class Http:
    """The series of calls on one broker."""

    def __init__(self, place: Place):
        self.place = place
        self.connection: pika.BlockingConnection | None = None

    def play(self, calls: list[Call]) -> dict[str, dict]:
        try:
            return {name: self.answer(call) for name, call in name_steps(calls)}
        finally:
            self.disconnect()

    def answer(self, call: Call) -> dict:
        if call is CONNECT:
            return self.connect()
        if call is DISCONNECT:
            return self.disconnect()
        deadline = time.monotonic() + UNTIL_SECONDS
        while True:
            status, location, body = self.request(call)
            if not call.until or has(body, call.until.split(".")) or time.monotonic() > deadline:
                break
            # The numbers are published every few seconds, and nothing tells when.
            if self.connection is not None:
                self.connection.process_data_events(0.25)
        noted: dict = {"status": status}
        if location:
            noted["location"] = location
        if body is not None:
            noted["body"] = shape(body, self.place.names)
        return noted

    def request(self, call: Call) -> tuple[int, str, object]:
        data = call.body if isinstance(call.body, bytes | None) else json.dumps(call.body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.place.http}/api{call.path}", data=data, method=call.method)
        if call.user:
            request.add_header("Authorization", f"Basic {base64.b64encode(call.user.encode()).decode()}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                status, headers, text = reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as error:
            status, headers, text = error.code, error.headers, error.read()
        location = (headers.get("Location") or "").rsplit("/api", 1)[-1]
        try:
            return status, location, json.loads(text) if text else None
        except ValueError:
            return status, location, {"text": text.decode(errors="replace")}

    def connect(self) -> dict:
        parameters = pika.ConnectionParameters(
            "127.0.0.1", self.place.amqp, "cmp", client_properties={"connection_name": "compared"}, heartbeat=0
        )
        self.connection = pika.BlockingConnection(parameters)
        channel = self.connection.channel()
        channel.confirm_delivery()
        channel.basic_qos(prefetch_count=10)
        arrived: list = []
        channel.basic_consume("q1", lambda *delivery: arrived.append(delivery), consumer_tag="compared")
        while not arrived:
            self.connection.process_data_events(0.25)
        return {"status": "connected"}

    def disconnect(self) -> dict:
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        return {"status": "disconnected"}


def has(body, path: list[str]) -> bool:
    """Whether a document has a member that is there and no empty list."""
    for name in path:
        if name == "[]":
            if not isinstance(body, list) or not body:
                return False
            body = body[0]
        elif isinstance(body, dict) and name in body:
            body = body[name]
        else:
            return False
    return True


class Tools:
    """The series of command lines on one broker."""

    def __init__(self, place: Place):
        self.place = place

    def play(self, commands: list[Command]) -> dict[str, dict]:
        folder = self.place.folder
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)
        (folder / "defined.json").write_text(DEFINITIONS)
        (folder / "bad.json").write_text('{"queues":[{"vhost":"zork","name":"q","durable":true,"auto_delete":false,"arguments":{}}]}')
        return {name: self.answer(command) for name, command in name_steps(commands)}

    def answer(self, command: Command) -> dict:
        seen = self.place.seen
        given = {"amqp": self.place.amqp, "file": seen / "defined.json", "bad": seen / "bad.json", "folder": seen}
        words = [word.format(**given) for word in command.words]
        done = subprocess.run(
            self.place.tools(words),
            input=command.stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            env=os.environ | self.place.environment,
            check=False,
        )
        noted: dict = {"code": done.returncode}
        if command.counts == "shape":
            noted["shape"] = shape(json.loads(done.stdout), self.place.names)
        elif command.counts == "text":
            noted["out"] = self.told(done.stdout, is_list=" list_" in command.line)
            noted["err"] = self.told(done.stderr)
        return noted

    def told(self, text: str, is_list: bool = False) -> list[str]:
        """Lines without those of a run. The usage that follows a mistake does not count, nor does the order of a list."""
        text = plain(text.split("\nUsage\n")[0].split("\nArguments given:")[0], self.place.names)
        try:
            document = json.loads(text)
        except ValueError:
            found = [line.rstrip() for line in text.strip().splitlines()]
            return sorted(found) if is_list else found
        if isinstance(document, list):
            return sorted(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in document)
        return [json.dumps(document, sort_keys=True, ensure_ascii=False)]
