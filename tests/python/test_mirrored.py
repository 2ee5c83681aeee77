"""Classic queues that a policy mirrors (`ha-mode`): they get mirrors and lose them while clients of all nodes use them."""

import sys
import time
from pathlib import Path

import pika
import pytest

from api import q
from test_process import pytestmark  # noqa: F401 - a mark
from test_quorum_cluster import PATIENCE_SECONDS, api, bodies, cluster, connect, consume, count, publish, row, whole  # noqa: F401 - fixtures
from test_quorum_grown import Traffic
from waiting import until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.cluster import name as name_of  # noqa: E402


def declare(cluster, queue, node=0, durable=True, **arguments):
    with connect(cluster, node) as connection:
        connection.channel().queue_declare(queue, durable=durable, arguments=arguments)


def mirror(cluster, queue, mode="all", params=None, asked=0, **definition):
    definition["ha-mode"] = mode
    if params is not None:
        definition["ha-params"] = params
    answer = api(cluster, asked).put(f"/policies/%2F/{q(queue)}", {"pattern": f"^{queue}$", "apply-to": "queues", "definition": definition})
    assert answer.status in (201, 204), answer.json


def unmirror(cluster, queue, asked=0):
    assert api(cluster, asked).delete(f"/policies/%2F/{q(queue)}").status == 204


def mirrors(cluster, queue, asked=0):
    """Who leads, and the mirrors that have everything."""
    told = row(cluster, queue, asked)
    return told["node"], sorted(told.get("synchronised_slave_nodes", []))


def has_mirrors(cluster, queue, number, asked=0):
    until(lambda: mirrors(cluster, queue, asked), wanted=lambda it: len(it[1]) == number, patience=PATIENCE_SECONDS, what="its mirrors are others")


@pytest.fixture(autouse=True)
def no_policy(cluster, name):
    yield
    node = next(node for node in range(3) if cluster.nodes[node].alive())
    api(cluster, node).delete(f"/policies/%2F/{q(name)}")


def test_the_policy_says_who_has_a_queue(cluster, name):
    declare(cluster, name, 1)
    assert "slave_nodes" not in row(cluster, name)
    mirror(cluster, name)
    has_mirrors(cluster, name, 2)
    assert mirrors(cluster, name, 2) == (name_of(1), [name_of(0), name_of(2)])
    told = row(cluster, name)
    assert (told["type"], told["policy"]) == ("classic", name)
    assert sorted(told["slave_nodes"]) == sorted(told["recoverable_slaves"]) == [name_of(0), name_of(2)]
    mirror(cluster, name, "nodes", [name_of(0)])
    until(lambda: mirrors(cluster, name), wanted=lambda it: it == (name_of(0), []), patience=PATIENCE_SECONDS)
    mirror(cluster, name, "exactly", 2)
    # Two would stop with either of them.
    has_mirrors(cluster, name, 2)


@pytest.mark.parametrize("through,consuming", [(0, 0), (1, 2), (2, 0)])
def test_mirrors_come_and_go_while_clients_publish_and_consume(cluster, name, through, consuming):
    declare(cluster, name)
    with Traffic(cluster, name, through, consuming) as traffic:
        for _ in range(2):
            here = len(traffic.got)
            until(lambda: len(traffic.got), wanted=lambda it: it > here + 50, what="nothing comes")
            mirror(cluster, name, asked=through)
            has_mirrors(cluster, name, 2, through)
            here = len(traffic.got)
            until(lambda: len(traffic.got), wanted=lambda it: it > here + 50, what="nothing comes with mirrors")
            unmirror(cluster, name, through)
            until(lambda: row(cluster, name, through).get("slave_nodes"), wanted=lambda it: it is None, patience=PATIENCE_SECONDS)
    traffic.judge()
    assert [count(cluster, name, node) for node in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("durable", [True, False])
def test_everything_is_there_when_its_node_dies(cluster, name, durable):
    declare(cluster, name, durable=durable)
    with connect(cluster, 0) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for body in bodies(0, 200):
            channel.basic_publish("", name, body, pika.BasicProperties(delivery_mode=1))
    mirror(cluster, name)
    has_mirrors(cluster, name, 2)
    publish(cluster, name, bodies(200, 300), 2)
    cluster.nodes[0].kill()
    got = consume(cluster, name, 300, 2)
    assert [body for body, _ in got] == bodies(0, 300)
    assert row(cluster, name, 1)["node"] != name_of(0)


def test_what_scripts_of_rabbitmq_3_ask_of_mirrors_is_answered(cluster, name):
    declare(cluster, name)
    path = f"/queues/%2F/{q(name)}/actions"
    assert api(cluster, 1).post(path, {"action": "sync"}).status == 400
    mirror(cluster, name)
    has_mirrors(cluster, name, 2)
    for action in ("sync", "cancel_sync"):
        assert api(cluster, 1).post(path, {"action": action}).status == 204
    assert api(cluster, 1).post(path, {"action": "other"}).status == 400
    # A member is a quorum queue's.
    answer = api(cluster, 1).post(f"/queues/quorum/%2F/{q(name)}/replicas/add", {"node": name_of(2)})
    assert answer.status == 503 and answer.json["reason"] == "classic_queue_not_supported"
    assert api(cluster, 0).get("/health/checks/node-is-mirror-sync-critical").status == 200
    cluster.nodes[2].kill()
    until(lambda: api(cluster, 0).get("/health/checks/node-is-mirror-sync-critical"), wanted=lambda it: it.status == 503, patience=PATIENCE_SECONDS)
    told = api(cluster, 0).get("/health/checks/node-is-mirror-sync-critical").json
    assert [it["name"] for it in told["queues"]] == [name]


def test_a_policy_that_changes_all_the_time_loses_nothing_when_the_node_is_killed_in_between(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 100), delivery_mode=2)
    for turn in range(6):
        mirror(cluster, name) if turn % 2 == 0 else unmirror(cluster, name)
        time.sleep(0.12 * turn)
        cluster.nodes[0].kill()
        cluster.spawn()
        cluster.nodes[0].wait_until_serving()
        cluster.wait_until_whole()
    assert [body for body, _ in consume(cluster, name, 100, 1)] == bodies(0, 100)
