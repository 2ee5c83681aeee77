"""Transactions, direct replies, and other parts of the protocol."""

from ..case import add, case

REPLY = "amq.rabbitmq.reply-to"


@case("a committed transaction")
def _(t):
    t.queue("~q")
    t.tx_select()
    t.publish("", "~q", "0")
    t.publish("", "~q", "1")
    other = t.channel(2)
    other.get("~q")
    t.tx_commit()
    other.get("~q")
    other.get("~q")


@case("a rolled-back transaction")
def _(t):
    t.queue("~q")
    t.tx_select()
    t.publish("", "~q", "0")
    t.tx_rollback()
    t.publish("", "~q", "1")
    t.tx_commit()
    t.get("~q")
    t.get("~q")


@case("acknowledgements in a transaction")
def _(t):
    t.queue("~q")
    t.fill("~q", 4)
    t.tx_select()
    for _ in range(4):
        t.get("~q")
    t.ack(1)
    t.tx_rollback()
    t.ack(2)
    t.nack(3)
    t.reject(4, requeue=False)
    t.get("~q")
    t.tx_commit()
    t.get("~q")
    t.close_channel()
    t.until("~q", 2)
    t.get("~q")
    t.get("~q")


@case("acknowledgements after a rollback may be given again")
def _(t):
    t.queue("~q")
    t.publish("", "~q", "0")
    t.tx_select()
    t.get("~q")
    t.ack(1)
    t.tx_rollback()
    t.ack(1)
    t.tx_commit()
    t.close_channel()
    t.sync("~q")
    t.get("~q")


@case("a tag settled twice in a transaction")
def _(t):
    t.queue("~q")
    t.publish("", "~q", "0")
    t.tx_select()
    t.get("~q")
    t.ack(1)
    t.ack(1)
    t.sync()
    t.get("~q")


@case("an unknown tag in a transaction")
def _(t):
    t.queue("~q")
    t.tx_select()
    t.publish("", "~q", "0")
    t.ack(7)
    t.sync()
    t.get("~q")


@case("a transaction's mandatory message that nobody takes")
def _(t):
    t.tx_select()
    t.publish("", "~nowhere", "0", mandatory=True)
    t.sync()
    t.tx_commit()
    t.returns(1)


@case("a transaction's mandatory message, rolled back")
def _(t):
    t.tx_select()
    t.publish("", "~nowhere", "0", mandatory=True)
    t.tx_rollback()
    t.sync()


@case("a transaction with a publish to a missing exchange")
def _(t):
    t.queue("~q")
    t.tx_select()
    t.publish("", "~q", "0")
    t.publish("~missing", "k", "1")
    t.sync()
    t.get("~q")


@case("a transaction to an exchange that goes before the commit")
def _(t):
    t.queue("~q")
    t.exchange("~x", "fanout")
    t.bind("~q", "~x")
    t.tx_select()
    t.publish("~x", "", "0", mandatory=True)
    t.delete_exchange("~x")
    t.tx_commit()
    t.get("~q")


@case("a transaction to a queue that goes before the commit")
def _(t):
    t.queue("~q")
    t.tx_select()
    t.publish("", "~q", "0", mandatory=True)
    t.delete_queue("~q")
    t.tx_commit()
    t.sync()


@case("a transaction to a queue that is bound before the commit")
def _(t):
    t.exchange("~x", "fanout")
    t.queue("~q")
    t.tx_select()
    t.publish("~x", "", "0", mandatory=True)
    t.bind("~q", "~x")
    t.tx_commit()
    t.sync("~q")
    t.get("~q")


@case("a closed channel forgets its transaction")
def _(t):
    t.queue("~q")
    t.tx_select()
    t.publish("", "~q", "0")
    t.close_channel()
    t.get("~q")


@case("a transaction's consumer goes on while nothing is committed")
def _(t):
    t.queue("~q")
    t.fill("~q", 4)
    t.tx_select()
    t.qos(2)
    t.consume("~q")
    tags = t.deliveries(2)
    t.ack(tags[1], multiple=True)
    t.no_deliveries("~q")
    t.tx_commit()
    t.deliveries(2)


@case("a transaction to a queue that refuses")
def _(t):
    t.queue("~q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    t.tx_select()
    t.publish("", "~q", "0")
    t.publish("", "~q", "1")
    t.tx_commit()
    t.sync()
    t.get("~q")
    t.get("~q")


@case("recover in a transaction")
def _(t):
    t.queue("~q")
    t.publish("", "~q", "0")
    t.publish("", "~q", "1")
    t.tx_select()
    t.get("~q")
    t.get("~q")
    t.ack(1)
    t.recover()
    t.get("~q")
    t.tx_rollback()
    t.close_channel()
    t.until("~q", 2)
    t.get("~q")
    t.get("~q")


@case("commit and rollback of nothing")
def _(t):
    t.tx_select()
    t.tx_select()
    t.tx_commit()
    t.tx_rollback()
    t.tx_commit()


# Direct replies.


@case("a request and its direct reply")
def _(t):
    t.queue("~server")
    t.consume(REPLY, "replies", no_ack=True)
    t.publish("", "~server", "question", reply_to=REPLY, correlation_id="7")
    server = t.connection("server")
    server.consume("~server", "server", no_ack=True)
    name = reply_name(server)
    server.publish("", name, "answer", correlation_id="7", mandatory=True)
    server.sync()
    t.deliveries(1)
    server.publish("", name, "another", headers={"a": 1})
    t.deliveries(1)


def reply_name(stage) -> str:
    """The name to answer to, out of the request that the stage is delivered."""
    from pika import spec

    method, content = stage.expect((spec.Basic.Deliver,), 1, "request")[0]
    stage.note(stage.shown(method, content))
    return content[0].split("reply_to='")[1].split("'")[0]


@case("direct replies are consumed without acknowledgement only")
def _(t):
    t.consume(REPLY, "replies")
    t.consume(REPLY, "replies", no_ack=True)
    t.consume(REPLY, "more", no_ack=True)


@case("direct replies are consumed by one consumer of a channel")
def _(t):
    t.consume(REPLY, "replies", no_ack=True)
    t.consume(REPLY, "more", no_ack=True)
    t.sync()


@case("direct replies: two channels of one connection")
def _(t):
    t.consume(REPLY, "replies", no_ack=True)
    t.channel(2).consume(REPLY, "replies", no_ack=True)
    t.cancel("replies")
    t.consume(REPLY, "again", no_ack=True)


@case("direct replies: exclusive, and with arguments")
def _(t):
    t.consume(REPLY, "replies", no_ack=True, exclusive=True, arguments={"x-priority": 5})


@case("direct replies: a request without a consumer")
def _(t):
    t.queue("~server")
    t.publish("", "~server", reply_to=REPLY)
    t.sync()
    t.get("~server")


@case("direct replies: a request after the consumer was cancelled")
def _(t):
    t.queue("~server")
    t.consume(REPLY, "replies", no_ack=True)
    t.cancel("replies")
    t.publish("", "~server", reply_to=REPLY)
    t.sync()
    t.get("~server")


OTHERS = {
    "declare": lambda t: t.queue(REPLY),
    "declare passively": lambda t: t.queue(REPLY, passive=True),
    "declare passively with a consumer": lambda t: (t.consume(REPLY, "r", no_ack=True), t.queue(REPLY, passive=True), t.counts(REPLY)),
    "delete": lambda t: t.delete_queue(REPLY),
    "purge": lambda t: t.purge(REPLY),
    "get": lambda t: t.get(REPLY),
    "get with a consumer": lambda t: (t.consume(REPLY, "r", no_ack=True), t.get(REPLY)),
    "bind": lambda t: t.bind(REPLY, "amq.direct", "k"),
    "unbind": lambda t: t.unbind(REPLY, "amq.direct", "k"),
    "publish to it": lambda t: (t.publish("", REPLY, mandatory=True), t.sync()),
    "publish to it with a consumer": lambda t: (t.consume(REPLY, "r", no_ack=True), t.publish("", REPLY, mandatory=True), t.sync()),
    "publish to a name that nobody has": lambda t: (t.publish("", f"{REPLY}.nonsense", mandatory=True), t.returns(1)),
    "publish to a well-formed name that nobody has": lambda t: (
        t.publish("", f"{REPLY}.g1h2AAUQdGVzdEBsb2NhbGhvc3QAAAABAAAAAAAAAAE=.dGVzdA==", mandatory=True),
        t.returns(1),
    ),
    "declare a name under it": lambda t: t.queue(f"{REPLY}.nonsense", passive=True),
    "consume a name under it": lambda t: t.consume(f"{REPLY}.nonsense", no_ack=True),
    "get from a name under it": lambda t: t.get(f"{REPLY}.nonsense"),
    "request through another exchange": lambda t: (
        t.queue("~s"),
        t.bind("~s", "amq.direct", "~k"),
        t.consume(REPLY, "r", no_ack=True),
        t.publish("amq.direct", "~k", reply_to=REPLY),
        t.sync("~s"),
        t.get("~s", no_ack=True),
    ),
    "cancel what is not consumed": lambda t: t.cancel("r"),
    "a plain reply-to stays as it is": lambda t: (t.queue("~s"), t.publish("", "~s", reply_to="~s"), t.get("~s")),
}
for what, script in OTHERS.items():
    add(f"direct replies: {what}", lambda t, script=script: (script(t), t.sync()))


@case("direct replies: an answer after the asker is gone")
def _(t):
    asker = t.connection("asker")
    t.queue("~server")
    asker.consume(REPLY, "replies", no_ack=True)
    asker.publish("", "~server", "question", reply_to=REPLY)
    t.consume("~server", "server", no_ack=True)
    name = reply_name(t)
    t.queue(name, passive=True)
    asker.close_channel()
    t.queue(name, passive=True)
    t.publish("", name, "late", mandatory=True)
    t.sync()


@case("direct replies: the name is declared, deleted, purged, bound and consumed by others")
def _(t):
    asker = t.connection("asker")
    t.queue("~server")
    asker.consume(REPLY, "replies", no_ack=True)
    asker.publish("", "~server", "question", reply_to=REPLY)
    t.consume("~server", "server", no_ack=True)
    name = reply_name(t)
    t.queue(name, passive=True)
    t.queue(name)
    t.bind(name, "amq.direct", "k")
    t.delete_queue(name)
    t.purge(name)
    t.consume(name, "thief", no_ack=True)
    t.get(name)


@case("direct replies: answers in a transaction and with confirms")
def _(t):
    asker = t.connection("asker")
    t.queue("~server")
    asker.consume(REPLY, "replies", no_ack=True)
    asker.publish("", "~server", "question", reply_to=REPLY)
    t.consume("~server", "server", no_ack=True)
    name = reply_name(t)
    sure = t.channel(2)
    sure.confirm_select()
    sure.publish("", name, "confirmed", mandatory=True)
    sure.confirms(1)
    asker.deliveries(1)
    atomic = t.channel(3)
    atomic.tx_select()
    atomic.publish("", name, "committed")
    atomic.tx_commit()
    asker.deliveries(1)


@case("direct replies: an answer to several by CC")
def _(t):
    asker = t.connection("asker")
    t.queue("~server")
    t.queue("~log")
    asker.consume(REPLY, "replies", no_ack=True)
    asker.publish("", "~server", "question", reply_to=REPLY)
    t.consume("~server", "server", no_ack=True)
    name = reply_name(t)
    t.publish("", "~log", "answer", headers={"BCC": [name]})
    asker.deliveries(1)
    t.get("~log")


@case("channels are closed and opened again")
def _(t):
    t.queue("~q")
    other = t.channel(9)
    other.get("~q")
    other.close_channel()
    other.get("~q")
    t.close_channel()
    t.get("~q")
    t.close_connection()
    t.get("~q")


@case("confirm.select without an answer")
def _(t):
    t.queue("~q")
    t.confirm_select(nowait=True)
    t.publish("", "~q")
    t.confirms(1)


@case("transactions refuse what confirms have, also without an answer")
def _(t):
    t.confirm_select(nowait=True)
    t.tx_select()
    t.tx_select()
    t.confirm_select(nowait=True)
    t.sync()
