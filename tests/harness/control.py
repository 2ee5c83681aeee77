"""The line by which a client suite, in whatever language, asks for things to happen to the broker.

A TCP port on loopback; one request a line (`restart`, `crash`, `alarm-on`, `alarm-off`), one answer a line (`ok` once it is done,
`error TEXT` otherwise). So a Java test can restart the broker without knowing how.
"""

from __future__ import annotations

import socketserver
import threading


class Control:
    """Serves the control port for one pair of brokers."""

    def __init__(self, broker, alarm_broker):
        verbs = {
            "restart": broker.restart,
            "crash": broker.crash,
            "alarm-on": alarm_broker.alarm_on,
            "alarm-off": alarm_broker.alarm_off,
        }

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    verb = line.decode().strip()
                    try:
                        verbs[verb]()
                        answer = "ok"
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
