"""The first seconds of a connection: headers, login, tuning, deadlines, heartbeats."""

import concurrent.futures
import struct
import threading
import time

import pytest
from pika import spec

from wire import CAPABILITIES, HEADER, Closed, Wire, connected, raw_frame

C = spec.Connection


def table(**strings: str) -> str:
    """A field table's inside with long strings, as AMQPLAIN wants it."""
    parts = (bytes([len(key)]) + key.encode() + b"S" + struct.pack(">I", len(value)) + value.encode() for key, value in strings.items())
    return b"".join(parts).decode("latin1")


def refusal(wire: Wire):
    """connection.close, if the broker says why; None if it closes without a word, as RabbitMQ does before login."""
    try:
        closed = wire.expect(C.Close, 0)
    except Closed:
        return None
    wire.send(0, C.CloseOk())
    wire.read_until_closed()
    return closed


def outcome(talk):
    """How a conversation that must be refused ends: seconds and connection.close, or what else came."""
    with Wire() as wire:
        try:
            started = time.monotonic()
            talk(wire)
            closed = refusal(wire)
            return time.monotonic() - started, closed
        except (AssertionError, OSError) as error:
            return 0.0, error


@pytest.fixture(scope="module")
def refusals():
    """All refused conversations at once: a broker may take RabbitMQ's three silent seconds for each."""
    names = list(REFUSED)
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        return dict(zip(names, pool.map(outcome, [REFUSED[name][0] for name in names]), strict=True))


# The header.


@pytest.mark.parametrize("header", [b"AMQP\x00\x00\x08\x00", b"AMQP\x01\x01\x08\x00", b"HTTP/1.1", b"XXXXXXXX", b"AMQP\x00\x00\x09\x02", b"\x00" * 8], ids=repr)
def test_an_unknown_header_is_answered_with_ours(header):
    with Wire() as wire:
        wire.send_bytes(header)
        answer = wire.read_until_closed()
        assert len(answer) == 8 and answer.startswith(b"AMQP"), answer


@pytest.mark.leveret_only("RabbitMQ 4 prefers AMQP 1.0")
def test_our_header_is_0_9_1():
    with Wire() as wire:
        wire.send_bytes(b"AMQP\x09\x09\x09\x09")
        assert wire.read_until_closed() == HEADER


def test_the_header_may_come_byte_by_byte():
    with Wire() as wire:
        for at in range(8):
            wire.send_bytes(HEADER[at : at + 1])
        assert wire.expect(C.Start, 0).version_major == 0


# What the broker says of itself.


def test_server_properties():
    with Wire() as wire:
        start = wire.start()
    assert (start.version_major, start.version_minor) == (0, 9)
    assert start.server_properties["product"] in ("RabbitMQ", b"RabbitMQ")
    assert {"PLAIN", "AMQPLAIN"} <= set(start.mechanisms.split() if isinstance(start.mechanisms, str) else start.mechanisms.decode().split())
    assert "en_US" in str(start.locales)
    for capability in ("publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify", "connection.blocked", "consumer_priorities", "authentication_failure_close", "per_consumer_qos"):
        assert start.server_properties["capabilities"][capability] is True, capability
    for key in ("version", "platform", "copyright", "information", "cluster_name"):
        assert start.server_properties[key], key


@pytest.mark.leveret_only("only ours has this version")
def test_our_version():
    with Wire() as wire:
        properties = wire.start().server_properties
    assert properties["version"].startswith("4.2."), properties["version"]
    assert properties["leveret_version"]


def test_tuning_values():
    with Wire() as wire:
        wire.start()
        wire.login()
        tune = wire.expect(C.Tune, 0)
        assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, 131072, 60)


# Login.


@pytest.mark.parametrize("response", ["\0guest\0wrong", "\0nobody\0guest", "\0\0"])
def test_wrong_credentials(response):
    with Wire() as wire:
        wire.start()
        wire.login(response=response)
        closed = wire.expect_connection_close()
        assert (closed.reply_code, closed.class_id, closed.method_id) == (403, 0, 0)
        assert closed.reply_text == "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile."


def test_wrong_credentials_without_the_capability_close_silently():
    with Wire() as wire:
        wire.start()
        wire.login(response="\0guest\0wrong", capabilities={})
        assert wire.read_until_closed() == b""


def test_amqplain():
    with Wire() as wire:
        wire.open(mechanism="AMQPLAIN", response=table(LOGIN="guest", PASSWORD="guest"))
        wire.channel(1)


def test_anonymous_is_the_guest_whatever_it_says():
    for trace in ("", "me"):
        with Wire() as wire:
            wire.open(mechanism="ANONYMOUS", response=trace)
            wire.channel(1)
            wire.publish(1, "", "nowhere", properties=spec.BasicProperties(user_id="guest"))
            wire.call(1, spec.Channel.Flow(True), spec.Channel.FlowOk)


def test_a_new_secret_is_taken():
    with Wire() as wire:
        wire.open()
        wire.call(0, C.UpdateSecret(b"another", "rotated"), C.UpdateSecretOk)
        wire.channel(1)


def test_amqplain_with_a_wrong_password():
    with Wire() as wire:
        wire.start()
        wire.login(mechanism="AMQPLAIN", response=table(LOGIN="guest", PASSWORD="wrong"))
        assert wire.expect_connection_close().reply_code == 403


@pytest.mark.parametrize("vhost", ["nope", ""])
def test_an_unknown_vhost(vhost):
    with Wire() as wire:
        wire.start()
        wire.login()
        wire.expect(C.Tune, 0)
        wire.send(0, C.TuneOk(2047, 131072, 0))
        wire.send(0, C.Open(vhost))
        closed = wire.expect_connection_close()
        assert (closed.reply_code, closed.class_id, closed.method_id) == (530, 10, 40)
        assert closed.reply_text == f"NOT_ALLOWED - vhost {vhost} not found"


# Tuning.


@pytest.mark.parametrize(("channel_max", "frame_max", "heartbeat"), [(2047, 8192, 0), (1, 131072, 60), (2047, 131072, 600)])
def test_tune_ok_within_the_offer(channel_max, frame_max, heartbeat):
    with connected(channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat) as wire:
        wire.channel(1)
        wire.call(1, spec.Queue.Declare(queue="", exclusive=True), spec.Queue.DeclareOk)


def test_frames_towards_us_keep_to_frame_max():
    with connected(frame_max=8192) as wire:
        wire.channel(1)
        queue = wire.call(1, spec.Queue.Declare(queue="", exclusive=True), spec.Queue.DeclareOk).queue
        wire.publish(1, "", queue, b"z" * 20000)
        wire.call(1, spec.Basic.Get(queue=queue, no_ack=True), spec.Basic.GetOk)
        assert wire.read_frame().body_size == 20000
        sizes = []
        while sum(sizes) < 20000:
            sizes.append(len(wire.read_raw_frame()[2]))
        assert sizes == [8184, 8184, 3632]


def test_a_channel_may_have_any_number():
    with connected(channel_max=3) as wire:
        for number in (65535, 2048, 1):
            wire.channel(number)
            queue = wire.call(number, spec.Queue.Declare(queue="", exclusive=True), spec.Queue.DeclareOk).queue
            wire.publish(number, "", queue, b"here")
            wire.call(number, spec.Basic.Get(queue=queue, no_ack=True), spec.Basic.GetOk)
            assert wire.read_content()[1] == b"here"
            wire.send(number, spec.Channel.Close(200, "", 0, 0))
            wire.expect(spec.Channel.CloseOk, number)


def test_one_channel_too_many():
    with connected(channel_max=2) as wire:
        wire.channel(1)
        wire.channel(2)
        wire.send(3, spec.Channel.Open())
        closed = wire.expect_connection_close()
        assert (closed.reply_code, closed.class_id, closed.method_id) == (530, 0, 0)
        assert closed.reply_text == "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"


# The wrong method at the wrong time.


def after_start(method, channel=0):
    def talk(wire):
        wire.start()
        wire.send(channel, method)

    return talk


def after_tune(method, channel=0):
    def talk(wire):
        wire.start()
        wire.login()
        wire.expect(C.Tune, 0)
        wire.send(channel, method)

    return talk


def oversized_before_login(wire):
    wire.start()
    wire.send_bytes(struct.pack(">BHI", 1, 0, 8193) + b"a" * 8194)


def huge_before_login(wire):
    wire.start()
    wire.send_bytes(struct.pack(">BHI", 1, 0, 0x7FFFFFFF))


def wrong_end_before_login(wire):
    wire.start()
    wire.send_bytes(raw_frame(1, 0, b"\x00\x0a\x00\x0b", b"\x00"))


def garbage_start_ok(wire):
    wire.start()
    wire.send_bytes(raw_frame(1, 0, b"\x00\x0a\x00\x0b\xff\xff\xff\xff\xff"))


def sasl(mechanism, response):
    def talk(wire):
        wire.start()
        wire.login(mechanism=mechanism, response=response)

    return talk


def tuned(channel_max, frame_max):
    def talk(wire):
        wire.start()
        wire.login()
        wire.expect(C.Tune, 0)
        wire.send(0, C.TuneOk(channel_max, frame_max, 0))
        wire.send(0, C.Open("/"))

    return talk


SASL_CODES = {403, 501, 502, 503, 505}
ORDER_CODES = {501, 502, 503, 504, 505, 530}

# What must be refused: the conversation, and the reply codes that may be given if any reason is given at all.
REFUSED = {
    "unknown SASL mechanism": (sasl("NOPE", ""), SASL_CODES),
    "PLAIN without separators": (sasl("PLAIN", "guest"), SASL_CODES),
    "PLAIN with nothing": (sasl("PLAIN", ""), SASL_CODES),
    "AMQPLAIN with half a table": (sasl("AMQPLAIN", "xx"), SASL_CODES),
    "AMQPLAIN with nothing": (sasl("AMQPLAIN", ""), SASL_CODES),
    "frame_max below the minimum": (tuned(2047, 4095), {530}),
    "frame_max of 1": (tuned(2047, 1), {530}),
    "frame_max above the offer": (tuned(2047, 131073), {530}),
    "frame_max without limit": (tuned(2047, 0), {530}),
    "channel_max above the offer": (tuned(2048, 131072), {530}),
    "channel_max without limit": (tuned(0, 131072), {530}),
    "open before start-ok": (after_start(C.Open("/")), ORDER_CODES),
    "tune-ok before start-ok": (after_start(C.TuneOk(1, 1, 1)), ORDER_CODES),
    "channel.open before start-ok": (after_start(spec.Channel.Open(), 1), ORDER_CODES),
    "channel.open before connection.open": (after_tune(spec.Channel.Open(), 1), ORDER_CODES),
    "open before tune-ok": (after_tune(C.Open("/")), ORDER_CODES),
    "publish before login": (after_start(spec.Basic.Publish(exchange="", routing_key="q"), 1), ORDER_CODES),
    "frame above 8 KiB before login": (oversized_before_login, ORDER_CODES),
    "frame of 2 GiB before login": (huge_before_login, ORDER_CODES),
    "wrong frame end before login": (wrong_end_before_login, ORDER_CODES),
    "garbage start-ok": (garbage_start_ok, ORDER_CODES),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refusals, name):
    seconds, closed = refusals[name]
    assert closed is None or getattr(closed, "reply_code", None) in REFUSED[name][1], closed
    assert seconds < 8, f"refused only after {seconds:.1f} s"


def test_slow_logins_are_cut_after_ten_seconds():
    def nothing(wire):
        pass

    def half_header(wire):
        wire.send_bytes(b"AMQ")

    def only_start(wire):
        wire.start()

    def half_frame(wire):
        wire.start()
        wire.send_bytes(b"\x01\x00\x00")

    lasted = {}

    def measure(talk):
        with Wire(timeout=20) as wire:
            started = time.monotonic()
            talk(wire)
            wire.read_until_closed()
            lasted[talk.__name__] = time.monotonic() - started

    threads = [threading.Thread(target=measure, args=(talk,)) for talk in (nothing, half_header, only_start, half_frame)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(lasted) == 4, lasted
    assert all(8 < seconds < 14 for seconds in lasted.values()), lasted


# Heartbeats.


def test_heartbeats_come_at_half_the_interval_and_a_silent_client_is_closed():
    with connected(heartbeat=1) as wire:
        started = time.monotonic()
        beats = 0
        try:
            while True:
                kind, channel, payload = wire.read_raw_frame()
                if kind == spec.FRAME_HEARTBEAT:
                    assert (channel, payload) == (0, b"")
                    beats += 1
        except Closed:
            pass
        assert 1.8 < time.monotonic() - started < 4.5
        assert beats >= 2


def test_a_client_that_beats_is_kept():
    with connected(heartbeat=1) as wire:
        stop = threading.Event()

        def beat():
            while not stop.wait(0.4):
                wire.send_bytes(raw_frame(8, 0, b""))

        thread = threading.Thread(target=beat)
        thread.start()
        deadline = time.monotonic() + 4.5
        while time.monotonic() < deadline:
            assert wire.read_raw_frame()[0] == spec.FRAME_HEARTBEAT
        stop.set()
        thread.join()
        wire.channel(1)


def test_without_heartbeats_silence_is_allowed():
    with connected(heartbeat=0, capabilities=CAPABILITIES) as wire:
        wire.socket.settimeout(3.5)
        with pytest.raises(TimeoutError):
            wire.read_raw_frame()
        wire.socket.settimeout(10)
        wire.channel(1)


def test_closing_politely():
    with connected() as wire:
        wire.channel(1)
        wire.call(0, C.Close(200, "bye", 0, 0), C.CloseOk)


def test_two_hundred_junk_connections_leave_others_alone():
    with connected() as witness:
        witness.channel(1)
        for attempt in range(200):
            with Wire() as wire:
                wire.send_bytes(bytes((attempt * 7 + i) % 256 for i in range(40)))
        witness.call(1, spec.Queue.Declare(queue="", exclusive=True), spec.Queue.DeclareOk)
