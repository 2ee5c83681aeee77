"""A client of the HTTP API on one connection that is kept."""

from __future__ import annotations

import base64
import http.client
import json


class Web:
    def __init__(self, host: str, port: int):
        self.connection = http.client.HTTPConnection(host, port, timeout=30)

    def ask(self, user: str | None, verb: str, path: str, body: str | None = None) -> tuple[int, str]:
        """Status and text. `user` is NAME:PASSWORD."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if user is not None:
            headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        try:
            return self.once(verb, path, body, headers)
        except (http.client.HTTPException, ConnectionError):
            # The server may end a connection between two requests.
            self.connection.close()
            return self.once(verb, path, body, headers)

    def once(self, verb, path, body, headers) -> tuple[int, str]:
        self.connection.request(verb, f"/api{path}", body, headers)
        reply = self.connection.getresponse()
        return reply.status, reply.read().decode(errors="replace")

    def operate(self, verb: str, path: str, body=None, missing_is_fine: bool = False) -> object:
        """What the tests themselves need; it must succeed."""
        status, text = self.ask("guest:guest", verb, path, None if body is None else json.dumps(body))
        if status == 404 and missing_is_fine:
            return None
        assert status < 300, f"{verb} {path}: {status} {text}"
        return json.loads(text) if text else None
