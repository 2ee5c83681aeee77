"""Queues that are converted to another type in their place, while clients use them."""

import json
import subprocess
import threading
import time

import pika
import pytest

from api import q
from test_process import BINARY, broker, pytestmark  # noqa: F401 - a mark
from test_quorum_cluster import PATIENCE_SECONDS, api, bodies, connect, consume, count, publish, row
from test_quorum_grown import Traffic
from waiting import until


def ask(through, queue, kind, **options):
    return through.post(f"/leveret/queues/%2F/{q(queue)}/convert", {"type": kind} | options)


def convert(through, queue, kind, **options):
    """Until it is where it is to be."""

    def look():
        answer = ask(through, queue, kind, **options)
        assert answer.status in (200, 404, 503), answer.json
        return answer.status == 200 and answer.json["in_place"]

    until(look, patience=PATIENCE_SECONDS, what=f"it is no {kind} queue")


class One:
    """A node alone, as the helpers for clusters want it."""

    def __init__(self, broker):
        self.nodes = [broker]


@pytest.fixture
def one(broker):
    return One(broker({"quorum_queue.property_equivalence.relaxed_checks_on_redeclaration": "false"}).start())


def declare(cluster, queue, node=0, **arguments):
    with connect(cluster, node) as connection:
        connection.channel().queue_declare(queue, durable=True, arguments=arguments)


def there(cluster, queue, node=0):
    told = row(cluster, queue, node)
    return told["type"], told["arguments"]


def test_on_a_node_alone_it_goes_there_and_back_under_traffic_and_everybody_declares_it_as_before(one, name):
    before = {"x-max-length": 1_000_000, "x-queue-mode": "lazy"}
    declare(one, name, **before)
    with connect(one, 0) as connection:
        connection.channel().queue_bind(name, "amq.fanout")
    with Traffic(one, name, 0, 0) as traffic:
        for kind in ("quorum", "classic", "quorum"):
            here = len(traffic.got)
            until(lambda: len(traffic.got), wanted=lambda it: it > here + 50, what="nothing comes")
            convert(api(one, 0), name, kind)
            declare(one, name, **before)
            assert there(one, name)[0] == kind
    traffic.judge()
    assert there(one, name)[1] == {"x-queue-type": "quorum", "x-max-length": 1_000_000}
    declare(one, name, **{"x-queue-type": "quorum", "x-max-length": 1_000_000})
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        declare(one, name, **{"x-max-length": 5})
    assert refused.value.reply_code == 406
    with connect(one, 0) as connection:
        channel = connection.channel()
        channel.basic_publish("amq.fanout", "", b"0")
        until(lambda: count(one, name), wanted=lambda it: it == 1)


@pytest.mark.parametrize("kinds", [("quorum",), ("quorum", "classic"), ("quorum", "classic", "quorum")])
def test_a_kill_behind_the_answer_leaves_it_what_it_is_with_all_that_was_confirmed(one, name, kinds):
    declare(one, name)
    for kind in kinds:
        publish(one, name, bodies(0, 100), delivery_mode=2)
        convert(api(one, 0), name, kind)
        # A classic queue's transient messages need not be there afterwards; a quorum queue's do.
        publish(one, name, bodies(100, 200), delivery_mode=1 if kind == "quorum" else 2)
        one.nodes[0].crash()
        assert there(one, name)[0] == kind
        declare(one, name)
        assert [body for body, _ in consume(one, name, 200)] == bodies(0, 200)
        assert count(one, name) == 0


@pytest.mark.parametrize("after", [0, 0.002, 0.005, 0.02])
def test_a_kill_while_it_is_asked_leaves_it_either(one, name, after):
    declare(one, name)
    publish(one, name, bodies(0, 100), delivery_mode=2)
    for turn in range(4):
        kind = ("quorum", "classic")[turn % 2]

        def try_it():
            try:
                ask(api(one, 0), name, kind)
            except OSError:
                pass

        asking = threading.Thread(target=try_it)
        asking.start()
        time.sleep(after)
        one.nodes[0].crash()
        asking.join()
        assert there(one, name)[0] in ("quorum", "classic")
        publish(one, name, bodies(100 + turn, 101 + turn), delivery_mode=2)
    assert [body for body, _ in consume(one, name, 104)] == bodies(0, 104)


def test_what_a_consumer_holds_stays_its_own_on_a_node_alone(one, name):
    declare(one, name)
    publish(one, name, bodies(0, 10), delivery_mode=2)
    with connect(one, 0) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=4)
        got = []
        channel.basic_consume(name, lambda _, method, __, body: got.append((method.delivery_tag, body, method.redelivered)))
        until(lambda: (connection.process_data_events(0.05), len(got))[1], wanted=lambda it: it == 4)
        convert(api(one, 0), name, "quorum")
        channel.basic_ack(got[3][0], multiple=True)
        until(lambda: (connection.process_data_events(0.05), len(got))[1], wanted=lambda it: it == 8)
        convert(api(one, 0), name, "classic")
        channel.basic_ack(got[7][0], multiple=True)
        until(lambda: (connection.process_data_events(0.05), len(got))[1], wanted=lambda it: it == 10)
        channel.basic_ack(0, multiple=True)
        assert [(body, again) for _, body, again in got] == [(body, False) for body in bodies(0, 10)]
    until(lambda: count(one, name), wanted=lambda it: it == 0)


def test_nothing_leaves_because_it_came_back_often_before_until_somebody_says_a_limit(one, name):
    declare(one, name)
    publish(one, name, [b"poison"], delivery_mode=2)

    def come_back():
        with connect(one, 0) as connection:
            channel = connection.channel()
            method, _, _ = channel.basic_get(name)
            if method is not None:
                channel.basic_reject(method.delivery_tag, requeue=True)
            return method is not None

    assert all(come_back() for _ in range(30))
    convert(api(one, 0), name, "quorum")
    assert row(one, name)["delivery_limit"] == "unlimited"
    assert come_back()
    one.nodes[0].crash()
    assert come_back()
    limit = {"pattern": f"^{name}$", "apply-to": "quorum_queues", "definition": {"delivery-limit": 20}}
    assert api(one, 0).put("/policies/%2F/limit", limit).status == 201
    until(lambda: count(one, name), wanted=lambda it: it == 0)


def test_what_cannot_be_is_refused_and_what_would_be_lost_is_forced(one, name):
    through = api(one, 0)
    with connect(one, 0) as connection:
        channel = connection.channel()
        for suffix, options in {"auto": {"durable": True, "auto_delete": True}, "transient": {}, "mine": {"exclusive": True}}.items():
            queue = f"{name}.{suffix}"
            channel.queue_declare(queue, **options)
            answer = ask(through, queue, "quorum")
            assert answer.status == 400 and "cannot be converted" in answer.json["reason"], answer.json
            assert there(one, queue)[0] == "classic"
    assert ask(through, "nobody's", "quorum").status == 404
    declare(one, name, **{"x-max-priority": 5})
    assert ask(through, name, "stream").json["reason"] == "type must be one of: classic, quorum"
    told = ask(through, name, "quorum", dry_run=True).json
    assert told["lost"] == ["x-max-priority"] and "its argument x-max-priority (5) goes" in told["differences"]
    assert told["arguments"] == {"from": {"x-queue-type": "classic", "x-max-priority": 5}, "to": {"x-queue-type": "quorum"}}
    assert "in_place" not in told, "nothing is under way"
    assert ask(through, name, "quorum").status == 400
    assert there(one, name)[0] == "classic"
    for number in range(10):
        publish(one, name, [b"%d" % number], delivery_mode=2, priority=number % 6)
    convert(through, name, "quorum", force=True)
    assert sorted(body for body, _ in consume(one, name, 10)) == bodies(0, 10)
    told = ask(through, name, "quorum", dry_run=True).json
    assert (told["in_place"], told["converted"], told["differences"]) == (True, False, []), "what is asked of one that is on its way converts nothing"
    convert(through, name, "classic")
    assert "in_place" not in ask(through, name, "quorum", dry_run=True).json
    assert there(one, name)[0] == "classic", "somebody converted it back, and it stays so"
    assert there(one, name)[1] == {"x-queue-type": "classic", "x-max-priority": 5}
    for number in range(6):
        publish(one, name, [b"%d" % number], delivery_mode=2, priority=number)
    assert [body for body, _ in consume(one, name, 6)] == [b"%d" % number for number in (5, 4, 3, 2, 1, 0)]


def test_policies_follow_its_kind(one, name):
    through = api(one, 0)
    declare(one, name)
    for kind in ("classic", "quorum"):
        policy = {"pattern": f"^{name}$", "apply-to": f"{kind}_queues", "definition": {"max-length": 5 if kind == "quorum" else 7}}
        assert through.put(f"/policies/%2F/{kind}", policy).status in (201, 204)
    publish(one, name, bodies(0, 10), delivery_mode=2)
    until(lambda: row(one, name)["policy"], wanted=lambda it: it == "classic")
    assert count(one, name) == 7
    convert(through, name, "quorum")
    assert row(one, name)["policy"] == "quorum"
    until(lambda: count(one, name), wanted=lambda it: it == 5)


def test_definitions_are_imported_as_quorum_queues_and_declared_as_in_the_file(one, name):
    through = api(one, 0)
    queue = {"vhost": "/", "durable": True, "auto_delete": False}
    document = {
        "policies": [{"vhost": "/", "name": "ha", "pattern": r"\.mirrored", "apply-to": "all", "definition": {"ha-mode": "all"}, "priority": 0}],
        "queues": [
            queue | {"name": f"{name}.mirrored", "type": "classic", "arguments": {"x-max-length": 9}},
            queue | {"name": f"{name}.mirrored.sorted", "type": "classic", "arguments": {"x-max-priority": 9}},
            queue | {"name": f"{name}.plain", "type": "classic", "arguments": {}},
            queue | {"name": f"{name}.passing", "type": "classic", "durable": False, "arguments": {}},
        ],
        "bindings": [{"vhost": "/", "source": "amq.topic", "destination": f"{name}.mirrored", "destination_type": "queue", "routing_key": "k", "arguments": {}}],
    }
    kinds = lambda: {it["name"].removeprefix(name): it["type"] for it in through.get("/queues").json if it["name"].startswith(name)}  # noqa: E731
    assert through.post("/definitions?mirrored_as=zork", document).json["reason"] == "mirrored_as can be mirrored or quorum, not zork"
    assert through.post("/definitions?quorum_as=classic&classic_as=quorum", document).status == 400
    told = through.post("/leveret/definitions/check?mirrored_as=quorum", document).json
    assert told["importable"] and kinds() == {}
    remarks = {it["name"].removeprefix(name): (it["outcome"], it["reason"]) for it in told["remarks"] if it["class"] == "queues"}
    assert remarks == {
        ".mirrored": ("converted", "a classic queue, made as a quorum queue; who declares it as a classic one means it, too"),
        ".mirrored.sorted": ("noted", "it stays a classic queue: as a quorum queue it would lose x-max-priority"),
    }
    assert through.post("/definitions?mirrored_as=quorum", document).status == 204
    assert kinds() == {".mirrored": "quorum", ".mirrored.sorted": "classic", ".plain": "classic", ".passing": "classic"}
    declare(one, f"{name}.mirrored", **{"x-max-length": 9})
    declare(one, f"{name}.mirrored", **{"x-max-length": 9, "x-queue-type": "quorum"})
    with connect(one, 0) as connection:
        connection.channel().basic_publish("amq.topic", "k", b"0")
    until(lambda: count(one, f"{name}.mirrored"), wanted=lambda it: it == 1)
    for it in document["queues"]:
        it["name"] = f"{name}.b{it['name'].removeprefix(name)}"
    document["bindings"] = []
    assert through.post("/definitions?classic_as=quorum", document).status == 204
    kinds_b = {it["name"].removeprefix(f"{name}.b"): it["type"] for it in through.get("/queues").json if it["name"].startswith(f"{name}.b")}
    assert kinds_b == {".mirrored": "quorum", ".mirrored.sorted": "classic", ".plain": "quorum", ".passing": "classic"}
    one.nodes[0].crash()
    declare(one, f"{name}.b.plain")
    assert there(one, f"{name}.b.plain")[0] == "quorum"


def test_the_command_converts_one_or_all_that_match_and_says_what_would_be_otherwise(one, name):

    def ctl(*words):
        return subprocess.run([BINARY, "ctl", "--data-dir", str(one.nodes[0].data), *words], capture_output=True, text=True, check=False, timeout=60)

    for number in range(6):
        declare(one, f"{name}.{number}")
        publish(one, f"{name}.{number}", bodies(0, 10), delivery_mode=2)
    declare(one, f"{name}.sorted", **{"x-max-priority": 3})
    dry = ctl("convert_queue", f"{name}.0", "quorum", "--dry-run", "--formatter", "json")
    assert dry.returncode == 0, dry
    assert all(it["name"] == f"{name}.0" for it in json.loads(dry.stdout)) and "transient messages are kept" in dry.stdout
    assert there(one, f"{name}.0")[0] == "classic"
    done = ctl("convert_queue", f"{name}.0", "quorum")
    assert done.returncode == 0 and "converted" in done.stdout, done
    assert there(one, f"{name}.0")[0] == "quorum"
    many = ctl("convert_queue", "quorum", "--queue-pattern", rf"^{name}\.", "--at-once", "2")
    assert many.returncode == 69 and "would lose x-max-priority" in many.stderr, many
    assert [there(one, f"{name}.{number}")[0] for number in range(6)] == ["quorum"] * 6
    assert there(one, f"{name}.sorted")[0] == "classic"
    forced = ctl("convert_queue", "quorum", "--queue-pattern", rf"^{name}\.", "--force", "--formatter", "json")
    assert forced.returncode == 0 and [it["name"] for it in json.loads(forced.stdout)] == [f"{name}.sorted"], forced
    back = ctl("convert_queue", "classic", "--queue-pattern", rf"^{name}\.", "--formatter", "json")
    assert back.returncode == 0 and len(json.loads(back.stdout)) == 7, back
    for number in range(6):
        assert [body for body, _ in consume(one, f"{name}.{number}", 10)] == bodies(0, 10)
    assert ctl("convert_queue", "quorum").returncode == 64
    assert ctl("convert_queue", f"{name}.0", "stream").returncode == 69
    assert ctl("convert_queue", f"{name}.nobody", "quorum").returncode != 0
