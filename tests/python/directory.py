"""Two servers that know passwords: a service asked over HTTP, and a directory (LDAP) that can bind, search and start TLS."""

import contextlib
import socket
import socketserver
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Service:
    """Answers what `answer(fields)` says: text, or a status; remembers what it was asked."""

    def __init__(self, answer, certificate=None):
        self.asked, self.paths, self.answer = [], [], answer
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.reply(urlsplit(self.path).query)

            def do_POST(self):
                self.reply(self.rfile.read(int(self.headers["Content-Length"])).decode())

            def reply(self, form):
                fields = {name: values[0] for name, values in parse_qs(form, keep_blank_values=True).items()}
                # Which question it is, the last part of the address says.
                service.paths.append(urlsplit(self.path).path.rsplit("/", 1)[1])
                service.asked.append((self.command, fields))
                found = service.answer(fields)
                status, text = (found, "") if isinstance(found, int) else (200, found)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # Whoever asks may lose patience.
        self.http.handle_error = lambda *_: None
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            scheme = "https"
        self.address = f"{scheme}://localhost:{self.http.server_port}/auth/user"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def value(tag, *parts):
    content = b"".join(parts)
    length = len(content)
    head = bytes([length]) if length < 128 else b"\x82" + length.to_bytes(2, "big")
    return bytes([tag]) + head + content


def take(data):
    tag, length, at = data[0], data[1], 2
    if length & 0x80:
        at += length & 0x7F
        length = int.from_bytes(data[2:at], "big")
    return tag, data[at : at + length], data[at + length :]


class Directory:
    """`people` has the password of each name; `found` the names by the value of the attribute that is searched for."""

    def __init__(self, people, found=None, certificate=None, tls_at_start=False):
        self.people, self.found, self.binds, self.lines = people, found or {}, [], []
        directory = self
        context = None
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                self.secured = False
                directory.lines.append(self.request)
                if tls_at_start:
                    self.secure()
                while message := self.message():
                    _, number, rest = take(message)
                    tag, content, _ = take(rest)
                    for answer in self.answers(tag, content):
                        self.request.sendall(value(0x30, value(0x02, number), answer))
                    if tag == 0x77:
                        self.secure()

            def secure(self):
                self.request = context.wrap_socket(self.request, server_side=True)
                self.secured = True

            def message(self):
                data = b""
                while len(data) < 2 or len(take(data)[1]) < self.wanted(data):
                    more = self.request.recv(4096)
                    if not more:
                        return None
                    data += more
                return take(data)[1]

            def wanted(self, data):
                return data[1] if data[1] < 128 else int.from_bytes(data[2 : 2 + (data[1] & 0x7F)], "big")

            def answers(self, tag, content):
                def done(tag, code):
                    return value(tag, value(0x0A, bytes([code])), value(0x04), value(0x04))

                if tag == 0x60:
                    _, _, rest = take(content)
                    _, name, rest = take(rest)
                    _, password, _ = take(rest)
                    directory.binds.append((name.decode(), self.secured))
                    good = directory.people.get(name.decode()) == password.decode()
                    return [done(0x61, 0 if good else 49)]
                if tag == 0x63:
                    _, _, rest = take(content)
                    for _ in range(5):
                        _, _, rest = take(rest)
                    _, wanted, _ = take(rest)
                    _, attribute, wanted = take(wanted)
                    _, wanted, _ = take(wanted)
                    names = directory.found.get((attribute.decode(), wanted.decode()), [])
                    return [value(0x64, value(0x04, name.encode()), value(0x30)) for name in names] + [done(0x65, 0)]
                return [done(0x78, 0 if context else 2)] if tag == 0x77 else []

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        # Those whom nobody serves any more are told so; some are gone already, or secured by now.
        for line in self.lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
