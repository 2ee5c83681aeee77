"""Definitions that RabbitMQ exports and this version can't take as they are: named all at once, before anything is changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from api import Api, q

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.broker import Broker

BINARY = os.environ.get("LEVERET_BINARY")
pytestmark = pytest.mark.leveret_only("RabbitMQ imports what it can and stops at the first object that it refuses")


@pytest.fixture
def vhost(api, name):
    yield name
    api.delete(f"/vhosts/{q(name)}")
    api.delete(f"/users/{name}.user")


def document(vhost):
    """A realistic one: quorum queues, a queue of MQTT, a shovel, federation, an exchange of a plugin, bindings of all of them."""
    queue = {"vhost": vhost, "durable": True, "auto_delete": False}
    binding = {"vhost": vhost, "source": "amq.topic", "destination_type": "queue", "routing_key": "k", "arguments": {}}
    return {
        "users": [{"name": f"{vhost}.user", "password_hash": "", "tags": []}],
        "vhosts": [{"name": vhost}],
        "permissions": [{"user": f"{vhost}.user", "vhost": vhost, "configure": "", "write": "", "read": ".*"}],
        "policies": [
            {"vhost": vhost, "name": "fed", "pattern": "^fed", "apply-to": "exchanges", "definition": {"federation-upstream-set": "all"}, "priority": 0},
            {"vhost": vhost, "name": "len", "pattern": "", "apply-to": "queues", "definition": {"max-length": 5}, "priority": 0},
        ],
        "parameters": [{"vhost": vhost, "component": "shovel", "name": "s", "value": {"src-uri": "amqp://"}}],
        "exchanges": [{"vhost": vhost, "name": "recent", "type": "x-recent-history", "durable": True, "auto_delete": False, "internal": False, "arguments": {}}],
        "queues": [
            queue | {"name": "orders", "type": "quorum", "arguments": {"x-queue-type": "quorum", "x-quorum-initial-group-size": 3, "x-delivery-limit": 7}},
            queue | {"name": "events", "type": "rabbit_mqtt_qos0_queue", "arguments": {}},
            queue | {"name": "plain", "type": "classic", "arguments": {}},
        ],
        "bindings": [binding | {"destination": "orders"}, binding | {"destination": "events"}, binding | {"destination": "plain"}, binding | {"source": "recent", "destination": "plain"}],
    }


def exists(api, vhost):
    return api.get(f"/vhosts/{q(vhost)}").status == 200 or api.get(f"/users/{vhost}.user").status == 200


def test_everything_that_is_refused_is_named_at_once_and_nothing_is_made(api, vhost):
    asked = document(vhost)
    checked = api.post("/leveret/definitions/check", asked)
    assert checked.status == 200
    report = checked.json
    assert not report["importable"] and not exists(api, vhost)
    refused = {(row["class"], row["index"]): row for row in report["remarks"] if row["outcome"] == "refused"}
    unsupported = {key: row["field"] for key, row in refused.items() if row["cause"] == "unsupported"}
    assert unsupported == {
        ("policies", 0): "definition.federation-upstream-set", ("parameters", 0): "component", ("exchanges", 0): "type",
        ("queues", 1): "type",
    }
    assert {key for key, row in refused.items() if row["cause"] == "missing"} == {("bindings", 1), ("bindings", 3)}
    assert refused["queues", 1] == {
        "outcome": "refused", "cause": "unsupported", "class": "queues", "index": 1, "vhost": vhost, "name": "events", "field": "type",
        "reason": "queues of type 'rabbit_mqtt_qos0_queue' are not part of this version", "instead": "leave it out with its bindings: on_unsupported=skip",
    }
    assert report["counts"]["queues"] == {"total": 3, "new": 2, "known": 0, "converted": 0, "skipped": 0, "refused": 1}
    answer = api.post("/definitions", asked)
    assert answer.status == 400 and answer.json["report"] == report and not exists(api, vhost)
    for named in ["'events'", "'fed'", "'s'", "'recent'", "6 objects"]:
        assert named in answer.json["reason"], named


def test_the_rest_is_imported_and_quorum_queues_become_classic_if_that_is_asked(api, vhost):
    asked = document(vhost)
    options = "?on_unsupported=skip&quorum_as=classic"
    report = api.post(f"/leveret/definitions/check{options}", asked).json
    assert report["importable"] and not exists(api, vhost)
    outcomes = {(row["class"], row["index"]): row["outcome"] for row in report["remarks"]}
    assert outcomes == {("policies", 0): "skipped", ("parameters", 0): "skipped", ("exchanges", 0): "skipped", ("queues", 0): "converted", ("queues", 1): "skipped", ("bindings", 1): "skipped", ("bindings", 3): "skipped"}
    assert api.post(f"/definitions{options}", asked).status == 204
    queues = {one["name"]: one for one in api.get(f"/queues/{q(vhost)}").json}
    assert set(queues) == {"orders", "plain"}
    assert (queues["orders"]["type"], queues["orders"]["durable"], queues["orders"]["arguments"]["x-delivery-limit"]) == ("classic", True, 7)
    assert {(one["source"], one["destination"]) for one in api.get(f"/bindings/{q(vhost)}").json if one["source"]} == {("amq.topic", "orders"), ("amq.topic", "plain")}
    # Once it is there, the same document says that it is another queue than the one that it names.
    again = api.post("/leveret/definitions/check?on_unsupported=skip", asked).json
    kept, = [row for row in again["remarks"] if row["outcome"] == "kept"]
    assert (kept["name"], kept["field"], kept["cause"]) == ("orders", "type", "different")
    assert api.post("/definitions?quorum_as=zork", asked).json["reason"] == "quorum_as can be refuse or classic, not zork"


def test_mistakes_refuse_the_document_also_if_the_rest_is_asked_for(api, vhost):
    asked = document(vhost)
    asked["queues"][2]["arguments"] = {"x-max-length": "many"}
    asked["permissions"][0]["write"] = "("
    answer = api.post("/definitions?on_unsupported=skip", asked)
    assert answer.status == 400 and not exists(api, vhost)
    wrong = {(row["class"], row["name"]) for row in answer.json["report"]["remarks"] if row["cause"] == "invalid"}
    assert wrong == {("queues", "plain"), ("permissions", f"{vhost}.user")}


def test_definitions_of_one_virtual_host_are_checked_too(api, vhost):
    assert api.put(f"/vhosts/{q(vhost)}").status == 201
    only = {"queues": [{"name": "a", "type": "zork", "durable": True}, {"name": "b", "durable": True}], "users": [{"name": "no"}]}
    report = api.post(f"/leveret/definitions/check/{q(vhost)}", only).json
    assert [(row["name"], row["vhost"]) for row in report["remarks"]] == [("a", vhost)] and "users" not in report["counts"]
    assert api.post(f"/definitions/{q(vhost)}", only).status == 400
    assert api.get(f"/queues/{q(vhost)}").json == []
    only["queues"][0]["type"] = "quorum"
    assert api.post(f"/definitions/{q(vhost)}?quorum_as=classic", only).status == 204
    assert [one["name"] for one in api.get(f"/queues/{q(vhost)}").json] == ["a", "b"]
    assert api.post("/leveret/definitions/check/no.such", {}).json["reason"] == "vhost_not_found"


@pytest.mark.skipif(not BINARY, reason="needs the executable")
def test_the_command_line_checks_and_imports_alike(tmp_path, name):
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(document(name)))
    broker = Broker(BINARY, {})
    try:
        broker.start()
        ctl = lambda *words: subprocess.run([BINARY, "ctl", "--data-dir", str(broker.data), *words], capture_output=True, text=True, check=False)  # noqa: E731
        checked = ctl("check_definitions", str(file))
        assert checked.returncode == 65, checked
        assert "refused: queues 'events'" in checked.stderr and "6 objects are refused: nothing would be imported" in checked.stderr
        report = json.loads(ctl("check_definitions", str(file), "--formatter", "json").stdout)
        assert not report["importable"] and len(report["remarks"]) == 6
        assert ctl("import_definitions", str(file)).returncode == 69
        assert name not in ctl("list_vhosts", "--quiet").stdout
        options = ["--on-unsupported", "skip", "--quorum-as", "classic"]
        checked = ctl("check_definitions", str(file), *options)
        assert checked.returncode == 0 and "The definitions can be imported" in checked.stdout
        assert ctl("import_definitions", str(file), *options).returncode == 0
        assert "orders" in ctl("list_queues", "-p", name, "--quiet").stdout
        assert ctl("check_definitions", str(file), "--quorum-as", "zork").returncode == 65
    finally:
        broker.close()


@pytest.mark.skipif(not BINARY, reason="needs the executable")
def test_a_node_starts_with_what_it_can_take_if_the_configuration_says_so(tmp_path, name, monkeypatch):
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(document(name)))
    broker = Broker(BINARY, {"load_definitions": str(file)})
    try:
        with pytest.raises(RuntimeError) as refused:
            broker.start()
        assert "'events'" in str(refused.value)
    finally:
        broker.close()
    broker = Broker(BINARY, {"load_definitions": str(file), "definitions.on_unsupported": "skip", "definitions.quorum_as": "classic"})
    try:
        broker.start()
        text = broker.log_text()
        assert "converted: queues: 'orders'" in text and "skipped: queues: 'events'" in text
    finally:
        broker.close()
