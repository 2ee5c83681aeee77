"""What RabbitMQ removed or changed after 3.x, and clients still use: mirrored queues' policies, the whole channel's prefetch, transient
queues, lazy queues, queue masters. The reference is RabbitMQ 3.10, the version of Debian 12."""

from pika import spec
from wire import B, Q

from ..case import add, case

REFERENCE = "RabbitMQ 3.10"


def policy(name: str, definition: dict, **more) -> None:
    """A policy that is put on a queue, what becomes of the queue, and that it still works."""

    def script(t):
        t.queue("~q")
        t.http("PUT", "/policies/%2F/~p", {"pattern": "^~q$", "definition": definition, "apply-to": "queues"} | more)
        t.http("GET", "/policies/%2F/~p", members=["definition"])
        t.confirm_select()
        t.publish("", "~q", "m", delivery_mode=2)
        t.confirms(1)
        t.get("~q", no_ack=True)
        t.http("DELETE", "/policies/%2F/~p")

    add(f"policy: {name}", script)


policy("all mirrors", {"ha-mode": "all"})
policy("all mirrors, synchronized by themselves", {"ha-mode": "all", "ha-sync-mode": "automatic"})
policy("all mirrors, synchronized by hand", {"ha-mode": "all", "ha-sync-mode": "manual"})
policy("two mirrors", {"ha-mode": "exactly", "ha-params": 2})
policy("two mirrors that are promoted", {"ha-mode": "exactly", "ha-params": 2, "ha-promote-on-shutdown": "always", "ha-promote-on-failure": "when-synced"})
policy("mirrors in batches", {"ha-mode": "all", "ha-sync-mode": "automatic", "ha-sync-batch-size": 100})
policy("mirrors with a time to live", {"ha-mode": "all", "message-ttl": 60000, "max-length": 10})
policy("mirrors by an unheard-of mode", {"ha-mode": "some"})
policy("mirrors by a mode that is a number", {"ha-mode": 5})
policy("exactly, and no number", {"ha-mode": "exactly"})
policy("exactly a text", {"ha-mode": "exactly", "ha-params": "two"})
policy("exactly none", {"ha-mode": "exactly", "ha-params": 0})
policy("nodes, and no list", {"ha-mode": "nodes"})
policy("nodes, and a text", {"ha-mode": "nodes", "ha-params": "rabbit@here"})
policy("nodes, and an empty list", {"ha-mode": "nodes", "ha-params": []})
policy("nodes, and numbers", {"ha-mode": "nodes", "ha-params": [1, 2]})
policy("parameters without a mode", {"ha-params": 2})
policy("synchronization without a mode", {"ha-sync-mode": "automatic"})
policy("synchronization by an unheard-of mode", {"ha-mode": "all", "ha-sync-mode": "sometimes"})
policy("promotion by an unheard-of word", {"ha-mode": "all", "ha-promote-on-shutdown": "never"})
policy("promotion after a failure by an unheard-of word", {"ha-mode": "all", "ha-promote-on-failure": "never"})
policy("batches of nothing", {"ha-mode": "all", "ha-sync-batch-size": 0})
policy("batches of a text", {"ha-mode": "all", "ha-sync-batch-size": "many"})
policy("all mirrors with parameters", {"ha-mode": "all", "ha-params": 2})
policy("lazy", {"queue-mode": "lazy"})
policy("default mode", {"queue-mode": "default"})
policy("an unheard-of mode", {"queue-mode": "eager"})
policy("a queue master's place", {"queue-master-locator": "min-masters"})
policy("an unheard-of place of a queue master", {"queue-master-locator": "elsewhere"})
policy("version one", {"queue-version": 1})
policy("version two", {"queue-version": 2})
policy("version three", {"queue-version": 3})
policy("memory in messages", {"max-in-memory-length": 5})
policy("memory in bytes", {"max-in-memory-bytes": 5})

LOCATORS = {"min-masters": "min-masters", "client-local": "client-local", "random": "random"}
LOCATORS |= {"an unheard-of one": "elsewhere", "a number": 5, "an empty string": "", "a boolean": True}


def locator(what: str, value) -> None:
    def script(t):
        t.queue("~q", arguments={"x-queue-master-locator": value})
        t.publish("", "~q", "m")
        t.counts("~q")

    add(f"x-queue-master-locator: {what}", script)


for each, found in LOCATORS.items():
    locator(each, found)


@case("x-queue-mode: again with another one")
def _(t):
    t.queue("~q", arguments={"x-queue-mode": "lazy"})
    t.queue("~q", arguments={"x-queue-mode": "lazy"})
    t.queue("~q", arguments={"x-queue-mode": "default"})
    t.queue("~q")


@case("x-queue-mode: a lazy queue keeps order, counts and redeliveries")
def _(t):
    t.queue("~q", arguments={"x-queue-mode": "lazy"})
    t.fill("~q", 4, delivery_mode=2)
    t.counts("~q")
    t.consume("~q")
    tags = t.deliveries(4)
    t.nack(tags[1])
    t.deliveries(1)
    t.ack(tags[3], multiple=True)
    t.cancel()
    t.counts("~q")


@case("x-queue-master-locator: again with another one")
def _(t):
    t.queue("~q", arguments={"x-queue-master-locator": "random"})
    t.queue("~q", arguments={"x-queue-master-locator": "client-local"})
    t.queue("~q")


@case("x-ha-policy of RabbitMQ 2 means nothing")
def _(t):
    t.queue("~q", arguments={"x-ha-policy": "all", "x-ha-policy-params": ["rabbit@here"]})
    t.queue("~q")


for each, found in {"true": True, "false": False, "a string": "yes"}.items():

    def script(t, value=found):
        t.queue("~q")
        t.consume("~q", arguments={"x-cancel-on-ha-failover": value})
        t.counts("~q")

    add(f"x-cancel-on-ha-failover: {each}", script)


for each in (1, 2):

    def script(t, version=each):
        t.queue("~q", arguments={"x-queue-version": version})
        t.publish("", "~q", "m", delivery_mode=2)
        t.get("~q")

    add(f"a queue of version {each}", script)


@case("transient queues for everybody")
def _(t):
    t.queue("~q", durable=False)
    t.queue("~q", durable=False)
    t.publish("", "~q", "m", delivery_mode=2)
    other = t.connection("other")
    other.get("~q", no_ack=True)
    other.queue("~q")
    t.queue("~q", durable=False, passive=True)


@case("transient queues that delete themselves")
def _(t):
    t.queue("~q", durable=False, auto_delete=True)
    other = t.connection("other")
    other.consume("~q")
    other.cancel()
    t.queue("~q", durable=False, passive=True)


@case("a transient queue bound to durable and transient exchanges")
def _(t):
    t.exchange("~durable", "fanout")
    t.exchange("~transient", "fanout", durable=False)
    t.queue("~q", durable=False)
    t.bind("~q", "~durable")
    t.bind("~q", "~transient")
    t.publish("~durable", "", "1")
    t.publish("~transient", "", "2")
    t.get("~q")
    t.get("~q")


@case("global prefetch: one limit for all consumers of the channel")
def _(t):
    t.queue("~q")
    t.fill("~q", 6)
    t.qos(3, whole_channel=True)
    t.consume("~q", "a")
    t.deliveries(3)
    t.consume("~q", "b")
    t.no_deliveries("~q")
    t.ack(1)
    t.expect((B.Deliver,), 1, "one more")
    t.no_deliveries("~q")


@case("global prefetch: a limit of the channel and one of each consumer")
def _(t):
    t.queue("~q")
    t.fill("~q", 6)
    t.qos(2)
    t.qos(3, whole_channel=True)
    t.consume("~q", "a")
    t.deliveries(2)
    t.consume("~q", "b")
    t.deliveries(1)
    t.no_deliveries("~q")
    t.ack(3, multiple=True)
    t.expect((B.Deliver,), 3, "three more")
    t.no_deliveries("~q")


@case("global prefetch: set and taken off while there are consumers")
def _(t):
    t.queue("~q")
    t.fill("~q", 4)
    t.qos(1, whole_channel=True)
    t.consume("~q", "a")
    t.deliveries(1)
    t.qos(2, whole_channel=True)
    t.deliveries(1)
    t.qos(0, whole_channel=True)
    t.deliveries(2)


@case("global prefetch: what basic.get took doesn't count")
def _(t):
    t.queue("~q")
    t.fill("~q", 3)
    t.qos(1, whole_channel=True)
    t.get("~q")
    t.consume("~q", "a")
    t.deliveries(1)
    t.no_deliveries("~q")


@case("global prefetch: each channel has its own")
def _(t):
    t.queue("~q")
    t.fill("~q", 4)
    t.qos(1, whole_channel=True)
    t.consume("~q", "a")
    t.deliveries(1)
    other = t.channel(2)
    other.qos(2, whole_channel=True)
    other.consume("~q", "b")
    other.deliveries(2)
    other.no_deliveries("~q")


@case("global prefetch: a consumer without acknowledgements doesn't count")
def _(t):
    t.queue("~q")
    t.fill("~q", 3)
    t.qos(1, whole_channel=True)
    t.consume("~q", "a", no_ack=True)
    t.deliveries(3)


@case("prefetch in bytes")
def _(t):
    t.qos(1, size=1000)
    t.qos(1, size=1000, whole_channel=True)


@case("a message published as immediate")
def _(t):
    t.queue("~q")
    t.publish("", "~q", immediate=True)
    t.counts("~q")


@case("basic.recover without requeueing")
def _(t):
    t.queue("~q")
    t.publish("", "~q")
    t.get("~q")
    t.recover(requeue=False)
    t.counts("~q")


@case("a delivery limit and a time for acknowledgements on a classic queue")
def _(t):
    t.queue("~q", arguments={"x-delivery-limit": 3})
    t.queue("~r", arguments={"x-consumer-timeout": 60000})


@case("in-memory limits on a classic queue")
def _(t):
    t.queue("~q", arguments={"x-max-in-memory-length": 3, "x-max-in-memory-bytes": 1000})
    t.publish("", "~q")
    t.counts("~q")


@case("flow off and on")
def _(t):
    t.call("flow off", spec.Channel.Flow(False), (spec.Channel.FlowOk,))
    t.call("flow on", spec.Channel.Flow(True), (spec.Channel.FlowOk,))


@case("a queue's name of two hundred letters, passively and again")
def _(t):
    t.call("passive", Q.Declare(queue="q" * 200, passive=True), (Q.DeclareOk,))
