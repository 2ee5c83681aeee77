"""Commands that the replayed series has no place for: what goes on as it goes on, certificates, free disk space, policies of mirrored queues."""

import json
import select
import subprocess
import sys
import time
from pathlib import Path

import pika
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from test_process import BINARY, broker, pytestmark  # noqa: F401 - a fixture and a mark
from test_tls import authority, secured  # noqa: F401 - fixtures

PATIENCE_SECONDS = 20


def ctl(one, *words):
    """A command's exit code, and what it writes to both."""
    done = subprocess.run([BINARY, "ctl", *words, "--data-dir", str(one.data)], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def follow():
    """Starts commands that go on, does something again and again, and gives the first line that they write."""
    started = []

    def first_line(one, words, act):
        process = subprocess.Popen([BINARY, "ctl", *words, "-q", "--data-dir", str(one.data)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        deadline = time.monotonic() + PATIENCE_SECONDS
        turn = 0
        while time.monotonic() < deadline:
            # Nothing tells when the command listens, so it is done until something is heard.
            act(turn)
            turn += 1
            if select.select([process.stdout], [], [], 0.5)[0]:
                return process.stdout.readline()
        raise AssertionError(f"{words} wrote nothing")

    yield first_line
    for process in started:
        process.kill()
        process.communicate()


def test_events_are_written_as_they_happen_without_an_event_exchange(broker, follow):  # noqa: F811
    one = broker().start()
    line = follow(one, ["consume_event_stream", "--pattern", "^vhost"], lambda turn: ctl(one, "add_vhost", f"v{turn}"))
    event = json.loads(line)
    assert (event["event"], event["name"][0]) == ("vhost.created", "v")
    assert event["timestamp_in_ms"] > 0


def test_lines_of_the_log_are_written_as_they_come(broker, follow):  # noqa: F811
    # The last one who asked whether the node listens may be accepted later.
    one = broker({"log.connection.level": "none"}).start()
    line = follow(one, ["log_tail_stream"], lambda turn: ctl(one, "add_vhost", f"v{turn}"))
    assert "[info] audit: user 'rmq-cli' from the admin socket: PUT /api/vhosts/v" in line


def test_messages_are_written_as_they_pass(broker, follow):  # noqa: F811
    one = broker().start()
    assert ctl(one, "trace_on")[0] == 0
    connection = pika.BlockingConnection(pika.ConnectionParameters(one.host, one.port))
    channel = connection.channel()
    line = follow(one, ["trace_tail", "--key", "publish.#"], lambda _: channel.basic_publish("amq.topic", "a.b", b"seen"))
    message = json.loads(line)
    assert (message["kind"], message["exchange"], message["routing_key"], message["payload"]) == ("publish", "amq.topic", "a.b", "seen")
    connection.close()


def test_a_stream_ends_after_its_duration_and_with_the_node(broker):  # noqa: F811
    one = broker().start()
    assert ctl(one, "consume_event_stream", "--duration", "1")[:2] == (0, "")
    code, _, told = ctl(one, "consume_event_stream", "--pattern", "(")
    assert code == 69 and "regular expression" in told
    code, _, told = ctl(one, "trace_tail", "-p", "nowhere", "-d", "1")
    assert (code, told.strip()) == (65, "Virtual host 'nowhere' does not exist")


def test_certificates_are_shown_and_never_a_key(secured, authority):  # noqa: F811
    one = secured(start=False)
    pem = Path(one.settings["ssl_options.certfile"])
    pem.write_text(pem.read_text() + Path(one.settings["ssl_options.keyfile"]).read_text())
    one.start()
    code, out, _ = ctl(one, "certificates", "--formatter", "json")
    (listener,) = json.loads(out)
    assert code == 0 and "PRIVATE KEY" not in out
    assert (listener["protocol"], listener["port"]) == ("amqp/ssl", one.tls_port)
    assert listener["certfile"].startswith("-----BEGIN CERTIFICATE-----")
    (shown,) = listener["certfile_certificates"]
    assert shown["issuer"] == "CN=authority,O=Leveret tests" and " - " in shown["validity"]
    assert listener["cacertfile_certificates"][0]["subject"] == shown["issuer"]


def test_free_disk_space_can_be_left_alone(broker):  # noqa: F811
    one = broker().start()
    assert ctl(one, "deactivate_free_disk_space_monitoring")[0] == 0
    assert ctl(one, "set_disk_free_limit", "8PB")[0] == 0
    assert ctl(one, "check_alarms")[0] == 0
    assert ctl(one, "activate_free_disk_space_monitoring")[0] == 0
    code, _, told = ctl(one, "check_alarms")
    assert code == 69 and "Free disk space alarm" in told


def test_keys_of_mirrored_queues_are_found_and_taken_out(broker):  # noqa: F811
    one = broker().start()
    ctl(one, "set_policy", "all", "^a", '{"ha-mode":"all"}')
    ctl(one, "set_policy", "some", "^a", '{"ha-mode":"all","max-length":5}')
    ctl(one, "set_policy", "none", "^a", '{"max-length":6}')
    _, out, _ = ctl(one, "list_policies_with_classic_queue_mirroring", "--formatter", "json")
    assert sorted(policy["name"] for policy in json.loads(out)) == ["all", "some"]
    assert ctl(one, "check_if_cluster_has_classic_queue_mirroring_policy")[0] == 69
    assert ctl(one, "remove_classic_queue_mirroring_from_policies")[0] == 0
    assert ctl(one, "check_if_cluster_has_classic_queue_mirroring_policy")[0] == 0
    _, out, _ = ctl(one, "list_policies", "--formatter", "json")
    assert {policy["name"]: json.loads(policy["definition"]) for policy in json.loads(out)} == {"some": {"max-length": 5}, "none": {"max-length": 6}}


def test_network_interfaces_are_listed(broker):  # noqa: F811
    one = broker().start()
    _, out, _ = ctl(one, "list_network_interfaces", "--formatter", "json")
    assert {"addr": "127.0.0.1", "netmask": "255.0.0.0"} in json.loads(out)["interfaces"]["lo"]["addresses"]


def test_plugins_that_are_built_in_are_enabled_with_and_without_a_node(broker, tmp_path):  # noqa: F811
    words = [BINARY, "ctl", "enable", "--offline", "rabbitmq_prometheus", "rabbitmq_delayed_message_exchange", "--data-dir", str(tmp_path)]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 0
    one = broker().start()
    assert ctl(one, "enable", "rabbitmq_prometheus", "rabbitmq_management")[0] == 0
    code, _, told = ctl(one, "enable", "rabbitmq_event_exchange")
    assert code == 65 and "rabbitmq_event_exchange is built in, but turned off in the node's configuration" in told
    code, _, told = ctl(one, "enable", "rabbitmq_zork")
    assert code == 65 and "The following plugins were not found: rabbitmq_zork" in told
    code, out, _ = ctl(one, "list", "-q", "-v", "rabbitmq_prom")
    assert code == 0 and "[E*] rabbitmq_prometheus\n     Version:     \t" in out and "Metrics for Prometheus" in out


def test_a_password_is_hashed_as_it_is_asked_for(broker):  # noqa: F811
    one = broker().start()
    assert "$argon2id$" in ctl(one, "hash_password", "secret", "--hashing-algorithm", "argon2id")[1]
    code, out, _ = ctl(one, "hash_password", "secret", "-q", "--hashing-algorithm", "sha256")
    assert (code, len(out.strip())) == (0, 48)


def test_an_alias_stands_for_a_command_and_its_words(broker, tmp_path):  # noqa: F811
    one = broker().start()
    file = tmp_path / "aliases"
    file.write_text("lv = list_vhosts name tracing\nlist_users = list_vhosts\n")
    assert ctl(one, "lv", "-s", "--aliases-file", str(file)) == (0, "/\tfalse\n", "")
    assert ctl(one, "list_users", "-s", "--aliases-file", str(file))[1].startswith("guest"), "a command is no alias"
    assert ctl(one, "lv", "-s")[0] == 64


def test_the_ring_of_a_consistent_hash_exchange_is_shown(broker):  # noqa: F811
    one = broker().start()
    with pika.BlockingConnection(pika.ConnectionParameters(one.host, one.port)) as connection:
        channel = connection.channel()
        channel.exchange_declare("ring", "x-consistent-hash")
        channel.exchange_declare("other", "topic")
        for name, weight in (("a", "1"), ("b", "2")):
            channel.queue_declare(name)
            channel.queue_bind(name, "ring", weight)
        command = "consistent_hash_exchange_ring_state"
        lines = [f"Ring index: {at}, queue: '{name}'\n" for at, name in enumerate("abb")]
        assert ctl(one, "-q", command, "ring") == (0, "".join(lines), "")
        code, told, _ = ctl(one, "-q", command, "ring", "--formatter", "json")
        told = json.loads(told)
        assert code == 0 and told["result"] == "ok" and told["buckets"] == {"0": "a", "1": "b", "2": "b"}
        for wrong in ("other", "none"):
            assert ctl(one, "-q", command, wrong) == (65, "", "Error:\nExchange does not exist or is of a different type\n")
