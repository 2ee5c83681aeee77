"""Plays the scripts of a family on three nodes, and notes what clients and tools are answered.

Each script has a virtual host of its own, which it calls `~`, and calls the nodes `node1`, `node2` and `node3`.
"""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from differential.form import given, settled
from differential.play import Closed, Ended, Peer, Play, Stage, ask
from operating.shapes import plain

from .nodes import Nodes
from .story import Family

COMMAND_SECONDS = 120.0
# How long what happens by and by may take. RabbitMQ publishes its numbers every five seconds.
EVENTUALLY_SECONDS = 40.0
AT_A_TIME = 4
QUORUM = {"x-queue-type": "quorum"}
SETS = re.compile(r"\[((?:\"?node\d\"?)(?:, ?\"?node\d\"?)+)\]")
# Tables are drawn by escape sequences or with characters.
FRAMES = re.compile(r"[\u2500-\u257f]+")
SPACES = re.compile(r"  +")
STYLED = re.compile(r"\x1b\[[0-9;]*m|\x1b\(0.*?\x1b\(B", re.DOTALL)


class Connection(Peer):
    """A connection to one node, which ends with that node's life."""

    def __init__(self, play: Trio, options: dict, node: int):
        super().__init__(play, options, ("127.0.0.1", play.nodes.amqp[node]))
        self.node = node
        self.life = 0

    def connect(self):
        if self.wire is None:
            self.life = self.play.nodes.lives[self.node]
        return super().connect()

    def is_over(self) -> bool:
        return self.life != self.play.nodes.lives[self.node]


class Client(Stage):
    """A channel of a client of one node."""

    def quorum(self, name="q", note=True, flags=None, **arguments):
        """Declares a quorum queue; arguments without their `x-`."""
        named = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        return self.queue(name, arguments=QUORUM | named, note=note, **(flags or {}))

    def connects(self, eventually: bool = False) -> None:
        """Notes whether a client is let in, now or at last."""
        deadline = time.monotonic() + (self.play.deadline_seconds if eventually else 0)
        while True:
            try:
                self.ready()
                return self.note("connected")
            except (OSError, Closed):
                self.peer.hang_up()
            if time.monotonic() > deadline:
                return self.note("not connected")
            time.sleep(0.05)

    def silent(self, seconds: float, what: str) -> None:
        """Notes what comes unasked within this time: silence, where nothing is expected."""
        wire = self.ready()
        wire.socket.settimeout(seconds)
        try:
            if (taken := self.take(what)) is not None:
                self.note(f"{what} -> {self.shown(*taken)}")
        except Ended:
            wire.socket.settimeout(self.play.deadline_seconds)


class Trio(Play):
    """One run of one script."""

    def __init__(self, nodes: Nodes, deadline_seconds: float):
        super().__init__(("127.0.0.1", nodes.amqp[0]), deadline_seconds)
        self.prefix = self.prefix.rstrip(".")
        self.nodes = nodes
        self.clients: dict[int, Client] = {}
        self.going: Iterator | None = None

    def __getitem__(self, number: int) -> Client:
        """A client of this node, the same one at each call."""
        if number not in self.clients:
            self.clients[number] = self.client(number)
        return self.clients[number]

    def client(self, number: int, name: str = "") -> Client:
        """Another client of this node."""
        peer = Connection(self, {"vhost": self.prefix}, number - 1)
        self.peers.append(peer)
        return Client(self, peer, 1, f"{number}{name}: ")

    # Names.

    def given(self, value):
        if isinstance(value, str):
            for number, name in enumerate(self.nodes.names, 1):
                value = value.replace(f"node{number}", name)
        elif isinstance(value, dict):
            return {self.given(key): self.given(inner) for key, inner in value.items()}
        elif isinstance(value, list):
            return [self.given(inner) for inner in value]
        return given(value, self.prefix)

    def settled(self, text: str) -> str:
        for number, name in enumerate(self.nodes.names, 1):
            text = text.replace(name, f"node{number}")
        text = SETS.sub(lambda found: f"[{', '.join(sorted(re.split(', ?', found[1])))}]", text)
        return settled(text, self.prefix)

    # Operators.

    def tool(self, number: int, line: str, pick: list[str] | None = None, until: str = "", note: bool = True) -> str:
        """Calls a tool on a node; notes its exit code and what it said, of a JSON document these members. With `until`, calls it
        until it says that."""
        return self.eventually(lambda: self.told(number, line, pick), until, note)

    def told(self, number: int, line: str, pick: list[str] | None) -> list[str]:
        words, environment = self.nodes.command(number - 1, shlex.split(self.given(line)))
        done = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
        lines = [f"{number}$ {line} -> code {done.returncode}"]
        if pick is not None and done.returncode == 0:
            return lines + [f"    {row}" for row in self.picked(json.loads(done.stdout), pick)]
        for word, text in (("", done.stdout), ("error: ", done.stderr)):
            text = FRAMES.sub("", STYLED.sub("", text)).split("\nUsage\n")[0].split("\nArguments given:")[0]
            found = [SPACES.sub(" ", plain(self.settled(each.strip()), {})) for each in text.strip().splitlines()]
            # The order of a table's rows does not count.
            is_table = any(verb in line for verb in (" list_", " grow ", " grow_to_count ", " rebalance ", " shrink ", " peek "))
            lines += [f"    {word}{each}" for each in (sorted(found) if is_table else found) if each]
        return lines

    def http(self, number: int, method: str, path: str, body=None, pick: list[str] | None = None, until: str = "", note: bool = True) -> str:
        """Calls the HTTP API of a node; notes the status, and of what came back these members, or why it was refused."""
        return self.eventually(lambda: self.answered_over_http(number, method, path, body, pick), until, note)

    def answered_over_http(self, number: int, method: str, path: str, body, pick: list[str] | None) -> list[str]:
        try:
            status, answer = ask(("127.0.0.1", self.nodes.http[number - 1]), method, self.given(path), self.given(body))
        except OSError:
            return [f"{number}: {method} {path} -> no connection"]
        lines = [f"{number}: {method} {path} {body or ''}".rstrip() + f" -> {status}"]
        if status >= 300 and pick is None:
            reasons = [answer[member] for member in ("error", "reason") if isinstance(answer, dict) and member in answer]
            return lines + [f"    {plain(self.settled(html.unescape(str(reason)).strip()), {})}" for reason in reasons]
        return lines + ([f"    {row}" for row in self.picked(answer, pick)] if pick else [])

    def picked(self, document, pick: list[str]) -> list[str]:
        """These members of an object, or of each object of a list; a member of a member is named with a dot."""

        def member(row, path: str):
            for step in path.split("."):
                row = row.get(step) if isinstance(row, dict) else None
            return row

        rows = document if isinstance(document, list) else [document]
        shown = [", ".join(f"{path}={json.dumps(member(row, path), sort_keys=True)}" for path in pick) for row in rows]
        return sorted(self.settled(row) for row in shown)

    def eventually(self, once: Callable[[], list[str]], until: str, note: bool) -> str:
        deadline = time.monotonic() + min(EVENTUALLY_SECONDS, self.deadline_seconds)
        while True:
            lines = [self.settled(line) for line in once()]
            text = "\n".join(lines)
            if not until or until in text or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        if note or until not in text:
            self.notes.extend(lines)
        return text

    # A run.

    def prepare(self) -> None:
        where = ("127.0.0.1", self.nodes.http[0])
        for method, path, body in (
            ("PUT", f"/vhosts/{self.prefix}", {}),
            ("PUT", f"/permissions/{self.prefix}/guest", {"configure": ".*", "write": ".*", "read": ".*"}),
        ):
            status, answer = ask(where, method, path, body)
            assert status < 300, f"{method} {path}: {status} {answer}"

    def part(self, script: Callable) -> bool:
        """Plays the script's first or next part; whether there is another one."""
        # Clients of a node that is back connect anew. Those of one that is not may ask what it said at last.
        for each in self.peers:
            if each.is_over() and each.node in self.nodes.running:
                each.hang_up()
        try:
            if self.going is None:
                self.prepare()
                self.going = script(self) or iter(())
            try:
                next(self.going)
                return True
            except StopIteration:
                for each in self.peers:
                    if not each.is_over():
                        self.leftovers(each)
        except Ended:
            pass
        except (AssertionError, OSError, Closed, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
            self.notes.append(self.settled(f"ended by {type(error).__name__}: {error}"))
        for each in self.peers:
            each.hang_up()
        return False

    def clean(self) -> None:
        ask(("127.0.0.1", self.nodes.http[0]), "DELETE", f"/vhosts/{self.prefix}", None)


def play(nodes: Nodes, family: Family, chosen: list[str], deadline_seconds: float) -> dict[str, list[str]]:
    """Plays these scripts of a family, part by part, with its acts in between. Gives the notes of each."""
    runs = {name: Trio(nodes, deadline_seconds) for name in chosen}
    going = list(chosen)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for act in [*family.acts, None]:
            goes_on = list(pool.map(lambda name: runs[name].part(family.scripts[name]), going))
            going = [name for name, is_so in zip(going, goes_on, strict=True) if is_so]
            if act is None:
                break
            nodes.act(act)
    assert not going, f"scripts with more parts than the family has acts: {going}"
    for run in runs.values():
        run.clean()
    return {name: run.notes for name, run in runs.items()}
