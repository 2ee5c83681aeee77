"""Stopping the broker without its process (`stop_app`), starting it again, forgetting everything in between, and what `eval` answers."""

import subprocess
import sys
import time
from pathlib import Path

import pika
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from test_process import BINARY, broker, pytestmark  # noqa: F401 - a fixture and a mark

PATIENCE_SECONDS = 90


def ctl(one, *words):
    """A command's exit code, and what it writes to both."""
    done = subprocess.run([BINARY, "ctl", *words, "--data-dir", str(one.data)], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    return done.returncode, done.stdout, done.stderr


def connect(one):
    return pika.BlockingConnection(pika.ConnectionParameters(one.host, one.port))


STOPPED = "Error: this command requires the 'rabbit' app to be running on the target node. Start it with 'rabbitmqctl start_app'.\n"


def test_a_stopped_broker_closes_its_clients_and_keeps_its_messages(broker, tmp_path):  # noqa: F811
    pid_file = tmp_path / "node.pid"
    one = broker({"pid_file": str(pid_file)}).start()
    client = connect(one)
    channel = client.channel()
    channel.queue_declare("kept", durable=True)
    channel.confirm_delivery()
    channel.basic_publish("", "kept", b"x", pika.BasicProperties(delivery_mode=2))
    pid = one.process.pid
    code, told, wrong = ctl(one, "stop_app")
    assert (code, wrong) == (0, "") and told.startswith("Stopping rabbit application on node rabbit@")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        client.process_data_events(time_limit=PATIENCE_SECONDS)
    assert closed.value.reply_code == 320
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connect(one)
    assert ctl(one, "-q", "ping") == (0, "Ping succeeded\n", "")
    assert ctl(one, "-q", "list_queues")[::2] == (64, STOPPED)
    # The process has a status all the while, and its number stays in its file.
    code, told, wrong = ctl(one, "-q", "status")
    assert (code, wrong) == (0, "") and f"OS PID: {pid}\n" in told and "The broker is stopped" in told
    assert pid_file.read_text().strip() == str(pid)
    assert ctl(one, "check_running")[0] == 69
    assert ctl(one, "-q", "eval", "rabbit:is_running().")[1] == "false\n"
    assert ctl(one, "stop_app")[0] == 0
    code, told, _ = ctl(one, "start_app")
    assert code == 0 and told.startswith("Starting node rabbit@")
    assert (one.process.pid, one.alive()) == (pid, True)
    assert pid_file.read_text().strip() == str(pid)
    again = connect(one)
    assert again.channel().basic_get("kept", auto_ack=True)[2] == b"x"
    again.close()
    assert ctl(one, "start_app")[0] == 0
    assert one.panics() == []
    assert one.stop() == 0


def test_a_reset_needs_a_stopped_broker_and_leaves_a_blank_node(broker):  # noqa: F811
    one = broker().start()
    assert ctl(one, "add_user", "jane", "doe")[0] == 0
    code, _, wrong = ctl(one, "reset")
    assert code == 64 and "requires the 'rabbit' app to be stopped on the target node. Stop it with 'rabbitmqctl stop_app'." in wrong
    for command in ("reset", "force_reset"):
        assert ctl(one, "stop_app")[0] == 0
        assert ctl(one, command)[0] == 0
        assert ctl(one, "start_app")[0] == 0
        assert ctl(one, "-q", "-s", "list_users")[1] == "guest\t[administrator]\n"


def test_a_process_whose_broker_is_stopped_ends_like_any_other(broker):  # noqa: F811
    one = broker().start()
    assert ctl(one, "stop_app")[0] == 0
    assert one.stop() == 0
    one.start()
    assert ctl(one, "stop_app")[0] == 0
    assert ctl(one, "stop")[0] == 0
    assert one.process.wait(PATIENCE_SECONDS) == 0


def test_expressions_of_suites_and_operators_are_answered_as_rabbitmq_does(broker):  # noqa: F811
    one = broker().start()
    node = ctl(one, "-q", "eval", "node().")[1].strip()
    assert node.strip("'").startswith("rabbit@")
    table = {
        "rabbit_nodes:reached_target_cluster_size().": "true",
        "rabbit_nodes:is_running(node()).": "true",
        "rabbit:is_running().": "true",
        "rabbit_nodes:list_members().": f"[{node}]",
        "rabbit_nodes:total_count().": "1",
        "rabbit_db_cluster:is_clustered().": "false",
        "rabbit_vhost:list_names().": '[<<"/">>]',
        "rabbit_alarm:get_alarms().": "[]",
        "application:get_env(rabbit, channel_max).": "{ok,2047}",
        "application:set_env(rabbit, channel_max, 7).": "ok",
        " application:get_env( rabbit,channel_max ) .": "{ok,7}",
    }
    for expression, answer in table.items():
        assert ctl(one, "-q", "eval", expression) == (0, f"{answer}\n", ""), expression
    client = connect(one)
    assert client._impl.params.channel_max == 7
    client.close()
    code, _, wrong = ctl(one, "eval", "rabbit_misc:zork().")
    assert code == 69 and "rabbit_alarm:set_alarm" in wrong
    code, _, wrong = ctl(one, "eval", "node()")
    assert code == 64 and 'Error (argument validation): "syntax error before: "' in wrong


@pytest.mark.parametrize("resource", ["memory", "disk"])
def test_an_alarm_is_raised_and_cleared_by_hand(broker, resource):  # noqa: F811
    one = broker().start()
    assert ctl(one, "-q", "eval", f"rabbit_alarm:set_alarm({{{{resource_limit, {resource}, node()}}, []}}).") == (0, "ok\n", "")
    assert ctl(one, "check_alarms")[0] == 69
    assert f"{{resource_limit,{resource}," in ctl(one, "-q", "eval", "rabbit_alarm:get_alarms().")[1]
    client = connect(one)
    blocked = []
    client.add_on_connection_blocked_callback(lambda *_: blocked.append(True))
    client.channel().basic_publish("", "nowhere", b"x")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not blocked and time.monotonic() < deadline:
        client.process_data_events(time_limit=0.1)
    assert blocked
    assert ctl(one, "-q", "eval", f"rabbit_alarm:clear_alarm({{resource_limit, {resource}, node()}}).") == (0, "ok\n", "")
    assert ctl(one, "check_alarms")[0] == 0
    client.close()


def test_a_policy_that_does_nothing_on_one_node_says_so(broker):  # noqa: F811
    one = broker().start()
    code, _, wrong = ctl(one, "set_policy", "mirrored", "^m", '{"ha-mode":"all","max-length":5}')
    assert (code, wrong) == (0, "Note: policy 'mirrored': no effect on a single node: ha-mode\n")
    assert "policy 'mirrored': no effect on a single node: ha-mode" in ctl(one, "list_policies")[2]
    assert ctl(one, "-q", "list_policies")[2] == ""
    assert "policy 'mirrored' in virtual host '/': no effect on a single node: ha-mode" in one.log_text()


def test_an_answer_goes_to_a_file(broker, tmp_path):  # noqa: F811
    one = broker().start()
    file = tmp_path / "out"
    assert ctl(one, "-q", "list_vhosts", "--printer", "file", "--file", str(file)) == (0, "", "")
    assert file.read_text() == "name\n/\n"
    assert ctl(one, "list_vhosts", "--printer", "file")[0] == 64
    assert ctl(one, "list_vhosts", "--printer", "zork")[0] == 64
    assert ctl(one, "list_vhosts", "--printer", "file", "--file", "/nowhere/x")[0] == 73
    assert ctl(one, "-q", "list_vhosts", "--formatter", "inspect")[1] == '[[name: "/"]]\n'
    assert ctl(one, "-q", "list_vhosts", "--formatter", "report")[1] == "name\n/\n"


def test_commands_of_earlier_versions_and_of_plugins_answer_about_what_is_not_there(broker):  # noqa: F811
    one = broker().start()
    for command in ("shovel_status", "federation_status", "list_mqtt_connections", "await_online_synchronized_mirror"):
        assert ctl(one, command)[0] == 0, command
    assert ctl(one, "sync_queue", "zork")[0] == 69
    assert ctl(one, "cancel_sync_queue", "zork")[0] == 69
    assert ctl(one, "change_cluster_node_type", "ram")[0] == 64
    assert ctl(one, "change_cluster_node_type", "zork")[0] == 65
