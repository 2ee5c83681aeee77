"""JSON Web Tokens, signed with the openssl command, and a server that publishes keys."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*words, stdin: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *map(str, words)], input=stdin, check=True, capture_output=True).stdout


class Issuer:
    """An OAuth 2 server as far as a broker sees it: it has an RSA key, signs tokens and may publish the key."""

    def __init__(self, directory: Path, key_id: str = "one"):
        self.key, self.public, self.key_id = directory / f"{key_id}.key", directory / f"{key_id}.pub", key_id
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.key)
        openssl("pkey", "-in", self.key, "-pubout", "-out", self.public)

    def token(self, seconds: float = 600, **claims) -> str:
        header = {"alg": "RS256", "typ": "JWT", "kid": self.key_id}
        claims = {"sub": "jane", "aud": "rabbitmq", "exp": time.time() + seconds, "scope": "rabbitmq.read:*/* rabbitmq.write:*/* rabbitmq.configure:*/*"} | claims
        claims = {name: value for name, value in claims.items() if value is not None}
        signed = ".".join(b64(json.dumps(part).encode()) for part in (header, claims))
        return f"{signed}.{b64(openssl('dgst', '-sha256', '-sign', self.key, stdin=signed.encode()))}"

    def key_set(self) -> dict:
        text = openssl("rsa", "-in", self.key, "-noout", "-modulus").decode()
        modulus = bytes.fromhex(text.strip().removeprefix("Modulus="))
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.key_id, "n": b64(modulus), "e": "AQAB"}]}


class KeyServer:
    """Publishes what `document` is at the moment; None answers 503."""

    def __init__(self, document):
        self.document, self.asked = document, 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked += 1
                body = json.dumps(server.document).encode()
                self.send_response(200 if server.document else 503)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}/keys"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
