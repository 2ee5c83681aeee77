"""The table of errors: reply code, scope, class and method id, and text of each, as RabbitMQ gives them."""

import uuid

import pytest
from pika import spec

from wire import B, Q, X, connected, method_bytes

RUN = uuid.uuid4().hex[:8]
NAMES = {
    kind: f"err.{kind}.{RUN}"
    for kind in "plain durable locked taken consumed full limited exchange internal bound missing fresh".split()
}
N = type("N", (), NAMES)

LOCKED = (
    f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{{}}' in vhost '/'. It could be originally declared "
    "on another connection or the exclusive property value does not match that of the original declaration."
)
DEFAULT_EXCHANGE = "ACCESS_REFUSED - operation not permitted on the default exchange"
NO_QUEUE = f"NOT_FOUND - no queue '{N.missing}' in vhost '/'"
NO_EXCHANGE = f"NOT_FOUND - no exchange '{N.missing}' in vhost '/'"
NO_PREVIOUS = "NOT_FOUND - no previously declared queue"


@pytest.fixture(scope="module", autouse=True)
def world():
    """The objects that the table's requests collide with, held by a connection of their own."""
    holder = connected()
    holder.channel(1)
    call = lambda method, answer: holder.call(1, method, answer)  # noqa: E731
    for queue in (N.plain, N.taken, N.consumed, N.full):
        call(Q.Declare(queue=queue), Q.DeclareOk)
    call(Q.Declare(queue=N.durable, durable=True), Q.DeclareOk)
    call(Q.Declare(queue=N.limited, arguments={"x-max-length": 7}), Q.DeclareOk)
    call(Q.Declare(queue=N.locked, exclusive=True), Q.DeclareOk)
    call(B.Consume(queue=N.taken, consumer_tag="taken", exclusive=True), B.ConsumeOk)
    call(B.Consume(queue=N.consumed, consumer_tag="consumed"), B.ConsumeOk)
    holder.publish(1, "", N.full)
    call(X.Declare(exchange=N.exchange, type="direct"), X.DeclareOk)
    call(X.Declare(exchange=N.internal, type="direct", internal=True), X.DeclareOk)
    call(X.Declare(exchange=N.bound, type="fanout"), X.DeclareOk)
    call(Q.Bind(queue=N.plain, exchange=N.bound), Q.BindOk)
    yield
    for tag in ("taken", "consumed"):
        call(B.Cancel(tag), B.CancelOk)
    for queue in (N.plain, N.taken, N.consumed, N.full, N.durable, N.limited, N.locked):
        call(Q.Delete(queue=queue), Q.DeleteOk)
    for exchange in (N.exchange, N.internal, N.bound):
        call(X.Delete(exchange=exchange), X.DeleteOk)
    holder.close()


class Publish:
    """A publish, as an entry of the table."""

    def __init__(self, exchange, key, properties=None, **flags):
        self.exchange, self.key, self.properties, self.flags = exchange, key, properties, flags


def inequivalent(what, kind, name, received, current):
    return f"PRECONDITION_FAILED - inequivalent arg '{what}' for {kind} '{name}' in vhost '/': received {received} but current is {current}"


def invalid(argument, why):
    return f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{N.fresh}' in vhost '/': {why}"


def of_other_type(argument):
    return f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{N.fresh}' in vhost '/' of queue type rabbit_classic_queue"


def fresh(**arguments):
    return Q.Declare(queue=N.fresh, arguments={f"x-{key.replace('_', '-')}": value for key, value in arguments.items()})


# (name, requests on channel 1, reply code, (class id, method id), reply text)
CHANNEL_ERRORS = [
    # 404 not found
    ("publish to a missing exchange", [Publish(N.missing, "k")], 404, (60, 40), NO_EXCHANGE),
    ("get from a missing queue", [B.Get(queue=N.missing)], 404, (60, 70), NO_QUEUE),
    ("consume from a missing queue", [B.Consume(queue=N.missing, consumer_tag="t")], 404, (60, 20), NO_QUEUE),
    ("bind a missing queue", [Q.Bind(queue=N.missing, exchange="amq.direct")], 404, (50, 20), NO_QUEUE),
    ("bind to a missing exchange", [Q.Bind(queue=N.plain, exchange=N.missing)], 404, (50, 20), NO_EXCHANGE),
    ("exchange.bind from a missing source", [X.Bind(destination="amq.fanout", source=N.missing)], 404, (40, 30), NO_EXCHANGE),
    ("exchange.bind to a missing destination", [X.Bind(destination=N.missing, source="amq.fanout")], 404, (40, 30), NO_EXCHANGE),
    ("purge a missing queue", [Q.Purge(queue=N.missing)], 404, (50, 30), NO_QUEUE),
    ("passive declare of a missing queue", [Q.Declare(queue=N.missing, passive=True)], 404, (50, 10), NO_QUEUE),
    ("passive declare of a missing exchange", [X.Declare(exchange=N.missing, passive=True)], 404, (40, 10), NO_EXCHANGE),
    ("passive declare of a missing reserved name", [Q.Declare(queue="amq.missing", passive=True)], 404, (50, 10), "NOT_FOUND - no queue 'amq.missing' in vhost '/'"),
    ("get without a previous declare", [B.Get(queue="")], 404, (60, 70), NO_PREVIOUS),
    ("consume without a previous declare", [B.Consume(queue="", consumer_tag="t")], 404, (60, 20), NO_PREVIOUS),
    ("purge without a previous declare", [Q.Purge(queue="")], 404, (50, 30), NO_PREVIOUS),
    ("delete without a previous declare", [Q.Delete(queue="")], 404, (50, 40), NO_PREVIOUS),
    ("bind without a previous declare", [Q.Bind(queue="", exchange="amq.direct")], 404, (50, 20), NO_PREVIOUS),
    ("unbind without a previous declare", [Q.Unbind(queue="", exchange="amq.direct")], 404, (50, 50), NO_PREVIOUS),
    # 403 access refused
    ("publish to an internal exchange", [Publish(N.internal, "k")], 403, (60, 40), f"ACCESS_REFUSED - cannot publish to internal exchange '{N.internal}' in vhost '/'"),
    ("declare the default exchange", [X.Declare(exchange="", type="direct")], 403, (40, 10), DEFAULT_EXCHANGE),
    ("delete the default exchange", [X.Delete(exchange="")], 403, (40, 20), DEFAULT_EXCHANGE),
    ("bind to the default exchange", [Q.Bind(queue=N.plain, exchange="", routing_key="k")], 403, (50, 20), DEFAULT_EXCHANGE),
    ("unbind from the default exchange", [Q.Unbind(queue=N.plain, exchange="", routing_key=N.plain)], 403, (50, 50), DEFAULT_EXCHANGE),
    ("exchange.bind from the default exchange", [X.Bind(destination="amq.fanout", source="")], 403, (40, 30), DEFAULT_EXCHANGE),
    ("exchange.bind to the default exchange", [X.Bind(destination="", source="amq.fanout")], 403, (40, 30), DEFAULT_EXCHANGE),
    ("delete a predeclared exchange", [X.Delete(exchange="amq.direct")], 403, (40, 20), "ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed"),
    ("declare a reserved exchange name", [X.Declare(exchange="amq.new", type="direct")], 403, (40, 10), "ACCESS_REFUSED - exchange name 'amq.new' contains reserved prefix 'amq.*'"),
    ("declare a reserved queue name", [Q.Declare(queue="amq.new")], 403, (50, 10), "ACCESS_REFUSED - queue name 'amq.new' contains reserved prefix 'amq.*'"),
    ("consume from a queue with an exclusive consumer", [B.Consume(queue=N.taken, consumer_tag="t")], 403, (60, 20), f"ACCESS_REFUSED - queue '{N.taken}' in vhost '/' in exclusive use"),
    ("consume exclusively from a queue with a consumer", [B.Consume(queue=N.consumed, consumer_tag="t", exclusive=True)], 403, (60, 20), f"ACCESS_REFUSED - queue '{N.consumed}' in vhost '/' in exclusive use"),
    # 405 resource locked
    ("declare another connection's exclusive queue", [Q.Declare(queue=N.locked, exclusive=True)], 405, (50, 10), LOCKED.format(N.locked)),
    ("passive declare of another's exclusive queue", [Q.Declare(queue=N.locked, passive=True)], 405, (50, 10), LOCKED.format(N.locked)),
    ("consume from another's exclusive queue", [B.Consume(queue=N.locked, consumer_tag="t")], 405, (60, 20), LOCKED.format(N.locked)),
    ("get from another's exclusive queue", [B.Get(queue=N.locked)], 405, (60, 70), LOCKED.format(N.locked)),
    ("purge another's exclusive queue", [Q.Purge(queue=N.locked)], 405, (50, 30), LOCKED.format(N.locked)),
    ("delete another's exclusive queue", [Q.Delete(queue=N.locked)], 405, (50, 40), LOCKED.format(N.locked)),
    ("bind another's exclusive queue", [Q.Bind(queue=N.locked, exchange="amq.direct")], 405, (50, 20), LOCKED.format(N.locked)),
    ("redeclare a shared queue as exclusive", [Q.Declare(queue=N.plain, exclusive=True)], 405, (50, 10), LOCKED.format(N.plain)),
    # 406 precondition failed
    ("redeclare a queue with another durability", [Q.Declare(queue=N.plain, durable=True)], 406, (50, 10), inequivalent("durable", "queue", N.plain, "'true'", "'false'")),
    ("redeclare a durable queue as transient", [Q.Declare(queue=N.durable)], 406, (50, 10), inequivalent("durable", "queue", N.durable, "'false'", "'true'")),
    ("redeclare a queue as auto-delete", [Q.Declare(queue=N.plain, auto_delete=True)], 406, (50, 10), inequivalent("auto_delete", "queue", N.plain, "'true'", "'false'")),
    ("redeclare a queue with a new limit", [Q.Declare(queue=N.plain, arguments={"x-max-length": 5})], 406, (50, 10), inequivalent("x-max-length", "queue", N.plain, "the value '5' of type 'signedint'", "none")),
    ("redeclare a queue without its limit", [Q.Declare(queue=N.limited)], 406, (50, 10), inequivalent("x-max-length", "queue", N.limited, "none", "the value '7' of type 'signedint'")),
    ("redeclare a queue with another limit", [Q.Declare(queue=N.limited, arguments={"x-max-length": 8})], 406, (50, 10), inequivalent("x-max-length", "queue", N.limited, "'8'", "'7'")),
    ("redeclare with nowait", [Q.Declare(queue=N.plain, durable=True, nowait=True)], 406, (50, 10), inequivalent("durable", "queue", N.plain, "'true'", "'false'")),
    ("redeclare an exchange with another type", [X.Declare(exchange=N.exchange, type="fanout")], 406, (40, 10), inequivalent("type", "exchange", N.exchange, "'fanout'", "'direct'")),
    ("redeclare a predeclared exchange with another type", [X.Declare(exchange="amq.direct", type="fanout", durable=True)], 406, (40, 10), inequivalent("type", "exchange", "amq.direct", "'fanout'", "'direct'")),
    ("redeclare an exchange with another durability", [X.Declare(exchange=N.exchange, type="direct", durable=True)], 406, (40, 10), inequivalent("durable", "exchange", N.exchange, "'true'", "'false'")),
    ("redeclare an exchange as auto-delete", [X.Declare(exchange=N.exchange, type="direct", auto_delete=True)], 406, (40, 10), inequivalent("auto_delete", "exchange", N.exchange, "'true'", "'false'")),
    ("redeclare an exchange as internal", [X.Declare(exchange=N.exchange, type="direct", internal=True)], 406, (40, 10), inequivalent("internal", "exchange", N.exchange, "'true'", "'false'")),
    ("unknown exchange type", [X.Declare(exchange=N.fresh, type="nonsense")], 406, (40, 10), "PRECONDITION_FAILED - unknown exchange type 'nonsense'"),
    ("ack of an unknown tag", [B.Ack(7)], 406, (60, 80), "PRECONDITION_FAILED - unknown delivery tag 7"),
    ("multiple ack of an unknown tag", [B.Ack(7, True)], 406, (60, 80), "PRECONDITION_FAILED - unknown delivery tag 7"),
    ("single ack of tag 0", [B.Ack(0)], 406, (60, 80), "PRECONDITION_FAILED - unknown delivery tag 0"),
    ("nack of an unknown tag", [B.Nack(7)], 406, (60, 120), "PRECONDITION_FAILED - unknown delivery tag 7"),
    ("reject of an unknown tag", [B.Reject(7)], 406, (60, 90), "PRECONDITION_FAILED - unknown delivery tag 7"),
    ("delete if-unused of a used queue", [Q.Delete(queue=N.consumed, if_unused=True)], 406, (50, 40), f"PRECONDITION_FAILED - queue '{N.consumed}' in vhost '/' in use"),
    ("delete if-empty of a filled queue", [Q.Delete(queue=N.full, if_empty=True)], 406, (50, 40), f"PRECONDITION_FAILED - queue '{N.full}' in vhost '/' not empty"),
    ("delete if-unused of a bound exchange", [X.Delete(exchange=N.bound, if_unused=True)], 406, (40, 20), f"PRECONDITION_FAILED - exchange '{N.bound}' in vhost '/' in use"),
    ("publish in another user's name", [Publish("", N.plain, spec.BasicProperties(user_id="bob"))], 406, (60, 40), "PRECONDITION_FAILED - user_id property set to 'bob' but authenticated user was 'guest'"),
    ("expiration that is no number", [Publish("", N.plain, spec.BasicProperties(expiration="abc"))], 406, (60, 40), "PRECONDITION_FAILED - invalid expiration 'abc': no_integer"),
    ("negative expiration", [Publish("", N.plain, spec.BasicProperties(expiration="-1"))], 406, (60, 40), "PRECONDITION_FAILED - invalid expiration '-1': {value_negative,-1}"),
    ("CC header that is no array", [Publish("", N.plain, spec.BasicProperties(headers={"CC": "k"}))], 406, (60, 40), 'PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}'),
    ("negative x-max-length", [fresh(max_length=-1)], 406, (50, 10), invalid("x-max-length", "{value_negative,-1}")),
    ("x-max-length that is no number", [fresh(max_length="a")], 406, (50, 10), invalid("x-max-length", '"expected integer, got longstr"')),
    ("negative x-max-length-bytes", [fresh(max_length_bytes=-5)], 406, (50, 10), invalid("x-max-length-bytes", "{value_negative,-5}")),
    ("unknown x-overflow", [fresh(overflow="nope")], 406, (50, 10), invalid("x-overflow", "invalid_overflow")),
    ("x-overflow that is no string", [fresh(overflow=5)], 406, (50, 10), invalid("x-overflow", "{unacceptable_type,signedint}")),
    ("unknown x-queue-type", [fresh(queue_type="nope")], 406, (50, 10), invalid("x-queue-type", "\"unsupported queue type 'nope'\"")),
    ("x-queue-type that is no string", [fresh(queue_type=7)], 406, (50, 10), invalid("x-queue-type", "{unacceptable_type,signedint}")),
    ("x-queue-version that is no number", [fresh(queue_version="a")], 406, (50, 10), invalid("x-queue-version", '"expected integer, got longstr"')),
    ("stream argument on a classic queue", [fresh(max_age="1h")], 406, (50, 10), of_other_type("x-max-age")),
    ("quorum argument on a classic queue", [fresh(quorum_initial_group_size=4)], 406, (50, 10), of_other_type("x-quorum-initial-group-size")),
    ("unknown x-match", [Q.Bind(queue=N.plain, exchange="amq.headers", arguments={"x-match": "nope"})], 406, (50, 20), 'PRECONDITION_FAILED - Invalid x-match field value <<"nope">>; expected all, any, all-with-x, or any-with-x'),
    ("x-match that is no string", [Q.Bind(queue=N.plain, exchange="amq.headers", arguments={"x-match": 5})], 406, (50, 20), "PRECONDITION_FAILED - Invalid x-match field type signedint (value 5); expected longstr"),
]

CONNECTION_ERRORS = [
    ("consumer tag used twice", [B.Consume(queue=N.plain, consumer_tag="t", nowait=True), B.Consume(queue=N.plain, consumer_tag="t")], 530, (60, 20), "NOT_ALLOWED - attempt to reuse consumer tag 't'"),
    ("immediate publish", [Publish("", N.plain, immediate=True)], 540, (60, 40), "NOT_IMPLEMENTED - immediate=true"),
    ("qos with a prefetch size", [B.Qos(prefetch_size=1)], 540, (60, 10), "NOT_IMPLEMENTED - prefetch_size!=0 (1)"),
    ("recover without requeue", [B.Recover(False)], 540, (60, 110), "NOT_IMPLEMENTED - requeue=false"),
    ("recover-async without requeue", [B.RecoverAsync(False)], 540, (60, 100), "NOT_IMPLEMENTED - requeue=false"),
    ("channel.flow off", [spec.Channel.Flow(False)], 540, (20, 20), "NOT_IMPLEMENTED - active=false"),
    ("second channel.open", [spec.Channel.Open()], 504, (20, 10), "CHANNEL_ERROR - second 'channel.open' seen"),
    ("connection method on a channel", [spec.Connection.Open("/")], 503, (10, 40), "COMMAND_INVALID - unimplemented method"),
    ("server's method from a client", [Q.DeclareOk("a", 1, 1)], 503, (50, 11), "COMMAND_INVALID - unimplemented method"),
]


def send_all(wire, requests):
    for request in requests:
        if isinstance(request, Publish):
            wire.publish(1, request.exchange, request.key, properties=request.properties, **request.flags)
        else:
            wire.send(1, request)


def check(closed, code, ids, text):
    assert (closed.reply_code, (closed.class_id, closed.method_id), closed.reply_text) == (code, ids, text)


@pytest.mark.parametrize(("requests", "code", "ids", "text"), [case[1:] for case in CHANNEL_ERRORS], ids=[case[0] for case in CHANNEL_ERRORS])
def test_channel_error(wire, requests, code, ids, text):
    wire.channel(2)
    send_all(wire, requests)
    check(wire.expect_channel_close(1), code, ids, text)
    # The other channel does not notice, and the number of the closed one may be used again.
    wire.call(2, Q.Declare(queue=N.plain, passive=True), Q.DeclareOk)
    wire.channel(1)
    wire.call(1, Q.Declare(queue=N.plain, passive=True), Q.DeclareOk)


@pytest.mark.parametrize(("requests", "code", "ids", "text"), [case[1:] for case in CONNECTION_ERRORS], ids=[case[0] for case in CONNECTION_ERRORS])
def test_connection_error(wire, requests, code, ids, text):
    send_all(wire, requests)
    check(wire.expect_connection_close(), code, ids, text)


ACCEPTED = [{"x-queue-mode": "lazy"}, {"x-queue-version": 2}, {"x-queue-type": "classic"}, {"x-unknown-argument": 1}, {"x-overflow": "drop-head"}]


@pytest.mark.parametrize("arguments", ACCEPTED, ids=[next(iter(a)) for a in ACCEPTED])
def test_an_argument_that_is_accepted(wire, arguments):
    wire.call(1, Q.Declare(queue="", exclusive=True, arguments=arguments), Q.DeclareOk)


@pytest.mark.leveret_only("RabbitMQ 4.3 refuses them on classic queues")
@pytest.mark.parametrize("arguments", [{"x-queue-version": 1}, {"x-max-in-memory-length": 0}], ids=["x-queue-version 1", "x-max-in-memory-length"])
def test_an_argument_of_older_versions_is_accepted(wire, arguments):
    wire.call(1, Q.Declare(queue="", exclusive=True, arguments=arguments), Q.DeclareOk)


def test_a_classic_type_is_equivalent_to_none(wire):
    wire.call(1, Q.Declare(queue=N.fresh, exclusive=True), Q.DeclareOk)
    wire.call(1, Q.Declare(queue=N.fresh, exclusive=True, arguments={"x-queue-type": "classic"}), Q.DeclareOk)


def test_a_message_over_the_limit(wire):
    method = B.Publish(exchange="", routing_key=N.plain)
    content = wire.content(1, b"x" * (16777216 + 1))
    wire.send_bytes(method_bytes(1, method) + content[:-9])
    wire.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        wire.read_frame()
    wire.socket.settimeout(10)
    wire.send_bytes(content[-9:])
    closed = wire.expect_channel_close(1)
    check(closed, 406, (60, 40), "PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216")


def test_a_body_size_beyond_any_limit(wire):
    from pika import frame as frames

    wire.send(1, B.Publish(exchange="", routing_key=N.plain))
    wire.send_bytes(frames.Header(1, 1 << 40, spec.BasicProperties()).marshal())
    closed = wire.expect_connection_close()
    check(closed, 501, (60, 40), "FRAME_ERROR - content body size 1099511627776 exceeds maximum allowed size 536870912")


def test_methods_that_are_answered_with_ok(wire):
    wire.call(1, spec.Channel.Flow(True), spec.Channel.FlowOk)
    wire.call(1, B.Recover(True), B.RecoverOk)
    wire.call(1, B.Cancel("nobody"), B.CancelOk)
    wire.call(1, spec.Access.Request("/"), spec.Access.RequestOk)
    wire.send(1, B.Ack(0, True))
    wire.call(1, Q.Delete(queue=N.missing), Q.DeleteOk)
    wire.call(1, X.Delete(exchange=N.missing), X.DeleteOk)
    wire.call(1, Q.Unbind(queue=N.missing, exchange="amq.direct"), Q.UnbindOk)
    wire.call(1, Q.Unbind(queue=N.plain, exchange=N.missing), Q.UnbindOk)
    wire.call(1, X.Unbind(destination=N.missing, source="amq.direct"), X.UnbindOk)
    wire.call(1, Q.Unbind(queue=N.plain, exchange="amq.direct", routing_key="never bound"), Q.UnbindOk)
    wire.call(1, spec.Channel.Close(200, "", 0, 0), spec.Channel.CloseOk)
