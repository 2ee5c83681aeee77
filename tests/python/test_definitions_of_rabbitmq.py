"""Definitions as RabbitMQ 3.10 and 4.3 exported them, imported unchanged: by the HTTP API, by the command line, and at the start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from api import Api
from harness.broker import Broker

BINARY = os.environ.get("LEVERET_BINARY")
pytestmark = pytest.mark.skipif(not BINARY, reason="needs the executable")
FILES = {version: Path(__file__).with_name("definitions") / f"rabbitmq-{version}.json" for version in ("3.10", "4.3")}


@pytest.fixture
def node():
    made = []

    def start(**settings):
        broker = Broker(BINARY, settings)
        made.append(broker)
        broker.start()
        api = Api()
        api.root = f"http://{broker.host}:{broker.http_port}"
        if api.get("/vhosts/%2F/topic-permissions").status == 404:
            pytest.skip("the files have topic permissions, which come later")
        return broker, api

    yield start
    for broker in made:
        broker.close()


def check(api):
    """Everything that both files define is there."""
    queue = api.get("/queues/shop/orders.new").json
    arguments = {"x-dead-letter-exchange": "unrouted", "x-message-ttl": 60000, "x-max-priority": 5}
    assert arguments.items() <= queue["arguments"].items()
    assert queue["durable"] and not queue["auto_delete"]
    assert queue["policy"] == "short"
    assert queue["effective_policy_definition"]["max-length"] == 10000
    assert api.get("/queues/%2F/plain").status == 200
    exchange = api.get("/exchanges/shop/orders").json
    assert (exchange["type"], exchange["arguments"]) == ("topic", {"alternate-exchange": "unrouted"})
    bindings = api.get("/bindings/shop").json
    assert {(b["source"], b["destination"], b["routing_key"]) for b in bindings} >= {
        ("orders", "orders.new", "new.#"),
        ("orders", "unrouted", "copy.#"),
        ("unrouted", "unrouted", ""),
    }
    assert [b["arguments"] for b in bindings if b["routing_key"] == "copy.#"] == [{"why": "audit", "n": 1}]
    assert api.get("/users/ops").json["tags"] == ["monitoring", "policymaker"]
    assert api.get("/permissions/shop/jane").json["configure"] == "^orders"
    assert api.get("/topic-permissions/shop/jane").json[0]["write"] == "^new"
    assert api.get("/vhost-limits/shop").json[0]["value"] == {"max-queues": 100}
    assert api.get("/user-limits/jane").json[0]["value"] == {"max-channels": 100}
    assert api.get("/operator-policies/shop/ceiling").json["definition"] == {"max-length": 100000}
    # The hash is RabbitMQ's, so the password is.
    jane = Api("jane", "secret")
    jane.root = api.root
    assert jane.get("/whoami").status == 200


@pytest.mark.parametrize("version", FILES)
def test_an_export_of_rabbitmq_is_imported_by_the_http_api(node, version):
    _, api = node()
    for _ in range(2):
        answer = api.post("/definitions", json.loads(FILES[version].read_text()))
        assert answer.status == 204, answer.text
        check(api)


@pytest.mark.parametrize("version", FILES)
def test_an_export_of_rabbitmq_is_imported_by_the_command_line(node, version):
    broker, api = node()
    ctl = [BINARY, "ctl", "--data-dir", str(broker.data)]
    done = subprocess.run([*ctl, "import_definitions", str(FILES[version])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check(api)
    exported = broker.directory / "exported.json"
    assert subprocess.run([*ctl, "-q", "export_definitions", str(exported)], check=False).returncode == 0
    again = subprocess.run([*ctl, "import_definitions", str(exported), "--skip-if-unchanged"], capture_output=True, text=True, check=False)
    assert again.returncode == 0 and "nothing was imported" in again.stdout, again


@pytest.mark.parametrize("version", FILES)
def test_a_node_starts_with_an_export_of_rabbitmq(node, version):
    # The first one only tells whether it knows everything that the file has.
    node()
    _, api = node(load_definitions=str(FILES[version]))
    check(api)
