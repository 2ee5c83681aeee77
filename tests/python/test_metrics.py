"""The page for Prometheus, under RabbitMQ's names."""

import os
import re
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conftest import connect
from harness.broker import Broker
from waiting import until

pytestmark = pytest.mark.leveret_only("RabbitMQ serves metrics only with a plugin")

BINARY = os.environ.get("LEVERET_BINARY")
SAMPLE = re.compile(r'^([a-z_]+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')

# What RabbitMQ's dashboard "RabbitMQ-Overview" asks for.
OVERVIEW = """
rabbitmq_build_info rabbitmq_identity_info rabbitmq_erlang_uptime_seconds rabbitmq_queue_messages_ready rabbitmq_queue_messages_unacked
rabbitmq_connections rabbitmq_channels rabbitmq_queues rabbitmq_consumers rabbitmq_global_publishers rabbitmq_global_consumers
rabbitmq_global_messages_received_total rabbitmq_global_messages_received_confirm_total rabbitmq_global_messages_confirmed_total
rabbitmq_global_messages_routed_total rabbitmq_global_messages_unroutable_dropped_total rabbitmq_global_messages_unroutable_returned_total
rabbitmq_global_messages_delivered_total rabbitmq_global_messages_redelivered_total rabbitmq_global_messages_delivered_consume_manual_ack_total
rabbitmq_global_messages_delivered_consume_auto_ack_total rabbitmq_global_messages_delivered_get_manual_ack_total
rabbitmq_global_messages_delivered_get_auto_ack_total rabbitmq_global_messages_get_empty_total rabbitmq_global_messages_acknowledged_total
rabbitmq_connections_opened_total rabbitmq_connections_closed_total rabbitmq_channels_opened_total rabbitmq_channels_closed_total
rabbitmq_queues_declared_total rabbitmq_queues_created_total rabbitmq_queues_deleted_total rabbitmq_process_open_fds rabbitmq_process_max_fds
rabbitmq_process_resident_memory_bytes rabbitmq_resident_memory_limit_bytes rabbitmq_disk_space_available_bytes rabbitmq_disk_space_available_limit_bytes
""".split()


def fetch(path):
    address = f"http://{os.environ['AMQP_HOST']}:{os.environ['METRICS_PORT']}{path}"
    with urllib.request.urlopen(address, timeout=30) as reply:
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
        return reply.read().decode()


def page(path="/metrics"):
    """Samples by name; each is its labels and its value. The page must be what Prometheus reads."""
    samples, family, seen = {}, None, set()
    for line in fetch(path).splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in seen and kind in ("counter", "gauge", "untyped", "summary", "histogram"), line
            seen.add(family)
        elif line.startswith("# HELP "):
            assert line.split(" ")[2] == family
        else:
            name, labels, value = SAMPLE.match(line).groups()
            assert name in (family, f"{family}_sum", f"{family}_count", f"{family}_bucket"), line
            samples.setdefault(name, []).append((dict(LABEL.findall(labels or "")), float(value)))
    return samples


def value(samples, name, **labels):
    found = [number for known, number in samples.get(name, []) if labels.items() <= known.items()]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def test_the_dashboard_finds_everything_that_it_asks_for():
    samples = page()
    assert [name for name in OVERVIEW if name not in samples] == []
    [(identity, one)] = samples["rabbitmq_identity_info"]
    assert one == 1 and identity["rabbitmq_endpoint"] == "aggregated" and identity["rabbitmq_node"].startswith("rabbit@")
    assert samples["rabbitmq_build_info"][0][0]["product_name"] == "Leveret"
    assert value(samples, "rabbitmq_resident_memory_limit_bytes") > 0 and value(samples, "rabbitmq_process_open_fds") > 3


def test_sums_grow_with_what_happens_and_stay_when_its_doers_leave(name):
    before = page()
    opened = connect()
    channel = opened.channel()
    channel.queue_declare(name, durable=True)
    channel.confirm_delivery()
    for _ in range(5):
        channel.basic_publish("", name, b"hello")
    channel.basic_publish("", "py.no.such.queue", b"lost")
    channel.basic_get(name, auto_ack=True)
    channel.basic_ack(channel.basic_get(name)[0].delivery_tag)
    gained = {
        "rabbitmq_global_messages_received_total": 6,
        "rabbitmq_global_messages_received_confirm_total": 6,
        "rabbitmq_global_messages_confirmed_total": 6,
        "rabbitmq_global_messages_routed_total": 5,
        "rabbitmq_global_messages_unroutable_dropped_total": 1,
        "rabbitmq_global_messages_delivered_total": 2,
        "rabbitmq_global_messages_delivered_get_auto_ack_total": 1,
        "rabbitmq_global_messages_acknowledged_total": 1,
        "rabbitmq_queue_messages_ready": 3,
        "rabbitmq_connections_opened_total": 1,
        "rabbitmq_queues_created_total": 1,
    }
    difference = lambda after: {key: value(after, key) - value(before, key) for key in gained}
    assert until(lambda: difference(page()), lambda found: found == gained) == gained
    channel.queue_delete(name)
    opened.close()
    gained |= {"rabbitmq_queue_messages_ready": 0}
    assert until(lambda: difference(page()), lambda found: found == gained) == gained


def test_sizes_logins_and_dead_letters_are_counted(connection, channel, name):
    before = page()
    channel.confirm_delivery()
    channel.queue_declare(f"{name}.dead", exclusive=True)
    channel.queue_declare(name, exclusive=True, arguments={"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.dead"})
    for size in (10, 100, 5000):
        channel.basic_publish("", name, b"x" * size)
    until(lambda: channel.queue_declare(f"{name}.dead", passive=True).method.message_count == 2)
    connect().close()
    after = page()

    def more(metric, **labels):
        def found(samples):
            return sum(number for known, number in samples.get(metric, []) if labels.items() <= known.items())

        return found(after) - found(before)

    assert more("rabbitmq_message_size_bytes_count") == 3 and more("rabbitmq_message_size_bytes_sum") == 5110
    sizes = "rabbitmq_message_size_bytes_bucket"
    assert [more(sizes, protocol="amqp091", le=bound) for bound in ("100", "1000", "10000", "100000000", "+Inf")] == [2, 2, 3, 3, 3]
    assert more("rabbitmq_global_messages_dead_lettered_maxlen_total") == 2 == more("rabbitmq_global_messages_dead_lettered_confirmed_total")
    assert more("rabbitmq_global_messages_dead_lettered_expired_total") == 0
    assert more("rabbitmq_auth_attempts_succeeded_total", protocol="amqp091") >= 1
    assert more("rabbitmq_auth_attempts_total") == more("rabbitmq_auth_attempts_succeeded_total") + more("rabbitmq_auth_attempts_failed_total")


def test_single_objects_are_on_a_page_of_their_own(connection, channel, queue):
    for _ in range(3):
        channel.basic_publish("", queue, b"hello")
    channel.basic_get(queue, auto_ack=True)
    path = "/metrics/per-object"
    samples = until(lambda: page(path), lambda samples: value(samples, "rabbitmq_queue_messages_ready", queue=queue) == 2)
    assert value(samples, "rabbitmq_queue_messages_ready", queue=queue, vhost="/") == 2
    assert value(samples, "rabbitmq_queue_messages_ready_bytes", queue=queue) == 10
    assert value(samples, "rabbitmq_queue_get_total", queue=queue) == 1
    assert value(samples, "rabbitmq_queue_info", queue=queue, queue_type="rabbit_classic_queue") == 1
    mine = [labels["channel"] for labels, count in samples["rabbitmq_channel_messages_published_total"] if count == 3]
    assert any(re.fullmatch(r"\S+ -> \S+ \(1\)", name) for name in mine)
    assert any(count > 100 for _, count in samples["rabbitmq_connection_incoming_bytes_total"])
    assert value(samples, "leveret_metrics_left_out", objects="queues") == 0
    assert all("queue" not in labels for labels, _ in page()["rabbitmq_queue_messages_ready"])


def test_the_detailed_page_has_the_families_and_virtual_hosts_that_are_asked_for(channel, queue):
    path = f"/metrics/detailed?family=queue_coarse_metrics&family=vhost_status&vhost=%2F&queue={queue}"
    samples = page(path)
    names = {name for name in samples if not name.startswith("leveret_")}
    assert names == {"rabbitmq_build_info", "rabbitmq_identity_info", "rabbitmq_detailed_queue_messages_ready", "rabbitmq_detailed_queue_messages_unacked", "rabbitmq_detailed_queue_messages", "rabbitmq_detailed_queue_info", "rabbitmq_cluster_vhost_status"}
    assert samples["rabbitmq_detailed_queue_messages"] == [({"vhost": "/", "queue": queue}, 0)]
    assert page("/metrics/detailed?family=queue_coarse_metrics&vhost=no.such").get("rabbitmq_detailed_queue_messages") is None
    assert set(page("/metrics/detailed")) <= {"rabbitmq_build_info", "rabbitmq_identity_info", "leveret_metrics_left_out"}


def test_the_parts_of_the_memory_are_on_a_page_of_their_own():
    samples = page("/metrics/memory-breakdown")
    parts = {name: value(samples, name) for name in samples if name.startswith("rabbitmq_memory_")}
    assert len(parts) == 26 and set(samples) - set(parts) == {"rabbitmq_build_info", "rabbitmq_identity_info"}
    assert parts["rabbitmq_memory_code_module_bytes"] > 1_000_000 and parts["rabbitmq_memory_other_system_bytes"] > 0


def test_names_of_queues_cannot_break_the_page(channel, name):
    evil = name + '"} 5 rabbitmq_up 1\\'
    channel.queue_declare(evil, exclusive=True)
    samples = page("/metrics/per-object")
    assert "rabbitmq_up" not in samples
    quoted = evil.replace("\\", "\\\\").replace('"', '\\"')
    assert value(samples, "rabbitmq_queue_messages", queue=quoted) == 0


def test_other_paths_are_not_there():
    for path in ("/", "/metrics/zork", "/api/overview"):
        with pytest.raises(urllib.error.HTTPError) as error:
            fetch(path)
        assert error.value.code == 404


@pytest.mark.skipif(not BINARY, reason="needs the executable")
def test_the_page_is_where_the_configuration_has_it():
    broker = Broker(BINARY, {"prometheus.path": "/shop/numbers"})
    broker.start()
    try:
        root = f"http://{broker.host}:{broker.metrics_port}"
        for below, name in (("", "rabbitmq_queues"), ("/", "rabbitmq_queues"), ("/detailed?family=queue_coarse_metrics", "rabbitmq_identity_info")):
            with urllib.request.urlopen(f"{root}/shop/numbers{below}", timeout=30) as reply:
                assert f"\n{name}" in reply.read().decode()
        for elsewhere in ("/metrics", "/shop", "/shop/numbersx"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{root}{elsewhere}", timeout=30)
            assert refused.value.code == 404
    finally:
        broker.close()


def test_a_cluster_has_an_id_that_is_not_its_name(api):
    [(identity, _)] = page()["rabbitmq_identity_info"]
    kept = api.get("/global-parameters/internal_cluster_id").json
    assert kept == {"name": "internal_cluster_id", "value": identity["rabbitmq_cluster_permanent_id"]}
    assert len(kept["value"]) > 30 and kept["value"] != identity["rabbitmq_cluster"]
    assert kept in api.get("/global-parameters").json
    assert "internal_cluster_id" not in [row["name"] for row in api.get("/definitions").json["global_parameters"]]


def test_bindings_are_counted_by_exchange_and_the_start_of_the_node_is_told(channel, queue, name):
    channel.exchange_declare(name, "topic", auto_delete=True)
    for key in ("a", "b"):
        channel.queue_bind(queue, name, key)
    samples = page("/metrics/detailed?family=exchange_bindings&vhost=%2F")
    assert value(samples, "rabbitmq_cluster_exchange_bindings", vhost="/", exchange=name, type="topic") == 2
    assert value(samples, "rabbitmq_cluster_exchange_bindings", exchange="amq.match") == 0
    samples = page()
    assert 0 < time.time() - value(samples, "process_start_time_seconds") - value(samples, "rabbitmq_erlang_uptime_seconds") < 5
    assert value(samples, "rabbitmq_unreachable_cluster_peers_count") == 0


def test_exchanges_confirm_and_drop(channel, queue):
    before = page()
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"hello")
    channel.basic_publish("", "py.no.such.queue", b"lost")
    gained = {"published": 2, "confirmed": 2, "unroutable_dropped": 1, "unroutable_returned": 0}
    gained = {f"rabbitmq_exchange_messages_{what}_total": count for what, count in gained.items()}
    difference = lambda after: {key: value(after, key) - value(before, key) for key in gained}
    assert until(lambda: difference(page()), lambda found: found == gained) == gained
