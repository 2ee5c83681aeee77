"""A node that is cut off from the majority of its cluster: what it refuses, what it goes on with, and that it heals."""

import sys
from pathlib import Path

import pika
import pytest

from api import Api
from test_process import BINARY, pytestmark  # noqa: F401 - a mark

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.cluster import Cluster  # noqa: E402

ALONE, OTHER = 0, 1


@pytest.fixture(scope="module")
def cluster():
    with Cluster(BINARY) as running:
        yield running


@pytest.fixture
def cut_off(cluster):
    """Cuts the node off when called; all is well again after the test."""
    yield lambda: cluster.cut_off(ALONE)
    cluster.heal()
    cluster.wait_until_whole()


def connect(cluster, node) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", cluster.nodes[node].port, socket_timeout=10))


def until_published(cluster, exchange: str) -> None:
    """A client that tries again, as clients do that are refused."""
    with connect(cluster, ALONE) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for _ in range(100):
            try:
                channel.basic_publish(exchange, "", b"afterwards", mandatory=True)
                return
            except pika.exceptions.NackError:
                connection.sleep(0.1)
    raise AssertionError("refused for ever")


def says_so(cluster) -> None:
    api = Api(root=f"http://127.0.0.1:{cluster.nodes[ALONE].http_port}")
    known = api.get("/overview")
    assert (known.status, known.headers["x-leveret-stale"]) == (200, "true")
    check = api.get("/health/checks/ready-to-serve-clients")
    assert check.status == 503 and "no majority" in check.json["reason"]
    assert {"node": "n1@localhost", "resource": "majority"} in api.get("/leveret/alarms").json
    whole = Api(root=f"http://127.0.0.1:{cluster.nodes[OTHER].http_port}").get("/health/checks/ready-to-serve-clients")
    assert whole.status == 200 and "x-leveret-stale" not in whole.headers


def test_what_was_bound_meanwhile_misses_no_confirmed_message(cluster, cut_off, name):
    alone, other = connect(cluster, ALONE), connect(cluster, OTHER)
    channel = alone.channel()
    channel.confirm_delivery()
    channel.exchange_declare(name, "fanout", durable=True)
    channel.queue_declare(name, durable=True)
    channel.queue_bind(name, name)
    channel.basic_publish(name, "", b"before")
    cut_off()
    late = f"{name}.late"
    elsewhere = other.channel()
    elsewhere.queue_declare(late, durable=True)
    elsewhere.queue_bind(late, name)
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish(name, "", b"meanwhile")
    # The next one need not wait.
    with pytest.raises(pika.exceptions.NackError):
        channel.basic_publish("", name, b"meanwhile")
    assert channel.basic_get(name, auto_ack=True)[2] == b"before", "what is there is served"
    assert channel.basic_get(name, auto_ack=True)[0] is None
    says_so(cluster)
    cluster.heal()
    until_published(cluster, name)
    assert [elsewhere.basic_get(late, auto_ack=True)[2] for _ in range(2)] == [b"afterwards", None]
    alone.close()
    other.close()


def test_who_waits_for_no_confirms_is_told_by_an_error(cluster, cut_off, name):
    alone = connect(cluster, ALONE)
    channel = alone.channel()
    channel.queue_declare(name, durable=True)
    cut_off()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        while True:
            channel.basic_publish("", name, b"lost otherwise")
            alone.process_data_events(0.1)
    assert closed.value.reply_code == 541
    assert "failed to read the metadata because the operation timed out" in closed.value.reply_text
    cluster.heal()
    cluster.wait_until_whole()
    with connect(cluster, OTHER) as other:
        other.channel().queue_delete(name)


def test_a_passive_declaration_is_refused_as_well(cluster, cut_off, name):
    alone = connect(cluster, ALONE)
    channel = alone.channel()
    channel.queue_declare(name, durable=True)
    cut_off()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        while True:
            channel.queue_declare(name, passive=True)
    assert closed.value.reply_code == 541
