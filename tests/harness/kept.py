"""What is put into data directories that later builds have to open: objects of all kinds, and messages in every state that a disk knows."""

from __future__ import annotations

import datetime
import decimal

import pika

VHOST = "kept"

# The parts of definitions that are compared.
DEFINED = ("users", "vhosts", "permissions", "topic_permissions", "parameters", "policies", "queues", "exchanges", "bindings")

# Durations are over long before a later build looks, and not before the directory is put away.
SOON_MS = 25_000

CLASSIC = {
    "plain": {},
    "priorities": {"x-max-priority": 10},
    "fair": {"x-fair-key": "tenant"},
    "once": {"x-message-deduplication": True},
    "retries": {"x-delivery-limit": 5, "x-retry-delay": 1},
    "mortal": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-max-length": 2, "x-message-ttl": SOON_MS},
    "dead": {},
    "expiring": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "expired"},
    "expired": {},
    "delayed": {},
    "bound": {"x-single-active-consumer": True},
    "aged": {},
}
QUORUM = {
    "quorum": {},
    "quorum.one": {"x-quorum-initial-group-size": 1},
    "quorum.mortal": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "quorum.dead", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"},
    "quorum.dead": {},
    "quorum.retries": {"x-delayed-retry-type": "all", "x-delayed-retry-min": 10, "x-delivery-limit": 7},
    "quorum.expiring": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "expired"},
}
QUEUES = [*CLASSIC, *QUORUM]

EVERY_PROPERTY = pika.BasicProperties(
    content_type="text/plain", content_encoding="utf-8", delivery_mode=2, priority=3, correlation_id="c", reply_to="r", message_id="m", timestamp=1_700_000_000, type="t", user_id="guest", app_id="a", cluster_id="k",
    headers={"text": "é", "bytes": b"\x00\xff", "number": -5, "large": 1 << 40, "yes": True, "nothing": None, "list": [1, "two", {"three": 3}], "decimal": decimal.Decimal("1.25"), "time": datetime.datetime(2026, 1, 2, 3, 4, 5), "table": {"deep": {"er": "x"}}},
)  # fmt: skip


def persistent(**more) -> pika.BasicProperties:
    return pika.BasicProperties(delivery_mode=2, **more)


def define(api) -> None:
    """What operators declare."""

    def put(path: str, body: dict) -> None:
        answer = api.put(path, body)
        assert answer.status in (201, 204), (path, answer)

    put(f"/vhosts/{VHOST}", {"description": "kept", "tags": ["a", "b"]})
    put("/users/alice", {"password": "wonderland", "tags": "management"})
    put("/users/nobody", {"password_hash": "", "tags": ""})
    for user in ("guest", "alice"):
        put(f"/permissions/{VHOST}/{user}", {"configure": "^$" if user == "alice" else ".*", "write": ".*", "read": ".*"})
    put(f"/topic-permissions/{VHOST}/alice", {"exchange": "amq.topic", "write": "^a", "read": "^b"})
    put(f"/vhost-limits/{VHOST}/max-queues", {"value": 1000})
    put("/user-limits/alice/max-connections", {"value": 7})
    put(f"/policies/{VHOST}/classic", {"pattern": "^plain$", "definition": {"max-length": 100_000}, "apply-to": "classic_queues", "priority": 2})
    put(f"/policies/{VHOST}/quorum", {"pattern": "^quorum", "definition": {"max-length": 50_000, "delivery-limit": 9}, "apply-to": "quorum_queues"})
    put(f"/operator-policies/{VHOST}/limit", {"pattern": "^pl", "definition": {"max-length-bytes": 1 << 30}, "apply-to": "queues"})


def declare(channel) -> None:
    for queue, arguments in CLASSIC.items():
        channel.queue_declare(queue, durable=True, arguments=arguments)
    for queue, arguments in QUORUM.items():
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"} | arguments)
    for kind in ("direct", "fanout", "topic", "headers", "x-consistent-hash"):
        channel.exchange_declare(f"x.{kind.removeprefix('x-')}", kind, durable=True, arguments={"alternate-exchange": "amq.fanout"} if kind == "topic" else None)
    channel.exchange_declare("x.delayed", "x-delayed-message", durable=True, arguments={"x-delayed-type": "topic"})
    channel.exchange_declare("x.once", "x-message-deduplication", durable=True, arguments={"x-cache-size": 1000, "x-cache-persistence": "disk"})
    channel.queue_bind("bound", "x.direct", "a")
    channel.queue_bind("bound", "x.topic", "a.*.#")
    channel.queue_bind("bound", "x.headers", "", {"x-match": "any", "k": "v", "n": 1})
    channel.queue_bind("bound", "x.once", "")
    channel.queue_bind("bound", "x.consistent-hash", "10")
    channel.queue_bind("quorum.one", "x.fanout")
    channel.exchange_bind("x.direct", "x.topic", "b")
    channel.queue_bind("delayed", "x.delayed", "later.#")


def fill(setting) -> None:
    """Declares everything and publishes all that does not become due."""
    define(setting.api())
    with setting.connect() as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        declare(channel)
        classic(channel)
        quorum(channel)


def classic(channel) -> None:
    def publish(key: str, body, properties=None, exchange="") -> None:
        channel.basic_publish(exchange, key, body, properties or persistent())

    publish("plain", b"every property", EVERY_PROPERTY)
    for number in range(12):
        publish("plain", f"plain {number}")
        publish("priorities", f"of {number % 5}, {number}", persistent(priority=number % 5))
        publish("fair", f"fair {number}", persistent(headers={"tenant": f"t{number % 3}"}))
        publish("once", f"once {number}", persistent(headers={"x-deduplication-header": number % 4}))
        publish("mortal", f"mortal {number}")
    publish("plain", b"large" * 60_000)
    publish("plain", b"")
    publish("plain", b"lost", pika.BasicProperties(delivery_mode=1))
    for tag in [channel.basic_get("plain")[0].delivery_tag for _ in range(5)][1:3]:
        channel.basic_ack(tag)
    publish("retries", b"came back")
    channel.basic_nack(channel.basic_get("retries")[0].delivery_tag)
    channel.basic_reject(channel.basic_get("mortal")[0].delivery_tag, requeue=False)
    for exchange, key, headers in (("x.direct", "a", {}), ("x.topic", "a.b.c", {}), ("x.topic", "b", {}), ("x.headers", "", {"k": "v"}), ("x.once", "", {"x-deduplication-header": "same"}), ("x.fanout", "", {})):
        publish(key, f"by {exchange} {key}", persistent(headers=headers), exchange)
    publish("", b"twice", persistent(headers={"x-deduplication-header": "same"}), "x.once")


def quorum(channel) -> None:
    def publish(key: str, body, properties=None) -> None:
        channel.basic_publish("", key, body, properties or persistent())

    publish("quorum", b"every property", EVERY_PROPERTY)
    for number in range(12):
        publish("quorum", f"quorum {number}", persistent(priority=number % 3 * 10))
        publish("quorum.mortal", f"quorum mortal {number}")
    publish("quorum", b"large" * 60_000)
    publish("quorum", b"kept, though transient", pika.BasicProperties(delivery_mode=1))
    held = [channel.basic_get("quorum")[0].delivery_tag for _ in range(6)]
    channel.basic_ack(held[1])
    channel.basic_ack(held[4])
    channel.basic_reject(held[2])
    channel.basic_nack(held[3])
    publish("quorum.retries", b"failed")
    channel.basic_reject(channel.basic_get("quorum.retries")[0].delivery_tag)
    for _ in range(3):
        channel.basic_reject(channel.basic_get("quorum.mortal")[0].delivery_tag, requeue=False)
    while channel.queue_declare("quorum.dead", passive=True).method.message_count < 3:
        channel.connection.sleep(0.05)


def aged(setting) -> None:
    """So much passes that the log goes around: the bodies that stay are in segments, and contents in checkpoints."""
    with setting.connect() as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for number in range(340):
            channel.basic_publish("", "aged", f"{number} ".encode() * 200_000, persistent())
            if number % 50 != 7:
                channel.basic_ack(channel.basic_get("aged")[0].delivery_tag)
            if number % 100 == 50:
                for queue in ("plain", "quorum", "once"):
                    channel.basic_publish("", queue, f"later {number}", persistent(headers={"x-deduplication-header": str(number)}))


def finish(setting) -> None:
    """What is due soon, and becomes so on disk."""
    with setting.connect() as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for number in range(3):
            channel.basic_publish("x.delayed", f"later.{number}", f"delayed {number}", persistent(headers={"x-delay": SOON_MS + 500 * number}))
            channel.basic_publish("", "expiring", f"expiring {number}", persistent(expiration=str(SOON_MS)))
        channel.basic_publish("", "quorum.expiring", b"expiring at last", persistent(expiration=str(SOON_MS + 3_000)))
