"""Quorum queues: what may be said of them, what counts as a return, and where a message stands afterwards."""

from ..case import add, case
from ..form import Typed

QUORUM = {"x-queue-type": "quorum"}


def quorum(t, name="~q", flags=None, **arguments):
    t.queue(name, arguments=QUORUM | {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}, **(flags or {}))


FLAGS = {
    "transient": {"durable": False},
    "exclusive": {"exclusive": True},
    "auto-delete": {"auto_delete": True},
    "transient and exclusive": {"durable": False, "exclusive": True},
    "transient and auto-delete": {"durable": False, "auto_delete": True},
    "exclusive and auto-delete": {"exclusive": True, "auto_delete": True},
}
for what, flags in FLAGS.items():

    def flagged(t, flags=flags):
        quorum(t, flags=flags)
        t.queue("~q", passive=True)

    add(f"quorum: a queue that is {what}", flagged)


@case("quorum: a queue without a name")
def _(t):
    t.queue("", arguments=QUORUM)


@case("quorum: an exclusive queue without a name")
def _(t):
    t.queue("", exclusive=True, arguments=QUORUM)


VALUES = {
    "x-quorum-initial-group-size": [5, 0, -1, "text", True, Typed("d", 1.5)],
    "x-quorum-target-group-size": [5, 0, -1, "text", True],
    "x-delivery-limit": [5, 0, -1, -2, "text", True, Typed("d", 1.5)],
    "x-dead-letter-strategy": ["at-most-once", "at-least-once", "text", "", 5, True],
    "x-delayed-retry-type": ["disabled", "all", "failed", "returned", "text", "", 5],
    "x-delayed-retry-min": [0, 5, -1, "text", 315_360_000_001],
    "x-delayed-retry-max": [0, 5, -1, "text", 315_360_000_001],
    "x-consumer-timeout": [0, 5, 60000, -1, "text", True, 315_360_000_001],
    "x-consumer-disconnected-timeout": [0, 5, 60000, -1, "text", True, 315_360_000_001],
    "x-max-in-memory-length": [0, 5, -1, "text"],
    "x-max-in-memory-bytes": [0, 5, -1, "text"],
    "x-max-length": [0, 5, -1, "text"],
    "x-max-length-bytes": [0, 5, -1, "text"],
    "x-message-ttl": [0, 5, -1, "text", 315_360_000_001],
    "x-expires": [60000, 0, -1, "text"],
    "x-overflow": ["drop-head", "reject-publish", "reject-publish-dlx", "text", 5],
    "x-single-active-consumer": [True, False, "text"],
    "x-queue-leader-locator": ["client-local", "balanced", "random", "least-leaders", "min-masters", "text", 5],
    "x-max-priority": [5, 0, 300],
    "x-queue-mode": ["lazy", "text"],
    "x-queue-version": [2, 1],
    "x-queue-master-locator": ["client-local"],
    "x-max-age": ["1D"],
    "x-initial-cluster-size": [3],
    "x-stream-max-segment-size-bytes": [5],
    "x-dead-letter-routing-key": ["k"],
    "x-dead-letter-exchange": ["amq.fanout", 5],
    "x-unheard-of": [1],
    "x-member-placement-tag": ["a"],
}
for argument, values in VALUES.items():
    for value in values:

        def declares(t, argument=argument, value=value):
            t.queue("~q", arguments=QUORUM | {argument: value})

        add(f"quorum: {argument} {value if not isinstance(value, Typed) else value.value!r}", declares)

TOGETHER = {
    "dead letters at least once with an exchange and reject-publish": {
        "x-dead-letter-exchange": "amq.fanout", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
    },
    "dead letters at least once with drop-head": {"x-dead-letter-exchange": "amq.fanout", "x-dead-letter-strategy": "at-least-once"},
    "dead letters at least once without an exchange": {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"},
    "delayed retries of all": {"x-delayed-retry-type": "all", "x-delayed-retry-min": 10, "x-delayed-retry-max": 100},
    "delayed retries without a least delay": {"x-delayed-retry-type": "all", "x-delayed-retry-max": 100},
    "delayed retries without a greatest delay": {"x-delayed-retry-type": "all", "x-delayed-retry-min": 10},
    "delayed retries the wrong way round": {"x-delayed-retry-type": "all", "x-delayed-retry-min": 100, "x-delayed-retry-max": 10},
    "delays without a type": {"x-delayed-retry-min": 10, "x-delayed-retry-max": 100},
    "two bad arguments": {"x-delivery-limit": "a", "x-max-length": -1},
    "a bad and a foreign argument": {"x-delivery-limit": "a", "x-max-priority": 5},
    "a foreign and a bad argument": {"x-max-age": "1D", "x-max-length": -1},
}  # fmt: skip
for what, chosen in TOGETHER.items():

    def together(t, chosen=chosen):
        t.queue("~q", arguments=QUORUM | chosen)

    add(f"quorum: declare with {what}", together)


@case("quorum: a bad argument of an exclusive queue")
def _(t):
    t.queue("~q", exclusive=True, arguments=QUORUM | {"x-delivery-limit": "a"})


AGAIN = {
    "x-delivery-limit": (5, 6), "x-max-length": (5, 6), "x-message-ttl": (1000, 2000), "x-expires": (60000, 61000),
    "x-overflow": ("drop-head", "reject-publish"), "x-quorum-initial-group-size": (1, 3), "x-quorum-target-group-size": (1, 3),
    "x-dead-letter-strategy": ("at-most-once", "at-least-once"), "x-single-active-consumer": (True, False), "x-max-in-memory-length": (1, 2),
    "x-queue-leader-locator": ("client-local", "balanced"), "x-consumer-timeout": (60000, 70000), "x-consumer-disconnected-timeout": (60000, 70000),
    "x-delayed-retry-type": ("disabled", "all"), "x-delayed-retry-min": (10, 20), "x-delayed-retry-max": (10, 20), "x-dead-letter-exchange": ("a", "b"),
    "x-unheard-of": (1, 2),
}  # fmt: skip
for argument, (one, two) in AGAIN.items():

    def again(t, argument=argument, one=one, two=two):
        t.queue("~q", arguments=QUORUM | {argument: one})
        t.queue("~q", arguments=QUORUM | {argument: one})
        t.queue("~q", arguments=QUORUM | {argument: two})
        t.queue("~q", arguments=QUORUM)
        t.queue("~p", arguments=QUORUM)
        t.queue("~p", arguments=QUORUM | {argument: one})

    add(f"quorum: declare again with another {argument}", again)


@case("quorum: declare again as something else")
def _(t):
    quorum(t)
    t.queue("~q")
    t.queue("~q", arguments={"x-queue-type": "classic"})
    t.queue("~q", durable=False, arguments=QUORUM)
    t.queue("~q", auto_delete=True, arguments=QUORUM)
    t.queue("~q", exclusive=True, arguments=QUORUM)
    t.queue("~p")
    quorum(t, "~p")


# What counts as a return.

def give_back(t, tag, what: str):
    match what:
        case "nack":
            t.nack(tag)
        case "reject":
            t.reject(tag)
        case "recover":
            t.recover()
        case "a closed channel":
            t.close_channel()
        case "a closed connection":
            t.close_connection()
        case "a lost connection":
            t.hang_up()


for what in ("nack", "reject", "recover", "a closed channel", "a closed connection", "a lost connection"):

    def counted_by_get(t, what=what):
        quorum(t)
        t.publish("", "~q", headers={"a": 1})
        for _ in range(3):
            t.sync("~q")
            give_back(t, t.get("~q"), what)
            t.until("~q", 1)
        t.get("~q")

    add(f"quorum: returned by {what}, with get", counted_by_get)

    def counted(t, what=what):
        quorum(t)
        t.publish("", "~q")
        for _ in range(3):
            t.sync("~q")
            t.qos(1)
            t.consume("~q")
            [tag] = t.deliveries(1)
            if what in ("nack", "reject", "recover"):
                t.cancel()
            give_back(t, tag, what)
            t.until("~q", 1)
        t.get("~q")

    add(f"quorum: returned by {what}, with a consumer", counted)

    def limited(t, what=what):
        t.queue("~dead")
        quorum(t, delivery_limit=1, dead_letter_exchange="", dead_letter_routing_key="~dead")
        t.publish("", "~q", delivery_mode=2)
        t.sync("~q")
        for times in range(3):
            give_back(t, t.get("~q"), what)
            t.until("~dead" if times == 1 else "~q", 1)
            if times == 1:
                break
        t.get("~q")
        t.get("~dead")

    if what in ("reject", "a closed channel", "a closed connection", "a lost connection"):
        add(f"quorum: a delivery limit of 1, returned by {what}", limited)


@case("quorum: nack is no end of a message")
def _(t):
    t.queue("~dead")
    quorum(t, delivery_limit=1, dead_letter_exchange="", dead_letter_routing_key="~dead")
    t.publish("", "~q")
    t.sync("~q")
    for _ in range(5):
        t.nack(t.get("~q"))
        t.until("~q", 1)
    t.counts("~dead")
    t.get("~q")


@case("quorum: the twenty-first reject is the last")
def _(t):
    quorum(t)
    t.publish("", "~q")
    t.sync("~q")
    for _ in range(20):
        t.reject(t.get("~q"))
        t.until("~q", 1)
    t.reject(t.get("~q"))
    t.until("~q", 0)
    t.get("~q")


@case("quorum: no limit")
def _(t):
    quorum(t, delivery_limit=-1)
    t.publish("", "~q")
    t.sync("~q")
    for _ in range(22):
        t.reject(t.get("~q"))
        t.until("~q", 1)
    t.get("~q")


@case("quorum: nacks and rejects in turn")
def _(t):
    quorum(t)
    t.publish("", "~q")
    t.sync("~q")
    for give_back in (t.nack, t.reject, t.nack, t.reject):
        give_back(t.get("~q"))
        t.until("~q", 1)
    t.get("~q")


@case("quorum: a publisher's own counts")
def _(t):
    quorum(t)
    t.publish("", "~q", headers={"x-delivery-count": 7, "x-acquired-count": 9, "a": 1})
    t.sync("~q")
    t.reject(t.get("~q"))
    t.until("~q", 1)
    t.get("~q")


@case("quorum: where returned messages stand")
def _(t):
    for limit in (20, -1):
        name = f"~q{limit}"
        t.queue(name, arguments=QUORUM | {"x-delivery-limit": limit})
        t.fill(name, 4)
        t.sync(name)
        first = t.get(name)
        t.get(name)
        t.nack(first)
        t.until(name, 3)
        t.get(name)
        t.reject(t.last_tag)
        t.until(name, 3)
        for _ in range(3):
            t.get(name)


@case("quorum: several come back at once")
def _(t):
    quorum(t)
    t.fill("~q", 4)
    t.sync("~q")
    t.qos(3)
    t.consume("~q")
    tags = t.deliveries(3)
    t.cancel()
    t.nack(tags[-1], multiple=True)
    t.until("~q", 4)
    for _ in range(4):
        t.get("~q")


@case("quorum: rejected without requeue is dead")
def _(t):
    t.queue("~dead")
    quorum(t, dead_letter_exchange="", dead_letter_routing_key="~dead")
    t.publish("", "~q")
    t.sync("~q")
    t.reject(t.get("~q"), requeue=False)
    t.until("~dead", 1)
    t.get("~dead")


# Consumers.

@case("quorum: qos of the whole channel")
def _(t):
    quorum(t)
    t.qos(5, whole_channel=True)
    t.consume("~q")
    t.get("~q")


@case("quorum: qos of the whole channel after consuming")
def _(t):
    quorum(t)
    t.consume("~q")
    t.qos(5, whole_channel=True)
    t.consume("~q", "d")


@case("quorum: get with a single active consumer")
def _(t):
    quorum(t, single_active_consumer=True)
    t.publish("", "~q")
    t.sync("~q")
    t.get("~q")
    t.consume("~q")
    t.deliveries(1)


@case("quorum: an exclusive consumer")
def _(t):
    quorum(t)
    t.consume("~q", exclusive=True)
    t.channel(2).consume("~q", "d")
    t.channel(2).consume("~q", "e", exclusive=True)


@case("quorum: an exclusive consumer beside others")
def _(t):
    quorum(t)
    t.consume("~q")
    t.consume("~q", "d", exclusive=True)


@case("quorum: an exclusive consumer of a queue with a single active one")
def _(t):
    quorum(t, single_active_consumer=True)
    t.consume("~q", exclusive=True)
    t.consume("~q", "d")


@case("quorum: a new single active consumer of a higher priority")
def _(t):
    quorum(t, single_active_consumer=True)
    t.consume("~q", "low")
    other = t.channel(2)
    other.consume("~q", "high", arguments={"x-priority": 5})
    t.publish("", "~q")
    t.sync("~q")
    other.deliveries(1)
    t.no_deliveries("~q")


@case("quorum: a new single active consumer of a higher priority while the old one holds a message")
def _(t):
    quorum(t, single_active_consumer=True)
    t.publish("", "~q", "0")
    t.consume("~q", "low")
    [tag] = t.deliveries(1)
    other = t.channel(2)
    other.consume("~q", "high", arguments={"x-priority": 5})
    t.publish("", "~q", "1")
    t.sync("~q")
    t.no_deliveries("~q")
    other.no_deliveries("~q")
    t.ack(tag)
    t.sync("~q")
    other.deliveries(1)


@case("quorum: consumers by priority")
def _(t):
    quorum(t)
    t.qos(1)
    t.consume("~q", "low", arguments={"x-priority": 1})
    other = t.channel(2)
    other.qos(1)
    other.consume("~q", "high", arguments={"x-priority": 5})
    t.fill("~q", 2)
    t.sync("~q")
    other.deliveries(1)
    t.deliveries(1)


@case("quorum: a consumer with arguments of others")
def _(t):
    quorum(t)
    t.consume("~q", arguments={"x-stream-offset": "first"})
    t.consume("~q", arguments={"x-consumer-timeout": -1})
    t.consume("~q", arguments={"x-consumer-timeout": "a"})
    t.consume("~q", arguments={"x-priority": "a"})
    t.consume("~q", arguments={"x-consumer-timeout": 60000})


# Priorities.

@case("quorum: messages by priority")
def _(t):
    quorum(t)
    for priority in (None, 0, 1, 3, 4, 5, 9, 31, 32, 40, 255, None, 4):
        t.publish("", "~q", str(priority), **({} if priority is None else {"priority": priority}))
    t.sync("~q")
    for _ in range(13):
        t.get("~q", no_ack=True)


@case("quorum: what came back stands among its equals")
def _(t):
    quorum(t)
    for number in range(4):
        t.publish("", "~q", str(number), priority=5)
    t.publish("", "~q", "high", priority=6)
    t.sync("~q")
    t.get("~q", no_ack=True)
    first = t.get("~q")
    t.get("~q")
    t.nack(first)
    t.until("~q", 3)
    for _ in range(3):
        t.get("~q", no_ack=True)


@case("quorum: drop-head and priorities")
def _(t):
    quorum(t, max_length=2)
    for priority in (9, 1, 5):
        t.publish("", "~q", str(priority), priority=priority)
    t.sync("~q")
    for _ in range(3):
        t.get("~q", no_ack=True)


# Limits and dead letters.

for overflow in ("drop-head", "reject-publish", "reject-publish-dlx"):

    def overflows(t, overflow=overflow):
        t.queue("~dead")
        quorum(t, max_length=2, overflow=overflow, dead_letter_exchange="", dead_letter_routing_key="~dead")
        t.confirm_select()
        for number in range(2):
            t.publish("", "~q", str(number))
            t.confirms(number + 1)
        t.counts("~q")

    add(f"quorum: a full queue, overflow {overflow}", overflows)

    def dead_of_length(t, overflow=overflow):
        t.queue("~dead")
        quorum(t, max_length=1, overflow=overflow, dead_letter_exchange="", dead_letter_routing_key="~dead")
        for number in range(2):
            t.publish("", "~q", str(number))
        t.until("~dead", 1)
        t.get("~dead")
        t.get("~q")

    if overflow != "reject-publish":
        add(f"quorum: dead by length, overflow {overflow}", dead_of_length)


@case("quorum: expired messages are dead")
def _(t):
    t.queue("~dead")
    quorum(t, dead_letter_exchange="", dead_letter_routing_key="~dead", message_ttl=20)
    t.publish("", "~q")
    t.until("~dead", 1)
    t.get("~dead")


@case("quorum: purge")
def _(t):
    quorum(t)
    t.fill("~q", 3)
    t.sync("~q")
    t.get("~q")
    t.purge("~q")
    t.counts("~q")


@case("quorum: delete only if empty or unused")
def _(t):
    quorum(t)
    t.publish("", "~q")
    t.sync("~q")
    t.delete_queue("~q", if_empty=True)
    t.delete_queue("~q", if_unused=True)
    quorum(t, "~p")
    t.publish("", "~p")
    t.sync("~p")
    t.get("~p")
    t.delete_queue("~p")


# Delayed retries.

for kind in ("all", "failed", "returned", "disabled"):
    for what in ("nack", "reject"):

        def retried(t, kind=kind, what=what):
            quorum(t, delayed_retry_type=kind, delayed_retry_min=300_000, delayed_retry_max=300_000)
            t.publish("", "~q")
            t.sync("~q")
            tag = t.get("~q")
            t.nack(tag) if what == "nack" else t.reject(tag)
            t.sync("~q")
            t.sync("~q")
            t.get("~q")

        add(f"quorum: delayed retries of {kind}, returned by {what}", retried)


@case("quorum: delayed retries come back")
def _(t):
    quorum(t, delayed_retry_type="all", delayed_retry_min=50, delayed_retry_max=100)
    t.publish("", "~q")
    t.sync("~q")
    t.reject(t.get("~q"))
    t.until("~q", 0)
    t.until("~q", 1)
    t.get("~q")


# Properties as the HTTP API tells them.

@case("quorum: no transactions")
def _(t):
    quorum(t)
    t.tx_select()
    t.publish("", "~q")
    t.tx_commit()
    t.sync("~q")
    t.get("~q")
