"""Files of the data directory that are gone or damaged: what a start says, what it leaves alone, and how a node goes on without them."""

import os
import subprocess
import sys
from pathlib import Path

import pika
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.broker import Broker

BINARY = os.environ.get("LEVERET_BINARY")
pytestmark = pytest.mark.skipif(not BINARY, reason="needs the executable")
EXIT_SECONDS = 30
PERSISTENT = pika.BasicProperties(delivery_mode=2)


@pytest.fixture
def broker():
    one = Broker(BINARY)
    yield one
    assert not one.panics(), one.panics()
    one.close()


def channel_of(one):
    channel = pika.BlockingConnection(pika.ConnectionParameters(one.host, one.port)).channel()
    channel.confirm_delivery()
    return channel


def fill(one, queue, count, size=100, properties=PERSISTENT):
    channel = channel_of(one)
    channel.queue_declare(queue, durable=True)
    for number in range(count):
        channel.basic_publish("", queue, f"{number:06d}".encode().ljust(size, b"."), properties)
    channel.connection.close()


def numbers(one, queue):
    channel = channel_of(one)
    got = []
    while (message := channel.basic_get(queue, auto_ack=True))[0] is not None:
        got.append(int(message[2][:6]))
    channel.connection.close()
    return got


def log_files(one):
    return sorted((one.data / "log").glob("*.wal"))


def everything(one):
    """All files of the data directory that hold something, with their sizes."""
    files = [path for folder in ("log", "queues") for path in (one.data / folder).rglob("*")]
    return {str(path): path.stat().st_size for path in files if path.is_file()}


def refuses(one, *words):
    before = everything(one)
    already = len(one.log_text())
    one.spawn()
    assert one.process.wait(EXIT_SECONDS) == 1
    said = one.log_text()[already:]
    for word in (*words, "leveret server --repair"):
        assert word in said, f"{word!r} is not in:\n{said}"
    assert everything(one) == before, "a refused start leaves everything as it is"


def repair(one, *options):
    command = [BINARY, "server", "--config", str(one.directory / "leveret.conf"), "--repair", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=EXIT_SECONDS, check=False)
    return done.returncode, done.stdout + done.stderr


def test_without_its_newest_log_file_a_node_neither_starts_nor_sweeps(broker):
    broker.start()
    fill(broker, "kept", 50)
    broker.restart()
    fill(broker, "later", 50)
    broker.stop()
    newest = log_files(broker)[-1]
    newest.unlink()
    refuses(broker, newest.name, "is missing")
    code, said = repair(broker)
    assert code == 1 and f"found: {broker.data / 'log'}: {newest.name} is missing" in said, said
    assert "kept: 50 persistent messages" in said and "Nothing was changed" in said, said
    refuses(broker, newest.name)
    code, said = repair(broker, "--accept-loss")
    assert code == 0 and "repaired: what was there before is kept in" in said, said
    kept = list((broker.data / "set-aside").glob("*/log/*.wal"))
    assert kept, "what was there before is kept"
    broker.start()
    assert numbers(broker, "kept") == list(range(50))
    broker.restart()


def test_an_empty_log_beside_stored_messages_is_refused(broker):
    broker.start()
    # More than a queue keeps in memory; what is transient is paged out to segments.
    fill(broker, "deep", 40, 1_000_000, pika.BasicProperties(delivery_mode=1))
    broker.kill()
    assert list((broker.data / "queues").rglob("*.segment")), "there are segments"
    for path in (broker.data / "log").iterdir():
        path.unlink()
    refuses(broker, "it has no file at all")


def test_a_last_file_cut_short_after_a_clean_stop_is_refused(broker):
    broker.start()
    fill(broker, "kept", 100)
    broker.stop()
    last = log_files(broker)[-1]
    os.truncate(last, 8_000)
    refuses(broker, last.name, "it was cut short")
    code, said = repair(broker, "--accept-loss")
    assert code == 0, said
    broker.start()
    got = numbers(broker, "kept")
    assert got == list(range(len(got))) and len(got) < 100


def test_a_whole_directory_has_nothing_to_repair(broker):
    broker.start()
    fill(broker, "kept", 10)
    broker.kill()
    code, said = repair(broker, "--accept-loss")
    assert code == 0 and "nothing is lost" in said, said
    assert not (broker.data / "set-aside").exists()
    broker.start()
    assert numbers(broker, "kept") == list(range(10))


def flip(path, needle):
    content = bytearray(path.read_bytes())
    at = content.index(needle)
    content[at] ^= 1
    path.write_bytes(content)


def test_one_damaged_record_costs_what_it_held_and_nothing_else(broker):
    broker.start()
    fill(broker, "kept", 200)
    broker.kill()
    flip(log_files(broker)[-1], b"000050")
    broker.start()
    log = broker.log_text()
    assert "is damaged at byte" in log and "all others are kept" in log, log
    assert numbers(broker, "kept") == [number for number in range(200) if number != 50]
    already = len(broker.log_text())
    broker.restart()
    assert "damaged" not in broker.log_text()[already:], "it is told once"


def test_an_operator_is_asked_before_more_than_one_record_is_given_up(broker):
    broker.start()
    fill(broker, "kept", 200)
    broker.kill()
    for needle in (b"000050", b"000120"):
        flip(log_files(broker)[-1], needle)
    refuses(broker, "2 places of the log are damaged", "is damaged at byte")
    code, said = repair(broker)
    assert code == 1, said
    assert "lost: queue 'kept' in vhost '/': 2 records of the log with up to 2 messages; 198 messages are kept" in said, said
    code, said = repair(broker, "--accept-loss")
    assert code == 0, said
    broker.start()
    assert numbers(broker, "kept") == [number for number in range(200) if number not in (50, 120)]
