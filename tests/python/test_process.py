"""The process itself: how it starts, what it refuses to start on, how it stops, whom it lets in from where."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pika
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.broker import Broker
from wire import B, Q, Wire, spec

BINARY = os.environ.get("LEVERET_BINARY")
pytestmark = pytest.mark.skipif(not BINARY, reason="needs the executable")
EXIT_SECONDS = 15


@pytest.fixture
def broker():
    """Makes brokers with settings of their own, and ends them."""
    made = []

    def make(settings=None, **options):
        made.append(Broker(BINARY, settings, **options))
        return made[-1]

    yield make
    for one in made:
        assert not one.panics(), one.panics()
        one.close()


def refuses_to_start(one, *words):
    """It exits by itself, not with 0, and says why."""
    one.spawn()
    code = one.process.wait(EXIT_SECONDS)
    log = one.log_text()
    assert code not in (0, None) and code > 0, log
    for word in words:
        assert word in log, f"{word!r} is not in:\n{log}"


def at(one):
    return Wire(where=(one.host, one.port))


def persist(one, count=50):
    with at(one) as wire:
        wire.open().channel(1)
        wire.call(1, Q.Declare(queue="kept", durable=True), Q.DeclareOk)
        wire.call(1, spec.Confirm.Select(), spec.Confirm.SelectOk)
        for number in range(count):
            wire.publish(1, "", "kept", str(number).encode(), spec.BasicProperties(delivery_mode=2))
        confirmed = 0
        while confirmed < count:
            confirmed = wire.expect(B.Ack, 1).delivery_tag


def kept(one):
    """How many of the persisted messages are there."""
    with at(one) as wire:
        wire.open().channel(1)
        return wire.call(1, Q.Declare(queue="kept", passive=True), Q.DeclareOk).message_count


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(broker, how):
    one = broker().start()
    one.process.send_signal(how)
    assert one.process.wait(EXIT_SECONDS) == 0


def test_an_unknown_setting_names_the_nearest(broker):
    refuses_to_start(broker({"hartbeat": "10"}), "hartbeat", "heartbeat")


def test_a_setting_with_a_wrong_value(broker):
    refuses_to_start(broker({"heartbeat": "soon"}), "heartbeat")


def test_a_setting_of_a_part_that_is_not_built_yet_is_a_warning(broker):
    one = broker({"mqtt.allow_anonymous": "false"}).start()
    assert "mqtt.allow_anonymous" in one.log_text()


def test_a_missing_configuration_file():
    done = subprocess.run([BINARY, "server", "--config", "/nowhere/leveret.conf"], capture_output=True, text=True, timeout=EXIT_SECONDS)
    assert done.returncode != 0
    assert "/nowhere/leveret.conf" in done.stdout + done.stderr


def test_a_second_broker_on_the_same_data_is_refused(broker):
    first = broker().start()
    second = broker({"data_dir": str(first.data)})
    refuses_to_start(second, str(first.data))
    persist(first)


def test_a_taken_port_is_told(broker):
    first = broker().start()
    second = broker()
    second.port = first.port
    refuses_to_start(second, str(first.port))


def test_a_data_directory_that_is_a_file(broker):
    one = broker()
    one.data.write_text("not a directory")
    refuses_to_start(one, str(one.data))


def log_files(one):
    return sorted(path for path in one.data.rglob("*.wal") if path.stat().st_size)


def test_a_torn_tail_is_cut(broker):
    one = broker().start()
    persist(one)
    one.kill()
    newest = log_files(one)[-1]
    data = newest.read_bytes()
    used = len(data.rstrip(b"\0"))
    newest.write_bytes(data[: used - 3] + b"\x55" * 3 + b"\0" * (len(data) - used))
    one.start()
    # The last append is gone as a whole; what was written before it is not.
    left = kept(one)
    assert left <= 50
    with at(one) as wire:
        wire.open().channel(1)
        for number in range(left):
            wire.call(1, B.Get(queue="kept", no_ack=True), B.GetOk)
            assert wire.read_content()[1] == str(number).encode()


def test_a_damaged_log_is_reported_or_survived(broker):
    """Bytes changed at the very start of the log: either both copies of what matters survive, or it says which file is damaged."""
    one = broker().start()
    persist(one)
    one.kill()
    oldest = log_files(one)[0]
    with open(oldest, "r+b") as file:
        file.write(os.urandom(16384))
    refuses_to_start(one, oldest.name)


def test_other_copies_of_the_data_serve_elsewhere(broker):
    """A data directory is files only: a copy of it at rest is a broker."""
    one = broker().start()
    persist(one)
    one.stop()
    other = broker()
    shutil.copytree(one.data, other.data, ignore=shutil.ignore_patterns("admin"))
    other.start()
    assert kept(other) == 50


def test_default_user_and_password(broker):
    one = broker({"default_user": "alice", "default_pass": "secret"}).start()
    with at(one) as wire:
        wire.open(response="\0alice\0secret")
    with at(one) as wire:
        wire.start()
        wire.login(response="\0guest\0guest")
        assert wire.expect_connection_close().reply_code == 403


def outward_address() -> str | None:
    """An address of this machine that is not loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def test_guest_comes_in_from_this_machine_only(broker):
    outside = outward_address()
    if outside is None or outside.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    one = broker()
    one.settings["listeners.tcp.default"] = f"0.0.0.0:{one.port}"
    one.start()
    with Wire(where=(outside, one.port)) as wire:
        wire.start()
        wire.login()
        assert wire.expect_connection_close().reply_code == 403
    with at(one) as wire:
        wire.open()


def test_a_memory_alarm_blocks_publishers_only(broker):
    one = broker({"vm_memory_high_watermark.absolute": "1MB"}).start()
    with at(one) as publisher, at(one) as consumer:
        publisher.open().channel(1)
        consumer.open().channel(1)
        consumer.call(1, Q.Declare(queue="low", durable=True), Q.DeclareOk)
        publisher.socket.settimeout(0.2)
        deadline = time.monotonic() + 20
        blocked = None
        while blocked is None and time.monotonic() < deadline:
            publisher.publish(1, "", "low", b"x")
            try:
                blocked = publisher.expect(spec.Connection.Blocked, 0)
            except TimeoutError:
                continue
        assert blocked is not None and blocked.reason == "low on memory"
        consumer.call(1, Q.Purge(queue="low"), Q.PurgeOk)


def test_both_alarms_at_once(broker):
    one = broker({"vm_memory_high_watermark.absolute": "1MB", "disk_free_limit.absolute": "1000TB"}).start()
    heard = []
    parameters = pika.ConnectionParameters(host=one.host, port=one.port, blocked_connection_timeout=60)
    connection = pika.BlockingConnection(parameters)
    connection.add_on_connection_blocked_callback(lambda _, frame: heard.append(frame.method.reason))
    channel = connection.channel()
    deadline = time.monotonic() + 20
    while "low on memory & disk" not in heard and time.monotonic() < deadline:
        if not heard:
            channel.basic_publish("", "nowhere", b"x")
        connection.process_data_events(time_limit=0.1)
    assert heard and heard[-1] == "low on memory & disk", heard


def test_what_is_printed_at_the_start_tells_where_to_connect(broker):
    one = broker().start()
    deadline = time.monotonic() + 5
    while f":{one.port}" not in one.log_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert f":{one.port}" in one.log_text()


def test_version_and_help():
    for flag in ("--version", "--help"):
        done = subprocess.run([BINARY, flag], capture_output=True, text=True, timeout=EXIT_SECONDS)
        assert done.returncode == 0
        assert "leveret" in done.stdout.lower(), flag
