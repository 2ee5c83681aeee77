"""Dead letters: what becomes one, where it goes, and what it tells of its past."""

import time
import uuid

import pika
import pytest
from conftest import connect, control
from pika import frame as frames
from pika import spec
from test_expiry import bodies, outcomes, own, ready
from waiting import until
from wire import B, Q, connected, raw_frame


@pytest.fixture
def graves(channel, name):
    """A queue for dead letters."""
    channel.queue_declare(name + ".dead", exclusive=True)
    return name + ".dead"


def mortal(channel, name, exchange="", key=None, **arguments) -> str:
    """A queue whose dead letters go there."""
    arguments = {"x-" + word.replace("_", "-"): value for word, value in arguments.items()} | {"x-dead-letter-exchange": exchange}
    if key is not None:
        arguments["x-dead-letter-routing-key"] = key
    channel.queue_declare(name, exclusive=True, arguments=arguments)
    return name


def fetch(channel, queue):
    return until(lambda: (message := channel.basic_get(queue, auto_ack=True))[0] and message)


def deaths(properties) -> list[tuple]:
    return [(entry["queue"], entry["reason"], entry["count"]) for entry in properties.headers["x-death"]]


def reject_one(channel, queue):
    method, _, _ = until(lambda: (message := channel.basic_get(queue))[0] and message)
    channel.basic_reject(method.delivery_tag, requeue=False)


def test_a_rejected_message_tells_its_story(channel, name, graves):
    queue = mortal(channel, name, key=graves)
    headers = {"zebra": 1, "aardvark": 2}
    start = int(time.time())
    channel.basic_publish("", queue, b"body", pika.BasicProperties(headers=headers, delivery_mode=2, content_type="text/plain", priority=3))
    reject_one(channel, queue)
    method, properties, body = fetch(channel, graves)
    assert (method.exchange, method.routing_key, body) == ("", graves, b"body")
    assert list(properties.headers) == [
        "aardvark", "x-death", "x-first-death-exchange", "x-first-death-queue", "x-first-death-reason",
        "x-last-death-exchange", "x-last-death-queue", "x-last-death-reason", "zebra",
    ]  # fmt: skip
    (entry,) = properties.headers["x-death"]
    assert list(entry) == ["count", "reason", "queue", "time", "exchange", "routing-keys"]
    when = entry.pop("time").timestamp()
    # The broker follows a wall clock that is set by little, slowly.
    assert start - 1 <= when <= time.time() + 1
    assert entry == {"count": 1, "reason": "rejected", "queue": queue, "exchange": "", "routing-keys": [queue]}
    assert (properties.delivery_mode, properties.content_type, properties.priority) == (2, "text/plain", 3)
    for which in ("first", "last"):
        assert [properties.headers[f"x-{which}-death-{what}"] for what in ("reason", "queue", "exchange")] == ["rejected", queue, ""]


@pytest.mark.parametrize("how", ["nack", "nack multiple", "reject"])
def test_every_way_to_reject_makes_dead_letters(channel, name, graves, how):
    queue = mortal(channel, name, key=graves)
    for body in (b"1", b"2"):
        channel.basic_publish("", queue, body)
    tags = [until(lambda: (message := channel.basic_get(queue))[0] and message)[0].delivery_tag for _ in range(2)]
    if how == "nack multiple":
        channel.basic_nack(tags[1], multiple=True, requeue=False)
    else:
        for tag in tags:
            (channel.basic_nack if how == "nack" else channel.basic_reject)(tag, requeue=False)
    assert [fetch(channel, graves)[2] for _ in range(2)] == [b"1", b"2"]
    assert ready(channel, queue) == 0


def test_a_requeued_message_is_no_dead_letter(channel, name, graves):
    queue = mortal(channel, name, key=graves)
    channel.basic_publish("", queue, b"1")
    method, _, _ = until(lambda: (message := channel.basic_get(queue))[0] and message)
    channel.basic_reject(method.delivery_tag, requeue=True)
    assert (ready(channel, queue), ready(channel, graves)) == (1, 0)


def test_an_expired_message_loses_its_expiration_and_tells_it(channel, name, graves):
    queue = mortal(channel, name, key=graves)
    channel.basic_publish("", queue, b"1", own("050"))
    _, properties, _ = fetch(channel, graves)
    assert properties.expiration is None
    (entry,) = properties.headers["x-death"]
    assert next(iter(entry.items())) == ("original-expiration", "50")
    assert entry["reason"] == "expired"


def test_a_queues_time_to_live_is_no_original_expiration(channel, name, graves):
    queue = mortal(channel, name, key=graves, message_ttl=50)
    channel.basic_publish("", queue, b"1")
    _, properties, _ = fetch(channel, graves)
    assert "original-expiration" not in properties.headers["x-death"][0]
    assert deaths(properties) == [(queue, "expired", 1)]


def test_a_time_to_live_of_zero_makes_dead_letters_at_once(channel, name, graves):
    queue = mortal(channel, name, key=graves, message_ttl=0)
    channel.basic_publish("", queue, b"1")
    assert deaths(fetch(channel, graves)[1]) == [(queue, "expired", 1)]


def test_what_has_no_room_dies_of_length(channel, name, graves):
    queue = mortal(channel, name, key=graves, max_length=1)
    for body in (b"1", b"2", b"3"):
        channel.basic_publish("", queue, body)
    first, second = fetch(channel, graves), fetch(channel, graves)
    assert [first[2], second[2]] == [b"1", b"2"]
    assert deaths(first[1]) == [(queue, "maxlen", 1)]
    assert bodies(channel, queue) == [b"3"]


def test_what_is_refused_may_die_of_length(channel, name, graves):
    queue = mortal(channel, name, key=graves, max_length=1, overflow="reject-publish-dlx")
    assert outcomes(channel, queue, [1, 2, 3]) == ["ack", "nack", "nack"]
    first, second = fetch(channel, graves), fetch(channel, graves)
    assert [first[2], second[2]] == [b"xx", b"xxx"]
    assert deaths(first[1]) == [(queue, "maxlen", 1)]


def test_what_is_refused_without_that_is_gone(channel, name, graves):
    queue = mortal(channel, name, key=graves, max_length=1, overflow="reject-publish")
    assert outcomes(channel, queue, [1, 1]) == ["ack", "nack"]
    assert ready(channel, graves) == 0


def test_without_a_key_the_own_one_stays(channel, name, graves):
    channel.queue_bind(graves, "amq.direct", "the.key")
    queue = mortal(channel, name, exchange="amq.direct")
    channel.queue_bind(queue, "amq.topic", "the.*")
    channel.basic_publish("amq.topic", "the.key", b"1")
    reject_one(channel, queue)
    method, properties, _ = fetch(channel, graves)
    assert (method.exchange, method.routing_key) == ("amq.direct", "the.key")
    assert properties.headers["x-death"][0]["exchange"] == "amq.topic"
    assert properties.headers["x-first-death-exchange"] == "amq.topic"


def test_deaths_are_counted_by_queue_and_reason_the_latest_first(channel, name, graves):
    second = mortal(channel, name + ".second", key=graves, message_ttl=50)
    queue = mortal(channel, name, key=second)
    channel.basic_publish("", queue, b"1")
    reject_one(channel, queue)
    _, properties, _ = fetch(channel, graves)
    assert deaths(properties) == [(second, "expired", 1), (queue, "rejected", 1)]
    assert (properties.headers["x-first-death-queue"], properties.headers["x-last-death-queue"]) == (queue, second)
    assert (properties.headers["x-first-death-reason"], properties.headers["x-last-death-reason"]) == ("rejected", "expired")


def test_a_message_that_is_rejected_goes_round_and_is_counted(channel, name):
    wait = mortal(channel, name + ".wait", key=name, message_ttl=20)
    queue = mortal(channel, name, key=wait)
    channel.basic_publish("", queue, b"1")
    for _ in range(3):
        reject_one(channel, queue)
    _, properties, _ = fetch(channel, queue)
    assert deaths(properties) == [(wait, "expired", 3), (queue, "rejected", 3)]


def test_a_message_that_goes_round_by_itself_is_dropped(channel, name):
    queue = mortal(channel, name, message_ttl=50)
    channel.basic_publish("", queue, b"1")
    until(lambda: ready(channel, queue) == 0)
    channel.connection.sleep(0.2)
    assert ready(channel, queue) == 0


def test_a_round_of_two_queues_is_dropped_at_its_second_turn(channel, name):
    other = mortal(channel, name + ".other", key=name, message_ttl=30)
    queue = mortal(channel, name, key=other, message_ttl=30)
    channel.basic_publish("", queue, b"1")
    channel.connection.sleep(0.4)
    assert (ready(channel, queue), ready(channel, other)) == (0, 0)


def test_a_rejected_message_may_come_back_to_its_own_queue(channel, name):
    queue = mortal(channel, name)
    channel.basic_publish("", queue, b"1")
    reject_one(channel, queue)
    _, properties, _ = fetch(channel, queue)
    assert deaths(properties) == [(queue, "rejected", 1)]


def test_a_history_that_a_client_sends_does_not_count(channel, name, graves):
    queue = mortal(channel, name, key=graves)
    forged = {"x-death": [{"count": 7, "queue": queue, "reason": "rejected"}], "x-first-death-queue": "elsewhere"}
    channel.basic_publish("", queue, b"1", pika.BasicProperties(headers=forged))
    reject_one(channel, queue)
    _, properties, _ = fetch(channel, graves)
    assert deaths(properties) == [(queue, "rejected", 1)]
    assert properties.headers["x-first-death-queue"] == queue
    channel.basic_publish("", queue, b"2", pika.BasicProperties(headers=properties.headers))
    reject_one(channel, queue)
    assert deaths(fetch(channel, graves)[1]) == [(queue, "rejected", 1)]


def test_a_dead_letter_exchange_that_is_missing_drops(channel, name):
    queue = mortal(channel, name, exchange=name + ".nowhere")
    channel.basic_publish("", queue, b"1")
    reject_one(channel, queue)
    assert ready(channel, queue) == 0


def test_a_dead_letter_exchange_may_come_later(channel, name, graves):
    exchange = name + ".later"
    queue = mortal(channel, name, exchange=exchange)
    channel.exchange_declare(exchange, "fanout", auto_delete=True)
    channel.queue_bind(graves, exchange)
    channel.basic_publish("", queue, b"1")
    reject_one(channel, queue)
    assert fetch(channel, graves)[2] == b"1"


def test_purged_and_deleted_messages_are_no_dead_letters(channel, name, graves):
    queue = mortal(channel, name, key=graves)
    channel.basic_publish("", queue, b"1")
    until(lambda: ready(channel, queue) == 1)
    channel.queue_purge(queue)
    channel.basic_publish("", queue, b"2")
    channel.queue_delete(queue)
    assert ready(channel, graves) == 0


def test_many_dead_letters_keep_their_order(channel, name, graves):
    queue = mortal(channel, name, key=graves, message_ttl=300)
    wanted = [b"%d" % number + b"x" * (number % 700) for number in range(2000)]
    for body in wanted:
        channel.basic_publish("", queue, body)
    until(lambda: ready(channel, graves) == 2000)
    assert bodies(channel, graves) == wanted


@pytest.mark.parametrize(("arguments", "text"), [
    ({"x-dead-letter-exchange": 5}, "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue '{}' in vhost '/'"),
    ({"x-dead-letter-routing-key": "k"}, "invalid arg 'x-dead-letter-routing-key' for queue '{}' in vhost '/': routing_key_but_no_dlx_defined"),
    ({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": 5}, "invalid arg 'x-dead-letter-routing-key' for queue '{}' in vhost '/': {{unacceptable_type,signedint}}"),
    ({"x-message-ttl": -1}, "invalid arg 'x-message-ttl' for queue '{}' in vhost '/': {{value_negative,-1}}"),
    ({"x-message-ttl": "a"}, "invalid arg 'x-message-ttl' for queue '{}' in vhost '/': \"expected integer, got longstr\""),
    ({"x-message-ttl": 315360000001}, "invalid arg 'x-message-ttl' for queue '{}' in vhost '/': {{value_too_large,315360000001}}"),
    ({"x-expires": 0}, "invalid arg 'x-expires' for queue '{}' in vhost '/': {{value_zero,0}}"),
    ({"x-expires": 315360000001}, "invalid arg 'x-expires' for queue '{}' in vhost '/': {{value_too_large,315360000001}}"),
])  # fmt: skip
def test_bad_arguments_are_refused_in_these_words(channel, name, arguments, text):
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        channel.queue_declare(name, exclusive=True, arguments=arguments)
    assert (closed.value.reply_code, closed.value.reply_text) == (406, "PRECONDITION_FAILED - " + text.format(name))


@pytest.mark.needs_control
def test_time_goes_on_while_the_broker_is_down(name):
    opened = connect()
    channel = opened.channel()
    dead, queue = name + ".dead", name
    channel.queue_declare(dead, durable=True)
    channel.queue_declare(queue, durable=True, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"goes", pika.BasicProperties(delivery_mode=2, expiration="300"))
    channel.basic_publish("", queue, b"stays", pika.BasicProperties(delivery_mode=2, expiration="600000"))
    opened.close()
    control("restart")
    channel = connect().channel()
    assert fetch(channel, dead)[2] == b"goes"
    assert bodies(channel, queue) == [b"stays"]
    for each in (dead, queue):
        channel.queue_delete(each)
    channel.connection.close()


def test_a_history_may_be_longer_than_what_a_client_may_send(channel, name):
    for at in range(200):
        arguments = {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.{at + 1}"}
        channel.queue_declare(f"{name}.{at}", exclusive=True, arguments=arguments)
    channel.queue_declare(f"{name}.200", exclusive=True)
    channel.basic_publish("", f"{name}.0", b"tired")
    _, properties, body = fetch(channel, f"{name}.200")
    assert body == b"tired"
    assert [queue for queue, *_ in deaths(properties)] == [f"{name}.{at}" for at in reversed(range(200))]


@pytest.mark.leveret_only("sends a header frame that is longer than agreed")
def test_a_history_longer_than_a_frame_loses_its_oldest_deaths():
    rounds = 90
    with connected(frame_max=8192) as wire:
        wire.channel(1)
        stem = f"long.{uuid.uuid4().hex}"
        for at in range(rounds):
            arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{stem}.{at + 1}", "x-message-ttl": 0}
            wire.call(1, Q.Declare(queue=f"{stem}.{at}", exclusive=True, arguments=arguments), Q.DeclareOk)
        for kind in ("got", "delivered"):
            wire.call(1, Q.Declare(queue=f"{stem}.{rounds}", exclusive=True), Q.DeclareOk)
            wire.publish(1, "", f"{stem}.0", b"old")
            if kind == "delivered":
                wire.call(1, B.Consume(queue=f"{stem}.{rounds}", no_ack=True), B.ConsumeOk)
                wire.expect(B.Deliver, 1)
            else:
                deadline = time.monotonic() + 30
                while True:
                    wire.send(1, B.Get(queue=f"{stem}.{rounds}", no_ack=True))
                    answer = wire.read_frame().method
                    if isinstance(answer, B.GetOk):
                        break
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            number, channel, payload = wire.read_raw_frame()
            assert (number, channel) == (spec.FRAME_HEADER, 1)
            assert len(payload) + 8 <= 8192
            properties = frames.decode_frame(raw_frame(number, channel, payload))[1].properties
            deaths = properties.headers["x-death"]
            assert [death["queue"] for death in deaths] == [f"{stem}.{rounds - 1 - at}" for at in range(len(deaths))]
            assert 10 < len(deaths) < rounds
            assert properties.headers["x-first-death-queue"] == f"{stem}.0"
            wire.read_raw_frame()
