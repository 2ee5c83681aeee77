"""Quorum queues that began on one node and get members on others, while clients of all nodes use them."""

import sys
import threading
import time
from pathlib import Path

import pika
import pytest

from api import q
from test_process import pytestmark  # noqa: F401 - a mark
from test_quorum_cluster import PATIENCE_SECONDS, api, bodies, cluster, connect, consume, count, declare, leader, publish, row, whole  # noqa: F401 - fixtures
from waiting import until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.cluster import name as name_of  # noqa: E402

ALONE = {"x-quorum-initial-group-size": 1}


def voters(cluster, queue, asked=0):
    told = api(cluster, asked).get(f"/queues/quorum/%2F/{q(queue)}/status").json
    return sorted(it["Node Name"] for it in told if it.get("Membership") == "voter")


def add(cluster, queue, node, asked=0):
    answer = api(cluster, asked).post(f"/queues/quorum/%2F/{q(queue)}/replicas/add", {"node": name_of(node)})
    assert answer.status in (200, 201, 202, 204), answer.json


def grow(cluster, queue, asked=0):
    """Members on all three nodes, that have everything."""
    for node in range(3):
        add(cluster, queue, node, asked)
    until(lambda: voters(cluster, queue, asked), wanted=lambda it: len(it) == 3, patience=PATIENCE_SECONDS, what="not all have it")


class Traffic:
    """Publishes with confirms through one node and consumes through another one, until it is stopped."""

    def __init__(self, cluster, queue, through, consuming):
        self.cluster, self.queue, self.through, self.consuming = cluster, queue, through, consuming
        self.stop, self.published, self.got, self.failed = threading.Event(), 0, [], []
        self.threads = [threading.Thread(target=self.run, args=(work,)) for work in (self.publish, self.consume)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.end()

    def run(self, work):
        try:
            work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test fails with it
            self.failed.append(repr(error))

    def publish(self):
        with connect(self.cluster, self.through) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            while not self.stop.is_set():
                channel.basic_publish("", self.queue, b"%d" % self.published, pika.BasicProperties(delivery_mode=2))
                self.published += 1

    def consume(self):
        with connect(self.cluster, self.consuming) as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=50)
            unacked = 0
            for method, _, body in channel.consume(self.queue, inactivity_timeout=1.0):
                if method is None:
                    # What one turn left.
                    channel.basic_ack(0, multiple=True)
                    if self.stop.is_set() and len({number for number, _ in self.got}) >= self.published:
                        return
                    assert not self.stop.is_set() or self.ends > time.monotonic(), "something does not come"
                    continue
                self.got.append((int(body), method.redelivered))
                unacked += 1
                if unacked == 10:
                    channel.basic_ack(method.delivery_tag, multiple=True)
                    unacked = 0

    def end(self):
        self.ends = time.monotonic() + PATIENCE_SECONDS
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def judge(self):
        """Everything came, in order apart from what came again, which is marked."""
        assert self.failed == []
        first = [number for number, redelivered in self.got if not redelivered]
        assert first == sorted(first) and len(first) == len(set(first))
        assert sorted({number for number, _ in self.got}) == list(range(self.published))


@pytest.mark.parametrize("through,consuming", [(0, 0), (1, 2), (2, 0)])
def test_a_queue_grows_while_clients_publish_and_consume(cluster, name, through, consuming):
    declare(cluster, name, **ALONE)
    assert row(cluster, name)["members"] == [name_of(0)]
    with Traffic(cluster, name, through, consuming) as traffic:
        until(lambda: len(traffic.got), wanted=lambda it: it > 50, what="nothing came")
        grow(cluster, name, through)
        here = len(traffic.got)
        until(lambda: len(traffic.got), wanted=lambda it: it > here + 50, what="nothing comes any more")
    traffic.judge()
    assert sorted(row(cluster, name)["members"]) == [name_of(node) for node in range(3)]
    assert [count(cluster, name, node) for node in range(3)] == [0, 0, 0]


def test_what_it_had_is_there_without_the_node_that_it_began_on(cluster, name):
    declare(cluster, name, **ALONE)
    publish(cluster, name, bodies(0, 500))
    publish(cluster, name, [b"x" * 200_000] * 5, 1)
    grow(cluster, name, 1)
    cluster.nodes[0].kill()
    got = consume(cluster, name, 505, 2)
    assert [body for body, _ in got[:500]] == bodies(0, 500)
    assert {len(body) for body, _ in got[500:]} == {200_000}


def test_what_a_client_of_the_node_holds_comes_again_marked_and_its_consumer_stays(cluster, name):
    declare(cluster, name, **ALONE)
    publish(cluster, name, bodies(0, 10))
    with connect(cluster, 0) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=4)
        got = []
        channel.basic_consume(name, lambda _, method, __, body: got.append((method.delivery_tag, body, method.redelivered)), consumer_tag="stays")
        until(lambda: (connection.process_data_events(0.05), len(got))[1], wanted=lambda it: it == 4)
        grow(cluster, name)
        until(lambda: (connection.process_data_events(0.05), len(got))[1], wanted=lambda it: it >= 8, patience=PATIENCE_SECONDS)
        assert [(body, again) for _, body, again in got[4:8]] == [(body, True) for body in bodies(0, 4)]
        assert [it["consumer_tag"] for it in api(cluster, 0).get("/consumers").json if it["queue"]["name"] == name] == ["stays"]
        # The tags of before may be acknowledged: the messages are the same.
        channel.basic_ack(got[3][0], multiple=True)
        until(lambda: (connection.process_data_events(0.05), len(got))[1], wanted=lambda it: it >= 12, patience=PATIENCE_SECONDS)
        channel.basic_ack(0, multiple=True)
        until(lambda: (connection.process_data_events(0.05), {body for _, body, _ in got})[1], wanted=lambda it: len(it) == 10, patience=PATIENCE_SECONDS)
        channel.basic_ack(0, multiple=True)
        until(lambda: (connection.process_data_events(0.05), count(cluster, name, 1))[1], wanted=lambda it: it == 0)


@pytest.mark.parametrize("after", [0, 0.1, 0.2, 0.3])
def test_a_kill_in_the_middle_loses_and_doubles_nothing(cluster, name, after):
    declare(cluster, name, **ALONE)
    publish(cluster, name, bodies(0, 300))
    add(cluster, name, 1)
    time.sleep(after)
    cluster.nodes[0].kill()
    cluster.nodes[0].start()
    cluster.wait_until_whole()
    add(cluster, name, 2)
    until(lambda: voters(cluster, name), wanted=lambda it: len(it) == 3, patience=PATIENCE_SECONDS, what="not all have it")
    publish(cluster, name, bodies(300, 310), 2)
    assert [body for body, _ in consume(cluster, name, 310, 1)] == bodies(0, 310)
    assert count(cluster, name, 2) == 0


@pytest.mark.parametrize("after", [0, 0.15])
def test_a_queue_that_is_deleted_in_the_middle_is_gone_and_clients_are_told(cluster, name, after):
    declare(cluster, name, **ALONE)
    publish(cluster, name, bodies(0, 100))
    with connect(cluster, 0) as connection:
        channel, cancelled = connection.channel(), []
        channel.add_on_cancel_callback(cancelled.append)
        channel.basic_qos(prefetch_count=5)
        channel.basic_consume(name, lambda *_: None)
        connection.process_data_events(0.1)
        add(cluster, name, 1)
        time.sleep(after)
        with connect(cluster, 2) as other:
            other.channel().queue_delete(name)
        until(lambda: (connection.process_data_events(0.05), cancelled)[1], patience=PATIENCE_SECONDS, what="nobody says that the queue is gone")
    assert all(row(cluster, name, node) is None for node in range(3))
    declare(cluster, name, 1)
    assert count(cluster, name, 2) == 0


def test_a_queue_goes_on_where_it_began_alone_again_and_without_that_node(cluster, name):
    for stays in (0, 1):
        queue = f"{name}.{stays}"
        declare(cluster, queue, **ALONE)
        publish(cluster, queue, bodies(0, 20))
        add(cluster, queue, 1)
        until(lambda: voters(cluster, queue), wanted=lambda it: len(it) == 2, patience=PATIENCE_SECONDS, what="not both have it")
        answer = api(cluster, 2)("DELETE", f"/api/queues/quorum/%2F/{q(queue)}/replicas/delete", {"node": name_of(1 - stays)})
        assert answer.status in (200, 202, 204), answer.json
        until(lambda: voters(cluster, queue, stays), wanted=lambda it: it == [name_of(stays)], patience=PATIENCE_SECONDS, what="both have it still")
        assert leader(cluster, queue, stays) == stays
        assert [body for body, _ in consume(cluster, queue, 20, 2)] == bodies(0, 20)


def test_many_queues_grow_at_once(cluster, name):
    queues = [f"{name}.{number}" for number in range(30)]
    for queue in queues:
        declare(cluster, queue, **ALONE)
        publish(cluster, queue, bodies(0, 5))
    for node in (1, 2):
        wanted = {"vhost_pattern": ".*", "queue_pattern": f"^{name}\\.", "strategy": "all"}
        answer = api(cluster, 0).post(f"/queues/quorum/replicas/on/{name_of(node)}/grow", wanted)
        assert answer.status in (200, 202, 204), answer.json
    for queue in queues:
        until(lambda: voters(cluster, queue), wanted=lambda it: len(it) == 3, patience=PATIENCE_SECONDS, what=f"{queue}: not all have it")
    cluster.nodes[0].kill()
    for queue in queues:
        assert [body for body, _ in consume(cluster, queue, 5, 1)] == bodies(0, 5)
