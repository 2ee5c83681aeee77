"""What guards a node by its configuration: limits, rules for passwords, headers for browsers, definitions from a server."""

import http.server
import json
import ssl
import threading
import urllib.error
import urllib.request

import pika
import pytest

from harness.broker import free_port
from test_audit import call
from test_auth_backends import OPEN, REFUSED, login
from test_passwords import get
from test_process import broker, pytestmark, refuses_to_start  # noqa: F401 - a fixture and a mark
from test_tls import authority  # noqa: F401 - a fixture


def connection(one, **options):
    return pika.BlockingConnection(pika.ConnectionParameters(one.host, one.port, socket_timeout=10, **options))


def refused(one, verb, path, body):
    """The status and the reason of a refusal."""
    with pytest.raises(urllib.error.HTTPError) as error:
        call(one, verb, path, body)
    return error.value.code, json.loads(error.value.read())["reason"]


def test_no_more_connections_than_the_node_takes(broker):  # noqa: F811
    one = broker({"connection_max": "2"}).start()
    first, second = connection(one), connection(one)
    with pytest.raises(pika.exceptions.AMQPError) as error:
        connection(one)
    assert "node connection limit (2) is reached" in repr(error.value), repr(error.value)
    # The way for operators stays open, and a place is free again when somebody leaves.
    assert call(one, "GET", "/overview") == 200
    second.close()
    connection(one).close()
    first.close()


def test_no_more_channels_than_the_node_takes(broker):  # noqa: F811
    one = broker({"channel_max_per_node": "2"}).start()
    with connection(one) as first, connection(one) as second:
        first.channel()
        second.channel()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as error:
            connection(one).channel()
        assert error.value.reply_code == 530
        assert "has reached the maximum allowed limit of 2" in error.value.reply_text


def test_no_more_consumers_than_a_channel_may_have(broker):  # noqa: F811
    one = broker({"consumer_max_per_channel": "2"}).start()
    with connection(one) as other:
        channel = other.channel()
        channel.queue_declare("q")
        tags = [channel.basic_consume("q", lambda *_: None) for _ in range(2)]
        # One that ends makes room, and another channel has room of its own.
        channel.basic_cancel(tags.pop())
        channel.basic_consume("q", lambda *_: None)
        other.channel().basic_consume("q", lambda *_: None)
    last = connection(one)
    channel = last.channel()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as error:
        for _ in range(3):
            channel.basic_consume("q", lambda *_: None)
    assert (error.value.reply_code, error.value.reply_text) == (530, "NOT_ALLOWED - reached maximum (2) of consumers per channel")


def test_no_more_queues_exchanges_and_virtual_hosts_than_the_cluster_may_have(broker):  # noqa: F811
    one = broker({"cluster_queue_limit": "1", "cluster_exchange_limit": "15", "vhost_max": "2"}).start()
    assert call(one, "PUT", "/vhosts/shop", {}) == 201
    assert refused(one, "PUT", "/vhosts/more", {}) == (400, "cannot create vhost 'more': vhost limit of 2 is reached")
    assert call(one, "PUT", "/vhosts/shop", {"description": "is there"}) == 204
    # Each virtual host begins with seven exchanges.
    assert call(one, "PUT", "/exchanges/%2F/x", {"type": "topic"}) == 201
    assert call(one, "PUT", "/queues/%2F/q", {"durable": True}) == 201
    with connection(one) as other:
        for declare, text in [
            (lambda channel: channel.queue_declare("r"), "PRECONDITION_FAILED - cannot declare queue 'r': queue limit in cluster (1) is reached"),
            (lambda channel: channel.exchange_declare("y"), "PRECONDITION_FAILED - cannot declare exchange 'y' in vhost '/': exchange limit of 15 is reached"),
        ]:
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as error:
                declare(other.channel())
            assert (error.value.reply_code, error.value.reply_text) == (406, text)
        # What exists may be declared again.
        channel = other.channel()
        channel.queue_declare("q", durable=True)
        channel.exchange_declare("x", "topic")
    assert refused(one, "POST", "/definitions", {"queues": [{"name": "s", "vhost": "/"}]})[0] == 400
    assert [queue["name"] for queue in get(one, "/queues")] == ["q"]


def test_new_virtual_hosts_have_the_limits_that_fit_their_names(broker):  # noqa: F811
    one = broker({"default_limits.vhosts.qa.pattern": "^qa", "default_limits.vhosts.qa.max_queues": "1", "default_limits.vhosts.qa.max_connections": "3"}).start()
    for vhost in ("qa-1", "shop"):
        assert call(one, "PUT", f"/vhosts/{vhost}", {}) == 201
    assert get(one, "/vhost-limits") == [{"vhost": "qa-1", "value": {"max-connections": 3, "max-queues": 1}}]
    assert call(one, "PUT", "/queues/qa-1/a", {}) == 201
    assert refused(one, "PUT", "/queues/qa-1/b", {}) == (400, "cannot declare queue 'b': queue limit in vhost 'qa-1' (1) is reached")
    assert call(one, "PUT", "/queues/shop/a", {}) == 201


@pytest.mark.parametrize(
    ("settings", "good", "bad"),
    [
        ({"validation_backend": "rabbit_credential_validator_min_password_length", "min_length": "12"}, "long enough it is", "too short"),
        ({"validation_backend": "rabbit_credential_validator_password_regexp", "regexp": "^[a-z]+[0-9]+$"}, "hare2026", "hare"),
    ],
)
def test_a_new_password_is_what_passwords_must_be_like(broker, settings, good, bad):  # noqa: F811
    one = broker().start()
    one.settings = {f"credential_validator.{name}": value for name, value in settings.items()}
    one.restart()
    # Passwords of before are let in as they are.
    login(one, "guest", "guest")
    assert refused(one, "PUT", "/users/jane", {"password": bad, "tags": ""})[0] == 400
    assert call(one, "PUT", "/users/jane", {"password": good, "tags": ""}) == 201
    assert call(one, "PUT", "/permissions/%2F/jane", OPEN) == 201
    login(one, "jane", good)
    # A refused change leaves the old password.
    assert refused(one, "PUT", "/users/jane", {"password": bad, "tags": ""})[0] == 400
    login(one, "jane", good)
    with pytest.raises(REFUSED):
        login(one, "jane", bad)


def test_browsers_are_told_what_the_operator_says(broker):  # noqa: F811
    said = {
        "hsts.policy": ("strict-transport-security", "max-age=31536000; includeSubDomains"),
        "csp.policy": ("content-security-policy", "default-src 'self'"),
        "headers.content_type_options": ("x-content-type-options", "nosniff"),
        "headers.frame_options": ("x-frame-options", "SAMEORIGIN"),
        "headers.xss_protection": ("x-xss-protection", "1; mode=block"),
    }
    one = broker({f"management.{key}": value for key, (_, value) in said.items()}).start()
    for path in ("/api/version", "/api/overview", "/", "/nowhere"):
        request = urllib.request.Request(f"http://{one.host}:{one.http_port}{path}", headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="})
        try:
            answer = urllib.request.urlopen(request, timeout=10)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            for name, value in said.values():
                assert answer.headers.get_all(name) == [value], (path, name)


def test_tags_of_the_cluster_and_the_node_are_shown(broker):  # noqa: F811
    one = broker({"cluster_tags.region": "eu-west-1", "node_tags.rack": "r7"}).start()
    overview = get(one, "/overview")
    assert (overview["cluster_tags"], overview["node_tags"]) == ({"region": "eu-west-1"}, {"rack": "r7"})
    one.settings["cluster_tags.region"] = "eu-west-2"
    one.restart()
    assert get(one, "/overview")["cluster_tags"] == {"region": "eu-west-2"}


@pytest.fixture
def definitions(authority):  # noqa: F811
    """A server that has definitions, by HTTPS, and who asked it."""
    asked = []
    document = json.dumps({"vhosts": [{"name": "/"}, {"name": "from-afar"}], "queues": [{"name": "q", "vhost": "from-afar", "durable": True, "auto_delete": False, "arguments": {}}]}).encode()

    class Definitions(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(document)))
            self.end_headers()
            self.wfile.write(document)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Definitions)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.server("definitions"))
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://localhost:{server.server_port}/definitions.json", asked
    server.shutdown()
    server.server_close()


def test_definitions_come_from_a_server_that_is_who_it_says(broker, authority, definitions):  # noqa: F811
    url, asked = definitions
    settings = {"definitions.import_backend": "https", "definitions.https.url": url}
    one = broker(settings | {"definitions.tls.cacertfile": str(authority.certificate)}).start()
    assert asked == ["/definitions.json"]
    assert [queue["vhost"] for queue in get(one, "/queues")] == ["from-afar"]
    # A server whose certificate nobody vouches for is not believed, and the node does not start without its definitions.
    refuses_to_start(broker(settings), "definitions")
