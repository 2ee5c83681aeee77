"""A wall clock that somebody sets: what ends within the run of a node ends by a clock that nobody sets."""

import subprocess
import time
from pathlib import Path

import pika
import pytest

from test_guards import connection
from test_process import broker, pytestmark  # noqa: F401 - a fixture and a mark
from waiting import until

HERE = Path(__file__).resolve().parent


def library():
    """libfaketime, which makes a process see another wall clock; none, if its package can't be had."""
    subprocess.run([HERE / "install-faketime"], check=False)
    return next((HERE.parent / ".cache" / "faketime").glob("usr/lib/*/faketime/libfaketimeMT.so.1"), None)


@pytest.fixture
def clock(tmp_path, monkeypatch):
    """Sets the wall clock of brokers that are started from here on."""
    found = library()
    if found is None:
        pytest.skip("libfaketime can't be had")
    said = tmp_path / "clock"

    def set_to(offset: str) -> None:
        said.write_text(f"{offset}\n")

    set_to("+0")
    monkeypatch.setenv("LD_PRELOAD", str(found))
    monkeypatch.setenv("FAKETIME_TIMESTAMP_FILE", str(said))
    monkeypatch.setenv("FAKETIME_NO_CACHE", "1")
    # The clock that only goes on is the kernel's.
    monkeypatch.setenv("DONT_FAKE_MONOTONIC", "1")
    monkeypatch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    return set_to


@pytest.mark.parametrize("jump", ["+2h", "-2h"])
def test_deadlines_are_kept_when_the_clock_is_set(broker, clock, jump):  # noqa: F811
    one = broker().start()
    with connection(one) as other:
        channel = other.channel()
        channel.queue_declare("unused", durable=True, arguments={"x-expires": 60_000})
        channel.queue_declare("old", durable=True, arguments={"x-message-ttl": 600_000})
        channel.queue_declare("short", durable=True, arguments={"x-message-ttl": 1_500})
        channel.confirm_delivery()
        for queue in ("unused", "old", "short"):
            channel.basic_publish("", queue, b"m", pika.BasicProperties(delivery_mode=2))
        clock(jump)
        started = time.monotonic()
        # A message that is to go after a second and a half goes then, whatever the clock says.
        while channel.queue_declare("short", passive=True).method.message_count:
            assert time.monotonic() < started + 10, "the message did not expire"
            other.sleep(0.1)
        # The node has seen the jump, so the test is one.
        until(lambda: "the system's clock was set" in one.log_text())
        for queue in ("unused", "old"):
            assert channel.queue_declare(queue, passive=True).method.message_count == 1, queue
