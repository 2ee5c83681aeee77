"""What other products run on a RabbitMQ node, command by command, as their sources have it: Testcontainers' modules for Java, Go, Node, .NET and Python,
RabbitMQ's operator for Kubernetes, and the cluster's own health probes. The tools are called by their names, as in a container."""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pika
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.broker import free_port
from harness.link import Api
from test_process import BINARY, broker, pytestmark  # noqa: F401 - a fixture and a mark
from test_tls import authority  # noqa: F401 - a fixture

TOOLS = (Path(__file__).resolve().parent.parent.parent / "packaging" / "tools").read_text().split()
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """A folder in which the program has the names of RabbitMQ's tools."""
    folder = tmp_path_factory.mktemp("names")
    for tool in TOOLS:
        (folder / tool).symlink_to(Path(BINARY).resolve())
    return folder


@pytest.fixture
def node(broker, names, tmp_path):  # noqa: F811
    """A node, and a shell beside it."""
    one = broker().start()
    (tmp_path / ".rabbitmqadmin.conf").write_text(f"[default]\nport = {one.http_port}\n")
    variables = {"PATH": f"{names}:{os.environ['PATH']}", "LEVERET_DATA_DIR": str(one.data), "HOME": str(tmp_path)}

    def run(*words):
        done = subprocess.run(words, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        return done.returncode, done.stdout, done.stderr

    run.broker = one
    run.folder = tmp_path
    return run


def succeed(node, line):
    code, told, wrong = node(*shlex.split(line))
    assert (code, wrong) == (0, ""), f"{line}: {code} {wrong}"
    return told


JAVA = """
rabbitmq-plugins enable rabbitmq_management rabbitmq_prometheus
rabbitmqadmin declare vhost name=vhost1
rabbitmqadmin declare vhost name=vhost2 tracing=true
rabbitmqadmin declare vhost_limit vhost=vhost1 name=max-connections value=71
rabbitmqadmin declare exchange name=direct-exchange type=direct
rabbitmqadmin declare exchange name=topic-exchange type=topic auto_delete=false internal=false durable=true arguments={}
rabbitmqadmin --vhost=vhost1 declare exchange name=vhost-exchange type=direct auto_delete=false internal=false durable=true arguments={}
rabbitmqadmin --vhost=vhost1 declare queue name=vhost-queue auto_delete=false durable=true 'arguments={"x-message-ttl":1000}'
rabbitmqadmin declare queue name=queue1
rabbitmqadmin declare queue name=queue2 auto_delete=true durable=false 'arguments={"x-max-length":10}'
rabbitmqadmin declare binding source=direct-exchange destination=queue1
rabbitmqadmin declare binding source=direct-exchange destination=queue1 routing_key=ss destination_type=queue 'arguments={"x-arg":"a"}'
rabbitmqadmin --vhost=vhost1 declare binding source=vhost-exchange destination=vhost-queue routing_key=ss destination_type=queue arguments={}
rabbitmqadmin declare user name=user1 password=password1 tags=
rabbitmqadmin declare user name=user2 password=password2 tags=administrator,monitoring
rabbitmqadmin declare permission vhost=vhost1 user=user1 configure=.* write=.* read=.*
rabbitmqadmin declare policy name=max-length-policy pattern=^dog 'definition={"max-length":1}' priority=1 apply-to=queues
rabbitmqadmin declare policy name=plain pattern=.* 'definition={"message-ttl":60000}'
rabbitmqadmin declare policy --vhost=vhost1 name=expires pattern=.* 'definition={"expires":60000}'
rabbitmqadmin declare operator_policy name=op pattern=^op 'definition={"max-length":5}' priority=1 apply-to=queues
"""


def test_testcontainers_for_java_declares_what_its_module_offers(node):
    for line in JAVA.strip().splitlines():
        succeed(node, line)
    queues = json.loads(succeed(node, "rabbitmqadmin -f raw_json list queues name vhost auto_delete durable arguments"))
    found = {it["name"]: it for it in queues}
    queue = found["queue2"]
    assert (queue["vhost"], queue["auto_delete"], queue["durable"], queue["arguments"]["x-max-length"]) == ("/", True, False, 10)
    assert found["vhost-queue"]["vhost"] == "vhost1"
    listed = succeed(node, "rabbitmqctl -q list_bindings source_name destination_name routing_key arguments --no-table-headers")
    assert "direct-exchange\tqueue1\tss" in listed and "x-arg" in listed
    assert "max-connections" in succeed(node, "rabbitmqctl -q list_vhost_limits -p vhost1")
    assert "user2\t[administrator, monitoring]" in succeed(node, "rabbitmqctl -q list_users")
    policies = json.loads(succeed(node, "rabbitmqctl list_policies --formatter json"))
    assert {"max-length-policy", "plain"} == {it["name"] for it in policies}
    assert "vhost1\t.*\t.*\t.*" in succeed(node, "rabbitmqctl -q list_user_permissions user1")


def test_rabbitmqadmin_does_the_rest_of_its_verbs(node):
    succeed(node, "rabbitmqadmin declare queue name=q")
    assert succeed(node, "rabbitmqadmin publish routing_key=q payload=hello exchange=amq.default") == "Message published\n"
    assert succeed(node, "rabbitmqadmin publish routing_key=nowhere payload=hello") == "Message published but NOT routed\n"
    got = json.loads(succeed(node, "rabbitmqadmin -f raw_json get queue=q ackmode=ack_requeue_true"))
    assert [it["payload"] for it in got] == ["hello"]
    assert succeed(node, "rabbitmqadmin purge queue name=q") == "queue purged\n"
    assert succeed(node, "rabbitmqadmin list queues") == "+------+----------+\n| name | messages |\n+------+----------+\n| q    | 0        |\n+------+----------+\n"
    succeed(node, "rabbitmqadmin export all.json")
    assert succeed(node, "rabbitmqadmin delete queue name=q") == "queue deleted\n"
    assert succeed(node, "rabbitmqadmin list queues") == "No items\n"
    succeed(node, "rabbitmqadmin import all.json")
    assert succeed(node, "rabbitmqadmin -f bash list queues") == "q\n"
    assert "cluster_name" in succeed(node, "rabbitmqadmin show overview")
    assert succeed(node, "rabbitmqadmin --version").startswith("rabbitmqadmin 4.")
    assert node("rabbitmqadmin", "delete", "queue", "name=zork")[::2] == (1, "*** Not found: /api/queues/%2F/zork\n")
    assert node("rabbitmqadmin", "-u", "zork", "list", "queues")[::2] == (1, "*** Access refused: /api/queues?columns=name,messages\n")
    code, _, wrong = node("rabbitmqadmin", "-P", "1", "list", "queues")
    assert code == 1 and wrong.startswith("*** Could not connect: ")


def test_testcontainers_for_go_starts_a_node_with_its_file_and_finds_its_tls_line(broker, authority):  # noqa: F811
    pem, key = authority.server()
    port = free_port()
    settings = {
        "default_user": "guest",
        "default_pass": "guest",
        "listeners.ssl.default": f"127.0.0.1:{port}",
        "ssl_options.cacertfile": authority.certificate,
        "ssl_options.certfile": pem,
        "ssl_options.keyfile": key,
        "ssl_options.depth": "1",
        "ssl_options.verify": "verify_none",
        "ssl_options.fail_if_no_peer_cert": "false",
    }
    one = broker({name: str(value) for name, value in settings.items()}).start()
    # The ports are open a moment before the log says so.
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "Server startup complete" not in one.log_text():
        assert time.monotonic() < deadline, one.log_text()
        time.sleep(0.01)
    assert f"started TLS (SSL) listener on 127.0.0.1:{port} " in one.log_text()


GO_OPTIONS = """
rabbitmqctl add_user user1 pwd1
rabbitmqctl set_user_tags user1 management
rabbitmqctl add_vhost vhost1
rabbitmqctl set_permissions -p vhost1 user1 .* .* .*
rabbitmqctl set_topic_permissions -p vhost1 user1 amq.topic .* .*
rabbitmqctl import_definitions definitions.json
rabbitmq-plugins enable --offline rabbitmq_management
rabbitmq-plugins list -E -m
rabbitmqctl list_queues
"""


def test_scripts_beside_containers_make_users_and_import_definitions(node):
    definitions = {"vhosts": [{"name": "/"}], "queues": [{"name": "d", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}]}
    (node.folder / "definitions.json").write_text(json.dumps(definitions))
    for line in GO_OPTIONS.strip().splitlines():
        told = succeed(node, line)
    assert "d\t0" in told


def test_clients_of_testcontainers_for_python_and_net_log_in_as_their_modules_name_them(broker, monkeypatch):  # noqa: F811
    monkeypatch.setenv("RABBITMQ_DEFAULT_USER", "rabbitmq")
    monkeypatch.setenv("RABBITMQ_DEFAULT_PASS", "rabbitmq")
    monkeypatch.setenv("RABBITMQ_DEFAULT_VHOST", "/")
    one = broker().start()
    login = pika.PlainCredentials("rabbitmq", "rabbitmq")
    connection = pika.BlockingConnection(pika.ConnectionParameters(one.host, one.port, "/", credentials=login))
    assert connection.is_open
    connection.close()


# What the operator writes into rabbitmq.conf and runs in a pod: at the start, when its specification changes, and before a pod goes.
OPERATOR_SETTINGS = {
    "queue_master_locator": "min-masters",
    "disk_free_limit.absolute": "2GB",
    "cluster_partition_handling": "pause_minority",
    "cluster_formation.peer_discovery_backend": "rabbit_peer_discovery_k8s",
    "cluster_formation.k8s.host": "kubernetes.default",
    "cluster_formation.k8s.address_type": "hostname",
    "cluster_formation.target_cluster_size_hint": "1",
    "cluster_name": "hello-world",
    "total_memory_available_override_value": "1717986919",
    "log.console": "true",
    "auth_mechanisms.1": "PLAIN",
    "auth_mechanisms.2": "AMQPLAIN",
    "default_user": "default_user_x",
    "default_pass": "secret",
}

OPERATOR = """
rabbitmq-plugins set rabbitmq_peer_discovery_k8s rabbitmq_prometheus rabbitmq_management
rabbitmq-plugins list -E -m
rabbitmqctl enable_feature_flag all
rabbitmq-queues rebalance all
rabbitmq-diagnostics check_port_connectivity
rabbitmq-queues check_if_node_is_quorum_critical
rabbitmq-queues check_if_node_is_mirror_sync_critical
rabbitmq-upgrade await_online_quorum_plus_one -t 604800
rabbitmq-upgrade drain -t 604800
"""

FLAGS = (
    "set -eo pipefail; rabbitmqctl -s list_feature_flags name state stability | (grep 'disabled\\sstable$' || true) | cut -f 1 | "
    "xargs -r -n1 rabbitmqctl enable_feature_flag"
)


def test_the_operators_configuration_and_commands_work_in_the_order_of_a_pods_life(broker, names, tmp_path):  # noqa: F811
    one = broker(OPERATOR_SETTINGS).start()
    variables = {"PATH": f"{names}:{os.environ['PATH']}", "LEVERET_DATA_DIR": str(one.data), "HOME": str(tmp_path)}

    def run(*words):
        done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        return done.returncode, done.stdout, done.stderr

    code, told, wrong = run("bash", "-c", FLAGS)
    assert code == 0, (told, wrong)
    for line in OPERATOR.strip().splitlines():
        code, told, wrong = run("sh", "-c", line)
        assert code == 0, (line, told, wrong)
    # It drains its clients and goes on answering, until the pod is stopped.
    assert run("rabbitmq-diagnostics", "-q", "ping")[0] == 0
    # As in RabbitMQ, where the application runs while its node is in maintenance; that it serves nobody is said elsewhere.
    assert run("rabbitmq-diagnostics", "check_running")[0] == 0
    api = Api(root=f"http://127.0.0.1:{one.http_port}")
    assert api.get("/health/checks/is-in-service").status == 503
    assert api.get("/health/checks/ready-to-serve-clients").status == 503


def test_plugins_that_add_nothing_are_named_and_unknown_ones_refused(node):
    told = succeed(node, "rabbitmq-plugins enable --offline rabbitmq_peer_discovery_k8s rabbitmq_management")
    assert "No effect on this node: rabbitmq_peer_discovery_k8s\n" in told
    code, _, wrong = node("rabbitmq-plugins", "set", "rabbitmq_peer_discovery_k8s", "rabbitmq_zork")
    assert (code, "rabbitmq_zork" in wrong, "k8s" in wrong) == (65, True, False), wrong
