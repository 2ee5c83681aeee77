"""Asks for every row of endpoints.txt by every role."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pika

from .web import Web

TAGS = ["none", "impersonator", "management", "policymaker", "monitoring", "administrator"]
# What a user may do in the virtual host: everything, enter it, nothing.
REACHES = ["all", "void", "out"]
COLUMNS = ["nobody", "wrong"] + [f"{tag}/{reach}" for tag in TAGS for reach in REACHES]
# RabbitMQ knows about connections after a while, and nothing tells when.
UNTIL_SECONDS = 15.0

# Which tags are let in by the right of a route, and whether that is only so in virtual hosts that the user may enter.
MANAGERS = {"management", "policymaker", "monitoring", "administrator"}
# Whoever asks, also without a name or with a wrong password.
ANYONE = {"nobody", "wrong", *TAGS}
RIGHTS = {
    "anyone": (ANYONE, False),
    "management": (MANAGERS, False),
    "vhost": (MANAGERS, True),
    "watched": (MANAGERS, True),
    "permission": (MANAGERS, True),
    "policymaker": ({"policymaker", "administrator"}, True),
    "monitor": ({"monitoring", "administrator"}, False),
    "administrator": ({"administrator"}, False),
}


@dataclass(frozen=True)
class Row:
    verb: str
    path: str
    body: str | None
    right: str | None

    @property
    def name(self) -> str:
        return f"{self.verb} {self.path}"

    @property
    def changes(self) -> bool:
        return self.verb != "GET"


def rows() -> list[Row]:
    found = []
    for line in (Path(__file__).parent / "endpoints.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        line, _, right = line.partition(" ours ")
        verb, path, *body = line.split(" ", 2)
        assert not right or right in RIGHTS, f"endpoints.txt: {right} is no right"
        found.append(Row(verb, path, body[0] if body else None, right or None))
    return found


def lets_in(right: str, column: str) -> bool:
    """Whether an endpoint of ours answers this asker."""
    tag, _, reach = column.partition("/")
    tags, needs_vhost = RIGHTS[right]
    if right == "permission":
        return tag in tags and reach == "all"
    everywhere = {"administrator", "monitoring"} if right == "watched" else {"administrator"}
    return tag in tags and (not needs_vhost or reach != "out" or tag in everywhere)


class Matrix:
    """The virtual host `access`, its users, and what they are answered."""

    def __init__(self, host: str, amqp: int, http: int):
        self.host, self.amqp = host, amqp
        self.web = Web(host, http)
        self.connections: dict[str, pika.BlockingConnection] = {}
        overview = self.web.operate("GET", "/overview")
        self.names = {"node": overview["node"], "cluster": overview["cluster_name"], "port": str(amqp)}

    def play(self, chosen: list[Row]) -> dict[str, dict[str, str]]:
        self.clear()
        try:
            self.make_roles()
            self.mend(True)
            return {row.name: {column: self.cell(row, column) for column in COLUMNS} for row in chosen}
        finally:
            for connection in self.connections.values():
                if connection.is_open:
                    connection.close()
            self.clear()

    def clear(self) -> None:
        for path in ["/vhosts/access", "/global-parameters/access", *(f"/users/{self.user(column)}" for column in COLUMNS[2:]), "/users/access.victim"]:
            self.web.operate("DELETE", path, missing_is_fine=True)

    def user(self, column: str) -> str:
        return "role." + column.replace("/", ".")

    def make_roles(self) -> None:
        for column in COLUMNS[2:]:
            tag = column.split("/")[0]
            self.web.operate("PUT", f"/users/{self.user(column)}", {"password": "role", "tags": "" if tag == "none" else tag})

    def permit(self, column: str) -> None:
        path = f"/permissions/access/{self.user(column)}"
        reach = column.partition("/")[2]
        if not reach:
            return None  # whoever has no name has no permissions
        if reach == "out":
            return self.web.operate("DELETE", path, missing_is_fine=True)
        pattern = ".*" if reach == "all" else "^$"
        return self.web.operate("PUT", path, {"configure": pattern, "write": pattern, "read": pattern})

    def mend(self, whole: bool) -> None:
        """Makes everything anew that a row may have taken away."""
        put, post = (lambda path, body: self.web.operate("PUT", path, body)), (lambda path, body: self.web.operate("POST", path, body))
        put("/vhosts/access", {})
        put("/users/access.victim", {"password": "victim", "tags": ""})
        put("/permissions/access/access.victim", {"configure": ".*", "write": ".*", "read": ".*"})
        put("/permissions/access/guest", {"configure": ".*", "write": ".*", "read": ".*"})
        put("/topic-permissions/access/access.victim", {"exchange": "amq.topic", "write": ".*", "read": ".*"})
        for queue in "qr":
            put(f"/queues/access/{queue}", {})
        put("/exchanges/access/x", {"type": "topic"})
        put("/exchanges/access/y", {"type": "fanout"})
        # RabbitMQ has the type with its plugin only, and no endpoint that shows the ring.
        self.web.ask("guest:guest", "PUT", "/exchanges/access/ring", json.dumps({"type": "x-consistent-hash"}))
        post("/bindings/access/e/x/q/q", {"routing_key": "k"})
        post("/bindings/access/e/x/e/y", {"routing_key": "k"})
        for kind in ("policies", "operator-policies"):
            put(f"/{kind}/access/p", {"pattern": "^nothing$", "definition": {"max-length": 10}})
        put("/vhost-limits/access/max-queues", {"value": 1000})
        put("/user-limits/access.victim/max-channels", {"value": 1000})
        put("/global-parameters/access", {"value": "access"})
        if whole:
            for column in COLUMNS[2:]:
                self.permit(column)

    def open(self, user: str, password: str) -> str:
        """The name of this user's connection, as far as it is known to the API."""
        connection = self.connections.get(user)
        if connection is None or not connection.is_open:
            credentials = pika.PlainCredentials(user, password)
            connection = pika.BlockingConnection(pika.ConnectionParameters(self.host, self.amqp, "access", credentials, heartbeat=0))
            connection.channel().basic_consume("q", lambda *_: None) if user == "access.victim" else None
            self.connections[user] = connection
        local = connection._impl._transport._sock.getsockname()
        return f"{local[0]}:{local[1]} -> {self.host}:{self.amqp}"

    def known(self, path: str) -> None:
        deadline = time.monotonic() + UNTIL_SECONDS
        while self.web.ask("guest:guest", "GET", path)[0] != 200:
            assert time.monotonic() < deadline, f"{path} is not there"

    def path(self, row: Row, column: str) -> str:
        """The row's path with names in it."""
        names = dict(self.names)
        names["me"] = self.user(column) if "/" in column else "guest"
        if "{connection}" in row.path or "{channel}" in row.path:
            names["connection"] = self.open("access.victim", "victim")
            names["channel"] = names["connection"] + " (1)"
        if "{own}" in row.path:
            names["own"] = self.open(self.user(column), "role")
        path = row.path
        for name, value in names.items():
            path = path.replace("{" + name + "}", quote(value, safe=""))
        return path

    def meet(self, row: Row, column: str) -> None:
        """Opens the connections that a row is about, and waits until the API knows them."""
        users = {"access.victim": "victim"}
        if "{me}" in row.path or "{own}" in row.path:
            users[self.user(column)] = "role"
        for user, password in users.items():
            name = quote(self.open(user, password), safe="")
            for path in (f"/connections/{name}", f"/channels/{name}%20%281%29")[: 2 if user == "access.victim" else 1]:
                self.known(path)

    def cell(self, row: Row, column: str) -> str:
        """A status, with a plus if what is in the virtual host can be seen."""
        own = "{own}" in row.path or "{me}" in row.path and "connections" in row.path
        if own and column.partition("/")[2] not in ("all", "void"):
            return "-"
        if any(word in row.path for word in ("connections", "channels", "consumers")):
            self.meet(row, column)
        path = self.path(row, column)
        body = row.body and row.body.replace("{cluster}", self.names["cluster"])
        # Somebody else each time: whoever is wrong too often has to wait.
        asker = {"nobody": None, "wrong": f"wrong{row.path}:wrong".replace("{", "")}.get(column, f"{self.user(column)}:role")
        status, text = self.web.ask(asker, row.verb, path, body)
        if row.changes and status < 300:
            self.settle(row, column)
        sees = not row.changes and status == 200 and '"access' in text
        return f"{status}{'+' if sees else ''}"

    def settle(self, row: Row, column: str) -> None:
        """After a change that was made."""
        if row.path == "/vhosts/access" and row.verb == "DELETE" or "connections" in row.path or "users" in row.path:
            for connection in self.connections.values():
                drop(connection)
            self.connections.clear()
        self.mend(row.path == "/vhosts/access")
        self.permit(column)


def drop(connection: pika.BlockingConnection) -> None:
    """Closes a connection that the broker may have closed already."""
    try:
        connection.close()
    except pika.exceptions.AMQPError:
        pass
