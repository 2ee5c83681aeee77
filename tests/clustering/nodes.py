"""Three nodes of one cluster: ours, which the suite starts, or a RabbitMQ's, which run already."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time

from differential.play import ask
from harness.broker import accepts
from harness.cluster import Cluster, name

TOOLS = ["rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-queues", "rabbitmq-upgrade"]
APPLICATION = ["rabbitmqctl stop_app", "rabbitmqctl start_app"]
# How long a RabbitMQ may take to see that a node came or went.
SEEN_SECONDS = 60.0


class Nodes:
    """Nodes are named by their place, from 0 on."""

    names: list[str]
    amqp: list[int]
    http: list[int]

    def __init__(self) -> None:
        self.running = set(range(len(self.names)))
        # How often each was stopped or started.
        self.lives = [0] * len(self.names)

    def command(self, node: int, words: list[str]) -> tuple[list[str], dict[str, str]]:
        """How a tool is called on a node, and what its environment has besides."""
        raise NotImplementedError

    def do(self, verb: str, node: int) -> None:
        """`stop`, `kill`, `start`, or `replace` by a new one that has the same name."""
        raise NotImplementedError

    def act(self, act: str) -> None:
        """Something that happens to a node, or a line that is said to its tools: `stop 3`, `tell 3 rabbitmqctl stop_app`."""
        verb, number, *line = act.split(" ", 2)
        node = int(number) - 1
        if verb == "tell":
            words, environment = self.command(node, shlex.split(line[0]))
            subprocess.run(words, env=os.environ | environment, check=True, capture_output=True, timeout=120)
        else:
            self.do(verb, node)
        if verb != "tell" or line[0] in APPLICATION:
            self.lives[node] += 1
            self.running.discard(node) if "stop" in act or verb == "kill" else self.running.add(node)
            self.wait_until_seen()

    def wait_until_seen(self) -> None:
        """Until those that run say so of each other, and of nobody else."""
        deadline = time.monotonic() + SEEN_SECONDS
        expected = {self.names[node] for node in self.running}
        for node in sorted(self.running):
            while self.seen_by(node) != expected:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{self.names[node]} sees {sorted(self.seen_by(node))} instead of {sorted(expected)}")
                time.sleep(0.05)

    def seen_by(self, node: int) -> set[str]:
        try:
            status, answer = ask(("127.0.0.1", self.http[node]), "GET", "/nodes", None)
        except OSError:
            return set()
        return {entry["name"] for entry in answer if entry.get("running")} if status == 200 else set()


class Ours(Nodes):
    """A cluster of this suite's own."""

    def __init__(self, binary: str):
        self.cluster = Cluster(binary, through_proxies=False)
        self.names = [name(node) for node in range(len(self.cluster.nodes))]
        self.amqp = [node.port for node in self.cluster.nodes]
        self.http = [node.http_port for node in self.cluster.nodes]
        super().__init__()

    def __enter__(self) -> Ours:
        self.cluster.start()
        links = self.cluster.directory / "bin"
        links.mkdir()
        for tool in TOOLS:
            (links / tool).symlink_to(self.cluster.nodes[0].binary)
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()

    def command(self, node: int, words: list[str]) -> tuple[list[str], dict[str, str]]:
        data = self.cluster.nodes[node].data
        return [str(self.cluster.directory / "bin" / words[0]), *words[1:]], {"LEVERET_DATA_DIR": str(data)}

    def do(self, verb: str, node: int) -> None:
        broker = self.cluster.nodes[node]
        if verb == "replace":
            broker.kill()
            shutil.rmtree(broker.data)
        {"stop": broker.stop, "kill": broker.kill}.get(verb, broker.start)()


class Others(Nodes):
    """Nodes that run already. `tools` stands before the names of their tools, with `{name}` for the node's; `control` is a command that
    is called with the node's place and the verb."""

    def __init__(self, ports: list[tuple[int, int]], names: list[str], tools: str, control: str):
        self.names = names
        self.amqp, self.http = [list(column) for column in zip(*ports, strict=True)]
        self.tools, self.control = tools, control
        super().__init__()

    def __enter__(self) -> Others:
        self.wait_until_seen()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def command(self, node: int, words: list[str]) -> tuple[list[str], dict[str, str]]:
        return [*shlex.split(self.tools.replace("{name}", self.names[node])), *words], {}

    def do(self, verb: str, node: int) -> None:
        subprocess.run([*shlex.split(self.control), str(node), verb], check=True, stdout=subprocess.DEVNULL, timeout=300)
