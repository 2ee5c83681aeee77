"""Declaring queues: arguments with wrong types and ranges, and inequivalent declarations again."""

from ..case import add, case
from ..form import Typed

NUMBERS = ["x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-max-priority"]
STRINGS = ["x-dead-letter-exchange", "x-dead-letter-routing-key", "x-overflow", "x-queue-type", "x-queue-mode", "x-queue-leader-locator"]
OTHERS = [
    "x-delivery-limit", "x-max-age", "x-stream-max-segment-size-bytes", "x-stream-filter-size-bytes", "x-initial-cluster-size",
    "x-quorum-initial-group-size", "x-dead-letter-strategy", "x-max-in-memory-length", "x-max-in-memory-bytes", "x-consumer-timeout",
    "x-delayed-retry-type", "x-delayed-retry-min", "x-delayed-retry-max", "x-single-active-consumer", "x-queue-version", "x-unheard-of",
]  # fmt: skip
TYPES = {
    "a string": "text",
    "an empty string": "",
    "a boolean": True,
    "a double": Typed("d", 1.5),
    "a float": Typed("f", 2.0),
    "an array": [1],
    "a table": {"a": 1},
    "void": None,
    "a time": Typed("T", 5),
    "bytes": b"text",
}
INTEGERS = {
    "minus one": -1,
    "zero": 0,
    "one": 1,
    "a byte": Typed("b", 7),
    "an unsigned byte": Typed("B", 200),
    "a short": Typed("s", 300),
    "an unsigned short": Typed("u", 40000),
    "an unsigned int": Typed("i", 3000000000),
    "a long": Typed("l", 5),
    "ten years": 315_360_000_000,
    "ten years and a millisecond": 315_360_000_001,
}


def declares(arguments: dict, **flags):
    def script(t):
        t.queue("~q", arguments=arguments, **flags)

    return script


def variants(argument: str, values: dict) -> None:
    for what, value in values.items():
        add(f"{argument}: {what}", declares({argument: value}))


for each in NUMBERS:
    variants(each, {name: value for name, value in TYPES.items() if name not in ("an empty string", "a float", "bytes")} | INTEGERS)
variants("x-max-priority", {"255": 255, "256": 256})
for each in STRINGS:
    variants(each, {name: TYPES[name] for name in ("a string", "an empty string", "a boolean", "an array", "void", "bytes")} | {"a number": 5})
for each in OTHERS:
    variants(each, {"a number": 5, "a string": "text", "a boolean": True})
variants("x-overflow", {"drop-head": "drop-head", "reject-publish": "reject-publish", "reject-publish-dlx": "reject-publish-dlx"})
variants("x-queue-mode", {"lazy": "lazy", "default": "default"})
variants("x-queue-type", {"classic": "classic"})
variants("x-queue-version", {"one": 1, "two": 2, "three": 3})

TOGETHER = {
    "a dead-letter key without an exchange": {"x-dead-letter-routing-key": "k"},
    "a dead-letter key with an exchange that is missing": {"x-dead-letter-exchange": "~missing", "x-dead-letter-routing-key": "k"},
    "a dead-letter key with the default exchange": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "k"},
    "priorities with a single active consumer": {"x-max-priority": 3, "x-single-active-consumer": True},
    "every argument of a classic queue": {
        "x-message-ttl": 60000, "x-expires": 60000, "x-max-length": 10, "x-max-length-bytes": 1000, "x-max-priority": 3, "x-overflow": "reject-publish",
        "x-dead-letter-exchange": "amq.fanout", "x-dead-letter-routing-key": "k", "x-queue-mode": "lazy",
    },
    "two bad arguments": {"x-max-length": "a", "x-message-ttl": -1},
    "two bad arguments the other way round": {"x-message-ttl": -1, "x-max-length": "a"},
    "a bad argument and an unheard-of one": {"x-unheard-of": 1, "x-max-length": -1},
}  # fmt: skip
for what, chosen in TOGETHER.items():
    add(f"declare with {what}", declares(chosen))

AGAIN = {
    "x-message-ttl": (1000, 2000), "x-expires": (60000, 61000), "x-max-length": (5, 6), "x-max-length-bytes": (5, 6), "x-max-priority": (2, 3),
    "x-overflow": ("drop-head", "reject-publish"), "x-dead-letter-exchange": ("amq.fanout", "amq.direct"), "x-single-active-consumer": (True, False),
    "x-queue-mode": ("lazy", "default"), "x-unheard-of": (1, 2), "x-queue-type": ("classic", "quorum"),
}  # fmt: skip


def declares_again(argument: str, one, two):
    def script(t):
        t.queue("~q", arguments={argument: one})
        t.queue("~q", arguments={argument: one})
        t.queue("~q", arguments={argument: two})
        t.queue("~q")
        t.queue("~p")
        t.queue("~p", arguments={argument: one})

    return script


for argument, (one, two) in AGAIN.items():
    add(f"declare again with another {argument}", declares_again(argument, one, two))
for what, (one, two) in {
    "a long instead of an int": (5, Typed("l", 5)),
    "a short instead of an int": (5, Typed("s", 5)),
    "an unsigned byte instead of a byte": (Typed("b", 5), Typed("B", 5)),
}.items():
    add(f"declare again with {what}", declares_again("x-max-length", one, two))


@case("declare again with another dead-letter key")
def _(t):
    t.queue("~q", arguments={"x-dead-letter-exchange": "amq.fanout", "x-dead-letter-routing-key": "a"})
    t.queue("~q", arguments={"x-dead-letter-exchange": "amq.fanout", "x-dead-letter-routing-key": "b"})
    t.queue("~q", arguments={"x-dead-letter-exchange": "amq.fanout"})


@case("declare again with another durability, auto-deletion, exclusivity")
def _(t):
    t.queue("~q")
    t.queue("~q", durable=False)
    t.queue("~q", auto_delete=True)
    t.queue("~q", exclusive=True)
    t.queue("~q", exclusive=True, durable=False, auto_delete=True, arguments={"x-max-length": 1})
    t.queue("~q", passive=True, durable=False, exclusive=True, arguments={"x-max-length": 1})


@case("exclusive queues are not durable, however they are declared")
def _(t):
    t.queue("~q", exclusive=True)
    t.queue("~q", durable=False, exclusive=True)
    t.queue("~other", durable=False, exclusive=True)
    t.queue("~other", exclusive=True)
    t.queue("~q")
    t.http("GET", "/queues/%2F/~q", members=["durable", "exclusive"])


@case("another connection's exclusive queue is locked")
def _(t):
    other = t.connection("other")
    other.queue("~q", exclusive=True)
    t.queue("~q", exclusive=True)
    t.queue("~q", passive=True)
    t.get("~q")
    t.consume("~q")
    t.purge("~q")
    t.bind("~q", "amq.fanout")
    t.delete_queue("~q")
    other.close_connection()
    t.queue("~q", passive=True)


@case("queues with reserved, long, odd and empty names")
def _(t):
    t.queue("amq.mine")
    t.queue("amq.rabbitmq.mine")
    t.queue("~" + "x" * 240)
    t.queue("~a b\tc/ü")
    t.queue("~line\r\nend")
    t.queue("~lineend", passive=True)
    t.queue("", exclusive=True)


@case("server-named queues and the last declared one")
def _(t):
    t.get("")
    t.queue("", exclusive=True, durable=False)
    t.get("")
    t.bind("", "amq.direct", "k~")
    t.publish("amq.direct", "k~")
    t.get("")
    t.purge("")
    t.delete_queue("")
    t.delete_queue("")
    t.get("")
