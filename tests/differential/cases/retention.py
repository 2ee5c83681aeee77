"""Limits, times to live, overflow, dead letters."""

from ..case import add, case

LIMITS = {
    "max-length 2": {"x-max-length": 2},
    "max-length 0": {"x-max-length": 0},
    "max-length-bytes 5": {"x-max-length-bytes": 5},
    "max-length-bytes 0": {"x-max-length-bytes": 0},
    "both limits": {"x-max-length": 3, "x-max-length-bytes": 4},
}


def overflows(arguments: dict):
    def script(t):
        t.queue("~q", arguments=arguments)
        t.confirm_select()
        for number in range(4):
            t.publish("", "~q", f"{number}" * 2)
            t.confirms(number + 1)
        t.counts("~q")
        for _ in range(5):
            t.get("~q", no_ack=True)
        t.publish("", "~q", "a larger one than fits")
        t.confirms(5)
        t.get("~q", no_ack=True)

    return script


for what, limits in LIMITS.items():
    for overflow in (None, "drop-head", "reject-publish", "reject-publish-dlx"):
        add(f"{what}, overflow {overflow}", overflows(limits | ({"x-overflow": overflow} if overflow else {})))


@case("unacknowledged messages do not count for the limit")
def _(t):
    t.queue("~q", arguments={"x-max-length": 1})
    t.publish("", "~q", "0")
    t.get("~q")
    t.publish("", "~q", "1")
    t.get("~q")
    t.publish("", "~q", "2")
    t.sync("~q")
    t.nack(1)
    t.sync("~q")
    t.counts("~q")
    t.get("~q")


def dead(t, **arguments) -> None:
    """A queue whose dead letters go to another, which is consumed."""
    t.exchange("~dlx", "fanout")
    t.queue("~dead")
    t.bind("~dead", "~dlx")
    t.queue("~q", arguments={"x-dead-letter-exchange": "~dlx"} | arguments)
    t.consume("~dead", "dead", no_ack=True)


KEYS = {"its own key": {}, "another key": {"x-dead-letter-routing-key": "other"}}
SENT = {
    "plain": {},
    "persistent with properties": {"delivery_mode": 2, "message_id": "m", "headers": {"a": 1}},
    "with an expiration": {"expiration": "60000"},
    "with CC": {"headers": {"CC": ["cc"]}},
    "with BCC": {"headers": {"BCC": ["bcc"]}},
    "with CC and BCC": {"headers": {"CC": ["cc"], "BCC": ["bcc"]}},
    "with an x-death of the client's": {"headers": {"x-death": [{"queue": "~q", "reason": "rejected", "count": 7}], "x-first-death-reason": "none"}},
    "with a user id": {"user_id": "guest"},
}
for key, arguments in KEYS.items():
    for what, properties in SENT.items():

        def rejected(t, arguments=arguments, properties=properties):
            dead(t, **arguments)
            t.publish("", "~q", **properties)
            t.get("~q")
            t.reject(1, requeue=False)
            t.deliveries(1)

        add(f"rejected {what}, dead-lettered by {key}", rejected)


@case("dead letters of nack with multiple keep their order")
def _(t):
    dead(t)
    t.fill("~q", 3)
    for _ in range(3):
        t.get("~q")
    t.nack(3, multiple=True, requeue=False)
    t.deliveries(3)


@case("dropped from the head, dead-lettered")
def _(t):
    dead(t, **{"x-max-length": 1})
    t.publish("", "~q", "0")
    t.publish("", "~q", "1")
    t.publish("", "~q", "2")
    t.deliveries(2)
    t.get("~q")


@case("refused by a full queue, dead-lettered")
def _(t):
    dead(t, **{"x-max-length": 1, "x-overflow": "reject-publish-dlx"})
    t.confirm_select()
    t.publish("", "~q", "0")
    t.publish("", "~q", "1")
    t.confirms(2)
    t.deliveries(1)
    t.get("~q")


@case("refused by a full queue, not dead-lettered")
def _(t):
    dead(t, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    t.confirm_select()
    t.publish("", "~q", "0")
    t.publish("", "~q", "1")
    t.confirms(2)
    t.no_deliveries("~dead")
    t.get("~q")


@case("expired by the queue's time to live, dead-lettered")
def _(t):
    dead(t, **{"x-message-ttl": 20})
    t.publish("", "~q", "0")
    t.publish("", "~q", "1", expiration="60000")
    t.deliveries(2)
    t.get("~q")


@case("expired by the message's own time, dead-lettered")
def _(t):
    dead(t)
    t.publish("", "~q", "0", expiration="20", headers={"a": 1})
    t.deliveries(1)
    t.get("~q")


@case("a time to live of nothing, without a consumer")
def _(t):
    dead(t, **{"x-message-ttl": 0})
    t.publish("", "~q", "0")
    t.deliveries(1)


@case("a time to live of nothing, with a consumer")
def _(t):
    dead(t, **{"x-message-ttl": 0})
    t.consume("~q", "taker")
    t.publish("", "~q", "0")
    tags = t.deliveries(1)
    t.nack(tags[0])
    t.deliveries(1)


@case("a message's own time to live of nothing, with a consumer")
def _(t):
    t.queue("~q")
    t.consume("~q", "taker")
    t.publish("", "~q", "0", expiration="0")
    t.deliveries(1)


@case("dead letters that nobody takes, and a dead-letter exchange that is missing")
def _(t):
    t.queue("~q", arguments={"x-dead-letter-exchange": "~missing"})
    t.queue("~p", arguments={"x-dead-letter-exchange": "amq.direct"})
    for name in ("~q", "~p"):
        t.publish("", name)
        tag = t.get(name)
        t.reject(tag, requeue=False)
        t.sync(name)
        t.counts(name)


@case("dead letters to the default exchange, and by hand round and round")
def _(t):
    t.queue("~a", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~b"})
    t.queue("~b", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~a"})
    t.publish("", "~a", "m", headers={"h": 1})
    t.consume("~a", "a")
    t.consume("~b", "b")
    for _ in range(5):
        tags = t.deliveries(1)
        t.reject(tags[0], requeue=False)
    t.deliveries(1)


@case("a circle of expiries ends")
def _(t):
    t.queue("~a", arguments={"x-message-ttl": 10, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~b"})
    t.queue("~b", arguments={"x-message-ttl": 10, "x-dead-letter-exchange": "~x"})
    t.exchange("~x", "fanout")
    t.queue("~seen")
    t.bind("~a", "~x")
    t.bind("~seen", "~x")
    t.consume("~seen", "seen", no_ack=True)
    t.publish("", "~a", "m")
    t.deliveries(1)
    t.sync("~a")
    t.counts("~a")
    t.counts("~b")


@case("dead-lettered to a queue that was there before, by an expiry and a rejection")
def _(t):
    t.queue("~work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~retry"})
    t.queue("~retry", arguments={"x-message-ttl": 10, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~work"})
    t.consume("~work", "worker")
    t.publish("", "~work", "m")
    for _ in range(4):
        tags = t.deliveries(1)
        t.reject(tags[0], requeue=False)
    t.deliveries(1)


@case("dead letters of three reasons through three queues")
def _(t):
    t.queue("~end")
    t.queue("~third", arguments={"x-message-ttl": 10, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~end"})
    t.queue("~second", arguments={"x-max-length": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~third"})
    t.queue("~first", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~second"})
    t.consume("~end", "end", no_ack=True)
    t.publish("", "~first", "m", expiration="50000")
    t.get("~first")
    t.reject(1, requeue=False)
    t.deliveries(1)


@case("messages of a deleted or purged queue are no dead letters")
def _(t):
    dead(t)
    t.publish("", "~q", "0")
    t.sync("~q")
    t.purge("~q")
    t.publish("", "~q", "1")
    t.sync("~q")
    t.delete_queue("~q")
    t.no_deliveries("~dead")


@case("a queue that expires cancels nothing and is gone")
def _(t):
    t.queue("~end")
    t.queue("~q", arguments={"x-expires": 200, "x-message-ttl": 60000})
    t.exchange("~x", "fanout", auto_delete=True)
    t.bind("~q", "~x")
    t.queue("~tick", arguments={"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~end"})
    t.consume("~end", "end", no_ack=True)
    t.publish("", "~tick", "tick")
    t.deliveries(1)
    t.queue("~q", passive=True)
    t.exchange("~x", "fanout", passive=True)


@case("a used queue does not expire")
def _(t):
    t.queue("~q", arguments={"x-expires": 100})
    t.consume("~q", "user")
    t.queue("~end")
    t.queue("~tick", arguments={"x-message-ttl": 500, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "~end"})
    t.consume("~end", "end", no_ack=True)
    t.publish("", "~tick", "tick")
    t.deliveries(1)
    t.counts("~q")
