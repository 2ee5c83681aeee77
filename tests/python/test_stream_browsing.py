"""Looking at messages of a stream by HTTP: from any offset or time, and nobody is there afterwards who reads."""

import base64
import datetime
import os

import pytest

from api import Api, q
from conftest import connect
from harness.stream_link import Entry, StreamLink
from test_stream_queues import channel, declare, fill, filled, stream  # noqa: F401 - fixtures

pytestmark = pytest.mark.leveret_only("RabbitMQ gets nothing from streams by HTTP")


def looked(stream, offset, count=100, api=None, **more):  # noqa: F811
    return (api or Api()).post(f"/queues/%2F/{q(stream)}/get", {"offset": offset, "count": count, "encoding": "auto", **more})


def shown(*args, **more):
    """The messages, and their offsets."""
    answer = looked(*args, **more)
    assert answer.status == 200, answer.text
    return [(row["properties"]["headers"]["x-stream-offset"], row["payload"]) for row in answer.json]


def reason(answer, status):
    assert answer.status == status, answer.text
    return answer.json["reason"]


def numbered(numbers):
    return [(number, str(number)) for number in numbers]


@pytest.mark.parametrize(
    ("offset", "first"),
    [("first", 0), (0, 0), (-5, 0), (4, 4), ("4", 4), ("last", 9), ("next", 10), (10, 10), (1 << 63, 10), ("1h", 0), ("2001-01-01T00:00:00Z", 0)],
)
def test_it_begins_where_a_consumer_would(filled, offset, first):  # noqa: F811
    assert shown(filled, offset) == numbered(range(first, 10))


def test_so_many_are_shown_and_the_rest_is_counted(filled):  # noqa: F811
    rows = looked(filled, 2, count=3).json
    assert [row["payload"] for row in rows] == ["2", "3", "4"]
    assert [row["message_count"] for row in rows] == [7, 6, 5]
    assert {(row["redelivered"], row["exchange"], row["routing_key"], row["payload_bytes"]) for row in rows} == {(False, "", filled, 1)}
    assert looked(filled, "first", count=0).json == []
    assert len(looked(filled, "first", count=-1).json) == 10


def test_a_moment_between_two_messages(channel, stream):  # noqa: F811
    fill(channel, stream, [0])
    channel.connection.sleep(0.05)
    moment = datetime.datetime.now(datetime.timezone.utc).isoformat()
    fill(channel, stream, [1])
    assert shown(stream, moment) == [(1, "1")]


def test_nobody_reads_afterwards_and_all_is_still_there(filled):  # noqa: F811
    assert shown(filled, "first") == shown(filled, "first", ackmode="ack_requeue_true") == numbered(range(10))
    row = Api().get(f"/queues/%2F/{q(filled)}").json
    assert (row["consumers"], row["consumer_details"], set(row["readers"].values())) == (0, [], {0})


@pytest.mark.skipif("STREAM_PORT" not in os.environ, reason="a stream is on one node of a cluster")
def test_what_stream_clients_put_into_one_entry_is_shown_message_by_message(stream):  # noqa: F811
    with StreamLink(int(os.environ["STREAM_PORT"])) as link:
        link.declare_publisher(1, stream)
        link.publish(1, [Entry(1, [b"0", b"1", b"2"]), Entry(2, [b"3", b"4"], compressed=True), Entry(3, [b"5"])])
        confirmed = []
        while len(confirmed) < 3:
            confirmed += link.confirms()
        assert shown(stream, 1) == numbered(range(1, 6))
        assert shown(stream, 4, count=1) == numbered([4])


def test_bodies_are_cut_and_bytes_are_base64(channel, stream):  # noqa: F811
    channel.basic_publish("", stream, b"x" * 3000)
    channel.basic_publish("", stream, b"\xff\x00")
    long, binary = looked(stream, "first", truncate=1000).json
    assert (long["payload"], long["payload_bytes"], long["payload_encoding"]) == ("x" * 1000, 3000, "string")
    assert (base64.b64decode(binary["payload"]), binary["payload_encoding"]) == (b"\xff\x00", "base64")
    (as_asked,) = looked(stream, 0, count=1, encoding="base64").json
    assert base64.b64decode(as_asked["payload"]) == b"x" * 3000


@pytest.mark.parametrize("offset", ["yesterday", "", 1.5, None, True, ["first"], {}])
def test_what_is_no_offset_is_refused(stream, offset):  # noqa: F811
    assert "is no offset of a stream" in reason(looked(stream, offset), 400)


def test_what_would_take_messages_is_refused(filled):  # noqa: F811
    for ackmode in ("ack_requeue_false", "reject_requeue_false"):
        assert "a stream keeps its messages" in reason(looked(filled, 0, ackmode=ackmode), 400)
    assert "Invalid ackmode value" in reason(looked(filled, 0, ackmode="zz"), 400)
    assert reason(looked(filled, 0, count="x"), 400) == ["not_integer", "x"]
    without = Api().post(f"/queues/%2F/{q(filled)}/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"})
    assert "basic.get not supported by stream queues" in reason(without, 400)


def test_queues_of_other_kinds_have_no_offsets(queue):
    assert "offset is for streams" in reason(looked(queue, 0), 400)
    assert looked("py.none", 0).status == 404


def test_who_may_not_read_sees_nothing(filled, name, api):  # noqa: F811
    api.put(f"/users/{name}", {"password": "p", "tags": "management"})
    api.put(f"/permissions/%2F/{name}", {"configure": ".*", "write": ".*", "read": "^$"})
    try:
        assert looked(filled, 0, api=Api(name, "p")).status == 401
        api.put(f"/permissions/%2F/{name}", {"configure": "^$", "write": "^$", "read": ".*"})
        assert shown(filled, 0, api=Api(name, "p")) == numbered(range(10))
    finally:
        api.delete(f"/users/{name}")


def test_what_retention_has_dropped_is_passed_over(name):
    with connect() as connection:
        old = connection.channel()
        old.confirm_delivery()
        declare(old, name, max_length_bytes=2_000_000, stream_max_segment_size_bytes=500_000)
        try:
            for number in range(60):
                old.basic_publish("", name, str(number).encode() + b" " * 100_000)
            (offset, body), *_ = shown(name, 0, count=1, truncate=2)
            assert offset > 0 and body.strip() == str(offset)
        finally:
            old.queue_delete(name)
