"""Requests that are refused, beyond declarations: missing objects, wrong tags, reserved names."""

from ..case import add, case


@case("publish to a missing exchange, then again")
def _(t):
    t.publish("~missing", "k")
    t.sync()
    t.publish("~missing", "k", mandatory=True)
    t.sync()


@case("publish to an internal exchange")
def _(t):
    t.exchange("~x", internal=True)
    t.publish("~x", "k")
    t.sync()


@case("publish with immediate")
def _(t):
    t.publish("", "~q", immediate=True)
    t.sync()


MISSING = {
    "get": lambda t: t.get("~missing"),
    "consume": lambda t: t.consume("~missing"),
    "purge": lambda t: t.purge("~missing"),
    "delete": lambda t: t.delete_queue("~missing"),
    "bind": lambda t: t.bind("~missing", "amq.direct", "k"),
    "bind to a missing exchange": lambda t: (t.queue("~q"), t.bind("~q", "~missing", "k")),
    "unbind": lambda t: t.unbind("~missing", "amq.direct", "k"),
    "unbind from a missing exchange": lambda t: (t.queue("~q"), t.unbind("~q", "~missing", "k")),
    "unbind what was never bound": lambda t: (t.queue("~q"), t.unbind("~q", "amq.direct", "k")),
    "passive queue": lambda t: t.queue("~missing", passive=True),
    "passive exchange": lambda t: t.exchange("~missing", passive=True),
    "passive exchange of another type": lambda t: (t.exchange("~x", "fanout"), t.exchange("~x", "topic", passive=True)),
    "delete exchange": lambda t: t.delete_exchange("~missing"),
    "bind exchange from a missing source": lambda t: t.bind_exchange("amq.fanout", "~missing"),
    "bind exchange to a missing destination": lambda t: t.bind_exchange("~missing", "amq.fanout"),
    "unbind exchange from a missing source": lambda t: t.unbind_exchange("amq.fanout", "~missing"),
    "get without a declared queue": lambda t: t.get(""),
    "consume without a declared queue": lambda t: t.consume(""),
    "cancel": lambda t: t.cancel("nobody"),
}
for what, script in MISSING.items():

    def missing(t, script=script):
        script(t)
        t.sync()

    add(f"nothing there: {what}", missing)

RESERVED = {
    "declare a queue": lambda t: t.queue("amq.mine"),
    "declare a queue passively": lambda t: t.queue("amq.mine", passive=True),
    "declare an exchange": lambda t: t.exchange("amq.mine"),
    "declare an exchange passively": lambda t: t.exchange("amq.mine", passive=True),
    "declare a predeclared exchange as it is": lambda t: t.exchange("amq.direct", "direct"),
    "declare a predeclared exchange otherwise": lambda t: t.exchange("amq.direct", "topic"),
    "delete a predeclared exchange": lambda t: t.delete_exchange("amq.fanout"),
    "declare the default exchange": lambda t: t.exchange("", "direct"),
    "declare the default exchange passively": lambda t: t.exchange("", "direct", passive=True),
    "delete the default exchange": lambda t: t.delete_exchange(""),
    "bind to the default exchange": lambda t: (t.queue("~q"), t.bind("~q", "", "k")),
    "unbind from the default exchange": lambda t: (t.queue("~q"), t.unbind("~q", "", "~q")),
    "bind the default exchange": lambda t: t.bind_exchange("", "amq.fanout", "k"),
    "bind to an exchange from the default": lambda t: t.bind_exchange("amq.fanout", "", "k"),
    "bind a predeclared exchange to itself": lambda t: (t.exchange("~x"), t.bind_exchange("~x", "~x", "k"), t.publish("~x", "k"), t.sync()),
}
for what, script in RESERVED.items():
    add(f"reserved: {what}", lambda t, script=script: script(t))

TYPES = ["direct", "fanout", "topic", "headers", "x-local-random", "nonsense", "", "DIRECT", "x-consistent-hash", "x-random", "x-delayed-message"]
for kind in TYPES:
    add(f"exchange type {kind!r}", lambda t, kind=kind: t.exchange("~x", kind))

ALTERNATES = {"a string": "amq.fanout", "a missing exchange": "~missing", "an empty string": "", "a number": 5, "a boolean": True, "an array": ["amq.fanout"], "void": None}
for what, value in ALTERNATES.items():
    add(f"alternate-exchange: {what}", lambda t, value=value: t.exchange("~x", arguments={"alternate-exchange": value}))


@case("declare an exchange again in every other way")
def _(t):
    t.exchange("~x", "topic")
    t.exchange("~x", "topic")
    t.exchange("~x", "direct")
    t.exchange("~x", "topic", durable=False)
    t.exchange("~x", "topic", auto_delete=True)
    t.exchange("~x", "topic", internal=True)
    t.exchange("~x", "topic", arguments={"alternate-exchange": "amq.fanout"})
    t.exchange("~x", "topic", arguments={"x-unheard-of": 1})
    t.exchange("~x", "nonsense")
    t.exchange("~x", "fanout", durable=False, auto_delete=True, internal=True)


@case("declare an exchange again with another alternate exchange")
def _(t):
    t.exchange("~x", arguments={"alternate-exchange": "amq.fanout"})
    t.exchange("~x", arguments={"alternate-exchange": "amq.fanout"})
    t.exchange("~x", arguments={"alternate-exchange": "amq.direct"})
    t.exchange("~x")


def settles(verb: str, tag: int, **options):
    def script(t):
        t.queue("~q")
        t.publish("", "~q")
        t.get("~q")
        getattr(t, verb)(tag, **options)
        t.counts("~q")
        t.get("~q")

    return script


for verb in ("ack", "nack", "reject"):
    for tag in (0, 1, 2):
        add(f"{verb} of tag {tag} of 1", settles(verb, tag))
        if verb != "reject":
            add(f"{verb} of tag {tag} of 1, multiple", settles(verb, tag, multiple=True))
    if verb != "ack":
        add(f"{verb} without requeue", settles(verb, 1, requeue=False))


@case("a tag settled twice")
def _(t):
    t.queue("~q")
    t.publish("", "~q")
    t.get("~q")
    t.ack(1)
    t.ack(1)
    t.sync()


@case("a tag of a no-ack get")
def _(t):
    t.queue("~q")
    t.publish("", "~q")
    t.get("~q", no_ack=True)
    t.ack(1)
    t.sync()


@case("a tag of another channel")
def _(t):
    t.queue("~q")
    t.publish("", "~q")
    t.get("~q")
    other = t.channel(2)
    other.ack(1)
    other.sync()
    t.ack(1)
    t.counts("~q")


@case("delete what is used or filled")
def _(t):
    t.queue("~q")
    t.publish("", "~q")
    t.delete_queue("~q", if_empty=True)
    t.consume("~q")
    t.deliveries(1)
    t.delete_queue("~q", if_unused=True)
    t.delete_queue("~q", if_empty=True)
    t.exchange("~x")
    t.bind("~q", "~x", "k")
    t.delete_exchange("~x", if_unused=True)
    t.unbind("~q", "~x", "k")
    t.delete_exchange("~x", if_unused=True)
    t.delete_queue("~q", if_unused=True)


@case("consumer tags used twice")
def _(t):
    t.queue("~q")
    t.consume("~q", "c")
    t.channel(2).consume("~q", "c")
    t.consume("~q", "c")


@case("methods that are not implemented")
def _(t):
    t.qos(1, size=1)
    t.qos(1)
    t.recover(False)
    t.recover(True)


@case("transactions and confirms exclude one another")
def _(t):
    t.tx_commit()
    t.tx_rollback()
    t.confirm_select()
    t.confirm_select()
    t.tx_select()
    t.tx_select()
    t.tx_select()
    t.confirm_select()


@case("an exclusive consumer beside others")
def _(t):
    t.queue("~q")
    t.consume("~q", "a")
    t.consume("~q", "b", exclusive=True)
    t.queue("~q", passive=True)
    t.consume("~q", "b", exclusive=True)
    t.channel(2).consume("~q", "c")
    t.channel(2).consume("~q", "c", exclusive=True)
    t.channel(2).get("~q")
    t.cancel("b")
    t.channel(2).consume("~q", "c")
