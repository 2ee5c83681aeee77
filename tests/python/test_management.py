"""The HTTP API's frame: who may come in, what wrong requests get, and the lists."""

import pika
import pytest

from api import Api, q
from waiting import until

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}
TAGS = ["management", "policymaker", "monitoring", "administrator"]


@pytest.fixture
def user(api, name):
    """Makes users by their tags; each is called NAME.TAG and has the password `p`."""
    made = []

    def make(tags):
        made.append(f"{name}.{tags}")
        assert api.put(f"/users/{q(made[-1])}", {"password": "p", "tags": tags}).status == 201
        return Api(made[-1], "p")

    yield make
    for one in made:
        assert api.delete(f"/users/{q(one)}").status == 204


def test_without_credentials_a_browser_is_asked_for_some():
    answer = Api(None).get("/whoami")
    assert (answer.status, answer.text) == (401, "")
    assert answer.headers["www-authenticate"] == 'Basic realm="RabbitMQ Management"'


def test_wrong_credentials_are_refused():
    answer = Api("guest", "wrong").get("/whoami")
    assert (answer.status, answer.json) == (401, {"error": "not_authorized", "reason": "Not_Authorized"})


def test_a_user_without_a_tag_of_management_stays_outside(user):
    answer = user("").get("/whoami")
    assert (answer.status, answer.json) == (401, {"error": "not_authorised", "reason": "Not management user"})


def test_whoami(user):
    assert Api().get("/whoami").json == {"name": "guest", "tags": ["administrator"], "is_internal_user": True}
    assert user("monitoring").get("/whoami").json["tags"] == ["monitoring"]


def test_unknown_paths_and_verbs(api):
    for path in ["/zork", "/whoami/x", "/queues/nope/x", "/users/nope.user", "/permissions/%2F/nope.user", "/nodes/zork", "/queues/no.such"]:
        answer = api.get(path)
        assert (answer.status, answer.json) == (404, NOT_FOUND), path
    answer = api.post("/whoami")
    assert (answer.status, answer.text) == (405, "")
    assert answer.headers["allow"] == "HEAD, GET, OPTIONS"
    answer = api("OPTIONS", "/api/queues")
    assert (answer.status, answer.text) == (200, "")
    assert api("HEAD", "/api/whoami").status == 200


def test_bodies_that_are_no_json_object(api, vhost):
    for body in [b"{bad", b"[]", b"3"]:
        answer = api.put(f"/vhosts/{q(vhost)}", body)
        assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": "not_json"}), body


def test_a_body_beyond_the_limit_is_refused(api):
    try:
        answer = api.put("/users/nope.user", b" " * 21_000_000)
    except OSError:
        return  # The broker need not read all of it before it answers and closes.
    assert answer.status in (400, 413)


def test_rights_follow_from_tags(user):
    table = {
        "/overview": [200, 200, 200, 200],
        "/vhosts": [200, 200, 200, 200],
        "/vhosts/%2F": [401, 401, 401, 200],
        "/nodes": [401, 401, 200, 200],
        "/users": [401, 401, 401, 200],
        "/permissions": [401, 401, 401, 200],
        "/policies": [200, 200, 200, 200],
        "/parameters": [401, 200, 401, 200],
        "/exchanges": [200, 200, 200, 200],
        "/exchanges/%2F": [404, 404, 404, 200],
        "/exchanges/%2F/amq.direct": [404, 404, 404, 200],
        "/queues": [200, 200, 200, 200],
        "/queues/%2F": [404, 404, 404, 200],
        "/bindings/%2F": [404, 404, 404, 200],
        "/health/checks/alarms": [200, 200, 200, 200],
    }
    clients = [user(tag) for tag in TAGS]
    for path, expected in table.items():
        assert [client.get(path).status for client in clients] == expected, path


def test_who_has_no_virtual_host_sees_nothing_of_them(user, vhost, api):
    client = user("management")
    assert client.get("/exchanges").json == []
    assert client.get("/vhosts").json == []
    who = client.get("/whoami").json["name"]
    assert api.put(f"/permissions/{q(vhost)}/{q(who)}", {"configure": "", "write": "", "read": ""}).status == 201
    assert [one["name"] for one in client.get("/vhosts").json] == [vhost]
    assert {one["vhost"] for one in client.get("/exchanges").json} == {vhost}
    hidden = client.get("/exchanges/%2F")
    assert (hidden.status, hidden.json) == (404, {"error": "not_found", "reason": "Not Found"})


def test_virtual_hosts_are_made_and_deleted(api, name):
    path = f"/vhosts/{q(name)}"
    assert [api.put(path).status, api.put(path).status] == [201, 204]
    found = api.get(path).json
    assert (found["name"], found["default_queue_type"], found["tracing"], found["tags"]) == (name, "classic", False, [])
    assert api.get(f"{path}/permissions").json == [{"vhost": name, "user": "guest", "configure": ".*", "write": ".*", "read": ".*"}]
    assert [api.delete(path).status, api.delete(path).status] == [204, 404]


def test_users_and_their_passwords(api, name):
    path = f"/users/{q(name)}"
    assert api.put(path, {"password": "a"}).json == {"error": "bad_request", "reason": "tags_not_present"}
    assert api.put(path, {"tags": "management"}).status == 201
    assert Api(name, "").get("/whoami").status == 401
    assert api.put(path, {"password": "a", "tags": ["management", "x"]}).status == 204
    assert Api(name, "a").get("/whoami").json["tags"] == ["management", "x"]
    # The example of RabbitMQ's documentation: the password is test12.
    known = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
    assert api.put(path, {"password_hash": known, "tags": "management, y"}).status == 204
    assert Api(name, "test12").get("/whoami").json["tags"] == ["management", "y"]
    assert api.get(path).json == {"name": name, "password_hash": known, "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ["management", "y"], "limits": {}}
    assert api.put(path, {"password_hash": "z", "tags": ""}).json == {"error": "bad_request", "reason": ["not_base64", "z"]}
    assert name in [one["name"] for one in api.get("/users/without-permissions").json]
    assert [api.delete(path).status, api.delete(path).status] == [204, 404]
    assert len(api.get("/auth/hash_password/secret").json["ok"]) == 48


def test_users_are_deleted_in_bulk(api, name):
    for suffix in "ab":
        assert api.put(f"/users/{name}.{suffix}", {"tags": ""}).status == 201
    assert api.post("/users/bulk-delete", {"users": [f"{name}.a", f"{name}.b"]}).status == 204
    assert not [one for one in api.get("/users").json if one["name"].startswith(name)]


def test_permissions(api, vhost):
    path = f"/permissions/{q(vhost)}/guest"
    assert api.put(path, {"configure": "a", "write": "b", "read": "c"}).status == 204
    assert api.get(path).json == {"user": "guest", "vhost": vhost, "configure": "a", "write": "b", "read": "c"}
    assert api.get(path).json in api.get("/users/guest/permissions").json
    assert api.put(path, {"configure": ""}).json["reason"] == "[{key_missing,write},{key_missing,read}]"
    assert api.put(path, {"configure": "(", "write": "", "read": ""}).status == 400
    for missing in [f"/permissions/{q(vhost)}/nope.user", "/permissions/nope.vhost/guest"]:
        answer = api.put(missing, {"configure": "", "write": "", "read": ""})
        assert (answer.status, answer.json["reason"]) == (400, "vhost_or_user_not_found")
    assert [api.delete(path).status, api.delete(path).status] == [204, 404]


def test_the_overview_and_the_node(api):
    overview = api.get("/overview").json
    assert {"rabbitmq_version", "product_name", "cluster_name", "node", "exchange_types", "listeners", "contexts", "rates_mode"} <= set(overview)
    assert {"messages", "messages_ready", "messages_unacknowledged", "messages_details"} <= set(overview["queue_totals"])
    assert set(overview["object_totals"]) >= {"exchanges", "queues", "consumers", "connections"}
    node, = api.get("/nodes").json
    assert node["name"] == overview["node"] and node["running"] and node["mem_used"] > 0 and node["disk_free"] > 0
    assert api.get(f"/nodes/{q(node['name'])}").json["os_pid"] == node["os_pid"]
    assert api.get("/overview?columns=node,object_totals.queues").json.keys() == {"node", "object_totals"}


def test_exchanges_are_listed(api):
    found = {one["name"]: one for one in api.get("/exchanges/%2F").json}
    assert found["amq.topic"]["type"] == "topic" and found["amq.topic"]["durable"]
    one = api.get("/exchanges/%2F/amq.default").json
    assert (one["name"], one["type"], one["incoming"], one["outgoing"]) == ("", "direct", [], [])


def test_queues_show_what_they_hold(api, channel, queue):
    channel.confirm_delivery()
    for _ in range(3):
        channel.basic_publish("", queue, b"four")
    channel.basic_get(queue)
    found = api.get(f"/queues/%2F/{queue}?disable_stats=true&enable_queue_totals=true").json
    assert (found["name"], found["vhost"], found["durable"], found["auto_delete"], found["exclusive"], found["type"]) == (queue, "/", True, False, False, "classic")
    listed, = [one for one in api.get("/queues?disable_stats=true&enable_queue_totals=true").json if one["name"] == queue]
    assert (listed["messages"], listed["messages_ready"], listed["messages_unacknowledged"]) == (3, 2, 1)


def test_queues_show_the_bytes_of_what_they_hold(api, channel, queue):
    channel.confirm_delivery()
    for body, mode in ((b"four", 2), (b"seven77", 1), (b"x" * 100, 2)):
        channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=mode))
    method, _, _ = channel.basic_get(queue)

    def shown(*names):
        # Two requests: what changes in between is in one of the answers only.
        def both():
            listed, = [one for one in api.get("/queues/%2F").json if one["name"] == queue]
            found = api.get(f"/queues/%2F/{queue}").json
            return [[row[name] for name in names] for row in (listed, found)]

        return until(both, lambda rows: rows[0] == rows[1])[0]

    bodies = ("message_bytes", "message_bytes_ready", "message_bytes_unacknowledged", "message_bytes_persistent", "message_bytes_ram")
    counts = ("messages", "messages_persistent", "messages_ram", "messages_ready_ram", "messages_unacknowledged_ram")
    until(lambda: shown(*bodies), lambda sums: sums == [111, 107, 4, 104, 111])
    assert shown(*counts) == [3, 2, 3, 2, 1]
    channel.basic_ack(method.delivery_tag)
    method, _, _ = channel.basic_get(queue)
    until(lambda: shown(*bodies), lambda sums: sums == [107, 100, 7, 100, 107])
    channel.basic_nack(method.delivery_tag)
    until(lambda: shown(*bodies), lambda sums: sums == [107, 107, 0, 100, 107])
    channel.queue_purge(queue)
    until(lambda: shown(*bodies, *counts), lambda sums: sums == [0] * 10)


def test_lists_are_paged_filtered_and_sorted(api, channel, name):
    queues = [f"{name}.{at}" for at in "cab"]
    for queue in queues:
        channel.queue_declare(queue, durable=True)
    listing = f"/queues?disable_stats=true&name={name}&columns=name"
    page = api.get(f"{listing}&page=1&page_size=2").json
    assert page["items"] == [{"name": f"{name}.a"}, {"name": f"{name}.b"}]
    assert (page["filtered_count"], page["item_count"], page["page"], page["page_count"], page["page_size"]) == (3, 2, 1, 2, 2)
    assert page["total_count"] >= 3
    page = api.get(f"{listing}&page=2&page_size=2&sort=name&sort_reverse=true").json
    assert page["items"] == [{"name": f"{name}.a"}]
    page = api.get(f"/queues?page=1&name={q(f'^{name}.[ab]$')}&use_regex=true&columns=name").json
    assert page["filtered_count"] == 2
    for wrong, error in [("page=0", "invalid_pagination_parameters"), ("page=x", "bad_request"), ("page=1&page_size=501", "invalid_pagination_parameters"), ("page=9999", "page_out_of_range")]:
        answer = api.get(f"/queues?{wrong}")
        assert (answer.status, answer.json["error"]) == (400, error), wrong
    for queue in queues:
        channel.queue_delete(queue)


def test_bindings_in_all_their_paths(api, channel, queue, name):
    source = f"{name}.x"
    channel.exchange_declare(source, "topic")
    channel.queue_bind(queue, source, "a/b~ c")
    channel.queue_bind(queue, source, "k", arguments={"x": 1, "y": "s"})
    channel.exchange_bind(source, "amq.fanout", "r")
    rows = api.get(f"/bindings/%2F/e/{source}/q/{queue}").json
    assert rows[0] == {"source": source, "vhost": "/", "destination": queue, "destination_type": "queue", "routing_key": "a/b~ c", "arguments": {}, "properties_key": "a%2Fb%7E+c"}
    assert rows[1]["arguments"] == {"x": 1, "y": "s"}
    for row in rows:
        assert api.get(f"/bindings/%2F/e/{source}/q/{queue}/{q(row['properties_key'])}").json == row
    assert api.get(f"/bindings/%2F/e/{source}/q/{queue}/zork").status == 404
    by_name = {"source": "", "vhost": "/", "destination": queue, "destination_type": "queue", "routing_key": queue, "arguments": {}, "properties_key": queue}
    assert api.get(f"/queues/%2F/{queue}/bindings").json == [by_name, *rows]
    assert by_name in api.get("/exchanges/%2F/amq.default/bindings/source").json
    assert api.get(f"/bindings/%2F/e/amq.default/q/{queue}").json == [by_name]
    assert api.get(f"/exchanges/%2F/{source}/bindings/source").json == rows
    to_exchange, = api.get(f"/exchanges/%2F/{source}/bindings/destination").json
    assert (to_exchange["destination_type"], to_exchange["routing_key"]) == ("exchange", "r")
    assert api.get(f"/bindings/%2F/e/amq.fanout/e/{source}/r").json == to_exchange
    for row in [*rows, by_name, to_exchange]:
        assert row in api.get("/bindings").json and row in api.get("/bindings/%2F").json
    channel.exchange_delete(source)


def test_health_checks(api):
    ok = {"status": "ok"}
    for check in ["alarms", "local-alarms", "virtual-hosts", "is-in-service", "ready-to-serve-clients", "below-node-connection-limit", "reached-target-cluster-size",
                  "metadata-store/initialized", "metadata-store/initialized/with-data", "quorum-queues-without-elected-leaders/all-vhosts", "certificate-expiration/1/weeks"]:
        answer = api.get(f"/health/checks/{check}")
        assert (answer.status, answer.json) == (200, ok), check
    assert api.get("/health/checks/node-is-quorum-critical").json == {"reason": "single node cluster", "status": "ok"}
    assert api.get("/aliveness-test/%2F").json == ok and api.get("/aliveness-test/nope").status == 404
    assert api.get("/healthchecks/node").json == ok
    assert api.get("/health/checks/protocol-listener/amqp").status == 200
    answer = api.get("/health/checks/protocol-listener/amqp,mqtt")
    assert (answer.status, answer.json["reason"], answer.json["missing"]) == (503, "No active listener", ["mqtt"])
    answer = api.get("/health/checks/port-listener/1")
    assert (answer.status, answer.json["status"], answer.json["missing"]) == (503, "failed", 1)
    open_port = answer.json["ports"][0]
    assert api.get(f"/health/checks/port-listener/{open_port}").json == {"port": open_port, "status": "ok"}
    assert api.get("/health/checks/port-listener/x").json == {"error": "bad_request", "reason": "Invalid port"}
    assert api.get("/health/checks/certificate-expiration/1/x").json["reason"] == "Time unit not recognised. Supported units: days, weeks, months, years."


def test_what_is_published_here_counts_for_the_virtual_host(api, vhost):
    assert api.put(f"/permissions/{q(vhost)}/guest", {"configure": ".*", "write": ".*", "read": ".*"}).status in (201, 204)
    assert api.put(f"/queues/{q(vhost)}/here", {}).status == 201
    for key in ("here", "nowhere"):
        sent = {"properties": {}, "routing_key": key, "payload": "text", "payload_encoding": "string"}
        assert api.post(f"/exchanges/{q(vhost)}/amq.default/publish", sent).json == {"routed": key == "here"}
    names = ("publish", "confirm", "return_unroutable")
    until(lambda: [api.get(f"/vhosts/{q(vhost)}").json.get("message_stats", {}).get(name) for name in names], lambda counts: counts == [2, 2, 1])


def test_logins_are_told_apart_by_source_once_somebody_wants_it(api, user):
    node = q(api.get("/overview").json["node"])
    mine = user("management")
    sources = f"/auth/attempts/{node}/source"

    def counted():
        return [(row["remote_address"], row["protocol"], row["auth_attempts"], row["auth_attempts_failed"]) for row in api.get(sources).json if row["username"].endswith(".management")]

    assert mine.get("/whoami").status == 200 and counted() == []
    assert api.put("/leveret/login-sources", {"tracked": True}).status == 204
    assert mine.get("/whoami").status == 200
    address, protocol, attempts, failed = counted()[-1]
    assert (protocol, attempts, failed) == ("http", 1, 0)
    assert api.put("/leveret/login-sources", {"tracked": False}).status == 204
    assert mine.get("/whoami").status == 200 and counted()[-1] == (address, protocol, 1, 0)
    assert api.delete(sources).status == 204 and counted() == []


@pytest.mark.leveret_only("RabbitMQ writes Erlang's terms")
def test_the_configuration_in_force_is_text(api):
    answer = api.get("/config/effective")
    assert answer.headers["content-type"] == "text/plain"
    assert "listeners.tcp" in answer.text and "\nheartbeat = " in answer.text


def test_a_node_says_what_its_memory_is_used_for_if_it_is_asked(api):
    node = api.get("/overview").json["node"]
    assert not {"memory", "binary"} & set(api.get(f"/nodes/{node}").json)
    asked = api.get(f"/nodes/{node}?memory=true&binary=true").json
    assert asked["memory"]["total"]["rss"] > 0 and "queue_procs" in asked["memory"] and "queue_procs" in asked["binary"]


def test_feature_flags_have_rabbitmqs_names(api):
    flags = {flag["name"]: flag["state"] for flag in api.get("/feature-flags").json}
    assert {flags[name] for name in ["rabbitmq_4.0.0", "rabbitmq_4.3.0", "khepri_db", "detailed_queues_endpoint"]} == {"enabled"}
    assert api.put("/feature-flags/khepri_db/enable", {}).status == 204
    refused = api.put("/feature-flags/zork/enable", {})
    assert (refused.status, refused.json["reason"]) == (400, "unsupported")
    phases = {feature["name"]: feature["deprecation_phase"] for feature in api.get("/deprecated-features").json}
    assert phases["transient_nonexcl_queues"] == "permitted_by_default" and phases["classic_queue_mirroring"] == "removed"
    assert api.get("/deprecated-features/used").json == []


@pytest.mark.leveret_only("RabbitMQ's streams can be restarted")
def test_feature_flags_of_what_is_not_built_are_unavailable(api):
    flags = {flag["name"]: flag["state"] for flag in api.get("/feature-flags").json}
    assert (flags["stream_queue"], flags["restart_streams"]) == ("enabled", "unavailable")
    assert api.put("/feature-flags/restart_streams/enable", {}).status == 400
