"""Queues of three nodes that are converted to another type in their place, while clients use them."""

import sys
import time
from pathlib import Path

import pytest

from test_conversion import ask, convert, declare, there
from test_mirrored import has_mirrors, mirror, mirrors, no_policy, unmirror  # noqa: F401 - fixtures
from test_process import pytestmark  # noqa: F401 - a mark
from test_quorum_cluster import api, bodies, cluster, consume, count, publish, row, whole  # noqa: F401 - fixtures
from test_quorum_grown import Traffic, voters
from waiting import until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.cluster import name as name_of  # noqa: E402

ALL = [name_of(node) for node in range(3)]


@pytest.mark.parametrize("through,consuming", [(0, 0), (1, 2), (2, 0)])
def test_on_three_nodes_it_goes_there_and_back_while_clients_publish_and_consume(cluster, name, through, consuming):
    declare(cluster, name)
    with Traffic(cluster, name, through, consuming) as traffic:
        for kind in ("quorum", "classic", "quorum"):
            here = len(traffic.got)
            until(lambda: len(traffic.got), wanted=lambda it: it > here + 50, what="nothing comes")
            convert(api(cluster, through), name, kind)
            # Whoever leads it is asked, through whatever node, and nothing is converted by that.
            asked = ask(api(cluster, consuming), name, kind, dry_run=True)
            assert (asked.status, asked.json["in_place"], asked.json["converted"]) == (200, True, False), asked.json
            told = row(cluster, name, consuming)
            assert (told["type"], sorted(told.get("members", []))) == (kind, ALL if kind == "quorum" else []), told
            assert "slave_nodes" not in told
            declare(cluster, name, consuming)
    traffic.judge()
    assert voters(cluster, name) == ALL
    assert [count(cluster, name, node) for node in range(3)] == [0, 0, 0]


def test_a_mirrored_queue_becomes_a_quorum_queue_where_it_is_and_a_mirrored_one_again(cluster, name):
    declare(cluster, name)
    mirror(cluster, name)
    has_mirrors(cluster, name, 2)
    with Traffic(cluster, name, 1, 2) as traffic:
        for kind in ("quorum", "classic", "quorum", "classic"):
            here = len(traffic.got)
            until(lambda: len(traffic.got), wanted=lambda it: it > here + 50, what="nothing comes")
            convert(api(cluster, 1), name, kind)
            assert there(cluster, name)[0] == kind
    traffic.judge()
    assert len(mirrors(cluster, name)[1]) == 2
    unmirror(cluster, name)
    # What it was last is not handed back, perhaps, and it is to have members again.
    convert(api(cluster, 2), name, "quorum")
    assert voters(cluster, name) == ALL
    publish(cluster, name, bodies(0, 100), 1)
    convert(api(cluster, 0), name, "classic")
    assert [body for body, _ in consume(cluster, name, 100, 2)] == bodies(0, 100)


def test_a_quorum_queue_that_was_declared_so_becomes_a_classic_one_of_its_leader(cluster, name):
    declare(cluster, name, 1, **{"x-queue-type": "quorum"})
    publish(cluster, name, bodies(0, 200), 2)
    convert(api(cluster, 0), name, "classic")
    assert row(cluster, name)["node"] == name_of(1)
    declare(cluster, name, 2, **{"x-queue-type": "quorum"})
    cluster.nodes[1].kill()
    cluster.nodes[1].start()
    cluster.wait_until_whole()
    publish(cluster, name, bodies(200, 210), 0, delivery_mode=2)
    assert [body for body, _ in consume(cluster, name, 210, 0)] == bodies(0, 210)


def test_what_was_confirmed_is_there_without_the_node_that_it_was_on(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 300), 1, delivery_mode=2)
    convert(api(cluster, 2), name, "quorum")
    publish(cluster, name, bodies(300, 310), 2)
    cluster.nodes[0].kill()
    assert [body for body, _ in consume(cluster, name, 310, 1)] == bodies(0, 310)


@pytest.mark.parametrize("killed", [0, 1])
def test_kills_in_the_middle_of_conversions_lose_and_double_nothing(cluster, name, killed):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 100), delivery_mode=2)
    for turn in range(6):
        kind = ("quorum", "classic")[turn % 2]
        assert ask(api(cluster, 2), name, kind).status in (200, 404, 503)
        time.sleep(0.1 * turn)
        cluster.nodes[killed].kill()
        cluster.spawn()
        cluster.nodes[killed].wait_until_serving()
        cluster.wait_until_whole()
    convert(api(cluster, 2), name, "quorum")
    publish(cluster, name, bodies(100, 110), 2)
    assert [body for body, _ in consume(cluster, name, 110, 1)] == bodies(0, 110)
