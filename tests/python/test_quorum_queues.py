"""Quorum queues on a node alone: what they keep, what counts as a failure, how they are declared by default and shown to people."""

import time

import pika
import pytest

from conftest import connect, control
from waiting import until

QUORUM = {"x-queue-type": "quorum"}


def declare(channel, name, **arguments):
    said = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    channel.queue_declare(name, durable=True, arguments=QUORUM | said)


def fetch(channel, queue, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = channel.basic_get(queue)
        if got[0]:
            return got
    raise AssertionError(f"nothing came to {queue}")


def shown(api, path, member):
    """What the HTTP API tells once it has this member: RabbitMQ's queues tell some of theirs every five seconds."""
    return until(lambda: api.get(path).json, lambda row: row.get(member) is not None, what=f"no {member}")


@pytest.fixture
def quorum(channel, name):
    declare(channel, name)
    yield name
    with connect() as connection:
        connection.channel().queue_delete(name)


@pytest.mark.needs_control
def test_transient_messages_survive_a_restart_with_their_counts(name):
    connection = connect()
    channel = connection.channel()
    channel.confirm_delivery()
    declare(channel, name)
    for number in range(3):
        channel.basic_publish("", name, str(number).encode(), pika.BasicProperties(delivery_mode=1))
    channel.basic_nack(fetch(channel, name)[0].delivery_tag)
    channel.basic_reject(fetch(channel, name)[0].delivery_tag)
    connection.close()

    control("restart")

    with connect() as connection:
        channel = connection.channel()
        method, properties, body = fetch(channel, name)
        assert (body, properties.delivery_mode, method.redelivered) == (b"0", 1, True)
        assert properties.headers == {"x-acquired-count": 2, "x-delivery-count": 1}
        assert [fetch(channel, name)[2] for _ in range(2)] == [b"1", b"2"]
        channel.queue_delete(name)


def test_what_is_given_back_counts_for_no_limit(channel, name):
    dead = f"{name}.dead"
    channel.queue_declare(dead, exclusive=True)
    declare(channel, name, delivery_limit=1, dead_letter_exchange="", dead_letter_routing_key=dead)
    channel.basic_publish("", name, b"m")
    for times in range(4):
        method, properties, _ = fetch(channel, name)
        assert (properties.headers or {}).get("x-acquired-count", 0) == times
        assert "x-delivery-count" not in (properties.headers or {})
        channel.basic_nack(method.delivery_tag)
    for _ in range(2):
        channel.basic_reject(fetch(channel, name)[0].delivery_tag)
    _, properties, body = fetch(channel, dead)
    assert (body, properties.headers["x-death"][0]["reason"]) == (b"m", "delivery_limit")
    channel.queue_delete(name)


def test_a_virtual_host_says_what_queues_are_by_default(api, vhost):
    api.put(f"/vhosts/{vhost}", {"default_queue_type": "quorum"})
    assert api.get(f"/vhosts/{vhost}").json["default_queue_type"] == "quorum"
    with connect(virtual_host=vhost) as connection:
        channel = connection.channel()
        for name, options in (("plain", {"durable": True}), ("mine", {"exclusive": True}), ("brief", {"durable": True, "auto_delete": True})):
            channel.queue_declare(name, **options)
        # Whoever says nothing again means the same.
        channel.queue_declare("plain", durable=True)
        types = {queue["name"]: queue["type"] for queue in api.get(f"/queues/{vhost}").json}
        assert types == {"plain": "quorum", "mine": "classic", "brief": "classic"}
        assert api.get(f"/queues/{vhost}/plain").json["arguments"] == {"x-queue-type": "quorum"}


def test_policies_for_quorum_queues_are_for_no_others(api, channel, quorum, name):
    classic = f"{name}.classic"
    channel.queue_declare(classic, exclusive=True)
    api.put(f"/policies/%2F/{name}", {"pattern": f"^{name}", "apply-to": "quorum_queues", "definition": {"delivery-limit": 3, "max-length": 1}})
    try:
        queue = shown(api, f"/queues/%2F/{quorum}", "policy")
        assert (queue["policy"], queue["effective_policy_definition"]) == (name, {"delivery-limit": 3, "max-length": 1})
        other = shown(api, f"/queues/%2F/{classic}", "consumers")
        assert other["policy"] is None and "delivery_limit" not in other
    finally:
        api.delete(f"/policies/%2F/{name}")


def test_people_see_its_members(api, quorum):
    queue = shown(api, f"/queues/%2F/{quorum}", "delivery_limit")
    node = queue["node"]
    assert (queue["type"], queue["leader"], queue["members"], queue["online"]) == ("quorum", node, [node], [node])
    assert (queue["delivery_limit"], queue["delayed_retry"], queue["open_files"]) == (20, "disabled", {node: 0})
    [member] = api.get(f"/queues/quorum/%2F/{quorum}/status").json
    assert (member["Node Name"], member["Raft State"], member["Membership"]) == (node, "leader", "voter")


@pytest.mark.leveret_only("RabbitMQ tries again after minutes")
def test_at_least_once_keeps_what_no_queue_takes(channel, name):
    target = f"{name}.target"
    declare(channel, name, dead_letter_strategy="at-least-once", overflow="reject-publish", dead_letter_exchange="", dead_letter_routing_key=target)
    other, there = f"{name}.other", f"{name}.there"
    channel.queue_declare(there, exclusive=True)
    declare(channel, other, dead_letter_exchange="", dead_letter_routing_key=there)
    for queue in (name, other):
        channel.basic_publish("", queue, b"m")
        channel.basic_reject(fetch(channel, queue)[0].delivery_tag, requeue=False)
    # They go in order: when the second has come, the first has found no queue.
    fetch(channel, there)
    channel.queue_declare(target, exclusive=True)
    assert fetch(channel, target, seconds=30)[2] == b"m"
    for queue in (name, other):
        channel.queue_delete(queue)
