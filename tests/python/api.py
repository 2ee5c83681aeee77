"""A client of the HTTP API that hides nothing: status, headers and JSON of each answer."""

import base64
import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from urllib.parse import quote


@dataclass
class Answer:
    status: int
    headers: dict
    text: str

    @property
    def json(self):
        return json.loads(self.text)


def q(name: str) -> str:
    """A name as it stands in an address."""
    return quote(name, safe="")


class Api:
    def __init__(self, user="guest", password="guest", root=None, timeout=30):
        self.timeout = timeout
        self.root = root or f"http://{os.environ['AMQP_HOST']}:{os.environ['HTTP_PORT']}"
        self.credentials = None if user is None else base64.b64encode(f"{user}:{password}".encode()).decode()

    def __call__(self, method: str, path: str, body=None, headers=None) -> Answer:
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.root}{path}", data=data, method=method, headers=headers or {})
        if self.credentials:
            request.add_header("Authorization", f"Basic {self.credentials}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as reply:
                return Answer(reply.status, dict(reply.headers), reply.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read().decode())

    def get(self, path, patience=10.0):
        """Asked again for `patience` seconds if another node has the answer and is silent for one, as on a busy machine."""
        end = time.monotonic() + patience
        while True:
            answer = self("GET", f"/api{path}")
            if answer.status != 503 or "did not answer in time" not in answer.text or time.monotonic() >= end:
                return answer
            time.sleep(0.1)

    def put(self, path, body=None):
        return self("PUT", f"/api{path}", body)

    def post(self, path, body=None):
        return self("POST", f"/api{path}", body)

    def delete(self, path, headers=None):
        return self("DELETE", f"/api{path}", headers=headers)
