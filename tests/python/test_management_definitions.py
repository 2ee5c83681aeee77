"""Definitions: out, in, and out again."""

import os
import sys
from pathlib import Path

import pytest

from api import Api, q

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.broker import Broker

BINARY = os.environ.get("LEVERET_BINARY")


@pytest.fixture
def vhost(api, name):
    yield name
    assert api.delete(f"/vhosts/{q(name)}").status == 204


def document(vhost):
    """What RabbitMQ 4.3 exports, in small."""
    return {
        "rabbit_version": "4.3.6",
        "rabbitmq_version": "4.3.6",
        "product_name": "RabbitMQ",
        "rabbitmq_definition_format": "cluster",
        "global_parameters": [{"name": "cluster_tags", "value": []}],
        "parameters": [],
        "policies": [],
        "topic_permissions": [],
        "users": [{"hashing_algorithm": "rabbit_password_hashing_sha256", "limits": {}, "name": f"{vhost}.user", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "tags": ["management"]}],
        "vhosts": [{"limits": {}, "metadata": {"description": "", "tags": [], "default_queue_type": "classic"}, "name": vhost}],
        "permissions": [{"configure": "a", "read": "b", "user": f"{vhost}.user", "vhost": vhost, "write": "c"}],
        "exchanges": [{"arguments": {}, "auto_delete": False, "durable": True, "name": "x", "type": "topic", "vhost": vhost}],
        "queues": [{"arguments": {"x-max-length": 7, "x-queue-type": "classic"}, "auto_delete": False, "durable": True, "name": "q", "type": "classic", "vhost": vhost}],
        "bindings": [{"arguments": {"n": 1}, "destination": "q", "destination_type": "queue", "routing_key": "a.#", "source": "x", "vhost": vhost}],
    }


def here(definitions, vhost):
    return {kind: [one for one in definitions[kind] if one.get("vhost") == vhost] for kind in ["permissions", "exchanges", "queues", "bindings"]}


def test_what_is_imported_is_exported(api, vhost):
    asked = document(vhost)
    for _ in range(2):
        assert api.post("/definitions", asked).status in (200, 204)
        found = here(api.get("/definitions").json, vhost)
        for kind, objects in here(asked, vhost).items():
            wanted, = objects
            assert [one for one in found[kind] if one.items() >= wanted.items()], kind
        # Who imports a new virtual host may do everything in it.
        assert "guest" in [one["user"] for one in found["permissions"]]
    assert Api(f"{vhost}.user", "test12").get("/whoami").json["tags"] == ["management"]
    only = api.get(f"/definitions/{q(vhost)}").json
    assert [(one["name"], "vhost" in one) for one in only["queues"]] == [("q", False)]
    assert api.delete(f"/users/{vhost}.user").status == 204


def test_the_same_objects_give_the_same_bytes(api, vhost):
    api.post("/definitions", document(vhost))
    first = api.get("/definitions").text
    assert api.post("/definitions", first.encode()).status in (200, 204)
    assert api.get("/definitions").text == first
    api.delete(f"/users/{vhost}.user")


def test_definitions_of_one_virtual_host_go_into_another(api, vhost):
    api.post("/definitions", document(vhost))
    other = f"{vhost}.other"
    api.put(f"/vhosts/{other}")
    assert api.post(f"/definitions/{other}", api.get(f"/definitions/{q(vhost)}").json).status in (200, 204)
    assert [one["name"] for one in api.get(f"/queues/{other}").json] == ["q"]
    assert api.delete(f"/vhosts/{other}").status == 204
    api.delete(f"/users/{vhost}.user")


def test_what_is_wrong_is_named(api, vhost):
    api.put(f"/vhosts/{q(vhost)}")
    broken = api.post("/definitions", b"{")
    assert (broken.status, broken.json["error"]) == (400, "bad_request")
    answer = api.post("/definitions", {"queues": [{"name": "broken.q", "vhost": vhost, "durable": True, "auto_delete": False, "arguments": {"x-max-length": "z"}}]})
    assert answer.status == 400 and "broken.q" in answer.text and "x-max-length" in answer.text
    answer = api.post("/definitions", {"bindings": [{"source": "nope.x", "vhost": vhost, "destination": "nope.q", "destination_type": "queue", "routing_key": "", "arguments": {}}]})
    assert answer.status == 400


def test_only_administrators_see_definitions(api, name):
    assert api.put(f"/users/{name}", {"password": "p", "tags": "monitoring"}).status == 201
    assert Api(name, "p").get("/definitions").status == 401
    assert Api(name, "p").post("/definitions", {}).status == 401
    assert api.delete(f"/users/{name}").status == 204


@pytest.mark.skipif(not BINARY, reason="needs the executable")
def test_definitions_are_loaded_at_boot_and_suppress_the_default_user(tmp_path, name, monkeypatch):
    import json

    definitions = document(name)
    definitions["users"][0]["tags"] = "administrator"
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps(definitions))
    broker = Broker(BINARY, {"load_definitions": str(path)})
    try:
        broker.start()
        monkeypatch.setenv("HTTP_PORT", str(broker.http_port))
        assert Api("guest", "guest").get("/whoami").status == 401
        theirs = Api(f"{name}.user", "test12")
        assert [one["name"] for one in theirs.get("/vhosts").json] == [name]
        broker.restart()
        assert [one["name"] for one in theirs.get(f"/queues/{q(name)}").json] == ["q"]
    finally:
        broker.close()
