"""Consumers: order, prefetch, redelivery, cancellation, priorities, one active consumer."""

from itertools import permutations

from ..case import add, case
from ..form import Typed


def fill(t, count: int, queue="~q", **arguments) -> None:
    t.queue(queue, arguments=arguments or None)
    t.fill(queue, count)
    t.sync(queue)


VERBS = {
    "ack": lambda t, tag: t.ack(tag),
    "requeue": lambda t, tag: t.nack(tag),
    "reject": lambda t, tag: t.reject(tag, requeue=False),
    "reject to requeue": lambda t, tag: t.reject(tag, requeue=True),
    "leave": lambda t, tag: None,
}


def settle_three(verbs: tuple, order: tuple, consumer: bool):
    """Takes three of four messages, settles them in this order by these verbs, and looks what is left and in which order."""

    def script(t):
        fill(t, 4)
        taker = t.channel(2)
        if consumer:
            taker.qos(3)
            taker.consume("~q")
            tags = taker.deliveries(3)
            taker.cancel()
        else:
            tags = [taker.get("~q") for _ in range(3)]
        for position in order:
            VERBS[verbs[position]](taker, tags[position])
        taker.recover()
        taker.sync("~q")
        for _ in range(5):
            t.get("~q", no_ack=True)

    return script


for verbs in [
    ("requeue", "requeue", "requeue"), ("ack", "requeue", "reject"), ("requeue", "ack", "requeue"), ("leave", "requeue", "ack"),
    ("reject", "leave", "requeue"), ("reject to requeue", "ack", "leave"), ("leave", "leave", "leave"), ("requeue", "leave", "requeue"),
]:  # fmt: skip
    for order in [(0, 1, 2), (2, 1, 0), (1, 2, 0)]:
        name = " ".join(f"{verbs[position]} {position}" for position in order)
        add(f"after get: {name.replace(' ', '-')}", settle_three(verbs, order, consumer=False))
for order in permutations(range(3)):
    add(f"after delivery: requeue in the order {order}", settle_three(("requeue",) * 3, order, consumer=True))


@case("ack multiple, nack multiple, and what is left")
def _(t):
    fill(t, 6)
    for _ in range(6):
        t.get("~q")
    t.ack(2, multiple=True)
    t.nack(4, multiple=True)
    t.reject(6, requeue=False)
    t.close_channel()
    t.until("~q", 3)
    for _ in range(4):
        t.get("~q", no_ack=True)


@case("get counts down and marks what was seen before")
def _(t):
    fill(t, 3)
    t.get("~q")
    t.get("~q")
    t.nack(1)
    t.sync("~q")
    t.get("~q")
    t.get("~q")
    t.get("~q")


@case("recover brings everything back")
def _(t):
    fill(t, 3)
    t.qos(2)
    t.consume("~q")
    t.deliveries(2)
    t.recover()
    tags = t.deliveries(2)
    t.cancel()
    t.ack(tags[0])
    t.recover()
    t.sync("~q")
    t.get("~q", no_ack=True)
    t.get("~q", no_ack=True)
    t.get("~q", no_ack=True)


@case("a prefetch window slides with acknowledgements")
def _(t):
    fill(t, 6)
    t.qos(2)
    t.consume("~q")
    tags = t.deliveries(2)
    t.no_deliveries("~q")
    t.ack(tags[1])
    t.deliveries(1)
    t.ack(tags[0])
    t.deliveries(1)
    t.qos(0)
    t.no_deliveries("~q")
    t.cancel()
    t.consume("~q", "unlimited")
    t.deliveries(2)


@case("prefetch counts per consumer")
def _(t):
    fill(t, 5)
    t.qos(1)
    t.consume("~q", "a")
    t.deliveries(1)
    t.qos(2)
    t.consume("~q", "b")
    t.deliveries(2)
    t.no_deliveries("~q")


@case("prefetch does not count without acknowledgements")
def _(t):
    fill(t, 3)
    t.qos(1)
    t.consume("~q", no_ack=True)
    t.deliveries(3)


@case("cancel leaves what is unacknowledged with the channel")
def _(t):
    fill(t, 2)
    t.qos(1)
    t.consume("~q")
    tags = t.deliveries(1)
    t.cancel()
    t.cancel()
    t.counts("~q")
    t.ack(tags[0])
    t.counts("~q")


@case("closing a channel and a connection brings messages back")
def _(t):
    fill(t, 2)
    taker = t.channel(2)
    taker.get("~q")
    taker.close_channel()
    t.until("~q", 2)
    t.get("~q")
    other = t.connection("other")
    other.get("~q")
    other.close_connection()
    t.until("~q", 1)
    t.get("~q")


@case("deleting a queue cancels its consumers")
def _(t):
    fill(t, 1)
    other = t.connection("other")
    other.consume("~q")
    other.deliveries(1)
    t.delete_queue("~q")
    other.cancelled()
    other.ack(1)
    other.sync()


@case("deleting a queue without telling who does not understand")
def _(t):
    t.queue("~q")
    other = t.connection("other", capabilities={})
    other.consume("~q")
    t.delete_queue("~q")
    other.sync()
    other.consume("~q")


@case("what comes back to a full queue is dropped although somebody waits for it")
def _(t):
    t.queue("~dead")
    t.queue("~q", arguments={"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~dead"})
    t.qos(1)
    t.consume("~q")
    t.publish("", "~q", "old")
    t.deliveries(1)
    t.publish("", "~q", "new")
    t.sync("~q")
    t.nack(1)
    t.deliveries(1)
    t.until("~dead", 1)
    t.counts("~q")


@case("what comes back to a full queue with priorities is dropped although somebody waits for it")
def _(t):
    t.queue("~q", arguments={"x-max-length": 1, "x-max-priority": 3})
    t.qos(1)
    t.consume("~q")
    t.publish("", "~q", "old", priority=1)
    t.deliveries(1)
    t.publish("", "~q", "new", priority=1)
    t.sync("~q")
    t.nack(1)
    t.deliveries(1)
    t.counts("~q")


@case("what comes back to a full queue with priorities that refuses stays")
def _(t):
    t.queue("~q", arguments={"x-max-priority": 3, "x-max-length": 2, "x-overflow": "reject-publish"})
    t.confirm_select()
    t.fill("~q", 2, priority=1)
    t.confirms(2)
    t.get("~q")
    t.publish("", "~q", "higher", priority=2)
    t.publish("", "~q", "refused", priority=2)
    t.confirms(4)
    t.nack(1)
    t.counts("~q")
    for _ in range(4):
        t.get("~q", no_ack=True)


@case("an auto-delete queue goes with its last consumer")
def _(t):
    t.queue("~q", auto_delete=True)
    t.publish("", "~q")
    t.get("~q")
    t.counts("~q")
    t.consume("~q", "a")
    t.consume("~q", "b")
    t.cancel("a")
    t.counts("~q")
    t.cancel("b")
    t.queue("~q", passive=True)


@case("an auto-delete queue goes with its consumer's channel")
def _(t):
    t.queue("~q", auto_delete=True)
    other = t.channel(2)
    other.consume("~q", "a")
    other.close_channel()
    t.queue("~q", passive=True)


@case("consumers of one queue take turns")
def _(t):
    t.queue("~q")
    stages = [t.channel(number) for number in (2, 3, 4)]
    for stage in stages:
        stage.consume("~q", "c", no_ack=True)
    for number in range(6):
        t.publish("", "~q", f"{number}")
        t.sync("~q")
    for stage in stages:
        stage.deliveries(2)


@case("purge takes what is ready only")
def _(t):
    fill(t, 3)
    t.get("~q")
    t.purge("~q")
    t.nack(1)
    t.sync("~q")
    t.get("~q")
    t.purge("~q")


PRIORITIES = {"5": 5, "minus five": -5, "a string": "5", "a boolean": True, "a double": Typed("d", 1.5), "void": None, "a long": 2**40}
for what, value in PRIORITIES.items():
    add(f"consumer x-priority: {what}", lambda t, value=value: (t.queue("~q"), t.consume("~q", arguments={"x-priority": value})))
CONSUMER_ARGUMENTS = {
    "x-cancel-on-ha-failover": True, "x-stream-offset": "first", "x-unheard-of": 1, "x-credit": {"credit": 1, "drain": True}, "x-consumer-timeout": 5000,
    "x-stream-filter": "a", "x-stream-match-unfiltered": True,
}  # fmt: skip
for argument, value in CONSUMER_ARGUMENTS.items():
    add(f"consumer argument {argument}", lambda t, argument=argument, value=value: (t.queue("~q"), t.consume("~q", arguments={argument: value})))
    add(f"consumer argument {argument} that is a table", lambda t, argument=argument: (t.queue("~q"), t.consume("~q", arguments={argument: {"a": "b"}})))


@case("consumers of a higher priority come first while they have credit")
def _(t):
    t.queue("~q")
    low, high, top = (t.channel(number) for number in (2, 3, 4))
    low.consume("~q", "low", no_ack=True)
    high.qos(2)
    high.consume("~q", "high", arguments={"x-priority": 5})
    top.qos(1)
    top.consume("~q", "top", arguments={"x-priority": 10})
    for number in range(5):
        t.publish("", "~q", f"{number}")
        t.sync("~q")
    top.deliveries(1)
    high.deliveries(2)
    low.deliveries(2)
    top.ack(1)
    top.sync("~q")
    t.publish("", "~q", "for the top again")
    top.deliveries(1)


@case("messages of a higher priority come first")
def _(t):
    t.queue("~q", arguments={"x-max-priority": 3})
    for number, priority in enumerate([None, 0, 3, 1, 2, 9, 3, 1]):
        t.publish("", "~q", f"{number}", **({} if priority is None else {"priority": priority}))
    t.sync("~q")
    for _ in range(9):
        t.get("~q")
    t.nack(3, multiple=True)
    t.sync("~q")
    for _ in range(3):
        t.get("~q")


@case("a full queue with priorities drops from the head of the lowest")
def _(t):
    t.queue("~q", arguments={"x-max-priority": 3, "x-max-length": 3})
    for number, priority in enumerate([3, 1, 2, 3, 0, 1]):
        t.publish("", "~q", f"{number}", priority=priority)
        t.sync("~q")
    for _ in range(4):
        t.get("~q", no_ack=True)


@case("one active consumer, and the next one after it")
def _(t):
    t.queue("~q", arguments={"x-single-active-consumer": True})
    first, second = t.channel(2), t.channel(3)
    first.qos(1)
    first.consume("~q", "first")
    second.consume("~q", "second")
    for number in range(4):
        t.publish("", "~q", f"{number}")
    first.deliveries(1)
    second.no_deliveries("~q")
    first.cancel("first")
    second.deliveries(3)
    first.nack(1)
    second.deliveries(1)
    first.consume("~q", "first")
    second.close_channel()
    first.deliveries(1)


def ends_active(end):
    """The active consumer ends while it holds three of six messages: the next one begins with these."""

    def script(t):
        t.queue("~q", arguments={"x-single-active-consumer": True})
        t.fill("~q", 6)
        first, second = t.connection("first"), t.connection("second")
        first.qos(3)
        first.consume("~q", "first")
        first.deliveries(3)
        second.qos(4)
        second.consume("~q", "second")
        end(first)
        second.deliveries(4)

    return script


for how, end in {
    "closes its channel": lambda t: t.close_channel(),
    "closes its connection": lambda t: t.close_connection(),
    "hangs up": lambda t: t.hang_up(),
    "errs": lambda t: t.get("~missing"),
}.items():
    add(f"one active consumer, which {how} with what it held", ends_active(end))


@case("one active consumer and what it does not allow")
def _(t):
    t.queue("~q", arguments={"x-single-active-consumer": True})
    t.publish("", "~q")
    t.get("~q")
    t.consume("~q", "c", exclusive=True)
    t.consume("~q", "c")
    t.deliveries(1)
    t.get("~q")


@case("one active consumer with priorities")
def _(t):
    t.queue("~q", arguments={"x-single-active-consumer": True})
    low, high = t.channel(2), t.channel(3)
    low.consume("~q", "low", no_ack=True)
    high.consume("~q", "high", no_ack=True, arguments={"x-priority": 5})
    t.publish("", "~q", "0")
    low.deliveries(1)
    low.cancel("low")
    t.publish("", "~q", "1")
    high.deliveries(1)


@case("consume and get from a channel that already consumes")
def _(t):
    fill(t, 3)
    t.qos(1)
    t.consume("~q", "a")
    t.deliveries(1)
    t.get("~q")
    t.consume("~q", "b")
    t.deliveries(1)
    t.nack(2)
    t.no_deliveries("~q")
