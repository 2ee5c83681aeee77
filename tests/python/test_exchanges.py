"""Routing: every exchange type, exchange-to-exchange bindings, and what the predeclared ones are."""

import pika
import pytest


def drain(channel, queue):
    """All bodies in the queue, in order."""
    bodies = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return bodies
        bodies.append(body.decode())


@pytest.fixture
def exchange(channel, name):
    """Declares an exchange of a type under a fresh name, and deletes it afterwards."""
    declared = []

    def declare(kind, **options):
        exchange_name = f"{name}.{kind}.{len(declared)}"
        channel.exchange_declare(exchange_name, kind, **options)
        declared.append(exchange_name)
        return exchange_name

    channel.confirm_delivery()
    yield declare
    cleaner = channel.connection.channel()
    for exchange_name in declared:
        cleaner.exchange_delete(exchange_name)


def own_queue(channel, exchange=None, key="", arguments=None):
    queue = channel.queue_declare("", exclusive=True).method.queue
    if exchange is not None:
        channel.queue_bind(queue, exchange, key, arguments)
    return queue


def test_default_exchange(channel):
    queue = own_queue(channel)
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"direct to the queue")
    assert drain(channel, queue) == ["direct to the queue"]


def test_direct(channel, exchange):
    source = exchange("direct")
    red, blue, both = own_queue(channel, source, "red"), own_queue(channel, source, "blue"), own_queue(channel, source, "red")
    channel.queue_bind(both, source, "blue")
    for key in ("red", "blue", "re", "redd", ""):
        channel.basic_publish(source, key, key.encode())
    assert drain(channel, red) == ["red"]
    assert drain(channel, blue) == ["blue"]
    assert drain(channel, both) == ["red", "blue"]


def test_fanout_ignores_the_key(channel, exchange):
    source = exchange("fanout")
    first, second = own_queue(channel, source, "a"), own_queue(channel, source, "b")
    channel.basic_publish(source, "whatever", b"1")
    assert drain(channel, first) == drain(channel, second) == ["1"]


# The empty key has no words, so `*` does not match it.
TOPICS = {
    "#": ["", "a", "a.b", "a.b.c", "a..c", "quick.orange.rabbit"],
    "a": ["a"],
    "a.#": ["a", "a.b", "a.b.c", "a..c"],
    "#.c": ["a.b.c", "a..c"],
    "*": ["a"],
    "a.*": ["a.b"],
    "*.*.*": ["a.b.c", "a..c", "quick.orange.rabbit"],
    "a.*.c": ["a.b.c", "a..c"],
    "*.orange.*": ["quick.orange.rabbit"],
    "#.b.#": ["a.b", "a.b.c"],
    "a.#.c": ["a.b.c", "a..c"],
    "#.*": ["a", "a.b", "a.b.c", "a..c", "quick.orange.rabbit"],
    "a..c": ["a..c"],
    "": [""],
}


def test_topic(channel, exchange):
    source = exchange("topic")
    queues = {pattern: own_queue(channel, source, pattern) for pattern in TOPICS}
    for key in ["", "a", "a.b", "a.b.c", "a..c", "quick.orange.rabbit"]:
        channel.basic_publish(source, key, key.encode())
    assert {pattern: drain(channel, queue) for pattern, queue in queues.items()} == TOPICS


def test_topic_delivers_once_per_queue(channel, exchange):
    source = exchange("topic")
    queue = own_queue(channel, source, "a.*")
    channel.queue_bind(queue, source, "#")
    channel.queue_bind(queue, source, "a.b")
    channel.basic_publish(source, "a.b", b"once")
    assert drain(channel, queue) == ["once"]
    channel.queue_unbind(queue, source, "#")
    channel.queue_unbind(queue, source, "a.*")
    channel.basic_publish(source, "a.c", b"no")
    channel.basic_publish(source, "a.b", b"still")
    assert drain(channel, queue) == ["still"]


HEADERS = {
    "all": ({"x-match": "all", "colour": "red", "size": 3}, ["both"]),
    "all by default": ({"colour": "red", "size": 3}, ["both"]),
    "any": ({"x-match": "any", "colour": "red", "size": 3}, ["both", "colour only", "size only"]),
    "all of nothing": ({"x-match": "all"}, ["both", "colour only", "size only", "neither", "x too"]),
    "any of nothing": ({"x-match": "any"}, []),
    "exists": ({"x-match": "all", "colour": None}, ["both", "colour only"]),
    "x- ignored": ({"x-match": "all", "x-tenant": "one", "colour": "red"}, ["both", "colour only"]),
    "all-with-x": ({"x-match": "all-with-x", "x-tenant": "one"}, ["x too"]),
    "any-with-x": ({"x-match": "any-with-x", "x-tenant": "one", "colour": "red"}, ["both", "colour only", "x too"]),
    "type matters": ({"x-match": "any", "size": "3"}, []),
}
MESSAGES = {
    "both": {"colour": "red", "size": 3, "more": True},
    "colour only": {"colour": "red", "size": 4},
    "size only": {"size": 3},
    "neither": {"colour2": "blue"},
    "x too": {"x-tenant": "one"},
}


def test_headers(channel, exchange):
    source = exchange("headers")
    queues = {name: own_queue(channel, source, "", arguments) for name, (arguments, _) in HEADERS.items()}
    for body, headers in MESSAGES.items():
        channel.basic_publish(source, "", body.encode(), pika.BasicProperties(headers=headers))
    assert {name: drain(channel, queue) for name, queue in queues.items()} == {name: expected for name, (_, expected) in HEADERS.items()}


def test_exchange_to_exchange(channel, exchange):
    source, middle, sink = exchange("topic"), exchange("fanout"), exchange("direct")
    channel.exchange_bind(middle, source, "news.#")
    channel.exchange_bind(sink, middle, "ignored")
    # A circle does no harm.
    channel.exchange_bind(source, middle, "")
    direct, all_news = own_queue(channel, sink, "news.red"), own_queue(channel, middle)
    channel.queue_bind(direct, middle, "")
    channel.basic_publish(source, "news.red", b"1")
    channel.basic_publish(source, "sports", b"2")
    assert drain(channel, direct) == ["1"], "one copy, however many ways lead there"
    assert drain(channel, all_news) == ["1"]
    channel.exchange_unbind(middle, source, "news.#")
    channel.basic_publish(source, "news.red", b"3")
    assert drain(channel, direct) == drain(channel, all_news) == []


def test_internal_exchange_receives_from_another(channel, exchange):
    source, inner = exchange("fanout"), exchange("direct", internal=True)
    channel.exchange_bind(inner, source, "")
    queue = own_queue(channel, inner, "k")
    channel.basic_publish(source, "k", b"through")
    assert drain(channel, queue) == ["through"]
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.basic_publish(inner, "k", b"not by hand")
    assert closed.value.reply_code == 403


def test_auto_delete_exchange_leaves_with_its_last_binding(connection, channel, name):
    channel.exchange_declare(name, "fanout", auto_delete=True)
    first, second = own_queue(channel, name), own_queue(channel, name)
    channel.queue_unbind(first, name, "")
    channel.exchange_declare(name, "fanout", passive=True)
    channel.queue_delete(second)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.exchange_declare(name, "fanout", passive=True)
    assert closed.value.reply_code == 404


def test_the_predeclared_exchanges_exist(channel):
    for name, kind in [("amq.direct", "direct"), ("amq.fanout", "fanout"), ("amq.topic", "topic"), ("amq.headers", "headers"), ("amq.match", "headers")]:
        channel.exchange_declare(name, kind, durable=True)


def test_a_deleted_exchange_takes_its_bindings_along(channel, name):
    queue = own_queue(channel)
    channel.exchange_declare(name, "direct")
    channel.queue_bind(queue, name, "k")
    channel.exchange_delete(name)
    channel.exchange_declare(name, "direct")
    channel.confirm_delivery()
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish(name, "k", b"", mandatory=True)
    channel.exchange_delete(name)


def test_duplicate_bindings_are_one(channel, exchange):
    source = exchange("direct")
    queue = own_queue(channel, source, "k")
    channel.queue_bind(queue, source, "k")
    channel.queue_bind(queue, source, "k", {"different": 1})
    channel.basic_publish(source, "k", b"once")
    assert drain(channel, queue) == ["once"]


def test_cc_and_bcc(channel):
    first, second, third = own_queue(channel), own_queue(channel), own_queue(channel)
    channel.confirm_delivery()
    channel.basic_publish("", first, b"letter", pika.BasicProperties(headers={"CC": [second], "BCC": [third, first]}))
    for queue in (first, second, third):
        method, properties, _ = channel.basic_get(queue, auto_ack=True)
        assert method is not None
        assert properties.headers == {"CC": [second]}
        assert channel.basic_get(queue)[0] is None


def shares(channel, exchange, weights, publish, count):
    """Declares a queue for each weight, publishes, and gives the bodies of each queue."""
    queues = [own_queue(channel, exchange, weight) for weight in weights]
    for number in range(count):
        publish(number)
    bodies = [drain(channel, queue) for queue in queues]
    assert sum(map(len, bodies)) == count
    return bodies


@pytest.mark.leveret_only("this exchange type is a plugin there")
def test_consistent_hash_spreads_keys_by_weight_and_keeps_a_key_together(channel, exchange):
    source = exchange("x-consistent-hash")
    bodies = shares(
        channel, source, ["1", "3"], lambda number: channel.basic_publish(source, f"key.{number % 200}", str(number % 200).encode()), 1000
    )
    assert not set(bodies[0]) & set(bodies[1])
    assert 25 <= len(set(bodies[0])) <= 75


@pytest.mark.leveret_only("this exchange type is a plugin there")
def test_consistent_hash_of_a_header_or_property(channel, exchange):
    by_header = exchange("x-consistent-hash", arguments={"hash-header": "user"})
    by_property = exchange("x-consistent-hash", arguments={"hash-property": "correlation_id"})
    for source in (by_header, by_property):
        def publish(number):
            user = str(number % 100)
            properties = pika.BasicProperties(headers={"user": user}, correlation_id=user)
            channel.basic_publish(source, f"other.{number}", user.encode(), properties)

        first, second = shares(channel, source, ["1", "1"], publish, 500)
        assert not set(first) & set(second)
        assert len(set(first)) >= 25 and len(set(second)) >= 25


@pytest.mark.parametrize(
    "kind", [pytest.param("x-random", marks=pytest.mark.leveret_only("this exchange type is a plugin there")), "x-local-random"]
)
def test_random_exchanges_use_all_queues(channel, exchange, kind):
    source = exchange(kind)
    bodies = shares(channel, source, ["", "", ""], lambda number: channel.basic_publish(source, "same", str(number).encode()), 600)
    assert all(len(each) >= 100 for each in bodies)


def test_modulus_hash_keeps_a_key_together(channel, exchange):
    source = exchange("x-modulus-hash")
    bodies = shares(channel, source, ["", "a", ""], lambda number: channel.basic_publish(source, str(number % 50), str(number % 50).encode()), 500)
    assert sum(len(set(each)) for each in bodies) == 50
    assert all(each for each in bodies)


@pytest.mark.leveret_only("this exchange type is a plugin there")
def test_a_consistent_hash_binding_is_a_number(channel, exchange, connection):
    source = exchange("x-consistent-hash")
    for key, text in (("0", "must be greater than 0"), ("many", "must be an integer")):
        other = connection.channel()
        queue = other.queue_declare("", exclusive=True).method.queue
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match=text):
            other.queue_bind(queue, source, key)
