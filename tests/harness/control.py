"""The line by which a client suite, in whatever language, asks for things to happen to the broker.

A TCP port on loopback; one request a line (`restart`, `crash`, `alarm-on`, `alarm-off`), one answer a line (`ok` once it is done,
`error TEXT` otherwise). So a Java test can restart the broker without knowing how. A test that loses nodes asks for three of its own:
`cluster` (the answer is `ok` and their AMQP ports), `kill-node PLACE`, `start-node PLACE`, and `cluster-gone` at its end.
"""

from __future__ import annotations

import socketserver
import threading

from .cluster import Cluster


class Lost:
    """Three nodes that a test has for itself, to lose some of them."""

    def __init__(self, binary: str | None):
        self.binary = binary
        self.cluster: Cluster | None = None

    def start(self) -> str:
        self.gone()
        self.cluster = Cluster(self.binary, through_proxies=False).start()
        return " ".join(str(node.port) for node in self.cluster.nodes)

    def kill_node(self, place: str) -> None:
        self.cluster.nodes[int(place)].kill()

    def start_node(self, place: str) -> None:
        self.cluster.nodes[int(place)].start()
        self.cluster.wait_until_whole()

    def gone(self) -> None:
        if self.cluster:
            cluster, self.cluster = self.cluster, None
            panics = cluster.panics()
            cluster.close()
            if panics:
                raise RuntimeError("; ".join(panics))


class Control:
    """Serves the control port for one pair of brokers."""

    def __init__(self, broker, alarm_broker):
        self.lost = Lost(broker.binary)
        verbs = {
            "restart": broker.restart,
            "crash": broker.crash,
            "cluster": self.lost.start,
            "kill-node": self.lost.kill_node,
            "start-node": self.lost.start_node,
            "cluster-gone": self.lost.gone,
        }
        if alarm_broker:
            verbs |= {"alarm-on": alarm_broker.alarm_on, "alarm-off": alarm_broker.alarm_off}

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    verb, *operands = line.decode().split()
                    try:
                        said = verbs[verb](*operands)
                        answer = f"ok {said}" if said else "ok"
                    except Exception as error:  # noqa: BLE001 - the asking test reports it
                        answer = f"error {type(error).__name__}: {error}".replace("\n", " | ")
                    self.wfile.write(f"{answer}\n".encode())
                    self.wfile.flush()

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.lost.gone()
