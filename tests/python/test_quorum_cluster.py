"""Quorum queues of three nodes: through any node, while nodes are killed, cut off and started again, and with members that come and go."""

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pika
import pytest

from api import Api, q
from test_process import BINARY, pytestmark  # noqa: F401 - a mark
from waiting import until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.cluster import Cluster, name as name_of  # noqa: E402

NODES = range(3)
QUORUM = {"x-queue-type": "quorum"}
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def cluster():
    with Cluster(BINARY) as running:
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


def connect(cluster, node) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", cluster.nodes[node].port, socket_timeout=30, heartbeat=0))


def api(cluster, node) -> Api:
    return Api(root=f"http://127.0.0.1:{cluster.nodes[node].http_port}")


def declare(cluster, queue, node=0, **arguments):
    with connect(cluster, node) as connection:
        connection.channel().queue_declare(queue, durable=True, arguments=QUORUM | arguments)


def publish(cluster, queue, bodies, node=0, **properties):
    with connect(cluster, node) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for body in bodies:
            channel.basic_publish("", queue, body, pika.BasicProperties(**properties), mandatory=True)


def consume(cluster, queue, count, node=0, ack=True):
    """So many messages, in the order in which they come: the bodies and whether they were marked."""
    got = []
    with connect(cluster, node) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=100)
        for method, _, body in channel.consume(queue, inactivity_timeout=PATIENCE_SECONDS):
            assert method is not None, f"only {len(got)} of {count} came"
            got.append((body, method.redelivered))
            if ack:
                channel.basic_ack(method.delivery_tag)
            if len(got) == count:
                break
        channel.cancel()
    return got


def count(cluster, queue, node=0) -> int:
    with connect(cluster, node) as connection:
        return connection.channel().queue_declare(queue, passive=True).method.message_count


def row(cluster, queue, node=0):
    answer = api(cluster, node).get(f"/queues/%2F/{q(queue)}")
    return answer.json if answer.status == 200 else None


def leader(cluster, queue, asked=0) -> int:
    """The place of the node that leads, once the asked one knows it."""
    found = until(lambda: (row(cluster, queue, asked) or {}).get("leader"), patience=PATIENCE_SECONDS, what="nobody leads")
    return next(node for node in NODES if name_of(node) == found)


def bodies(first, last):
    return [b"%d" % number for number in range(first, last)]


def test_every_node_publishes_consumes_and_counts_alike(cluster, name):
    declare(cluster, name)
    for node in NODES:
        publish(cluster, name, bodies(10 * node, 10 * node + 10), node)
    assert [count(cluster, name, node) for node in NODES] == [30, 30, 30]
    got = [consume(cluster, name, 10, node) for node in NODES]
    assert [body for part in got for body, _ in part] == bodies(0, 30)
    assert [count(cluster, name, node) for node in NODES] == [0, 0, 0]


def test_the_leader_is_where_the_queue_was_declared_and_all_nodes_say_so(cluster, name):
    for node in NODES:
        queue = f"{name}.{node}"
        declare(cluster, queue, node)
        publish(cluster, queue, [b"body"], (node + 1) % 3)
        for asked in NODES:
            until(lambda: (row(cluster, queue, asked) or {}).get("messages"), wanted=lambda it: it == 1, patience=PATIENCE_SECONDS)
            shown = row(cluster, queue, asked)
            assert shown["leader"] == shown["node"] == name_of(node)
            assert sorted(shown["members"]) == sorted(shown["online"]) == [name_of(it) for it in NODES]
            assert (shown["type"], shown["state"]) == ("quorum", "running")


def test_nothing_that_was_confirmed_is_lost_doubled_or_late_when_the_leader_is_killed(cluster, name):
    declare(cluster, name)
    killed = leader(cluster, name)
    through, other = [node for node in NODES if node != killed]
    stop, got, failed = threading.Event(), [], []

    def take():
        with connect(cluster, other) as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=20)
            for method, _, body in channel.consume(name, inactivity_timeout=0.2):
                if method is None:
                    if stop.is_set():
                        return
                    continue
                got.append(body)
                channel.basic_ack(method.delivery_tag)

    def guarded():
        try:
            take()
        except Exception as error:  # noqa: BLE001 - told by the test
            failed.append(error)

    consumer = threading.Thread(target=guarded)
    consumer.start()
    try:
        with connect(cluster, through) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            for number in range(300):
                if number == 100:
                    cluster.nodes[killed].kill()
                channel.basic_publish("", name, b"%d" % number, mandatory=True)
        until(lambda: len(got), wanted=lambda it: it >= 300, patience=PATIENCE_SECONDS, what="messages are missing")
    finally:
        stop.set()
        consumer.join()
    assert not failed
    assert got == bodies(0, 300), "each once, in order"


def test_what_a_consumer_holds_stays_its_own_when_the_leader_goes(cluster, name):
    declare(cluster, name)
    killed = leader(cluster, name)
    through = next(node for node in NODES if node != killed)
    publish(cluster, name, bodies(0, 5), through)
    with connect(cluster, through) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=5)
        held = []
        for method, _, body in channel.consume(name, inactivity_timeout=PATIENCE_SECONDS):
            held.append((method.delivery_tag, body))
            if len(held) == 5:
                break
        cluster.nodes[killed].kill()
        leads = until(lambda: (row(cluster, name, through) or {}).get("leader"), wanted=lambda it: it not in (None, "", name_of(killed)), patience=PATIENCE_SECONDS)
        assert leads
        channel.basic_ack(held[2][0], multiple=True)
        channel.basic_ack(held[4][0])
        until(lambda: (row(cluster, name, through) or {}).get("messages"), wanted=lambda it: it == 1, patience=PATIENCE_SECONDS)
    # It was with a consumer that is gone: it comes again, marked.
    assert consume(cluster, name, 1, through) == [(b"3", True)]


def held_by_a_consumer(channel, queue, many):
    """The tags of so many messages that a consumer has."""
    channel.basic_qos(prefetch_count=many)
    tags = []
    for method, _, _ in channel.consume(queue, inactivity_timeout=PATIENCE_SECONDS):
        tags.append(method.delivery_tag)
        if len(tags) == many:
            return tags
    return tags


@pytest.mark.parametrize("keeps_ms,goes", [(30_000, False), (500, True)])
def test_a_consumer_of_a_node_that_is_cut_off_keeps_what_it_holds_for_as_long_as_the_queue_says(cluster, name, keeps_ms, goes):
    declare(cluster, name, **{"x-consumer-disconnected-timeout": keeps_ms})
    leads = leader(cluster, name)
    away, other = (node for node in NODES if node != leads)
    publish(cluster, name, bodies(0, 4), leads)
    with connect(cluster, away) as connection:
        channel = connection.channel()
        tags = held_by_a_consumer(channel, name, 2)
        cluster.cut_off(away)
        # Longer than a node waits for a leader before it tells publishers.
        time.sleep(7)
        got = consume(cluster, name, 4 if goes else 2, other, ack=False)
        assert sorted(got) == [(b"0", True), (b"1", True), (b"2", False), (b"3", False)][0 if goes else 2 :]
        cluster.heal()
        cluster.wait_until_whole()
        channel.basic_ack(tags[1], multiple=True)
    # What nobody acknowledged comes again; acknowledgements of what is somebody else's by now are passed over.
    left = sorted(body for body, _ in consume(cluster, name, 4 if goes else 2, other))
    assert left == bodies(0 if goes else 2, 4)
    until(lambda: count(cluster, name, leads), wanted=lambda it: it == 0, patience=PATIENCE_SECONDS)


def test_single_messages_are_moved_and_deleted_through_any_node_whoever_leads(cluster, name):
    declare(cluster, name)
    declare(cluster, f"{name}.to", node=1)
    publish(cluster, name, bodies(0, 12))

    def look(node):
        path = f"/leveret/queues/%2F/{q(name)}/messages?count=50"
        told = until(lambda: api(cluster, node).get(path), wanted=lambda it: it.status == 200, patience=PATIENCE_SECONDS).json
        return {message["payload"]: message["position"] for message in told["messages"]}, told["edition"]

    def act(node, *numbers, **asked):
        """With how many of them it was done. A node that says nothing for a second (503) may have done it, or does it later."""
        while True:
            places, edition = look(node)
            positions = [places[str(number)] for number in numbers]
            answer = api(cluster, node)("POST", f"/api/leveret/queues/%2F/{q(name)}/messages", asked | {"positions": positions, "edition": edition})
            if answer.status != 503:
                assert answer.status == 200, answer.text
                assert answer.json.get("missed", 0) == 0
                return answer.json["deleted" if asked["action"] == "delete" else "moved"]
            time.sleep(2)
            left = [number for number in numbers if str(number) in look(node)[0]]
            if not left:
                return len(numbers)
            assert len(left) == len(numbers), answer.text

    for at, node in zip((0, 3, 6), NODES, strict=True):
        assert act(node, at, at + 1, action="delete") == 2
        assert act(node, at + 2, action="move", exchange="", routing_key=f"{name}.to") == 1
    until(lambda: count(cluster, name), wanted=lambda it: it == 3, patience=PATIENCE_SECONDS)
    # What was deleted stays so with another leader.
    killed = leader(cluster, name)
    cluster.nodes[killed].kill()
    through = next(node for node in NODES if node != killed)
    until(lambda: (row(cluster, name, through) or {}).get("leader"), wanted=lambda it: it not in (None, "", name_of(killed)), patience=PATIENCE_SECONDS)
    assert act(through, 10, action="delete") == 1
    assert sorted(body for body, _ in consume(cluster, name, 2, through)) == [b"11", b"9"]
    assert sorted(body for body, _ in consume(cluster, f"{name}.to", 3, through)) == [b"2", b"5", b"8"]
    assert [count(cluster, queue, through) for queue in (name, f"{name}.to")] == [0, 0]


def led_by(cluster, queues, asked=0):
    """How many of the queues each node leads, as one of them says."""
    leaders = [(row(cluster, queue, asked) or {}).get("leader") for queue in queues]
    return sorted(leaders.count(name_of(node)) for node in NODES)


def command(cluster, node, *words):
    data = ["--data-dir", str(cluster.nodes[node].data)]
    return subprocess.run([BINARY, "ctl", *words, *data], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def test_a_rebalance_spreads_leaders_and_costs_clients_nothing(cluster, name):
    queues = [f"{name}.{number}" for number in range(12)]
    for queue in queues:
        declare(cluster, queue)
        publish(cluster, queue, [b"before"])
    assert led_by(cluster, queues) == [0, 0, 12]
    with connect(cluster, 1) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        # By patterns: the others stay where they are.
        some = [queue for queue in queues if queue.endswith((".1", ".2", ".3"))]
        told = command(cluster, 2, "rebalance", "quorum", "--queue-pattern", rf"^{re.escape(name)}\.[123]$")
        assert told.returncode == 0, told.stderr
        assert "Number of quorum queues" in told.stdout
        until(lambda: led_by(cluster, some), wanted=lambda it: it == [1, 1, 1], patience=PATIENCE_SECONDS)
        assert led_by(cluster, queues) == [1, 1, 10]
        told = []
        rest = threading.Thread(target=lambda: told.append(command(cluster, 1, "rebalance", "all", "--queue-pattern", f"^{re.escape(name)}")))
        rest.start()
        for _ in range(20):
            for queue in queues:
                channel.basic_publish("", queue, b"meanwhile", mandatory=True)
        rest.join()
    assert told[0].returncode == 0, told[0].stderr
    until(lambda: led_by(cluster, queues), wanted=lambda it: it == [4, 4, 4], patience=PATIENCE_SECONDS)
    for queue in queues:
        assert [body for body, _ in consume(cluster, queue, 21)] == [b"before"] + [b"meanwhile"] * 20
        assert count(cluster, queue) == 0


def test_a_rebalance_of_everything_is_begun_by_any_node_and_its_end_is_not_awaited(cluster, name):
    queues = [f"{name}.{number}" for number in range(3)]
    for queue in queues:
        declare(cluster, queue)
    assert api(cluster, 1).post("/rebalance/queues", {}).status == 204
    until(lambda: api(cluster, 2).get("/leveret/rebalance").json["running"], wanted=lambda it: it is False, patience=PATIENCE_SECONDS)
    everything = [it["name"] for it in api(cluster, 0).get("/queues?columns=name,type").json if it["type"] == "quorum"]

    def is_even():
        counts = led_by(cluster, everything)
        return sum(counts) == len(everything) and counts[2] - counts[0] <= 1

    until(is_even, patience=PATIENCE_SECONDS, what="leaders are not even")
    # Classic queues and streams do not move, and a pattern has to be one.
    assert command(cluster, 1, "rebalance", "classic").returncode == 0
    assert api(cluster, 1).post("/leveret/rebalance", {"type": "mirrored"}).status == 400
    assert api(cluster, 1).post("/leveret/rebalance", {"queue_pattern": "("}).status == 400
    refused = command(cluster, 0, "add_member", queues[0], name_of(1), "--membership", "non_voter")
    assert refused.returncode != 0 and "never vote" in refused.stderr + refused.stdout


def test_a_rebalance_leaves_out_nodes_that_are_down_and_is_done_by_those_that_run(cluster, name):
    queues = [f"{name}.{number}" for number in range(8)]
    for queue in queues:
        declare(cluster, queue, 1)
    cluster.nodes[0].kill()
    mine = ["--queue-pattern", f"^{re.escape(name)}"]
    until(lambda: command(cluster, 2, "rebalance", "all", *mine).returncode, wanted=lambda it: it == 0, patience=PATIENCE_SECONDS)
    until(lambda: led_by(cluster, queues, 2), wanted=lambda it: it == [0, 4, 4], patience=PATIENCE_SECONDS)


BALANCED = {"x-queue-leader-locator": "balanced"}


def assert_spread(cluster, queues):
    """All nodes lead as many quorum queues, or these made up for others: those of other tests count, too."""
    everything = [it["name"] for it in api(cluster, 0).get("/queues?columns=name,type").json if it["type"] == "quorum"]
    counts = until(lambda: led_by(cluster, everything), wanted=lambda it: sum(it) == len(everything), patience=PATIENCE_SECONDS)
    mine = led_by(cluster, queues)
    assert counts[2] - counts[0] <= 1 or mine[2] > mine[0], (counts, mine)


def test_balanced_queues_are_led_by_all_nodes_whichever_declares_them(cluster, name):
    queues = [f"{name}.{number}" for number in range(9)]
    for queue in queues:
        declare(cluster, queue, 1, **BALANCED)
    assert sum(led_by(cluster, queues)) == 9
    assert_spread(cluster, queues)
    for queue in queues:
        publish(cluster, queue, [b"body"], 2)
        assert row(cluster, queue)["arguments"]["x-queue-leader-locator"] == "balanced"


def test_a_policy_spreads_queues_and_those_of_definitions(cluster, name):
    policy = {"pattern": f"^{re.escape(name)}", "definition": {"queue-leader-locator": "balanced"}, "apply-to": "queues"}
    assert api(cluster, 0).put(f"/policies/%2F/{q(name)}", policy).status == 201
    queues = [f"{name}.{number}" for number in range(30)]
    definitions = {"queues": [{"vhost": "/", "name": queue, "durable": True, "auto_delete": False, "arguments": QUORUM} for queue in queues]}
    assert api(cluster, 1).post("/definitions", definitions).status == 204
    counts = until(lambda: led_by(cluster, queues), wanted=lambda it: sum(it) == 30, patience=PATIENCE_SECONDS)
    assert_spread(cluster, queues)
    assert api(cluster, 0).delete(f"/policies/%2F/{q(name)}").status == 204


def test_a_classic_queue_that_is_balanced_lives_where_the_fewest_are(cluster, name):
    queues = [f"{name}.{number}" for number in range(6)]
    with connect(cluster, 2) as connection:
        channel = connection.channel()
        for queue in queues:
            channel.queue_declare(queue, durable=True, arguments=BALANCED)
            channel.queue_declare(queue, durable=True, arguments=BALANCED)
        nodes = [row(cluster, queue)["node"] for queue in queues]
        assert all(nodes.count(name_of(node)) >= 1 for node in NODES), nodes
        channel.queue_declare(f"{name}.mine", exclusive=True, arguments=BALANCED)
        assert row(cluster, f"{name}.mine", 2)["node"] == name_of(2)


def test_all_nodes_start_again_and_have_everything(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 50), 1, delivery_mode=1)
    assert [body for body, _ in consume(cluster, name, 10, 2)] == bodies(0, 10)
    until(lambda: count(cluster, name), wanted=lambda it: it == 40, patience=PATIENCE_SECONDS)
    for node in cluster.nodes:
        node.kill()
    cluster.start()
    # Consumers of all nodes may have had some of them: those are asked first. Transient messages are kept, too.
    until(lambda: count(cluster, name, 1), wanted=lambda it: it == 40, patience=PATIENCE_SECONDS)
    assert [body for body, _ in consume(cluster, name, 40, 1)] == bodies(10, 50)


def test_a_node_that_was_away_catches_up_and_leads(cluster, name):
    declare(cluster, name)
    away = 2
    cluster.nodes[away].kill()
    publish(cluster, name, bodies(0, 200))
    cluster.nodes[away].start()
    cluster.wait_until_whole()
    # The others leave one after the other: each time a majority has everything.
    until(lambda: count(cluster, name, away), wanted=lambda it: it == 200, patience=PATIENCE_SECONDS)
    cluster.nodes[0].kill()
    assert [body for body, _ in consume(cluster, name, 200, away)] == bodies(0, 200)


def is_confirmed(channel, queue, body) -> bool:
    """A client tries again, as clients do that are refused."""
    try:
        channel.basic_publish("", queue, body)
        return True
    except pika.exceptions.NackError:
        return False


def test_without_a_majority_publishes_are_refused_and_the_queue_says_so(cluster, name):
    declare(cluster, name)
    publish(cluster, name, [b"before"])
    alone = connect(cluster, 0)
    channel = alone.channel()
    channel.confirm_delivery()
    cluster.cut_off(0)
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("", name, b"meanwhile")
    until(lambda: row(cluster, name)["state"], wanted=lambda it: it == "minority", patience=PATIENCE_SECONDS)
    publish(cluster, name, [b"elsewhere"], 1)
    cluster.heal()
    cluster.wait_until_whole()
    until(lambda: is_confirmed(channel, name, b"afterwards"), patience=PATIENCE_SECONDS, what="refused for ever")
    alone.close()
    until(lambda: row(cluster, name)["state"], wanted=lambda it: it == "running", patience=PATIENCE_SECONDS)
    got = [body for body, _ in consume(cluster, name, count(cluster, name))]
    # What was refused may have come in all the same.
    assert [body for body in got if body not in (b"meanwhile", b"afterwards")] == [b"before", b"elsewhere"]
    assert got[-1] == b"afterwards"


def test_a_deleted_queue_is_gone_everywhere_and_one_of_its_name_is_another_one(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 10))
    with connect(cluster, 1) as connection:
        assert connection.channel().queue_delete(name).method.message_count == 10
    for node in NODES:
        assert row(cluster, name, node) is None
    declare(cluster, name, 2)
    assert [count(cluster, name, node) for node in NODES] == [0, 0, 0]
    cluster.nodes[0].kill()
    cluster.nodes[0].start()
    publish(cluster, name, [b"new"], 0)
    assert consume(cluster, name, 1, 1) == [(b"new", False)]


def test_a_queue_is_deleted_while_a_member_is_away(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 10))
    cluster.nodes[2].kill()
    with connect(cluster, 1) as connection:
        connection.channel().queue_delete(name)
    cluster.nodes[2].start()
    cluster.wait_until_whole()
    assert row(cluster, name, 2) is None
    log = (cluster.directory / "n3" / "broker.log").read_text() if (cluster.directory / "n3" / "broker.log").exists() else cluster.nodes[2].log_tail(400)
    assert "no copy of any more" in log


def test_policies_hold_whoever_leads(cluster, name):
    declare(cluster, name)
    policy = {"pattern": f"^{name}$", "definition": {"max-length": 3}, "apply-to": "queues"}
    assert api(cluster, 1).put(f"/policies/%2F/{name}", policy).status in (201, 204)
    publish(cluster, name, bodies(0, 6), 2)
    until(lambda: count(cluster, name), wanted=lambda it: it == 3, patience=PATIENCE_SECONDS)
    killed = leader(cluster, name)
    cluster.nodes[killed].kill()
    through = next(node for node in NODES if node != killed)
    publish(cluster, name, bodies(6, 8), through)
    assert [body for body, _ in consume(cluster, name, 3, through)] == bodies(5, 8)
    assert api(cluster, through).delete(f"/policies/%2F/{name}").status == 204


def test_dead_letters_of_a_quorum_queue_arrive_whoever_leads(cluster, name):
    dead = f"{name}.dead"
    declare(cluster, dead)
    declare(cluster, name, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    publish(cluster, name, bodies(0, 3))
    killed = leader(cluster, name)
    through = next(node for node in NODES if node != killed)
    with connect(cluster, through) as connection:
        channel = connection.channel()
        method, _, _ = until(lambda: channel.basic_get(name), wanted=lambda got: got[0] is not None, patience=PATIENCE_SECONDS)
        channel.basic_reject(method.delivery_tag, requeue=False)
        until(lambda: count(cluster, dead, through), wanted=lambda it: it == 1, patience=PATIENCE_SECONDS)
        cluster.nodes[killed].kill()
        method, _, _ = until(lambda: channel.basic_get(name), wanted=lambda got: got[0] is not None, patience=PATIENCE_SECONDS)
        channel.basic_reject(method.delivery_tag, requeue=False)
        until(lambda: count(cluster, dead, through), wanted=lambda it: it == 2, patience=PATIENCE_SECONDS)
    assert [body for body, _ in consume(cluster, dead, 2, through)] == bodies(0, 2)


def test_a_queue_of_two_nodes_gets_a_third_one_and_loses_the_first(cluster, name):
    declare(cluster, name, **{"x-quorum-initial-group-size": 2})
    publish(cluster, name, bodies(0, 100))
    members = row(cluster, name)["members"]
    assert len(members) == 2 and members[0] == name_of(0)
    missing = next(node for node in NODES if name_of(node) not in members)
    path = f"/queues/quorum/%2F/{q(name)}"
    assert api(cluster, 0).post(f"{path}/replicas/add", {"node": name_of(missing)}).status == 204

    def voters():
        told = api(cluster, missing).get(f"{path}/status").json
        return sorted(it["Node Name"] for it in told if it.get("Membership") == "voter")

    until(voters, wanted=lambda it: it == [name_of(node) for node in NODES], patience=PATIENCE_SECONDS)
    assert api(cluster, 1)("DELETE", f"/api{path}/replicas/delete", {"node": name_of(0)}).status == 202
    until(voters, wanted=lambda it: it == [name_of(1), name_of(2)], patience=PATIENCE_SECONDS)
    publish(cluster, name, bodies(100, 110), 0)
    # It goes on without the node that it began on.
    cluster.nodes[0].kill()
    assert [body for body, _ in consume(cluster, name, 110, missing)] == bodies(0, 110)


def test_each_node_tells_prometheus_how_far_its_member_is(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 30))

    def told(node, path="/metrics/per-object", prefix="rabbitmq_"):
        text = Api(root=f"http://127.0.0.1:{cluster.nodes[node].metrics_port}")("GET", path).text
        rows = re.findall(rf'^{prefix}raft_(\w+)\{{vhost="/",queue="{re.escape(name)}"\}} (\S+)$', text, re.M)
        return {metric: float(value) for metric, value in rows}

    families = {"term", "commit_index", "last_applied", "last_written_index", "snapshot_index", "num_segments", "commit_latency_seconds"}
    leads = leader(cluster, name)
    for node in NODES:
        until(lambda: told(node), wanted=lambda it: it.get("commit_index", 0) >= 30, patience=PATIENCE_SECONDS)
        found = told(node)
        assert set(found) == families
        assert 0 < found["term"] and found["snapshot_index"] <= found["commit_index"] <= found["last_written_index"]
        assert set(told(node, f"/metrics/detailed?family=ra_metrics&queue={name}", "rabbitmq_detailed_")) == families
        assert told(node, "/metrics/detailed?family=queue_metrics", "rabbitmq_detailed_") == {}
        # Only who leads waits for a majority.
        assert (0 < found["commit_latency_seconds"] < 10) == (node == leads)
        page = Api(root=f"http://127.0.0.1:{cluster.nodes[node].metrics_port}")("GET", "/metrics").text
        most = re.search(r'^rabbitmq_raft_max_commit_latency_seconds\{ra_system="quorum_queues"\} (\S+)$', page, re.M)
        assert float(most[1]) >= found["commit_latency_seconds"]
        written = re.search(r"^rabbitmq_raft_bytes_written\{.*\} (\d+)$", page, re.M)
        assert int(written[1]) > 1000


@pytest.mark.parametrize("pause,restarted", [(0.3, ()), (0, (1,)), (0, (0, 1, 2))])
def test_members_that_are_all_replaced_in_a_hurry_keep_everything(cluster, name, pause, restarted):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 200))
    path = f"/api/queues/quorum/%2F/{q(name)}"
    for node in NODES:
        assert api(cluster, 0)("DELETE", f"{path}/replicas/delete", {"node": name_of(node)}).status == 202
        assert api(cluster, 0)("POST", f"{path}/replicas/add", {"node": name_of(node)}).status == 204
        time.sleep(pause)
    for node in restarted:
        cluster.nodes[node].kill()
    cluster.spawn()
    for node in NODES:
        cluster.nodes[node].wait_until_serving()
    cluster.wait_until_whole()

    def voters():
        told = api(cluster, 0)("GET", f"{path}/status").json
        return [it["Node Name"] for it in told if it.get("Membership") == "voter" and it["Raft State"] in ("leader", "follower")]

    until(voters, wanted=lambda it: len(it) == 3, patience=PATIENCE_SECONDS, what="not all have it")
    publish(cluster, name, bodies(200, 205), 2)
    assert [body for body, _ in consume(cluster, name, 205, 1)] == bodies(0, 205)
