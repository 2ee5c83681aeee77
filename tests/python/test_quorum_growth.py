"""Quorum queues that get the members they are to have in the long run, in a cluster of five nodes."""

import sys
from pathlib import Path

import pytest

from api import q
from test_process import BINARY, pytestmark  # noqa: F401 - a mark
from test_quorum_cluster import PATIENCE_SECONDS, api, bodies, consume, declare, publish, row
from waiting import until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.cluster import Cluster, name as name_of  # noqa: E402

RECONCILIATION = "quorum_queue.continuous_membership_reconciliation"
SETTINGS = {f"{RECONCILIATION}.enabled": "true", f"{RECONCILIATION}.interval": "2000", f"{RECONCILIATION}.trigger_interval": "300"}
SETTINGS["quorum_queue.rebalance_after_return"] = "true"
TARGET = "x-quorum-target-group-size"


@pytest.fixture(scope="module")
def five():
    with Cluster(BINARY, size=5, settings=SETTINGS) as running:
        yield running
        assert running.panics() == []


def voters(cluster, queue, asked=0):
    told = api(cluster, asked).get(f"/queues/quorum/%2F/{q(queue)}/status").json
    return sorted(it["Node Name"] for it in told if it.get("Membership") == "voter")


def until_voters(cluster, queue, count, asked=0):
    return until(lambda: voters(cluster, queue, asked), wanted=lambda it: len(it) == count, patience=PATIENCE_SECONDS, what=f"{queue} has not {count} members")


def test_a_queue_grows_to_its_target_one_member_after_the_other_and_keeps_what_it_has(five, name):
    declare(five, name, **{TARGET: 5})
    declare(five, f"{name}.small")
    publish(five, name, bodies(0, 200))
    until_voters(five, name, 5)
    publish(five, name, bodies(200, 210), 4)
    assert len(row(five, f"{name}.small")["members"]) == 3
    # The new members have everything: a majority of them and one more is enough.
    for node in (0, 1):
        five.nodes[node].kill()
    assert [body for body, _ in consume(five, name, 210, 4)] == bodies(0, 210)
    five.spawn()
    for node in five.nodes:
        node.wait_until_serving()
    five.wait_until_whole()


def test_a_policy_makes_queues_grow_and_their_initial_members_are_spread(five, name):
    queues = [f"{name}.{number}" for number in range(10)]
    for queue in queues:
        declare(five, queue)
    have = [member for queue in queues for member in row(five, queue)["members"]]
    counts = sorted(have.count(name_of(node)) for node in range(1, 5))
    assert sum(counts) == 20 and counts[0] >= 3, counts
    policy = {"pattern": f"^{name}\\.[0-4]$", "definition": {"target-group-size": 5}, "apply-to": "quorum_queues"}
    assert api(five, 1).put(f"/policies/%2F/{name}", policy).status == 201
    for queue in queues[:5]:
        until_voters(five, queue, 5)
    assert all(len(row(five, queue)["members"]) == 3 for queue in queues[5:])
    assert api(five, 1).delete(f"/policies/%2F/{name}").status == 204


def test_leaders_are_spread_again_some_time_after_a_node_came_back(five, name):
    queues = [f"{name}.{number}" for number in range(10)]
    for queue in queues:
        declare(five, queue, 2, **{"x-quorum-initial-group-size": 5})
        publish(five, queue, [b"body"])
    five.nodes[3].kill()
    five.spawn()
    five.nodes[3].wait_until_serving()

    def leads():
        leaders = [(row(five, queue) or {}).get("leader") for queue in queues]
        return max(leaders.count(name_of(node)) for node in range(5))

    # With queues of other tests, which count as well: none has nearly all of them.
    until(leads, wanted=lambda it: it <= 7, patience=PATIENCE_SECONDS, what="leaders stay where they are")
    for queue in queues:
        assert consume(five, queue, 1, 3) == [(b"body", False)]


def test_a_forgotten_node_takes_its_members_with_it_and_others_come_in_their_place(five, name):
    declare(five, name, **{TARGET: 3})
    publish(five, name, bodies(0, 20))
    members = row(five, name)["members"]
    gone = next(node for node in range(1, 5) if name_of(node) in members)
    asked = 0
    five.nodes[gone].kill()
    until(lambda: api(five, asked).delete(f"/leveret/nodes/{q(name_of(gone))}").status, wanted=lambda it: it in (200, 204), patience=PATIENCE_SECONDS, what="the node stays")
    left = until_voters(five, name, 3)
    assert name_of(gone) not in left
    assert [body for body, _ in consume(five, name, 20)] == bodies(0, 20)
