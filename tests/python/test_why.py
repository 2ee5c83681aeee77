"""Why a queue or a connection is slow, how long messages take, and how old the oldest one is."""


import pika
import pytest

from api import Api, q
from test_metrics import page, value
from waiting import until

pytestmark = pytest.mark.leveret_only("RabbitMQ has no such answers")


def why(api, queue):
    answer = api.get(f"/leveret/why/queues/%2F/{queue}")
    assert answer.status == 200, answer
    return answer.json


def test_an_empty_queue_is_held_by_nothing(api, queue):
    found = why(api, queue)
    assert (found["held_by"], found["holds"]) == ("nothing", [])
    assert found["figures"]["messages_ready"] == 0 and found["figures"]["oldest_message_age_ms"] is None


def test_messages_without_consumers_wait_for_some(api, channel, queue):
    channel.basic_publish("", queue, b"hello")
    found = until(lambda: why(api, queue), lambda found: found["figures"]["messages_ready"] == 1)
    assert found["held_by"] == "no_consumers"
    assert found["holds"][0]["who"] == "deliveries" and "there are no consumers" in found["holds"][0]["because"]


def test_a_full_prefetch_waits_for_acknowledgements(api, connection, channel, queue):
    channel.basic_qos(prefetch_count=2)
    got = []
    channel.basic_consume(queue, lambda _c, method, _p, _b: got.append(method.delivery_tag))
    for _ in range(5):
        channel.basic_publish("", queue, b"hello")
    while len(got) < 2:
        connection.process_data_events(1)
    found = until(lambda: why(api, queue), lambda found: found["held_by"] == "consumer_acks")
    assert found["held_by"] == "consumer_acks" and found["figures"]["prefetch"] == 2
    row = [row for row in api.get("/consumers").json if row["queue"]["name"] == queue][0]
    mine = row["channel_details"]["connection_name"]
    answer = api.get(f"/leveret/why/connections/{q(mine)}").json
    assert answer["held_by"] == "consumer_acks" and answer["figures"]["messages_unacknowledged"] == 2


def test_an_alarm_is_named_before_all_else(api, connection, channel, queue):
    channel.basic_publish("", queue, b"hello")
    until(lambda: why(api, queue), lambda found: found["figures"]["messages_ready"] == 1)
    mine = [row["name"] for row in api.get("/connections").json if row["channels"] > 0]
    limit = api.get("/nodes").json[0]["mem_limit"]
    assert api.put("/leveret/limits", {"memory_high_watermark": {"absolute": 1}}).status == 204
    try:
        found = until(lambda: why(api, queue), lambda found: found["held_by"] == "memory_alarm")
        assert [(hold["who"], hold["resource"]) for hold in found["holds"]] == [("publishers", "memory_alarm"), ("deliveries", "no_consumers")]
        for name in mine:
            assert api.get(f"/leveret/why/connections/{q(name)}").json["held_by"] == "memory_alarm"
    finally:
        assert api.put("/leveret/limits", {"memory_high_watermark": {"absolute": limit}}).status == 204
    found = until(lambda: why(api, queue), lambda found: found["held_by"] != "memory_alarm")
    assert found["held_by"] == "no_consumers"


def test_a_full_queue_says_that_it_drops_the_oldest(api, channel, name):
    channel.queue_declare(name, durable=True, exclusive=True, arguments={"x-max-length": 2})
    for _ in range(3):
        channel.basic_publish("", name, b"hello")
    found = until(lambda: why(api, name), lambda found: found["figures"]["messages_ready"] == 2)
    assert [(hold["who"], hold["resource"]) for hold in found["holds"]] == [("messages", "max_length"), ("deliveries", "no_consumers")]
    assert "max-length is 2" in found["holds"][0]["because"] and "dropped" in found["holds"][0]["because"]


def test_the_oldest_message_has_an_age(api, channel, queue):
    channel.basic_publish("", queue, b"hello", pika.BasicProperties(timestamp=1_700_000_000))
    head = lambda: api.get(f"/queues/%2F/{queue}").json["head_message_timestamp"]
    assert until(head, lambda found: found is not None) == 1700000000
    assert value(page("/metrics/per-object"), "rabbitmq_queue_head_message_timestamp", queue=queue) == 1700000000
    age = lambda: api.get(f"/queues/%2F/{queue}").json["oldest_message_age_ms"]
    first = until(age, lambda found: found is not None)
    later = until(age, lambda found: found >= first + 200)
    assert first + 200 <= later < 60_000
    seconds = value(page("/metrics/per-object"), "leveret_queue_oldest_message_age_seconds", queue=queue)
    assert 0.2 <= seconds < 60
    channel.queue_purge(queue)
    assert until(age, lambda found: found is None) is None


def test_latencies_are_sampled_from_publish_to_acknowledgement(api, connection, channel, queue):
    channel.confirm_delivery()
    channel.basic_consume(queue, lambda c, method, _p, _b: c.basic_ack(method.delivery_tag))
    for _ in range(40):
        channel.basic_publish("", queue, b"hello", properties=None)
        connection.process_data_events(0)
    found = until(lambda: why(api, queue)["figures"], lambda found: (found["deliver_to_ack"] or {}).get("samples", 0) >= 2)
    for name in ("publish_to_deliver", "deliver_to_ack", "publish_to_confirm"):
        times = found[name]
        assert times["samples"] >= 2 and times["timestamp"] > 1_700_000_000_000 and 0 < times["p50_ms"] <= times["p99_ms"] <= times["max_ms"] < 60_000, (name, times)
    shown = api.get("/leveret/times").json
    assert shown["now"] - shown["window_ms"] <= shown["publish_to_deliver"][-1]["timestamp"] <= shown["now"]
    assert api.get(f"/queues/%2F/{queue}").json["latency"]["publish_to_deliver"]["timestamp"] <= shown["now"] + 5_000
    samples = page("/metrics/per-object")
    assert value(samples, "leveret_queue_deliver_latency_seconds_bucket", queue=queue, le="+Inf") == value(samples, "leveret_queue_deliver_latency_seconds_count", queue=queue) > 0
    assert value(samples, "leveret_queue_ack_latency_seconds_count", queue=queue) >= 2


def test_a_queue_that_waits_is_not_hidden_by_quick_ones(api, connection, channel, queue):
    """Its consumer has a message and takes no other; meanwhile another queue is quick."""
    other = connection.channel()
    other.basic_qos(prefetch_count=1)
    other.basic_consume(queue, lambda *_: None)
    for _ in range(3):
        channel.basic_publish("", queue, b"late")
    quick = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_consume(quick, lambda *_: None, auto_ack=True)

    def late():
        for _ in range(50):
            channel.basic_publish("", quick, b"quick")
            connection.process_data_events(0)
        found = api.get("/leveret/times").json["publish_to_deliver"]
        return [sample for sample in found if sample["max_ms"] >= 1_000]

    until(late, patience=20)


def test_the_log_and_the_catalog_tell_how_long_they_take(channel, queue):
    channel.confirm_delivery()
    import pika

    channel.basic_publish("", queue, b"kept", properties=pika.BasicProperties(delivery_mode=2))
    # The first sync may be the one of the queue's declaration, and the page be made between a sync and its sums.
    samples = until(page, lambda samples: value(samples, "leveret_log_confirms_per_sync_count") >= 1)
    # A histogram, so that rate() and histogram_quantile() tell of the last minutes: no sync takes minutes, and none a few microseconds.
    bounds = [value(samples, "leveret_log_sync_seconds_bucket", le=bound) for bound in ("0.000016", "0.001024", "1.048576", "67.108864", "+Inf")]
    assert bounds == sorted(bounds) and bounds[-2] == bounds[-1] > 0
    assert value(samples, "leveret_catalog_change_seconds_count", change="declare") >= 1
    assert value(samples, "leveret_connections_held_seconds", reason="sync") >= 0


def test_only_who_may_see_a_queue_is_told_why(api, queue, name):
    user = f"{name}.manager"
    assert api.put(f"/users/{q(user)}", {"password": "p", "tags": "management"}).status == 201
    try:
        assert Api(user, "p").get(f"/leveret/why/queues/%2F/{queue}").status == 404
        assert api.get("/leveret/why/queues/%2F/py.no.such").status == 404
        assert api.get("/leveret/why/connections/zork").status == 404
    finally:
        api.delete(f"/users/{q(user)}")
