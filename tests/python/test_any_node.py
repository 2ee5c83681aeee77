"""What is one node's alone is told through any other one of its cluster: events as they happen, what an exchange remembers, where a stream is."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pika
import pytest
import rstream

from api import Api
from test_command_line import follow  # noqa: F401 - a fixture
from test_process import BINARY, pytestmark  # noqa: F401 - a mark
from waiting import until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.cluster import Cluster, name  # noqa: E402
from harness.stream_link import Entry, StreamLink  # noqa: E402

ASKED, MEANT = 0, 1
PATIENCE_SECONDS = 20
STREAMS = ("/leveret/happenings", "/leveret/logs/follow")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(BINARY) as running:
        yield running


@pytest.fixture
def paused(cluster):
    """The node that is meant says nothing for a while."""
    cluster.pause(MEANT)
    yield
    cluster.resume()
    cluster.wait_until_whole()


def first_line(follow, cluster, *words):  # noqa: F811
    """What a command of the asked node tells of the other one, where something changes until a line is written."""
    return follow(cluster.nodes[ASKED], [*words, "--node", name(MEANT)], lambda _: change(cluster))


def api(cluster, node) -> Api:
    return Api(root=f"http://127.0.0.1:{cluster.nodes[node].http_port}")


def change(cluster) -> None:
    """On both nodes something happens and is logged: a value that was not there before."""
    for node, what in ((ASKED, "asked"), (MEANT, "meant")):
        assert api(cluster, node).put(f"/global-parameters/{what}", {"name": what, "value": time.monotonic()}).status in (201, 204)


def test_the_command_line_tells_events_of_the_node_that_is_named(cluster, follow):  # noqa: F811
    event = json.loads(first_line(follow, cluster, "consume_event_stream", "--pattern", "^parameter"))
    assert (event["event"], event["name"]) == ("parameter.set", "meant")


def test_the_command_line_tells_lines_of_the_log_of_the_node_that_is_named(cluster, follow):  # noqa: F811
    line = first_line(follow, cluster, "log_tail_stream")
    assert "PUT /api/global-parameters/meant" in line


def test_a_name_that_the_cluster_does_not_have_names_this_machine(cluster):
    here = ["--node", "old@localhost", "--data-dir", str(cluster.nodes[ASKED].data)]
    done = subprocess.run([BINARY, "ctl", "consume_event_stream", "--duration", "1", *here], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", STREAMS)
def test_a_node_that_says_nothing_is_named(cluster, paused, path):
    told = api(cluster, ASKED).get(f"{path}?node={name(MEANT)}", patience=0)
    assert told.status == 503 and name(MEANT) in told.json["reason"]


@pytest.mark.parametrize("path", STREAMS)
def test_only_administrators_hear_of_nodes_of_the_cluster(cluster, path):
    asked = api(cluster, ASKED)
    assert asked.get(f"{path}?node=n9@localhost").status == 404
    assert asked.put("/users/watcher", {"password": "w", "tags": "monitoring"}).status in (201, 204)
    watcher = Api("watcher", "w", root=f"http://127.0.0.1:{cluster.nodes[ASKED].http_port}")
    assert watcher.get(f"{path}?node={name(MEANT)}").status == 401


def test_what_an_exchange_remembers_is_shown_by_every_node(cluster):
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", cluster.nodes[MEANT].port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.exchange_declare("once", "x-message-deduplication", durable=True, arguments={"x-cache-size": 10})
        channel.queue_declare("of.once", durable=True)
        channel.queue_bind("of.once", "once", "")
        for key in ("a", "b", "a", "c"):
            channel.basic_publish("once", "", b"", pika.BasicProperties(headers={"x-deduplication-header": key}))
    expected = {"name": "once", "cache_info": {"entries": 3, "size": 10}}
    for node in range(3):
        asked = api(cluster, node)
        until(lambda: asked.get("/exchanges/%2F/once?columns=name,cache_info").json == expected)
        for listed in ("/exchanges/%2F?columns=name,cache_info", "/exchanges?columns=name,cache_info&sort=cache_info.entries"):
            assert expected in asked.get(listed).json
        for page in ("name=once", "sort=cache_info.entries"):
            assert asked.get(f"/exchanges?columns=name,cache_info&page=1&page_size=1&{page}").json["items"] == [expected]


def stream_client(kind, cluster, node):
    return kind(host="127.0.0.1", port=cluster.nodes[node].stream_port, username="guest", password="guest")


async def publish_and_read(cluster, stream):
    """Makes a stream on one node, and publishes and reads by way of another one."""
    got = asyncio.Queue()
    async with stream_client(rstream.Producer, cluster, MEANT) as there, stream_client(rstream.Producer, cluster, ASKED) as producer:
        await there.create_stream(stream)
        for number in range(20):
            await producer.send_wait(stream, str(number).encode())
        consumer = stream_client(rstream.Consumer, cluster, ASKED)
        await consumer.start()
        await consumer.subscribe(stream, lambda message, _: got.put_nowait(message), offset_specification=rstream.ConsumerOffsetSpecification(rstream.OffsetType.FIRST))
        running = asyncio.create_task(consumer.run())
        told = [await asyncio.wait_for(got.get(), PATIENCE_SECONDS) for _ in range(20)]
        async with stream_client(rstream.Consumer, cluster, MEANT) as at_home:
            await at_home.store_offset(stream, "reader", 7)
            await asyncio.to_thread(operators_see, cluster, stream)
        await consumer.close()
        running.cancel()
        await producer.delete_stream(stream)
    return told


def operators_see(cluster, stream):
    """Who uses a stream, which is written to where it is led and read anywhere, and what it keeps, as another node tells it."""
    asked = api(cluster, ASKED)

    def of(kind):
        return [row for row in asked.get(f"/stream/{kind}/%2F").json if row["queue"]["name"] == stream]

    for kind in ("publishers", "consumers"):
        (row,) = until(lambda kind=kind: of(kind))
        connection = row["connection_details"]["name"].replace(" ", "%20").replace(">", "%3E")
        where = row["connection_details"]["node"]
        assert where == name(MEANT) or kind == "consumers" and where in (name(node) for node in range(3))
        assert asked.get(f"/stream/connections/%2F/{connection}").json["node"] == where
        assert asked.get(f"/stream/connections/%2F/{connection}/{kind}").json[0]["queue"] == row["queue"]
    tracking = f"/stream/%2F/{stream}/tracking"
    until(lambda: asked.get(tracking).json.get("offsets") == {"reader": 7})
    assert asked.delete(f"/leveret/streams/%2F/{stream}/offsets/reader").status == 204
    assert asked.get(tracking).json["offsets"] == {"reader": 0}
    assert asked.get("/stream/connections/%2F/nobody").status == 404


def test_messages_of_a_stream_are_looked_at_from_any_node(cluster):
    there = cluster.nodes[MEANT]
    with StreamLink(there.stream_port) as link:
        link.create("looked.at")
        link.declare_publisher(1, "looked.at")
        # More than a node tells another one at once.
        link.publish(1, [Entry(number, [str(number).encode() + b" " * 90_000]) for number in range(10)])
        link.publish(1, [Entry(number, [str(number).encode() + b" " * 90_000]) for number in range(10, 20)])
        confirmed = []
        while len(confirmed) < 20:
            confirmed += link.confirms()
    asked = api(cluster, ASKED)
    path, body = "/queues/%2F/looked.at/get", {"offset": "first", "count": 100, "encoding": "auto"}
    # A copy hears a moment later that the last ones are confirmed.
    rows = until(lambda: (answer := asked.post(path, body)).status == 200 and answer.json, wanted=lambda it: it and len(it) == 20)
    assert [(row["properties"]["headers"]["x-stream-offset"], row["payload"].strip(), row["payload_bytes"]) for row in rows] == [
        (number, str(number), 90_000 + len(str(number))) for number in range(20)
    ]
    assert [row["message_count"] for row in rows] == list(range(19, -1, -1))
    assert rows == api(cluster, MEANT).post(path, body).json
    assert [row["payload"].strip() for row in asked.post(path, body | {"offset": 17, "count": 2}).json] == ["17", "18"]
    assert asked.post(path, body | {"offset": "zork"}).status == 400
    asked.delete("/queues/%2F/looked.at")


def test_clients_of_streams_find_them_through_any_node(cluster):
    got = asyncio.run(asyncio.wait_for(publish_and_read(cluster, "any.stream"), 60))
    assert got == [str(number).encode() for number in range(20)]


def test_where_streams_are_is_known_again_once_a_node_is_back(cluster):
    cluster.nodes[ASKED].restart()
    cluster.wait_until_whole()
    assert len(asyncio.run(asyncio.wait_for(publish_and_read(cluster, "any.stream.again"), 60))) == 20
