"""A node that runs out of file descriptors or disk space: it waits, tells, lets consumers drain, and goes on by itself."""

import contextlib
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pika
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.broker import Broker
from waiting import until

BINARY = os.environ.get("LEVERET_BINARY")
pytestmark = pytest.mark.skipif(not BINARY, reason="needs the executable")
PERSISTENT = pika.BasicProperties(delivery_mode=2)
MEGABYTE = bytes(1 << 20)


@pytest.fixture
def small_disk(tmp_path):
    """Makes file systems of some megabytes, which only root can."""
    mounted = []

    def make(megabytes):
        at = tmp_path / f"disk-{len(mounted)}"
        at.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", at], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("no file system can be mounted here")
        mounted.append(at)
        return at

    yield make
    for at in mounted:
        subprocess.run(["umount", "-l", at], check=False)


def channel_of(one, **options):
    parameters = pika.ConnectionParameters(one.host, one.port, socket_timeout=10, **options)
    channel = pika.BlockingConnection(parameters).channel()
    channel.confirm_delivery()
    return channel


def publish(one, count):
    channel = channel_of(one, blocked_connection_timeout=120)
    channel.queue_declare("flood", durable=True)
    for _ in range(count):
        channel.basic_publish("", "flood", MEGABYTE, PERSISTENT)
    channel.connection.close()


def test_sockets_that_say_nothing_leave_the_log_its_descriptors():
    """A roll of the log needs descriptors; clients have used up all that they may."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    one = Broker(BINARY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
    try:
        # The soft limit is raised to the hard one.
        one.start()
        limits = Path(f"/proc/{one.process.pid}/limits").read_text()
        (files,) = (line.split() for line in limits.splitlines() if line.startswith("Max open files"))
        assert files[3] == files[4], limits
        one.stop()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    shell = ["/bin/sh", "-c", 'ulimit -n 400; exec "$0" "$@"']
    with contextlib.ExitStack() as closing:
        closing.callback(one.close)
        config = one.write_config()
        log = closing.enter_context(open(one.log_path, "ab"))
        one.process = subprocess.Popen([*shell, BINARY, "server", "--config", str(config)], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        one.wait_until_serving()
        channel = channel_of(one)
        channel.queue_declare("kept", durable=True)
        for _ in range(400):
            with contextlib.suppress(OSError):
                closing.enter_context(socket.create_connection((one.host, one.port), timeout=2))
        until(lambda: "connections to" in one.log_text() and "closed at once" in one.log_text())
        for _ in range(100):
            channel.basic_publish("", "kept", MEGABYTE, PERSISTENT)
        channel.connection.close()
        assert "the write-ahead log failed" not in one.log_text()


def test_a_start_on_a_full_disk_lets_consumers_drain_and_goes_on_when_there_is_space(small_disk):
    disk = small_disk(300)
    one = Broker(BINARY, directory=disk / "node", settings={"disk_free_limit.absolute": "20MB"})
    one.start()
    try:
        channel = channel_of(one)
        channel.queue_declare("kept", durable=True)
        for _ in range(20):
            channel.basic_publish("", "kept", MEGABYTE, PERSISTENT)
        channel.connection.close()
        one.kill()
        # What is left is less than a file of the log.
        for spare in (one.data / "log").glob("spare-*"):
            spare.unlink()
        free = shutil.disk_usage(disk).free
        (disk / "ballast").write_bytes(bytes(max(free - (15 << 20), 0)))
        one.start()
        channel = channel_of(one)
        for number in range(20):
            method, _, _ = channel.basic_get("kept")
            assert method is not None, number
            channel.basic_ack(method.delivery_tag)
        channel.queue_declare("new", durable=True)
        channel.queue_purge("kept")
        channel.queue_delete("kept")
        log = one.log_text()
        assert "alarm: publishers are blocked" in log and "the write-ahead log has no next file: the disk is full" in log, log
        (disk / "ballast").unlink()
        until(lambda: "all alarms are cleared" in one.log_text())
        channel.basic_publish("", "new", MEGABYTE, PERSISTENT)
        channel.connection.close()
        assert one.stop() == 0
    finally:
        one.kill()


def test_a_disk_that_fills_up_blocks_publishers_until_there_is_space(small_disk):
    disk = small_disk(300)
    one = Broker(BINARY, directory=disk / "node", settings={"disk_free_limit.absolute": "1MB"})
    one.start()
    try:
        channel = channel_of(one, blocked_connection_timeout=300)
        channel.queue_declare("kept", durable=True)
        free = shutil.disk_usage(disk).free
        (disk / "ballast").write_bytes(bytes(max(free - (40 << 20), 0)))
        flood = threading.Thread(target=publish, args=(one, 30), daemon=True)
        flood.start()
        until(lambda: "the write-ahead log has no next file: the disk is full" in one.log_text(), what="no alarm")
        assert "alarm: publishers are blocked" in one.log_text()
        (disk / "ballast").unlink()
        until(lambda: "all alarms are cleared" in one.log_text())
        flood.join(30)
        assert not flood.is_alive(), "the publisher goes on"
        channel.basic_publish("", "kept", MEGABYTE, PERSISTENT)
        assert "the write-ahead log failed" not in one.log_text()
        assert one.stop() == 0
    finally:
        one.kill()
