"""Finds out what each operation needs: which smallest sets of grants let a user do it."""

from __future__ import annotations

import itertools
import json

import pika

from .operations import NAMES, USER, VERBS, Operation, Q, X, Y
from .web import Web

PASSWORD = "secret"


class Grants:
    """The virtual host `acc` and a user whose permissions change."""

    def __init__(self, host: str, amqp: int, http: int):
        self.host, self.amqp = host, amqp
        self.web = Web(host, http)
        self.is_stale = True

    def play(self, operations: list[Operation]) -> dict[str, str]:
        self.clear()
        self.web.operate("PUT", "/vhosts/acc", {})
        for user in (USER, "guest"):
            if user == USER:
                self.web.operate("PUT", f"/users/{user}", {"password": PASSWORD, "tags": "management"})
            self.web.operate("PUT", f"/permissions/acc/{user}", {verb: ".*" for verb in VERBS})
        self.owner, self.user = self.connect("guest", "guest"), self.connect(USER, PASSWORD)
        self.owning = self.owner.channel()
        try:
            answers = {operation.name: self.needs(operation) for operation in operations}
        finally:
            for connection in (self.owner, self.user):
                connection.close()
        answers |= self.entering() | self.naming()
        self.clear()
        return answers

    def clear(self) -> None:
        for path in ("/vhosts/acc", f"/users/{USER}"):
            self.web.operate("DELETE", path, missing_is_fine=True)

    def connect(self, user: str, password: str) -> pika.BlockingConnection:
        credentials = pika.PlainCredentials(user, password)
        return pika.BlockingConnection(pika.ConnectionParameters(self.host, self.amqp, "acc", credentials, heartbeat=0))

    def needs(self, operation: Operation) -> str:
        """The smallest sets of grants that are enough, as text."""
        every, enough = operation.grants(), []
        for count in range(len(every) + 1):
            for held in itertools.combinations(every, count):
                if any(set(known) <= set(held) for known in enough):
                    continue
                if self.succeeds(operation, held):
                    enough.append(held)
        return " or ".join(" + ".join(f"{verb} {name}" for verb, name in held) or "nothing" for held in enough) or "can't be done"

    def succeeds(self, operation: Operation, held: tuple[tuple[str, str], ...]) -> bool:
        # What was refused has changed nothing.
        if self.is_stale or not held:
            self.prepare(operation)
        patterns = {verb: "|".join(NAMES[name] for granted, name in held if granted == verb and name != "key") or "^$" for verb in VERBS}
        self.web.operate("PUT", f"/permissions/acc/{USER}", patterns)
        if operation.keys:
            keys = {verb: "^k$" if (verb, "key") in held else "^$" for verb in ("write", "read")}
            self.web.operate("PUT", f"/topic-permissions/acc/{USER}", {"exchange": X} | keys)
        try:
            self.is_stale = self.try_web(operation) if operation.over == "http" else self.try_channel(operation)
            return self.is_stale
        finally:
            if operation.keys:
                self.web.operate("DELETE", f"/topic-permissions/acc/{USER}")

    def prepare(self, operation: Operation) -> None:
        it = self.owning
        it.queue_declare(Q) if Q in operation.there else it.queue_delete(Q)
        it.exchange_delete(X)
        it.exchange_delete(Y)
        if Y in operation.there:
            it.exchange_declare(Y)
        if X in operation.there:
            it.exchange_declare(X, operation.kind, arguments=operation.arguments)
        if operation.bound == "queue":
            it.queue_bind(Q, X, "k")
        if operation.bound == "other":
            it.exchange_bind(Y, X, "k")

    def try_channel(self, operation: Operation) -> bool:
        channel = self.user.channel()
        try:
            operation.act(channel)
        except pika.exceptions.ChannelClosedByBroker as closed:
            assert closed.reply_code == 403, f"{operation.name}: {closed}"
            return False
        channel.close()
        return True

    def try_web(self, operation: Operation) -> bool:
        def ask(verb, path, body):
            return self.web.ask(f"{USER}:{PASSWORD}", verb, path, None if body is None else json.dumps(body))

        status, text = operation.act(ask)
        assert status < 300 or status in (400, 401, 403), f"{operation.name}: {status} {text}"
        assert status < 300 or "access" in text.lower(), f"{operation.name}: {status} {text}"
        return status < 300

    def entering(self) -> dict[str, str]:
        """What it takes to enter a virtual host."""
        told = {}
        for name, patterns in (("permissions that match nothing", {verb: "^$" for verb in VERBS}), ("no permissions", None)):
            path = f"/permissions/acc/{USER}"
            self.web.operate("PUT", path, patterns) if patterns else self.web.operate("DELETE", path)
            try:
                self.connect(USER, PASSWORD).close()
                told[f"connection.open with {name}"] = "open"
            except pika.exceptions.ProbableAccessDeniedError:
                told[f"connection.open with {name}"] = "refused"
        return told

    def naming(self) -> dict[str, str]:
        """Who may publish in whose name (`user_id`)."""
        told = {}
        self.web.operate("PUT", f"/permissions/acc/{USER}", {verb: ".*" for verb in VERBS})
        for tag in ("none", "management", "policymaker", "monitoring", "administrator", "impersonator"):
            self.web.operate("PUT", f"/users/{USER}", {"password": PASSWORD, "tags": "" if tag == "none" else tag})
            for whose, name in (("own", USER), ("another", "guest")):
                connection = self.connect(USER, PASSWORD)
                channel = connection.channel()
                channel.confirm_delivery()
                try:
                    channel.basic_publish("amq.fanout", "k", b"x", pika.BasicProperties(user_id=name))
                    told[f"basic.publish in {whose} name, tag {tag}"] = "taken"
                except pika.exceptions.ChannelClosedByBroker as closed:
                    told[f"basic.publish in {whose} name, tag {tag}"] = f"refused with {closed.reply_code}"
                connection.close()
        return told
