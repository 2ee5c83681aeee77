"""Quorum queues whose majority is lost for good: they go on with one node's copy alone, and get other members again."""

import contextlib
import random
import shutil
import subprocess
import threading
import time

import pika
import pytest

from api import q
from test_mirrored import has_mirrors, mirror, mirrors, unmirror
from test_process import BINARY, pytestmark  # noqa: F401 - a mark
from test_quorum_cluster import PATIENCE_SECONDS, api, bodies, connect, consume, count, declare, publish, row
from test_quorum_grown import add, voters
from waiting import until

from harness.cluster import Cluster, name as name_of

SIZE = 5
NODES = range(SIZE)

# Nodes that are away for longer count as gone.
GONE_SECONDS = 7


@pytest.fixture(scope="module")
def cluster():
    with Cluster(BINARY, size=SIZE) as running:
        yield running


@pytest.fixture(autouse=True)
def whole(cluster):
    """Whatever a test did to nodes, the next one finds all of them."""
    yield
    cluster.heal()
    cluster.spawn()
    for node in cluster.nodes:
        node.wait_until_serving()
    cluster.wait_until_whole()
    assert cluster.panics() == []


def ctl(cluster, node, *words):
    """What the command prints, on that node."""
    line = [BINARY, "ctl", *words, "--data-dir", str(cluster.nodes[node].data)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    return done.returncode, done.stdout + done.stderr


def availability(cluster, queue, node):
    return api(cluster, node).get(f"/leveret/availability/queues/%2F/{q(queue)}").json


def members(cluster, queue, asked):
    names = {name_of(node): node for node in NODES}
    return [names[it] for it in row(cluster, queue, asked)["members"]]


def force(cluster, queue, node, asked, forced=False):
    path = f"/queues/quorum/%2F/{q(queue)}/replicas/force-shrink"
    return api(cluster, asked).post(path, {"node": name_of(node), "force": forced})


def led_by(cluster, queue, node, asked):
    until(lambda: (row(cluster, queue, asked) or {}).get("leader"), wanted=lambda it: it == name_of(node), patience=PATIENCE_SECONDS, what="it does not lead")


def lose(cluster, queue, through=0, wiped=False):
    """Kills all members but one that does not lead: the one that is left, the lost ones, and those that were none."""
    lead, left, *more = members(cluster, queue, through)
    lost = [lead, *more]
    for node in lost:
        cluster.nodes[node].kill()
        if wiped:
            shutil.rmtree(cluster.nodes[node].data)
    others = [node for node in NODES if node not in (*lost, left)]
    until(lambda: availability(cluster, queue, others[0]).get("state"), wanted=lambda it: it == "no_majority", patience=PATIENCE_SECONDS, what="it has a leader")
    return left, lost, others


def come_back(cluster, nodes):
    for node in nodes:
        cluster.nodes[node].spawn()
    for node in nodes:
        cluster.nodes[node].wait_until_serving()


def test_what_was_confirmed_is_there_while_clients_of_other_nodes_go_on_and_members_come_again(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 300))
    publish(cluster, name, [b"x" * 200_000] * 5, 1)
    before = members(cluster, name, 0)
    outside = next(node for node in NODES if node not in before)
    got, stop = [], threading.Event()

    def take():
        """As a client does that connects again, and consumes again, when a queue without a leader cancels its consumer."""
        while not stop.is_set():
            with contextlib.suppress(pika.exceptions.AMQPError), connect(cluster, outside) as connection:
                channel = connection.channel()
                channel.basic_qos(prefetch_count=20)
                for method, _, body in channel.consume(name, inactivity_timeout=0.2):
                    if method is not None:
                        got.append(body)
                        channel.basic_ack(method.delivery_tag)
                    elif stop.is_set():
                        break

    left, lost, others = lose(cluster, name, outside)
    told = availability(cluster, name, outside)
    assert (told["needed"], told["reached"], sorted(told["not_reached"])) == (2, [name_of(left)], sorted(name_of(it) for it in lost))
    assert told["recovery"]["node"] == name_of(left) and "Lost is whatever was confirmed behind entry" in told["recovery"]["loses"]
    code, said = ctl(cluster, others[0], "why_unavailable", name)
    assert code == 0 and "It is unavailable: of 3 members that vote 2 must be reached, and 1 is" in said, said
    taking = threading.Thread(target=take)
    taking.start()
    refused = force(cluster, name, others[0], outside)
    assert refused.status == 503 and "has no copy" in refused.json["reason"]
    code, said = ctl(cluster, left, "force_shrink_member_to_current_member", name)
    assert code == 0 and f"goes on with the copy of {name_of(left)} alone" in said, said
    led_by(cluster, name, left, outside)
    publish(cluster, name, bodies(300, 400), outside)
    until(lambda: len(set(got)), wanted=lambda it: it == 401, patience=PATIENCE_SECONDS, what="something is lost")
    stop.set()
    taking.join()
    first = list(dict.fromkeys(body for body in got if len(body) < 10))
    assert first == bodies(0, 400)
    publish(cluster, name, bodies(400, 500), left)
    code, said = ctl(cluster, left, "force_shrink_member_to_current_member", name)
    assert code != 0 and "has a leader" in said, said
    for node in others:
        add(cluster, name, node, left)
    until(lambda: voters(cluster, name, left), wanted=lambda it: len(it) == 3, patience=PATIENCE_SECONDS, what="not all have it")
    # The old members come back with what they had, and are none.
    come_back(cluster, lost)
    assert sorted(members(cluster, name, lost[0])) == sorted([left, *others])
    cluster.nodes[left].kill()
    assert [body for body, _ in consume(cluster, name, 100, lost[0])] == bodies(400, 500)


def test_a_mirrored_queue_goes_on_too_and_gets_its_mirrors_again(cluster, name):
    with connect(cluster, 0) as connection:
        connection.channel().queue_declare(name, durable=True)
    mirror(cluster, name, "exactly", 3)
    has_mirrors(cluster, name, 2)
    publish(cluster, name, bodies(0, 200))
    lead, (left, other) = mirrors(cluster, name)
    names = {name_of(node): node for node in NODES}
    lost = [names[lead], names[other]]
    for node in lost:
        cluster.nodes[node].kill()
    left = names[left]
    asked = next(node for node in NODES if node not in (*lost, left))
    until(lambda: availability(cluster, name, asked).get("state"), wanted=lambda it: it == "no_majority", patience=PATIENCE_SECONDS, what="it has a leader")
    code, said = ctl(cluster, asked, "why_unavailable", name)
    assert code == 0 and "2 must be reached, and 1 is" in said, said
    # A node that is gone for a few seconds only may be chosen as a mirror.
    time.sleep(GONE_SECONDS)
    code, said = ctl(cluster, left, "force_shrink_member_to_current_member", name)
    assert code == 0 and f"goes on with the copy of {name_of(left)} alone" in said, said
    # The policy gives it mirrors on nodes that are there.
    has_mirrors(cluster, name, 2, asked)
    publish(cluster, name, bodies(200, 300), asked)
    assert [body for body, _ in consume(cluster, name, 100, asked)] == bodies(0, 100)
    come_back(cluster, lost)
    unmirror(cluster, name, lost[0])
    until(lambda: "slave_nodes" in row(cluster, name, asked), wanted=lambda it: not it, patience=PATIENCE_SECONDS, what="it has mirrors")
    assert [body for body, _ in consume(cluster, name, 200, lost[0])] == bodies(100, 300)


def test_members_of_before_that_come_back_disturb_nothing_and_may_be_members_again(cluster, name):
    declare(cluster, name, 1)
    publish(cluster, name, bodies(0, 200))
    left, lost, others = lose(cluster, name, 1)
    assert force(cluster, name, left, others[0]).status == 200
    led_by(cluster, name, left, others[0])
    publish(cluster, name, bodies(200, 250), others[0])
    come_back(cluster, lost)
    cluster.wait_until_whole()
    publish(cluster, name, bodies(250, 300), lost[0])
    assert availability(cluster, name, lost[0])["voters"] == [name_of(left)]
    assert count(cluster, name, lost[1]) == 300
    for node in lost:
        add(cluster, name, node, lost[0])
    until(lambda: voters(cluster, name, lost[0]), wanted=lambda it: len(it) == 3, patience=PATIENCE_SECONDS, what="not all have it")
    cluster.nodes[left].kill()
    assert [body for body, _ in consume(cluster, name, 300, lost[1])] == bodies(0, 300)


def test_nodes_that_lost_their_disks_join_anew_and_are_members_again(cluster, name):
    declare(cluster, name, 2)
    publish(cluster, name, bodies(0, 100))
    left, lost, others = lose(cluster, name, 2, wiped=True)
    code, said = ctl(cluster, left, "force_all_queues_shrink_member_to_current_member", "--queue-pattern", f"^{name}$")
    assert code == 0 and "ok:" in said, said
    led_by(cluster, name, left, others[0])
    for node in lost:
        code, said = ctl(cluster, others[0], "forget_cluster_node", name_of(node))
        assert code == 0, said
    assert members(cluster, name, others[0]) == [left]
    come_back(cluster, lost)
    cluster.wait_until_whole()
    for node in lost:
        add(cluster, name, node, left)
    until(lambda: voters(cluster, name, left), wanted=lambda it: len(it) == 3, patience=PATIENCE_SECONDS, what="not all have it")
    assert [body for body, _ in consume(cluster, name, 100, lost[1])] == bodies(0, 100)


def test_the_node_that_is_left_may_be_killed_at_any_moment_of_it(cluster, name):
    random.seed(name)
    for turn in range(6):
        queue = f"{name}.{turn}"
        declare(cluster, queue, turn % SIZE)
        publish(cluster, queue, bodies(0, 100))
        publish(cluster, queue, [b"x" * 100_000] * 20, 1)
        left, lost, others = lose(cluster, queue, turn % SIZE)
        assert force(cluster, queue, left, others[0]).status == 200
        for _ in range(3):
            time.sleep(random.choice([0, 0.02, 0.05, 0.1, 0.2, 0.4]))
            cluster.nodes[left].kill()
            come_back(cluster, [left])
        led_by(cluster, queue, left, others[0])
        got = consume(cluster, queue, 120, others[1])
        assert [body for body, _ in got[:100]] == bodies(0, 100) and {len(body) for body, _ in got[100:]} == {100_000}
        publish(cluster, queue, bodies(0, 10), others[1])
        come_back(cluster, lost)
        cluster.wait_until_whole()
        assert count(cluster, queue, lost[0]) == 10


def test_what_is_not_lost_is_not_forced(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 10))
    first, second, third = members(cluster, name, 0)
    refused = force(cluster, name, second, 0)
    assert refused.status == 503 and "has a leader" in refused.json["reason"]
    assert availability(cluster, name, 0)["state"] == "available"
    # Said with force it is done, and the others forget what they have.
    assert force(cluster, name, second, 0, forced=True).status == 200
    led_by(cluster, name, second, 0)
    assert members(cluster, name, third) == [second] and first != second
    assert [body for body, _ in consume(cluster, name, 10, third)] == bodies(0, 10)
    declare(cluster, f"{name}.alone", 0, **{"x-quorum-initial-group-size": 1})
    assert force(cluster, f"{name}.alone", 0, 0).status == 503
    classic = f"{name}.classic"
    with connect(cluster, 0) as connection:
        connection.channel().queue_declare(classic, durable=True)
    assert force(cluster, classic, 0, 0).status == 503
