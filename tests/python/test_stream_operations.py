"""What operators see of the stream protocol: `/api/stream`, and the commands that list the same."""

import asyncio
import contextlib
import json
import os
import subprocess

import pytest
import rstream
from rstream import AMQPMessage, OffsetType

from api import Api, q
from test_stream_client import Reader, Streams, options, story
from waiting import until

BINARY = os.environ.get("LEVERET_BINARY")


async def told(look, wanted=bool):
    """What the API says, once `wanted` says yes to it; clients go on meanwhile."""
    return await asyncio.to_thread(until, look, wanted)


def got(path):
    answer = Api().get(path)
    assert answer.status == 200, f"{path}: {answer.status} {answer.text}"
    return answer.json


def of(stream, kind):
    """The publishers or consumers of one stream."""
    return [row for row in got(f"/stream/{kind}/%2F") if row["queue"] == {"name": stream, "vhost": "/"}]


@story
async def test_publishers_are_listed_with_what_they_have_done():
    async with Streams() as streams:
        stream = await streams.stream()
        await streams.fill(stream, range(5), publisher_name="writer")
        rows = await told(lambda: of(stream, "publishers"), lambda rows: rows and rows[0]["confirmed"] == 5)
        assert len(rows) == 1
        row = rows[0]
        assert {key: row[key] for key in ("reference", "published", "confirmed", "errored")} == {
            "reference": "writer",
            "published": 5,
            "confirmed": 5,
            "errored": 0,
        }
        details = row["connection_details"]
        assert set(details) == {"name", "user", "node", "peer_host", "peer_port"} and details["user"] == "guest"
        assert got(f"/stream/publishers/%2F/{q(stream)}") == rows
        assert got(f"/stream/connections/%2F/{q(details['name'])}/publishers") == rows
        assert row in got("/stream/publishers")
        assert Api().get("/stream/publishers/%2F/py.none").status == 404
    await told(lambda: of(stream, "publishers"), lambda rows: not rows)


@story
async def test_a_queue_that_is_a_stream_has_its_offsets_and_readers():
    async with Streams() as streams, Reader() as reader:
        stream = await streams.stream()
        path = f"/queues/%2F/{q(stream)}"
        fields = ("first_offset", "last_offset", "committed_offset", "segments")
        empty = await told(lambda: got(path), lambda row: "segments" in row)
        assert [empty[field] for field in fields[:3]] == [None, None, None]
        node = empty["node"]
        assert (empty["leader"], empty["members"], empty["online"], empty["readers"]) == (node, [node], [node], {node: 0})
        await streams.fill(stream, range(7))
        await reader.subscribe(stream)
        await reader.take(7)
        row = await told(lambda: got(path), lambda row: row["readers"] == {node: 1} and row["last_offset"] == 6)
        assert [row[field] for field in fields] == [0, 6, 6, 1]


@story
async def test_consumers_are_listed_with_how_far_they_have_come():
    async with Streams() as streams, Reader() as reader:
        stream = await streams.stream()
        await streams.fill(stream, range(10))
        await reader.subscribe(stream, OffsetType.OFFSET, 4, properties={"colour": "red"})
        await reader.take(6)
        rows = await told(lambda: of(stream, "consumers"), lambda rows: rows and rows[0]["offset"] == 9)
        row = rows[0]
        assert row["consumed"] >= 6 and row["offset_lag"] == 0 and row["credits"] > 0
        assert (row["active"], row["activity_status"], row["properties"]["colour"]) == (True, "up", "red")
        again = got(f"/stream/connections/%2F/{q(row['connection_details']['name'])}/consumers")
        # Clients give credit whenever they like.
        assert [one | {"credits": 0} for one in again] == [row | {"credits": 0}]
        assert "group" not in row
    await told(lambda: of(stream, "consumers"), lambda rows: not rows)


@story
async def test_consumers_are_among_all_consumers_and_those_of_their_queue():
    async with Streams() as streams, Reader() as reader:
        stream = await streams.stream()
        await reader.subscribe(stream, properties={"colour": "red"})
        rows = await told(lambda: [row for row in got("/consumers") if row["queue"]["name"] == stream])
        assert len(rows) == 1
        row = rows[0]
        assert row["consumer_tag"].startswith("stream.subid-") and row["queue"] == {"name": stream, "vhost": "/"}
        assert (row["ack_required"], row["exclusive"], row["prefetch_count"], row["active"], row["activity_status"]) == (False, False, 0, True, "up")
        assert row["arguments"]["colour"] == "red"
        details = row["channel_details"]
        assert (details["name"], details["number"], details["user"]) == ("", 0, "guest") and {"node", "peer_host", "peer_port"} <= set(details)
        client = of(stream, "consumers")[0]
        assert details["connection_name"] == client["connection_details"]["name"]
        assert row["consumer_tag"] == f"stream.subid-{client['subscription_id']}"
        assert row in got("/consumers/%2F")
        queue = got(f"/queues/%2F/{q(stream)}")
        assert (queue["consumer_details"], queue["consumers"]) == ([row], 1)
    await told(lambda: got("/consumers"), lambda rows: not [row for row in rows if row["queue"]["name"] == stream])


@pytest.mark.leveret_only("RabbitMQ lists publishers by stream, but not consumers")
@story
async def test_consumers_of_one_stream_are_listed_apart():
    async with Streams() as streams, Reader() as reader:
        one, other = await streams.stream(), await streams.stream()
        for stream in (one, other):
            await reader.subscribe(stream)
        await told(lambda: of(other, "consumers"))
        assert [row["queue"]["name"] for row in got(f"/stream/consumers/%2F/{q(one)}")] == [one]
        assert Api().get("/stream/consumers/%2F/py.none").status == 404


@story
async def test_of_a_group_one_consumer_is_active_and_the_others_wait():
    group = {"single-active-consumer": "true", "name": "group"}
    async with Streams() as streams, Reader() as one, Reader() as two:
        stream = await streams.stream()
        for reader in (one, two):
            await reader.subscribe(stream, properties=dict(group), subscriber_name="group")
        rows = await told(lambda: of(stream, "consumers"), lambda rows: len(rows) == 2 and any(row["active"] for row in rows))
        assert sorted((row["active"], row["activity_status"]) for row in rows) == [(False, "waiting"), (True, "single_active")]
        assert [row["group"] for row in rows] == [{"name": "group", "partition_index": -1}] * 2
        queue = got(f"/queues/%2F/{q(stream)}")
        assert sorted(row["activity_status"] for row in queue["consumer_details"]) == ["single_active", "waiting"]
        assert not queue["single_active_consumer_tag"], "each group has one of its own"
        waiting = next(row for row in rows if not row["active"])
        assert (waiting["offset"], waiting["offset_lag"], waiting["consumed"]) == (0, 0, 0)


@story
async def test_connections_are_listed_apart_and_closed():
    async with Streams() as streams:
        stream = await streams.stream()
        closed = rstream.Producer(**options())
        await closed.start()
        await closed.send_wait(stream, AMQPMessage(body=b"1"))
        row = (await told(lambda: of(stream, "publishers")))[0]
        connection = q(row["connection_details"]["name"])
        assert {one["protocol"] for one in got("/stream/connections")} == {"stream"}
        assert row["connection_details"]["name"] in [one["name"] for one in got("/stream/connections/%2F?columns=name")]
        assert got(f"/stream/connections/%2F/{connection}")["protocol"] == "stream"
        api = Api()
        assert api.get(f"/stream/connections/py.none/{connection}").status == 404
        assert api.get("/stream/connections/py.none").status == 404
        assert api.get("/stream/connections/%2F/py.none/consumers").status == 404
        assert api.delete(f"/stream/connections/%2F/{connection}").status == 204
        await told(lambda: api.get(f"/stream/connections/%2F/{connection}").status, lambda status: status == 404)
        # It may have come back, or find out now that it was closed.
        with contextlib.suppress(Exception):
            await asyncio.wait_for(closed.close(), 5)


def test_a_connection_of_another_protocol_is_none_of_them(connection):
    name = until(lambda: got("/connections?columns=name,protocol"))
    amqp = next(one["name"] for one in name if one["protocol"] != "stream")
    assert Api().get(f"/stream/connections/%2F/{q(amqp)}").status == 404
    assert Api().delete(f"/stream/connections/%2F/{q(amqp)}").status == 404
    assert connection.is_open and connection.channel().is_open


@story
async def test_what_a_stream_keeps_for_its_clients_is_shown():
    async with Streams() as streams, Reader() as reader:
        stream = await streams.stream()
        path = f"/stream/%2F/{q(stream)}/tracking"
        assert got(path) == {"offsets": {}, "writers": {}}
        message = AMQPMessage(body=b"1")
        message.publishing_id = 7
        await streams.producer.send_wait(stream, message, publisher_name="writer")
        await reader.subscribe(stream)
        await reader.take(1)
        await reader.consumer.store_offset(stream, "reader", 3)
        both = {"offsets": {"reader": 3}, "writers": {"writer": 7}}
        assert await told(lambda: got(path), lambda found: found["offsets"]) == both
        assert got(f"{path}?type=offset") == {"offsets": {"reader": 3}}
        assert got(f"{path}?type=writer") == {"writers": {"writer": 7}}
        assert got(f"{path}?type=all") == got(f"{path}?type=zork") == both


def test_what_other_queues_keep_is_not_to_be_had(queue):
    api = Api()
    assert api.get("/stream/%2F/py.none/tracking").status == 404
    answer = api.get(f"/stream/%2F/{q(queue)}/tracking")
    assert (answer.status, answer.json["reason"]) == (503, "The stream leader is not available")


@pytest.mark.leveret_only("the command line resets offsets by Erlang there")
def test_an_offset_is_reset_by_those_who_may_read_the_stream(name, api):
    @story
    async def reset():
        async with Streams() as streams, Reader() as reader:
            stream = await streams.stream()
            path = f"/leveret/streams/%2F/{q(stream)}/offsets"
            await reader.subscribe(stream)
            await reader.consumer.store_offset(stream, "a/b", 3)
            await told(lambda: got(f"/stream/%2F/{q(stream)}/tracking")["offsets"])
            missing = api.delete(f"{path}/zork")
            assert (missing.status, missing.json["reason"]) == (404, "offset_not_found")
            api.put(f"/users/{name}", {"password": "p", "tags": "management"})
            api.put(f"/permissions/%2F/{name}", {"configure": ".*", "write": ".*", "read": "^$"})
            other = Api(name, "p")
            assert other.delete(f"{path}/a%2Fb").status == 401
            assert other.get(f"/stream/%2F/{q(stream)}/tracking").status == 401
            assert got(f"/stream/%2F/{q(stream)}/tracking")["offsets"] == {"a/b": 3}
            # It is safe by the time of the answer.
            assert api.delete(f"{path}/a%2Fb").status == 204
            assert got(f"/stream/%2F/{q(stream)}/tracking")["offsets"] == {"a/b": 0}
            assert await reader.consumer.query_offset(stream, "a/b") == 0

    try:
        reset()
    finally:
        api.delete(f"/users/{name}")


@story
async def test_who_watches_nothing_sees_own_clients_only():
    api, name = Api(), f"py.{os.getpid()}.streams"
    api.put(f"/users/{name}", {"password": "p", "tags": "management"})
    api.put(f"/permissions/%2F/{name}", {"configure": ".*", "write": ".*", "read": ".*"})
    try:
        async with Streams() as streams, Reader() as reader:
            stream = await streams.stream()
            await streams.fill(stream, [1])
            await reader.subscribe(stream)
            await told(lambda: of(stream, "consumers"))
            rows = await told(lambda: of(stream, "publishers"))
            connection = q(rows[0]["connection_details"]["name"])
            other = Api(name, "p")
            for kind in ("publishers", "consumers", "connections"):
                assert other.get(f"/stream/{kind}").json == other.get(f"/stream/{kind}/%2F").json == []
            assert other.get(f"/stream/connections/%2F/{connection}").status == 401
            assert other.delete(f"/stream/connections/%2F/{connection}").status == 401
            own = rstream.Producer(**options(username=name, password="p"))
            await own.start()
            await own.send_wait(stream, AMQPMessage(body=b"2"))
            found = await told(lambda: other.get("/stream/publishers").json)
            assert {row["connection_details"]["user"] for row in found} == {name}
            await own.close()
    finally:
        api.delete(f"/users/{name}")


def tool(*words):
    """A command's exit code, its rows, and what it says beside them."""
    node = f"http://{os.environ['AMQP_HOST']}:{os.environ['HTTP_PORT']}"
    line = [BINARY, "ctl", *words, "-q", "--formatter", "json", "--url", node, "--username", "guest", "--password", "guest"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None, done.stdout + done.stderr


@pytest.mark.skipif(not BINARY, reason="needs the executable")
@story
async def test_the_command_line_lists_them_too():
    group = {"single-active-consumer": "true", "name": "group"}
    async with Streams() as streams, Reader() as one, Reader() as two:
        stream = await streams.stream()
        await streams.fill(stream, range(3), publisher_name="writer")
        await one.subscribe(stream, properties=dict(group), subscriber_name="group")
        await two.subscribe(stream, subscriber_name="alone")
        await two.take(3)
        await two.consumer.store_offset(stream, "alone", 2)
        await told(lambda: got(f"/stream/%2F/{q(stream)}/tracking")["offsets"])
        code, rows, _ = tool("list_stream_publishers")
        mine = [row for row in rows if row["stream"] == stream]
        assert code == 0 and len(mine) == 1
        assert set(mine[0]) == {"publisher_id", "stream", "reference", "messages_published", "messages_confirmed", "messages_errored"}
        assert (mine[0]["reference"], mine[0]["messages_published"], mine[0]["messages_confirmed"]) == ("writer", 3, 3)
        code, rows, _ = tool("list_stream_consumers", "stream", "activity_status", "messages_consumed", "node")
        mine = {row["activity_status"]: row["messages_consumed"] for row in rows if row["stream"] == stream}
        assert code == 0 and set(mine) == {"single_active", "up"} and mine["up"] == 3
        code, rows, _ = tool("list_stream_consumer_groups")
        assert code == 0 and {"stream": stream, "reference": "group", "partition_index": -1, "consumers": 1} in rows
        code, rows, _ = tool("list_stream_group_consumers", "--stream", stream, "--reference", "group")
        assert (code, [row["state"] for row in rows]) == (0, ["active (connected)"])
        code, _, text = tool("list_stream_group_consumers", "--stream", stream, "--reference", "zork")
        assert code == 69 and "The group does not exist" in text
        code, rows, _ = tool("list_stream_tracking", stream)
        assert code == 0 and {"type": "offset", "name": "alone", "tracking_value": 2} in rows
        assert {row["type"] for row in rows} == {"offset", "writer"}
        code, rows, _ = tool("list_stream_tracking", stream, "--writer")
        assert (code, [row["name"] for row in rows]) == (0, ["writer"])
        code, _, text = tool("reset_offset", "--stream", stream, "--reference", "zork")
        assert code == 69 and "no need to reset" in text
        assert tool("reset_offset", "--stream", stream, "--reference", "alone")[0] == 0
        code, rows, _ = tool("list_stream_tracking", stream, "--offset")
        assert (code, rows) == (0, [{"type": "offset", "name": "alone", "tracking_value": 0}])
        code, _, text = tool("reset_offset", "--stream", "py.none", "--reference", "alone")
        assert code == 69 and "The stream does not exist" in text
