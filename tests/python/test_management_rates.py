"""The HTTP API's message_stats, rates and samples."""

import time

import pytest

from conftest import connect
from test_metrics import page, value
from waiting import until


def counts(row, *names):
    return {name: row.get("message_stats", {}).get(name) for name in names}


def test_a_queue_counts_what_came_and_what_went(api, channel, queue):
    channel.confirm_delivery()
    for _ in range(10):
        channel.basic_publish("", queue, b"hello")
    channel.basic_get(queue, auto_ack=True)
    tag = channel.basic_get(queue)[0].delivery_tag
    channel.basic_nack(tag)
    tag = channel.basic_get(queue)[0].delivery_tag
    channel.basic_ack(tag)
    channel.queue_purge(queue)
    channel.basic_get(queue)
    wanted = {"publish": 10, "deliver": 0, "deliver_no_ack": 0, "get": 2, "get_no_ack": 1, "get_empty": 1, "ack": 1, "redeliver": 1, "deliver_get": 3}
    assert until(lambda: counts(api.get(f"/queues/%2F/{queue}").json, *wanted), lambda found: found == wanted) == wanted


@pytest.mark.leveret_only("RabbitMQ does not count what leaves a queue other than to consumers")
def test_what_a_full_queue_drops_has_a_count_and_a_rate(api, channel, name):
    channel.queue_declare(name, exclusive=True, arguments={"x-max-length": 10})
    for _ in range(50):
        channel.basic_publish("", name, b"hello")
    found = until(lambda: api.get(f"/queues/%2F/{name}").json.get("message_stats", {}), lambda stats: stats.get("dropped_maxlen") == 40)
    assert found["dropped"] == 40 and "dead_lettered" not in found and "dropped_expired" not in found
    rate = lambda: api.get(f"/queues/%2F/{name}").json["message_stats"]["dropped_maxlen_details"]["rate"]
    assert until(rate, patience=20) == 8.0
    row = api.get("/queues/%2F?sort=message_stats.dropped_details.rate&sort_reverse=true").json[0]
    assert row["name"] == name
    stats = api.get("/overview").json["message_stats"]
    assert stats["dropped_maxlen"] >= 40 and stats["dropped_details"]["rate"] >= 8.0
    pages = page("/metrics/per-object")
    assert value(pages, "leveret_queue_messages_lost_total", queue=name, reason="dropped_maxlen") == 40
    assert value(pages, "rabbitmq_global_messages_dead_lettered_maxlen_total", dead_letter_strategy="disabled") >= 40


@pytest.mark.leveret_only("RabbitMQ does not count what leaves a queue other than to consumers")
def test_what_a_consumer_rejects_is_counted_by_where_it_went(api, channel, name):
    for queue, arguments in ((name, {}), (f"{name}.kept", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "nowhere"})):
        channel.queue_declare(queue, exclusive=True, arguments=arguments)
        channel.basic_publish("", queue, b"hello")
        channel.basic_reject(channel.basic_get(queue)[0].delivery_tag, requeue=False)
    look = lambda queue: api.get(f"/queues/%2F/{queue}").json.get("message_stats", {})
    assert until(lambda: look(name), lambda stats: "dropped" in stats)["dropped_rejected"] == 1
    assert until(lambda: look(f"{name}.kept"), lambda stats: "dead_lettered" in stats)["dead_lettered_rejected"] == 1


def test_a_queue_that_was_never_used_has_no_message_stats(api, queue):
    assert "message_stats" not in api.get(f"/queues/%2F/{queue}").json


def test_consumers_count_by_whether_they_acknowledge(api, connection, channel, queue):
    got = []
    channel.basic_consume(queue, lambda *_: got.append(1), auto_ack=True, consumer_tag="quick")
    for _ in range(4):
        channel.basic_publish("", queue, b"hello")
    while len(got) < 4:
        connection.process_data_events(1)
    channel.basic_cancel("quick")
    channel.basic_consume(queue, lambda c, method, _p, _b: (c.basic_ack(method.delivery_tag), got.append(1)))
    channel.basic_publish("", queue, b"hello")
    while len(got) < 5:
        connection.process_data_events(1)
    connection.process_data_events(0)
    wanted = {"publish": 5, "deliver": 1, "deliver_no_ack": 4, "ack": 1, "redeliver": 0, "deliver_get": 5}
    assert until(lambda: counts(api.get(f"/queues/%2F/{queue}").json, *wanted), lambda found: found == wanted) == wanted


def test_exchanges_count_what_came_in_and_how_many_queues_took_it(api, channel, name):
    channel.exchange_declare(name, "fanout", auto_delete=True)
    queues = [channel.queue_declare("", exclusive=True).method.queue for _ in range(2)]
    try:
        assert "message_stats" not in api.get(f"/exchanges/%2F/{name}").json
        for each in queues:
            channel.queue_bind(each, name)
        channel.confirm_delivery()
        for _ in range(3):
            channel.basic_publish(name, "k", b"hello")
            channel.basic_publish("", queues[0], b"hello")
        wanted = {"publish_in": 3, "publish_out": 6}
        assert until(lambda: counts(api.get(f"/exchanges/%2F/{name}").json, *wanted), lambda found: found == wanted) == wanted
        listed = [row for row in api.get("/exchanges/%2F").json if row["name"] == name]
        assert counts(listed[0], *wanted) == wanted
    finally:
        channel.exchange_delete(name)


@pytest.mark.leveret_only("RabbitMQ's figures come late and in parts")
def test_rates_are_those_of_the_last_five_seconds_and_fall_to_zero(api, channel, queue):
    for _ in range(50):
        channel.basic_publish("", queue, b"hello")
    row = until(lambda: api.get(f"/queues/%2F/{queue}").json, lambda row: row.get("message_stats", {}).get("publish_details", {}).get("rate", 0) > 0)
    assert 0 < row["message_stats"]["publish_details"]["rate"] <= 50
    assert row["messages_details"]["rate"] > 0
    row = until(lambda: api.get(f"/queues/%2F/{queue}").json, lambda row: row["message_stats"]["publish_details"]["rate"] == 0)
    assert row["message_stats"]["publish_details"]["rate"] == 0 and row["messages_details"]["rate"] == 0


@pytest.mark.leveret_only("RabbitMQ's figures come late and in parts")
def test_samples_come_when_they_are_asked_for(api, channel, queue):
    for _ in range(20):
        channel.basic_publish("", queue, b"hello")
    path = f"/queues/%2F/{queue}?lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=10"
    # Until its first sample a queue counts as one at rest, which has been what it is.
    row = until(lambda: api.get(path).json, lambda row: {sample["sample"] for sample in row["messages_details"].get("samples", [])} == {0, 20})
    lengths, publishes = row["messages_ready_details"], row["message_stats"]["publish_details"]
    assert set(lengths) == set(publishes) == {"rate", "avg_rate", "avg", "samples"}
    assert len(lengths["samples"]) == 13 and len(publishes["samples"]) == 7
    stamps = [sample["timestamp"] for sample in lengths["samples"]]
    assert {a - b for a, b in zip(stamps, stamps[1:])} == {5000}
    assert abs(stamps[0] / 1000 - time.time()) < 15
    samples = [sample["sample"] for sample in lengths["samples"]]
    assert samples[0] == 20 and samples[-1] == 0
    assert lengths["avg"] == pytest.approx(sum(samples) / 13) and lengths["avg_rate"] == pytest.approx(20 / 60)


@pytest.mark.leveret_only("RabbitMQ's figures come late and in parts")
def test_totals_survive_who_made_them(api, name):
    before = api.get("/overview").json
    published = before["message_stats"].get("publish", 0)
    published_here = api.get("/vhosts/%2F").json.get("message_stats", {}).get("publish", 0)
    opened = connect()
    channel = opened.channel()
    channel.queue_declare(name, durable=True)
    for _ in range(7):
        channel.basic_publish("", name, b"hello")
    channel.queue_delete(name)
    opened.close()
    after = until(lambda: api.get("/overview").json, lambda row: row["message_stats"].get("publish", 0) >= published + 7)
    assert after["message_stats"]["publish"] == published + 7
    churn = lambda row: [row["churn_rates"][key] for key in ("connection_created", "connection_closed", "channel_created", "channel_closed", "queue_declared", "queue_created", "queue_deleted")]
    gained = until(lambda: [b - a for a, b in zip(churn(before), churn(api.get("/overview").json))], lambda gained: all(count >= 1 for count in gained))
    assert gained == [1] * 7
    vhost = until(lambda: api.get("/vhosts/%2F").json, lambda row: row.get("message_stats", {}).get("publish", 0) >= published_here + 7)
    assert vhost["message_stats"]["publish"] == published_here + 7
    assert vhost["recv_oct"] > 0 and vhost["send_oct"] > 0
    bytes_of = api.get("/vhosts/%2F?data_rates_age=60&data_rates_incr=5").json["recv_oct_details"]
    assert len(bytes_of["samples"]) == 13


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("ack_requeue_true", {"get": 2, "get_no_ack": 0, "get_empty": 1, "redeliver": 0, "ack": 0}),
        ("ack_requeue_false", {"get": 0, "get_no_ack": 2, "get_empty": 1, "redeliver": 0, "ack": 0}),
        ("reject_requeue_false", {"get": 2, "get_no_ack": 0, "get_empty": 1, "redeliver": 0, "ack": 0}),
    ],
)
def test_what_the_api_gets_counts_for_the_virtual_host(api, name, mode, wanted):
    api.put(f"/vhosts/{name}", {})
    try:
        api.put(f"/queues/{name}/q", {})
        for _ in range(2):
            api.post(f"/exchanges/{name}/amq.default/publish", {"properties": {}, "routing_key": "q", "payload": "x", "payload_encoding": "string"})
        got = api.post(f"/queues/{name}/q/get", {"count": 5, "ackmode": mode, "encoding": "auto"}).json
        assert [message["payload"] for message in got] == ["x", "x"]
        look = lambda: counts(api.get(f"/vhosts/{name}").json, *wanted)
        assert until(look, lambda found: found == wanted) == wanted
        left = until(lambda: api.get(f"/queues/{name}/q").json.get("messages"), lambda found: found == (2 if mode == "ack_requeue_true" else 0))
        assert left == (2 if mode == "ack_requeue_true" else 0)
    finally:
        api.delete(f"/vhosts/{name}")


@pytest.mark.leveret_only("RabbitMQ's figures come late and in parts")
def test_nodes_have_samples_of_what_they_use_and_of_what_came_and_went(api, channel):
    path = "/nodes?node_stats_age=60&node_stats_incr=5"
    channel.queue_declare("", exclusive=True)
    node, = until(lambda: api.get(path).json, lambda rows: rows[0]["queue_created_details"]["samples"][0]["sample"] > 0)
    for name in ("mem_used", "disk_free", "fd_used", "sockets_used", "proc_used", "connection_created", "connection_closed",
                 "channel_created", "channel_closed", "queue_declared", "queue_created", "queue_deleted"):
        assert len(node[f"{name}_details"]["samples"]) == 13 and isinstance(node[name], int), name
    assert node["mem_used_details"]["samples"][0]["sample"] > 1_000_000
    node, = api.get("/nodes").json
    assert set(node["fd_used_details"]) == {"rate"}


@pytest.mark.leveret_only("RabbitMQ's figures come late and in parts")
def test_a_reset_ends_rates_and_keeps_counts(api, channel, queue):
    channel.confirm_delivery()
    for _ in range(20):
        channel.basic_publish("", queue, b"hello")
    path = f"/queues/%2F/{queue}?msg_rates_age=60&msg_rates_incr=5"
    publishes = lambda: api.get(path).json["message_stats"]["publish_details"]
    assert until(publishes, lambda found: found["avg_rate"] > 0)["samples"][-1]["sample"] == 0
    assert api.delete("/reset").status == 204
    assert {sample["sample"] for sample in publishes()["samples"]} == {20} and publishes()["avg_rate"] == 0
    assert api.get(path).json["message_stats"]["publish"] == 20
