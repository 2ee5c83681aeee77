"""The HTTP API's connections, channels and consumers."""

import time

import pika
import pytest

from api import Api, q
from conftest import connect
from waiting import until


@pytest.fixture
def named(name):
    """A connection whose application gave it a name."""
    opened = connect(client_properties={"connection_name": name})
    yield opened
    if opened.is_open:
        opened.close()


def row_of(api, name):
    return until(lambda: [row for row in api.get("/connections").json if row.get("user_provided_name") == name])[0]


def test_a_connection_shows_both_ends_its_user_and_what_was_agreed(api, named, name):
    row = row_of(api, name)
    assert row["name"] == f"{row['peer_host']}:{row['peer_port']} -> {row['host']}:{row['port']}"
    wanted = {"type": "network", "protocol": "AMQP 0-9-1", "state": "running", "user": "guest", "vhost": "/", "auth_mechanism": "PLAIN", "channel_max": 2047, "frame_max": 131072, "timeout": 60, "ssl": False, "ssl_protocol": None, "peer_cert_subject": None}
    assert {key: row[key] for key in wanted} == wanted
    assert row["client_properties"]["connection_name"] == name
    assert row["client_properties"]["capabilities"]["basic.nack"] is True
    assert abs(row["connected_at"] / 1000 - time.time()) < 60
    assert row["recv_oct"] > 200 and row["send_oct"] > 200 and row["recv_cnt"] > 2
    one = api.get(f"/connections/{q(row['name'])}").json
    assert set(one) == set(row) and one["ssl_protocol"] == ""


def test_connections_are_listed_by_virtual_host_by_user_and_by_page(api, named, name):
    names = lambda answer: [row["name"] for row in answer.json]
    mine = row_of(api, name)["name"]
    assert mine in names(api.get("/vhosts/%2F/connections"))
    assert mine in names(api.get("/connections/username/guest"))
    assert names(api.get("/connections/username/nobody.of.this.name")) == []
    page = api.get(f"/connections?page=1&page_size=5&name={q(mine)}&columns=name,channels").json
    assert page["items"] == [{"name": mine, "channels": 0}]
    assert api.get("/vhosts/no.such.vhost/connections").status == 404
    assert api.get("/connections/zork").json == {"error": "Object Not Found", "reason": "Not Found"}


def test_a_closed_connection_tells_its_client_why_and_is_gone(api, named, name):
    row = row_of(api, name)
    assert api.delete(f"/connections/{q(row['name'])}", headers={"X-Reason": "too loud"}).status == 204
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        named.process_data_events(time_limit=10)
    assert (closed.value.reply_code, closed.value.reply_text) == (320, "CONNECTION_FORCED - too loud")
    assert until(lambda: api.get(f"/connections/{q(row['name'])}").status, lambda status: status == 404) == 404


def test_without_a_reason_there_is_rabbitmqs(api, named, name):
    api.delete(f"/connections/{q(row_of(api, name)['name'])}")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        named.process_data_events(time_limit=10)
    assert closed.value.reply_text == "CONNECTION_FORCED - Closed via management plugin"


def test_who_does_not_watch_the_node_sees_and_closes_its_own_connections_only(api, named, name):
    mine = row_of(api, name)["name"]
    for tags in ("management", "monitoring"):
        user = f"{name}.{tags}"
        assert api.put(f"/users/{q(user)}", {"password": "p", "tags": tags}).status == 201
    try:
        manager, monitor = Api(f"{name}.management", "p"), Api(f"{name}.monitoring", "p")
        assert manager.get("/connections").json == []
        assert manager.get("/channels").json == []
        assert mine in [row["name"] for row in monitor.get("/connections").json]
        for asker in (manager, monitor):
            answer = asker.delete(f"/connections/{q(mine)}")
            assert (answer.status, answer.json["reason"]) == (401, "User not authorised to access object")
    finally:
        for tags in ("management", "monitoring"):
            api.delete(f"/users/{q(f'{name}.{tags}')}")


def channel_row(api, named, name, number, wanted=bool):
    path = f"/channels/{q(row_of(api, name)['name'] + f' ({number})')}"
    return until(lambda: api.get(path).json, lambda row: "name" in row and wanted(row))


@pytest.mark.leveret_only("RabbitMQ's figures come late and in parts")
def test_a_channel_counts_what_it_published_and_what_became_of_it(api, named, name, queue):
    channel = named.channel()
    channel.confirm_delivery()
    for _ in range(3):
        channel.basic_publish("", queue, b"hello")
    channel.basic_publish("", "py.no.such.queue", b"lost")
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("", "py.no.such.queue", b"back", mandatory=True)
    row = channel_row(api, named, name, 1, lambda row: row.get("message_stats", {}).get("confirm") == 5)
    stats = row["message_stats"]
    counts = {key: stats[key] for key in ("publish", "confirm", "return_unroutable", "drop_unroutable")}
    assert counts == {"publish": 5, "confirm": 5, "return_unroutable": 1, "drop_unroutable": 1}
    wanted = {"number": 1, "confirm": True, "transactional": False, "messages_unconfirmed": 0, "messages_unacknowledged": 0, "consumer_count": 0, "state": "running", "user": "guest", "vhost": "/"}
    assert {key: row[key] for key in wanted} == wanted
    assert row["consumer_details"] == [] and row["connection_details"]["name"] == row["name"].removesuffix(" (1)")


@pytest.mark.leveret_only("RabbitMQ's figures come late and in parts")
def test_a_channel_counts_what_it_was_given_and_gave_back(api, named, name, queue):
    channel = named.channel()
    for _ in range(12):
        channel.basic_publish("", queue, b"hello")
    channel.basic_get(queue, auto_ack=True)
    channel.basic_get(queue)
    channel.basic_qos(prefetch_count=5)
    tags = []
    channel.basic_consume(queue, lambda _c, method, _p, _b: tags.append(method.delivery_tag), consumer_tag="one")
    while len(tags) < 5:
        named.process_data_events(1)
    channel.basic_ack(tags[0])
    channel.basic_reject(tags[1])
    while len(tags) < 7:
        named.process_data_events(1)
    row = channel_row(api, named, name, 1, lambda row: row.get("message_stats", {}).get("deliver") == 7)
    stats = row["message_stats"]
    counts = {key: stats[key] for key in ("deliver", "get", "get_no_ack", "get_empty", "ack", "deliver_get")}
    assert counts == {"deliver": 7, "get": 1, "get_no_ack": 1, "get_empty": 0, "ack": 1, "deliver_get": 9}
    assert stats["redeliver"] == 1
    assert (row["messages_unacknowledged"], row["prefetch_count"], row["consumer_count"]) == (6, 5, 1)
    assert [consumer["consumer_tag"] for consumer in row["consumer_details"]] == ["one"]
    listed = api.get(f"/connections/{q(row['connection_details']['name'])}/channels").json
    assert [row["number"] for row in listed] == [1]
    channel.close()
    assert until(lambda: api.get(f"/channels/{q(row['name'])}").status, lambda status: status == 404) == 404


def test_a_transactional_channel_shows_what_is_not_committed(api, named, name, queue):
    channel = named.channel()
    channel.tx_select()
    for _ in range(2):
        channel.basic_publish("", queue, b"one day")
    row = channel_row(api, named, name, 1, lambda row: row["messages_uncommitted"] == 2)
    assert (row["transactional"], row["messages_uncommitted"]) == (True, 2)
    channel.tx_commit()
    row = channel_row(api, named, name, 1, lambda row: row["messages_uncommitted"] == 0)
    assert row["messages_uncommitted"] == 0


@pytest.mark.leveret_only("RabbitMQ's figures come late and in parts")
def test_consumers_are_listed_with_their_queue_and_channel(api, named, name, queue):
    channel = named.channel()
    channel.basic_qos(prefetch_count=7)
    channel.basic_consume(queue, lambda *_: None, consumer_tag=f"{name}.c", arguments={"x-priority": 3})
    mine = lambda rows: [row for row in rows if row["consumer_tag"] == f"{name}.c"]
    [row] = until(lambda: mine(api.get("/consumers").json))
    wanted = {"queue": {"name": queue, "vhost": "/"}, "ack_required": True, "exclusive": False, "prefetch_count": 7, "active": True, "activity_status": "up", "arguments": {"x-priority": 3}}
    assert {key: row[key] for key in wanted} == wanted
    connection = row_of(api, name)
    assert row["channel_details"] == {"connection_name": connection["name"], "name": f"{connection['name']} (1)", "node": connection["node"], "number": 1, "peer_host": connection["peer_host"], "peer_port": connection["peer_port"], "user": "guest", "user_provided_name": name}
    assert mine(api.get("/consumers/%2F").json) == [row]
    assert until(lambda: mine(api.get(f"/queues/%2F/{queue}").json["consumer_details"])) == [row]
    channel.basic_cancel(f"{name}.c")
    assert until(lambda: mine(api.get("/consumers").json), lambda rows: not rows) == []
    assert api.get(f"/queues/%2F/{queue}").json["consumer_details"] == []


@pytest.mark.leveret_only("RabbitMQ's figures come late and in parts")
def test_a_queue_names_its_exclusive_and_its_single_active_consumer(api, named, name):
    channel = named.channel()
    for suffix, arguments in (("alone", None), ("single", {"x-single-active-consumer": True})):
        channel.queue_declare(f"{name}.{suffix}", durable=True, arguments=arguments)
    try:
        channel.basic_consume(f"{name}.alone", lambda *_: None, consumer_tag="alone", exclusive=True)
        for tag in ("first", "second"):
            channel.basic_consume(f"{name}.single", lambda *_: None, consumer_tag=tag)
        alone = until(lambda: api.get(f"/queues/%2F/{name}.alone").json, lambda row: row["exclusive_consumer_tag"])
        assert alone["exclusive_consumer_tag"] == "alone"
        single = lambda: api.get(f"/queues/%2F/{name}.single").json
        row = until(single, lambda row: len(row["consumer_details"]) == 2 and row["single_active_consumer_tag"])
        assert row["single_active_consumer_tag"] == "first"
        active = {each["consumer_tag"]: (each["active"], each["activity_status"]) for each in row["consumer_details"]}
        assert active == {"first": (True, "single_active"), "second": (False, "waiting")}
        channel.basic_cancel("first")
        assert until(single, lambda row: row["single_active_consumer_tag"] == "second")["single_active_consumer_tag"] == "second"
    finally:
        for suffix in ("alone", "single"):
            channel.queue_delete(f"{name}.{suffix}")


def test_the_overview_counts_connections_channels_and_consumers(api, named, name, queue):
    channel = named.channel()
    channel.basic_consume(queue, lambda *_: None)
    totals = until(lambda: api.get("/overview").json["object_totals"], lambda totals: totals["consumers"] >= 1 and totals["channels"] >= 1)
    assert totals["connections"] >= 1 and totals["channels"] >= 1 and totals["consumers"] >= 1
