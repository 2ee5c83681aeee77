"""Several leveret processes as one cluster on this machine: killed, paused, cut off from each other, and healed."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from pathlib import Path

from .broker import START_DEADLINE_SECONDS, Broker, free_port
from .link import Api
from .proxies import Gates, Proxy

SECRET = "a-secret-of-tests"


class Cluster:
    """`size` nodes n1@localhost, n2@localhost, ..., whose links pass through proxies. Nodes are named by their place, from 0 on.

    `settings` are further lines of each node's configuration file; `own` those of one node.
    """

    def __init__(self, binary: str, size: int = 3, settings: dict[str, str] | None = None, own: dict[int, dict[str, str]] | None = None):
        self.directory = Path(tempfile.mkdtemp(prefix="leveret-cluster-"))
        self.gates = Gates()
        self.link_ports = [free_port() for _ in range(size)]
        self.proxies: list[Proxy] = []
        self.nodes: list[Broker] = []
        self.paused: set[int] = set()
        for node in range(size):
            peers = [self.port_for(node, other) for other in range(size)]
            lines = {"nodename": name(node), "cluster.listeners.tcp.default": f"127.0.0.1:{self.link_ports[node]}", "cluster.secret": SECRET}
            lines |= {f"cluster_formation.classic_config.nodes.{other + 1}": f"{name(other)}:{port}" for other, port in enumerate(peers)}
            lines |= (settings or {}) | (own or {}).get(node, {})
            self.nodes.append(Broker(binary, lines, self.directory / f"n{node + 1}"))

    def port_for(self, source: int, target: int) -> int:
        """Where a node finds another one."""
        if source == target:
            return self.link_ports[target]
        self.proxies.append(Proxy(self.gates, source, target, self.link_ports[target]))
        return self.proxies[-1].port

    def start(self) -> Cluster:
        for node in self.nodes:
            node.spawn()
        for node in self.nodes:
            node.wait_until_serving()
        self.wait_until_whole()
        return self

    def running(self, node: int) -> set[str]:
        """The names of the nodes that this one says are running; none if it gives no answer."""
        try:
            answer = Api(root=f"http://127.0.0.1:{self.nodes[node].http_port}").get("/nodes")
        except OSError:
            return set()
        return {entry["name"] for entry in answer.json if entry.get("running")} if answer.status == 200 else set()

    def wait_until_whole(self, deadline_seconds: float = START_DEADLINE_SECONDS) -> None:
        """Until each node says of all of them that they run."""
        deadline = time.monotonic() + deadline_seconds
        everybody = {name(node) for node in range(len(self.nodes))}
        for node in range(len(self.nodes)):
            while (running := self.running(node)) != everybody:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{name(node)} sees {sorted(running)} only after {deadline_seconds} s\n{self.nodes[node].log_tail()}")
                time.sleep(0.02)

    def pause(self, node: int) -> None:
        self.nodes[node].process.send_signal(signal.SIGSTOP)
        self.paused.add(node)

    def resume(self) -> None:
        for node in self.paused:
            self.nodes[node].process.send_signal(signal.SIGCONT)
        self.paused.clear()

    def cut(self, one: int, other: int) -> None:
        """Nothing passes between these two."""
        self.gates.cut(one, other)
        self.gates.cut(other, one)

    def cut_off(self, node: int) -> None:
        for other in range(len(self.nodes)):
            if other != node:
                self.cut(node, other)

    def heal(self) -> None:
        """Everything passes again, everybody runs; nodes that are down stay down."""
        self.resume()
        self.gates.heal()

    def panics(self) -> list[str]:
        return [line for node in self.nodes for line in node.panics()]

    def close(self) -> None:
        self.heal()
        self.gates.end()
        for node in self.nodes:
            node.close()
        for proxy in self.proxies:
            proxy.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def name(node: int) -> str:
    return f"n{node + 1}@localhost"
