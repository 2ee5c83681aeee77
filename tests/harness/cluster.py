"""Several leveret processes as one cluster on this machine: killed, paused, cut off from each other, and healed."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .broker import START_DEADLINE_SECONDS, Broker, free_port
from .link import Api
from .proxies import Gates, Proxy

SECRET = "a-secret-of-tests"

# Which node of a cluster clients use that is to own nothing.
FRONT = 2


class Cluster:
    """`size` nodes n1@localhost, n2@localhost, ..., whose links pass through proxies. Nodes are named by their place, from 0 on.

    `settings` are further lines of each node's configuration file; `own` those of one node. Not `through_proxies`: links are direct, and
    can't be cut.
    """

    def __init__(self, binary: str, size: int = 3, settings: dict[str, str] | None = None, own: dict[int, dict[str, str]] | None = None, through_proxies: bool = True):
        self.directory = Path(tempfile.mkdtemp(prefix="leveret-cluster-"))
        self.gates = Gates()
        self.through_proxies = through_proxies
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
        if source == target or not self.through_proxies:
            return self.link_ports[target]
        self.proxies.append(Proxy(self.gates, source, target, self.link_ports[target]))
        return self.proxies[-1].port

    def spawn(self) -> None:
        """Starts those that don't run, without waiting until they serve."""
        for node in self.nodes:
            if not node.alive():
                node.spawn()

    def start(self) -> Cluster:
        self.spawn()
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

    def wait_until_whole(self, deadline_seconds: float = START_DEADLINE_SECONDS, only: int | None = None) -> None:
        """Until each node, or that one, says of all of them that they run."""
        deadline = time.monotonic() + deadline_seconds
        everybody = {name(node) for node in range(len(self.nodes))}
        for node in range(len(self.nodes)) if only is None else [only]:
            while (running := self.running(node)) != everybody:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{name(node)} sees {sorted(running)} only after {deadline_seconds} s\n{self.nodes[node].log_tail()}")
                time.sleep(0.02)

    def pause(self, node: int) -> None:
        process = self.nodes[node].process
        process.send_signal(signal.SIGSTOP)
        self.paused.add(node)
        # On a busy machine the signal may wait for its turn, and other threads answer meanwhile.
        deadline = time.monotonic() + START_DEADLINE_SECONDS
        while not all_stand_still(process.pid):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name(node)} goes on {START_DEADLINE_SECONDS} s after SIGSTOP")
            time.sleep(0.001)

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

    def close(self, keep: bool = False) -> None:
        self.heal()
        self.gates.end()
        for node in self.nodes:
            node.close()
        for proxy in self.proxies:
            proxy.close()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def all_stand_still(pid: int) -> bool:
    """Whether no thread of a process is executed any more."""
    # What follows the name of the program, which stands in parentheses, begins with the state.
    states = [(task / "stat").read_text().rsplit(")", 1)[1].split()[0] for task in Path(f"/proc/{pid}/task").iterdir()]
    return all(state == "T" for state in states)


def name(node: int) -> str:
    return f"n{node + 1}@localhost"


class Front:
    """A node of a cluster of three that takes no queues, in the place of a single broker: whatever clients declare through it lives on
    the two others. What is done to the broker is done to all three."""

    def __init__(self, binary: str, settings: dict[str, str] | None = None):
        self.cluster = Cluster(binary, settings=settings, own={FRONT: {"cluster.takes_queues": "false"}}, through_proxies=False)
        self.node = self.cluster.nodes[FRONT]
        self.binary, self.host = self.node.binary, self.node.host
        self.port, self.http_port, self.metrics_port = self.node.port, self.node.http_port, self.node.metrics_port
        self.directory = self.cluster.directory

    def spawn(self) -> None:
        self.cluster.spawn()

    def start(self) -> Front:
        self.cluster.start()
        return self

    def stop(self) -> int:
        """The first exit code that tells of no clean stop, or 0."""
        nodes = self.cluster.nodes
        with ThreadPoolExecutor(len(nodes)) as all_at_once:
            return next((code for code in all_at_once.map(Broker.stop, nodes) if code != 0), 0)

    def restart(self) -> None:
        code = self.stop()
        if code != 0:
            raise RuntimeError(f"a clean stop exits with 0, not {code}\n{self.log_tail()}")
        self.start()

    def kill(self) -> None:
        for node in self.cluster.nodes:
            node.kill()

    def kill_one(self) -> None:
        """The node that the clients use alone: what they hold and have sent is with the others."""
        self.node.kill()

    def crash(self) -> None:
        self.kill()
        self.start()

    def alive(self) -> bool:
        return all(node.alive() for node in self.cluster.nodes)

    def panics(self) -> list[str]:
        return self.cluster.panics()

    def log_tail(self) -> str:
        return "\n".join(f"{name(at)}:\n{node.log_tail()}" for at, node in enumerate(self.cluster.nodes))

    def close(self, keep: bool = False) -> None:
        self.cluster.close(keep)
