"""Streams as queues of AMQP 0-9-1: what may be said of them, where consumers begin, what is refused, and what comes back."""

from ..case import add, case
from ..form import Typed

STREAM = {"x-queue-type": "stream"}


def stream(t, name="~s", flags=None, **arguments):
    t.queue(name, arguments=STREAM | {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}, **(flags or {}))


def filled(t, count=5, name="~s", **properties):
    """A stream with so many messages, each a chunk of its own."""
    stream(t, name)
    t.confirm_select()
    for number in range(count):
        t.publish("", name, str(number), **properties)
        t.confirms(number + 1)


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
        stream(t, flags=flags)
        t.queue("~s", passive=True)

    add(f"stream: a queue that is {what}", flagged)


@case("stream: a queue without a name")
def _(t):
    t.queue("", arguments=STREAM)


@case("stream: an exclusive queue without a name")
def _(t):
    t.queue("", exclusive=True, arguments=STREAM)


VALUES = {
    "x-max-length-bytes": [0, 5, -1, "text", True, Typed("d", 1.5)],
    "x-max-age": ["1Y", "2M", "3D", "4h", "5m", "6s", "7", "s", "", "-1h", "0s", "1.5h", "1hh", "1 h", 5, True],
    "x-stream-max-segment-size-bytes": [0, 5, 3_000_000_000, 3_000_000_001, -1, "text", True],
    "x-stream-filter-size-bytes": [0, 15, 16, 255, 256, -1, "text", True],
    "x-initial-cluster-size": [1, 5, 0, -1, "text", True],
    "x-queue-leader-locator": ["client-local", "balanced", "random", "least-leaders", "min-masters", "text", 5],
    "x-max-length": [5],
    "x-message-ttl": [5],
    "x-expires": [60000],
    "x-overflow": ["drop-head"],
    "x-dead-letter-exchange": ["amq.fanout"],
    "x-dead-letter-routing-key": ["k"],
    "x-dead-letter-strategy": ["at-most-once"],
    "x-single-active-consumer": [True],
    "x-max-priority": [5],
    "x-queue-mode": ["lazy"],
    "x-queue-version": [2],
    "x-delivery-limit": [5],
    "x-quorum-initial-group-size": [3],
    "x-max-in-memory-length": [5],
    "x-consumer-timeout": [60000],
    "x-unheard-of": [1],
}
for argument, values in VALUES.items():
    for value in values:

        def declares(t, argument=argument, value=value):
            t.queue("~s", arguments=STREAM | {argument: value})

        add(f"stream: {argument} {value if not isinstance(value, Typed) else value.value!r}", declares)

AGAIN = {
    "x-max-length-bytes": (5000, 6000), "x-max-age": ("1h", "2h"), "x-stream-max-segment-size-bytes": (5000, 6000), "x-stream-filter-size-bytes": (16, 32),
    "x-initial-cluster-size": (1, 3), "x-queue-leader-locator": ("client-local", "balanced"), "x-unheard-of": (1, 2),
}  # fmt: skip
for argument, (one, two) in AGAIN.items():

    def again(t, argument=argument, one=one, two=two):
        t.queue("~s", arguments=STREAM | {argument: one})
        t.queue("~s", arguments=STREAM | {argument: one})
        t.queue("~s", arguments=STREAM | {argument: two})
        t.queue("~s", arguments=STREAM)
        t.queue("~p", arguments=STREAM)
        t.queue("~p", arguments=STREAM | {argument: one})

    add(f"stream: declare again with another {argument}", again)


@case("stream: ages that are the same time")
def _(t):
    stream(t, max_age="2h")
    for age in ("120m", "7200s", "1D"):
        stream(t, max_age=age)


@case("stream: declare again as something else")
def _(t):
    stream(t)
    t.queue("~s")
    t.queue("~s", arguments={"x-queue-type": "quorum"})
    t.queue("~s", durable=False, arguments=STREAM)
    t.queue("~s", auto_delete=True, arguments=STREAM)
    t.queue("~s", exclusive=True, arguments=STREAM)


@case("stream: a classic queue declared again as a stream")
def _(t):
    t.queue("~s")
    stream(t)


REFUSED = {
    "get": lambda t: t.get("~s"),
    "get without acknowledgement": lambda t: t.get("~s", no_ack=True),
    "purge": lambda t: t.purge("~s"),
    "consume without a prefetch": lambda t: t.consume("~s"),
    "consume without acknowledgements and without a prefetch": lambda t: t.consume("~s", no_ack=True),
    "consume without acknowledgements": lambda t: (t.qos(5), t.consume("~s", no_ack=True)),
    "consume with a priority": lambda t: (t.qos(5), t.consume("~s", arguments={"x-priority": 5})),
    "consume with a deadline": lambda t: (t.qos(5), t.consume("~s", arguments={"x-consumer-timeout": 60000})),
}
for what, act in REFUSED.items():

    def refused(t, act=act):
        filled(t, 1)
        act(t)
        t.queue("~s", passive=True, note=False)

    add(f"stream: {what}", refused)

BEGINS = {
    "first": ("first", 5),
    "last": ("last", 1),
    "next": ("next", 0),
    "0": (0, 5),
    "3": (3, 2),
    "-1": (-1, 5),
    "5, which is the next": (5, 0),
    "an hour ago": ("1h", 5),
    "a year ago": ("1Y", 5),
    "a month ago": ("1M", 5),
    "a day ago": ("1D", 5),
    "a minute ago": ("1m", 5),
    "a long time ago": (Typed("T", 1_500_000_000), 5),
    "a time to come": (Typed("T", 4_000_000_000), 0),
    "a word": ("soon", 0),
    "an empty string": ("", 0),
    "digits in a string": ("3", 0),
    "an interval of weeks": ("1w", 0),
    "an interval with a space": ("1 h", 0),
    "a negative interval": ("-1h", 0),
    "no interval": ("0s", 0),
}
for what, (offset, count) in BEGINS.items():

    def begins(t, offset=offset, count=count):
        filled(t)
        t.qos(10)
        if t.consume("~s", arguments={"x-stream-offset": offset}) is None:
            return
        for tag in t.deliveries(count):
            t.ack(tag)
        t.no_deliveries("~s")
        t.publish("", "~s", "after")
        for tag in t.deliveries(1):
            t.ack(tag)

    add(f"stream: consume from {what}", begins)


@case("stream: consume without an offset")
def _(t):
    filled(t)
    t.qos(10)
    t.consume("~s")
    t.no_deliveries("~s")
    t.publish("", "~s", "after")
    t.deliveries(1)


@case("stream: an offset beyond the end")
def _(t):
    filled(t)
    t.qos(10)
    t.consume("~s", arguments={"x-stream-offset": 7})
    for body in ("five", "six", "seven"):
        t.publish("", "~s", body)
    t.deliveries(1)


SETTLED = {
    "acknowledged": lambda t, tag: t.ack(tag),
    "acknowledged with those before": lambda t, tag: t.ack(tag + 1, multiple=True),
    "nacked": lambda t, tag: t.nack(tag, requeue=False),
    "nacked and requeued": lambda t, tag: t.nack(tag),
    "rejected": lambda t, tag: t.reject(tag, requeue=False),
    "rejected and requeued": lambda t, tag: t.reject(tag),
}
for what, settle in SETTLED.items():

    def settled(t, settle=settle):
        filled(t)
        t.qos(2)
        t.consume("~s", arguments={"x-stream-offset": "first"})
        [tag, _] = t.deliveries(2)
        t.no_deliveries("~s")
        settle(t, tag)
        t.deliveries(1)

    add(f"stream: a message that is {what}", settled)


@case("stream: two consumers of a channel")
def _(t):
    filled(t, 3)
    t.qos(3)
    t.consume("~s", "a", arguments={"x-stream-offset": "first"})
    t.deliveries(3)
    t.consume("~s", "b", arguments={"x-stream-offset": 1})
    t.deliveries(2)


@case("stream: exclusive consumers")
def _(t):
    filled(t, 1)
    t.qos(3)
    t.consume("~s", "a", exclusive=True, arguments={"x-stream-offset": "first"})
    t.deliveries(1)
    t.consume("~s", "b", exclusive=True, arguments={"x-stream-offset": "first"})
    t.deliveries(1)
    t.consume("~s", "c", arguments={"x-stream-offset": "first"})
    t.deliveries(1)


@case("stream: an unknown delivery tag")
def _(t):
    filled(t, 1)
    t.qos(3)
    t.consume("~s", arguments={"x-stream-offset": "first"})
    t.deliveries(1)
    t.ack(7)
    t.closed()


@case("stream: recover")
def _(t):
    filled(t, 2)
    t.qos(5)
    t.consume("~s", arguments={"x-stream-offset": "first"})
    t.deliveries(2)
    t.recover()
    t.no_deliveries("~s")


@case("stream: cancelled, and consumed from where it was")
def _(t):
    filled(t)
    t.qos(2)
    t.consume("~s", "a", arguments={"x-stream-offset": "first"})
    t.deliveries(2)
    t.cancel("a")
    t.ack(2, multiple=True)
    t.no_deliveries("~s")
    t.consume("~s", "b", arguments={"x-stream-offset": 2})
    t.deliveries(2)


@case("stream: deleted under a consumer")
def _(t):
    filled(t, 1)
    t.qos(2)
    t.consume("~s", arguments={"x-stream-offset": "first"})
    t.deliveries(1)
    t.connection("other").delete_queue("~s")
    t.cancelled()


for what, options in {"if unused": {"if_unused": True}, "if empty": {"if_empty": True}, "if unused and empty": {"if_unused": True, "if_empty": True}}.items():

    def deleted(t, options=options):
        filled(t, 1)
        t.qos(2)
        t.consume("~s", arguments={"x-stream-offset": "first"})
        t.deliveries(1)
        t.delete_queue("~s", **options)
        t.queue("~s", passive=True)

    add(f"stream: delete {what}", deleted)

PROPERTIES = {
    "none": {},
    "a type of content": {"content_type": "text/plain", "content_encoding": "gzip"},
    "texts": {"correlation_id": "c", "reply_to": "r", "message_id": "m", "type": "t", "user_id": "guest", "app_id": "a"},
    "transient": {"delivery_mode": 1},
    "persistent": {"delivery_mode": 2},
    "a priority": {"priority": 5},
    "an expiration": {"expiration": "60000"},
    "a timestamp": {"timestamp": 1_600_000_000},
    "headers of simple types": {"headers": {"text": "täxt", "int": 5, "long": 1 << 40, "yes": True, "no": False, "empty": ""}},
    "headers of other types": {"headers": {"list": [1, "two"], "table": {"a": 1}, "nothing": None, "double": Typed("d", 1.5), "time": Typed("T", 1_600_000_000), "byte": Typed("b", -3)}},
    "headers that begin with x-": {"headers": {"x-text": "a", "x-int": 5, "x-list": [1, "two"], "x-table": {"a": {"b": 1}}}},
    "CC": {"headers": {"CC": ["elsewhere"], "BCC": ["hidden"]}},
    "an offset that it says itself": {"headers": {"x-stream-offset": 77}},
    "a value to filter by": {"headers": {"x-stream-filter-value": "apple"}},
    "a value to filter by that is no text": {"headers": {"x-stream-filter-value": 5}},
    "a correlation that is long": {"correlation_id": "c" * 255, "message_id": "m" * 255},
}
for what, sent in PROPERTIES.items():

    def kept(t, sent=sent):
        filled(t, 1, **sent)
        t.qos(2)
        t.consume("~s", arguments={"x-stream-offset": "first"})
        t.deliveries(1)

    add(f"stream: a message with {what}", kept)


@case("stream: a message through an exchange, and one that nobody takes")
def _(t):
    stream(t)
    t.bind("~s", "amq.topic", "~a.*")
    t.confirm_select()
    t.publish("amq.topic", "~a.b", "bound", mandatory=True)
    t.publish("amq.topic", "~a.b.c", "lost", mandatory=True)
    t.confirms(2)
    t.returns(1)
    t.qos(2)
    t.consume("~s", arguments={"x-stream-offset": "first"})
    t.deliveries(1)


@case("stream: messages of a transaction")
def _(t):
    filled(t, 1)
    writer = t.connection("writer")
    writer.tx_select()
    writer.publish("", "~s", "in it")
    t.qos(5)
    t.consume("~s", arguments={"x-stream-offset": "first"})
    t.deliveries(1)
    t.no_deliveries("~s")
    writer.tx_commit()
    t.deliveries(1)


@case("stream: dead letters")
def _(t):
    stream(t)
    t.queue("~dying", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~s", "x-max-length": 1})
    t.fill("~dying", 2)
    t.qos(2)
    t.consume("~s", arguments={"x-stream-offset": "first"})
    t.deliveries(1)


FILTERS = {
    "one value": ({"x-stream-filter": "apple"}, 2),
    "two values": ({"x-stream-filter": ["apple", "plum"]}, 3),
    "a value that nothing has": ({"x-stream-filter": "nothing"}, 0),
    "a value, and what has none": ({"x-stream-filter": "plum", "x-stream-match-unfiltered": True}, 2),
    "a value, and not what has none": ({"x-stream-filter": "plum", "x-stream-match-unfiltered": False}, 1),
    "only that what has none is wanted": ({"x-stream-match-unfiltered": True}, 5),
    "no filter": ({}, 5),
}
for what, (arguments, count) in FILTERS.items():

    def filtered(t, arguments=arguments, count=count):
        stream(t)
        t.confirm_select()
        for number, kind in enumerate(("apple", None, "pear", "plum", "apple")):
            t.publish("", "~s", kind or "none", **({"headers": {"x-stream-filter-value": kind}} if kind else {}))
            t.confirms(number + 1)
        t.qos(10)
        t.consume("~s", arguments={"x-stream-offset": "first"} | arguments)
        t.deliveries(count)
        t.no_deliveries("~s")

    add(f"stream: filtered by {what}", filtered)


@case("stream: policies")
def _(t):
    stream(t)
    for definition in ({"max-age": "1h"}, {"max-length-bytes": 5000}, {"stream-max-segment-size-bytes": 5000}, {"max-age": "soon"}, {"stream-filter-size-bytes": 5}):
        t.http("PUT", "/policies/%2F/~p", {"pattern": "^~s$", "definition": definition, "apply-to": "streams"})
    t.http("DELETE", "/policies/%2F/~p")
