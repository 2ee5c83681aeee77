"""Every operation that asks for permission, and the objects that it touches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

VERBS = ("configure", "write", "read")
# What stands in permissions for the objects of the table below.
NAMES = {"queue": "^acc\\.q$", "server-named": "^amq\\.gen", "exchange": "^acc\\.x$", "other": "^acc\\.y$", "default": "^amq\\.default$"}
Q, X, Y = "acc.q", "acc.x", "acc.y"
USER = "acc.user"


@dataclass(frozen=True)
class Operation:
    """What is done, on a channel or by the HTTP API, by a user who has each part of the grants on `objects`.

    `there` is what exists before; what is not there is deleted. `keys` are further grants: the topic permissions on `exchange`."""

    name: str
    objects: tuple[str, ...]
    act: Callable[[Any], Any]
    there: tuple[str, ...] = ()
    kind: str = "direct"
    keys: tuple[str, ...] = ()
    bound: str = ""
    over: str = "amqp"
    arguments: dict = field(default_factory=dict)

    def grants(self) -> list[tuple[str, str]]:
        return [(verb, name) for name in self.objects for verb in VERBS] + [(verb, "key") for verb in self.keys]


def publish(channel, exchange, key, **properties):
    import pika

    channel.confirm_delivery()
    channel.basic_publish(exchange, key, b"x", pika.BasicProperties(**properties) if properties else None)


def web(verb: str, path: str, body=None):
    return lambda ask: ask(verb, path, body)


MESSAGE = {"properties": {}, "routing_key": "k", "payload": "x", "payload_encoding": "string"}
GET = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
TOPIC = {"kind": "topic"}

OPERATIONS = [
    Operation("queue.declare", ("queue",), lambda it: it.queue_declare(Q)),
    Operation("queue.declare of one that is there", ("queue",), lambda it: it.queue_declare(Q), (Q,)),
    Operation("queue.declare passive", ("queue",), lambda it: it.queue_declare(Q, passive=True), (Q,)),
    Operation("queue.declare exclusive", ("queue",), lambda it: (it.queue_declare(Q, exclusive=True), it.queue_delete(Q))),
    Operation("queue.declare server-named", ("server-named",), lambda it: it.queue_delete(it.queue_declare("").method.queue)),
    Operation(
        "queue.declare with a dead-letter exchange",
        ("queue", "exchange"),
        lambda it: it.queue_declare(Q, arguments={"x-dead-letter-exchange": X}),
        (X,),
    ),
    Operation(
        "queue.declare with a dead-letter exchange that is not there",
        ("queue", "exchange"),
        lambda it: it.queue_declare(Q, arguments={"x-dead-letter-exchange": X}),
    ),
    Operation(
        "queue.declare with the default exchange for dead letters",
        ("queue", "default"),
        lambda it: it.queue_declare(Q, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": Q}),
    ),
    Operation("queue.delete", ("queue",), lambda it: it.queue_delete(Q), (Q,)),
    Operation("queue.delete of one that is not there", ("queue",), lambda it: it.queue_delete(Q)),
    Operation("queue.purge", ("queue",), lambda it: it.queue_purge(Q), (Q,)),
    Operation("queue.bind", ("queue", "exchange"), lambda it: it.queue_bind(Q, X, "k"), (Q, X)),
    Operation("queue.unbind", ("queue", "exchange"), lambda it: it.queue_unbind(Q, X, "k"), (Q, X), bound="queue"),
    Operation("queue.bind to a topic exchange", ("queue", "exchange"), lambda it: it.queue_bind(Q, X, "k"), (Q, X), keys=("write", "read"), **TOPIC),
    Operation(
        "queue.unbind from a topic exchange",
        ("queue", "exchange"),
        lambda it: it.queue_unbind(Q, X, "k"),
        (Q, X),
        keys=("write", "read"),
        bound="queue",
        **TOPIC,
    ),
    Operation("exchange.declare", ("exchange",), lambda it: it.exchange_declare(X)),
    Operation("exchange.declare of one that is there", ("exchange",), lambda it: it.exchange_declare(X), (X,)),
    Operation("exchange.declare passive", ("exchange",), lambda it: it.exchange_declare(X, passive=True), (X,)),
    Operation(
        "exchange.declare with an alternate exchange",
        ("exchange", "other"),
        lambda it: it.exchange_declare(X, arguments={"alternate-exchange": Y}),
        (Y,),
    ),
    Operation("exchange.delete", ("exchange",), lambda it: it.exchange_delete(X), (X,)),
    Operation("exchange.delete of one that is not there", ("exchange",), lambda it: it.exchange_delete(X)),
    Operation("exchange.bind (exchange is the source)", ("exchange", "other"), lambda it: it.exchange_bind(Y, X, "k"), (X, Y)),
    Operation("exchange.unbind (exchange is the source)", ("exchange", "other"), lambda it: it.exchange_unbind(Y, X, "k"), (X, Y), bound="other"),
    Operation("exchange.bind to a topic exchange", ("exchange", "other"), lambda it: it.exchange_bind(Y, X, "k"), (X, Y), keys=("write", "read"), **TOPIC),
    Operation(
        "exchange.unbind from a topic exchange",
        ("exchange", "other"),
        lambda it: it.exchange_unbind(Y, X, "k"),
        (X, Y),
        keys=("write", "read"),
        bound="other",
        **TOPIC,
    ),
    Operation("basic.publish", ("exchange", "queue"), lambda it: publish(it, X, "k"), (Q, X), bound="queue"),
    Operation("basic.publish to the default exchange", ("default", "queue"), lambda it: publish(it, "", Q), (Q,)),
    Operation("basic.publish to a topic exchange", ("exchange",), lambda it: publish(it, X, "k"), (X,), keys=("write", "read"), **TOPIC),
    Operation(
        "basic.publish with a copy to a key of a topic exchange",
        ("exchange",),
        lambda it: publish(it, X, "k", headers={"CC": ["elsewhere"]}),
        (X,),
        keys=("write", "read"),
        **TOPIC,
    ),
    Operation("basic.publish that waits at the alternate exchange", ("exchange", "other"), lambda it: publish(it, X, "k"), (Y, X), arguments={"alternate-exchange": Y}),
    Operation("basic.get", ("queue",), lambda it: it.basic_get(Q), (Q,)),
    Operation("basic.consume", ("queue",), lambda it: it.basic_consume(Q, lambda *_: None), (Q,)),
    Operation("HTTP: declare a queue", ("queue",), web("PUT", f"/queues/acc/{Q}", {}), over="http"),
    Operation("HTTP: delete a queue", ("queue",), web("DELETE", f"/queues/acc/{Q}"), (Q,), over="http"),
    Operation("HTTP: purge a queue", ("queue",), web("DELETE", f"/queues/acc/{Q}/contents"), (Q,), over="http"),
    Operation("HTTP: get from a queue", ("queue",), web("POST", f"/queues/acc/{Q}/get", GET), (Q,), over="http"),
    Operation("HTTP: declare an exchange", ("exchange",), web("PUT", f"/exchanges/acc/{X}", {"type": "direct"}), over="http"),
    Operation("HTTP: delete an exchange", ("exchange",), web("DELETE", f"/exchanges/acc/{X}"), (X,), over="http"),
    Operation("HTTP: publish", ("exchange",), web("POST", f"/exchanges/acc/{X}/publish", MESSAGE), (X,), over="http"),
    Operation("HTTP: publish to a topic exchange", ("exchange",), web("POST", f"/exchanges/acc/{X}/publish", MESSAGE), (X,), keys=("write", "read"), over="http", **TOPIC),
    Operation("HTTP: publish to the default exchange", ("default",), web("POST", "/exchanges/acc/amq.default/publish", MESSAGE), (), over="http"),
    Operation("HTTP: bind a queue", ("queue", "exchange"), web("POST", f"/bindings/acc/e/{X}/q/{Q}", {"routing_key": "k"}), (Q, X), over="http"),
    Operation("HTTP: unbind a queue", ("queue", "exchange"), web("DELETE", f"/bindings/acc/e/{X}/q/{Q}/k"), (Q, X), bound="queue", over="http"),
    Operation("HTTP: bind an exchange", ("exchange", "other"), web("POST", f"/bindings/acc/e/{X}/e/{Y}", {"routing_key": "k"}), (X, Y), over="http"),
    Operation("HTTP: unbind an exchange", ("exchange", "other"), web("DELETE", f"/bindings/acc/e/{X}/e/{Y}/k"), (X, Y), bound="other", over="http"),
]
