"""Permissions that a service is asked about over HTTP, as each is needed: what it is asked, who waits meanwhile, what is remembered."""

import threading
import urllib.error

import pika
import pytest

from directory import Service
from test_audit import call
from test_process import broker, pytestmark  # noqa: F401 - a fixture and a mark
from test_tls import said
from waiting import until

PATHS = ("user", "vhost", "resource", "topic")


class Judge:
    """Lets everybody in and permits what is not in `refused`; tests may hold answers back."""

    def __init__(self):
        self.refused, self.held, self.go_on, self.tags = set(), set(), threading.Event(), ""
        self.service = Service(self.answer)

    def answer(self, fields):
        if "password" in fields:
            return f"allow {self.tags}"
        if fields.get("name") in self.held:
            self.go_on.wait(20)
        about = {fields.get("name", fields["vhost"]), fields.get("routing_key"), f"{fields.get('permission')} {fields.get('name')}"}
        return "deny, says the judge" if about & self.refused else "allow"

    def settings(self, backend="http"):
        base = self.service.address.removesuffix("user")
        paths = {f"auth_http.{name}_path": base + name for name in PATHS}
        return {"auth_backends.1": backend, "auth_cache.cached_backend": "http"} | paths

    def questions(self):
        return [(path, fields) for path, (_, fields) in zip(self.service.paths, self.service.asked) if path != "user"]

    def forget(self):
        self.service.asked.clear()
        self.service.paths.clear()


@pytest.fixture
def judge():
    made = Judge()
    yield made
    made.go_on.set()
    made.service.close()


def connect(one, user="jane", vhost="/"):
    credentials = pika.PlainCredentials(user, "x")
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", one.port, vhost, credentials, socket_timeout=20, blocked_connection_timeout=20, heartbeat=0))


def test_a_service_is_asked_with_the_parameters_of_rabbitmq(broker, judge):  # noqa: F811
    judge.tags = "management monitoring"
    one = broker(judge.settings()).start()
    judge.forget()
    channel = connect(one).channel()
    channel.queue_declare("q")
    channel.basic_publish("", "q", b"one")
    channel.queue_bind("q", "amq.topic", "a.b")
    channel.basic_publish("amq.topic", "a.b", b"two")
    assert channel.basic_get("q")[2] == b"one"
    who = {"username": "jane", "vhost": "/", "tags": "management monitoring"}

    def resource(kind, name, permission):
        return ("resource", who | {"resource": kind, "name": name, "permission": permission})

    def topic(permission):
        more = {"routing_key": "a.b", "variable_map.username": "jane", "variable_map.vhost": "/"}
        return ("topic", who | {"resource": "topic", "name": "amq.topic", "permission": permission} | more)

    assert judge.questions() == [
        ("vhost", who | {"ip": "127.0.0.1"}),
        resource("queue", "q", "configure"),
        resource("exchange", "amq.default", "write"),
        resource("queue", "q", "write"),
        resource("exchange", "amq.topic", "read"),
        topic("read"),
        resource("exchange", "amq.topic", "write"),
        topic("write"),
        resource("queue", "q", "read"),
    ]
    judge.forget()
    for _ in range(5):
        channel.basic_publish("amq.topic", "a.b", b"more")
        channel.queue_declare("q")
        channel.basic_get("q")
    assert judge.questions() == [], "what is permitted is remembered"


def test_what_is_refused_is_refused_and_asked_again(broker, judge):  # noqa: F811
    one = broker(judge.settings()).start()
    judge.refused = {"forbidden", "configure q", "secret.key", "write amq.fanout"}
    connection = connect(one)
    refusals = [
        (lambda channel: channel.queue_declare("forbidden"), "configure access to queue 'forbidden' in vhost '/' refused for user 'jane'"),
        (lambda channel: channel.queue_declare("q"), "configure access to queue 'q'"),
        (lambda channel: channel.queue_bind("other", "amq.topic", "secret.key"), "refused"),
        (lambda channel: published(channel, "amq.topic", "secret.key"), "secret.key"),
        (lambda channel: published(channel, "amq.fanout", "x"), "write access to exchange 'amq.fanout'"),
    ]
    connection.channel().queue_declare("other")
    for act, words in refusals:
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
            act(connection.channel())
        assert refused.value.reply_code == 403 and words in refused.value.reply_text
    judge.refused = set()
    connection.channel().queue_declare("q")
    channel = connection.channel()
    published(channel, "amq.fanout", "x")
    judge.refused = {"vhost", "/"}
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError):
        connect(one)


def published(channel, exchange, key, body=b"x"):
    channel.confirm_delivery()
    channel.basic_publish(exchange, key, body)


def test_a_permission_is_gone_once_something_else_is_refused(broker, judge):  # noqa: F811
    one = broker(judge.settings()).start()
    connection = connect(one)
    connection.channel().queue_declare("q")
    judge.refused = {"q", "other"}
    connection.channel().queue_declare("q")
    for name in ("other", "q"):
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            connection.channel().queue_declare(name)


def test_silence_permits_nothing_and_the_log_says_why(broker, judge):  # noqa: F811
    one = broker(judge.settings()).start()
    connection = connect(one)
    judge.service.answer = lambda fields: 500
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        connection.channel().queue_declare("q")
    assert refused.value.reply_code == 403
    said(one, "user 'jane' is refused configure on queue 'q' in vhost '/'", "answers with status 500", "auth_http.resource_path")
    judge.service.answer = lambda fields: "allow everything"
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        connection.channel().queue_declare("q")
    judge.service.answer = judge.answer
    connection.channel().queue_declare("q")


def test_who_waits_for_an_answer_holds_up_nobody_else(broker, judge):  # noqa: F811
    one = broker(judge.settings()).start()
    connection = connect(one)
    connection.channel().queue_declare("q")
    judge.held = {"slow"}
    slow = [threading.Thread(target=lambda: connect(one).channel().queue_declare("slow")) for _ in range(8)]
    for thread in slow:
        thread.start()
    until(lambda: sum(fields.get("name") == "slow" for _, fields in judge.service.asked) == 8)
    channel = connection.channel()
    published(channel, "", "q")
    channel.queue_declare("q2")
    assert all(thread.is_alive() for thread in slow)
    judge.go_on.set()
    for thread in slow:
        thread.join(20)
    assert not any(thread.is_alive() for thread in slow)
    assert connect(one).channel().queue_declare("slow", passive=True).method.queue == "slow"


def test_messages_keep_their_order_and_arrive_once_while_rights_are_asked_for(broker, judge):  # noqa: F811
    one = broker(judge.settings()).start()
    channel = connect(one).channel()
    channel.queue_declare("q")
    channel.queue_bind("q", "amq.direct", "k")
    channel.queue_bind("q", "amq.topic", "#")
    # Small ones in one read, one in many frames, one without a body; each the first to its exchange or with its key.
    bodies = []
    for number, (exchange, key, size) in enumerate([("", "q", 1), ("", "q", 400_000), ("amq.direct", "k", 300_000), ("amq.topic", "a", 0), ("amq.topic", "b", 20), ("amq.topic", "a", 3), ("amq.topic", "c", 200_000)]):
        bodies.append(bytes([number]) * size)
        channel.basic_publish(exchange, key, bodies[-1])
    published(channel, "amq.fanout", "x")
    found = [channel.basic_get("q", auto_ack=True)[2] for _ in bodies]
    assert [(len(body), body[:1]) for body in found] == [(len(body), body[:1]) for body in bodies] and found == bodies
    assert channel.basic_get("q")[0] is None


def test_a_queue_without_a_name_is_made_once(broker, judge):  # noqa: F811
    one = broker(judge.settings()).start()
    channel = connect(one).channel()
    names = {channel.queue_declare("", exclusive=True).method.queue for _ in range(3)}
    asked = [fields["name"] for path, fields in judge.questions() if path == "resource"]
    assert len(names) == 3 and names == set(asked) and len(asked) == 3


def test_transactions_and_passive_declarations_ask_too(broker, judge):  # noqa: F811
    one = broker(judge.settings()).start()
    channel = connect(one).channel()
    channel.queue_declare("q")
    channel.tx_select()
    channel.basic_publish("", "q", b"in a transaction")
    channel.tx_commit()
    assert channel.basic_get("q", auto_ack=True)[2] == b"in a transaction"
    judge.refused = {"configure q", "write q"}
    assert connect(one).channel().queue_declare("q", passive=True).method.queue == "q"
    judge.refused = {"q"}
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        connect(one).channel().queue_declare("q", passive=True)


def test_answers_are_kept_for_all_connections(broker, judge):  # noqa: F811
    one = broker(judge.settings("cache") | {"auth_cache.cache_ttl": "60000"}).start()
    judge.forget()
    for _ in range(3):
        connect(one).channel().queue_declare("q")
    assert [path for path in judge.service.paths] == ["user", "vhost", "resource"]


def test_the_http_api_asks_too(broker, judge):  # noqa: F811
    judge.tags = "management"
    one = broker(judge.settings()).start()
    assert call(one, "PUT", "/queues/%2F/q", {}, user="jane", password="x") == 201
    assert call(one, "GET", "/queues/%2F/q", user="jane", password="x") == 200
    for refused, verb in (("q", "DELETE"), ("/", "GET")):
        judge.refused = {refused}
        with pytest.raises(urllib.error.HTTPError) as answer:
            call(one, verb, "/queues/%2F/q", user="jane", password="x")
        assert answer.value.code in (401, 404)


def test_the_catalog_may_know_passwords_and_a_service_permissions(broker, judge):  # noqa: F811
    settings = judge.settings() | {"auth_backends.1.authn": "internal", "auth_backends.1.authz": "http"}
    del settings["auth_backends.1"]
    one = broker(settings).start()
    credentials = pika.PlainCredentials("guest", "guest")
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", one.port, "/", credentials))
    judge.refused = {"q"}
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        connection.channel().queue_declare("q")
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        connect(one, "stranger")
