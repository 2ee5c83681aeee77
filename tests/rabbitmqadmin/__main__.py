"""Runs what people do with rabbitmqadmin, version 1 (Python) and 2 (Rust), on the broker of AMQP_HOST and HTTP_PORT.

Each line is a command and what its output must have; all of them must end with 0 unless another code stands there.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache"
SECONDS = 30

# Commands of version 1, with what their output must match.
FIRST = [
    ("show overview", r"cluster_name"),
    ("list nodes name running", r"True"),
    ("declare vhost name=adm1", r"vhost declared"),
    ("declare user name=adm1 password=p tags=management", r"user declared"),
    ("declare permission vhost=adm1 user=guest configure=.* write=.* read=.*", r"permission declared"),
    ("-V adm1 declare exchange name=x type=topic", r"exchange declared"),
    ("""-V adm1 declare queue name=q durable=true 'arguments={"x-max-length": 10}'""", r"queue declared"),
    ("-V adm1 declare binding source=x destination=q routing_key=#", r"binding declared"),
    ("-V adm1 publish exchange=x routing_key=a payload=hello", r"Message published$"),
    ("-V adm1 publish exchange=amq.default routing_key=nowhere payload=hello", r"NOT routed"),
    ("-V adm1 get queue=q ackmode=ack_requeue_false", r"hello"),
    ("-V adm1 list queues", r"\bq\b"),
    ("-V adm1 list queues name messages durable", r"\bq\b.*True"),
    ("-V adm1 list exchanges name type", r"x +\| topic"),
    ("-V adm1 list bindings", r"x +\| q +\| #"),
    ("list users", r"adm1"),
    ("list vhosts", r"adm1"),
    ("list permissions", r"adm1"),
    ("list connections", r""),
    ("list channels", r""),
    ("list consumers", r""),
    ("""-V adm1 declare policy name=p pattern=^q 'definition={"max-length": 5}' apply-to=queues""", r"policy declared"),
    ("list policies", r"max-length"),
    ("-V adm1 delete policy name=p", r"policy deleted"),
    ("-f long list vhosts", r"name: adm1"),
    ("-f kvp list vhosts", r'name="adm1"'),
    ("-f raw_json list vhosts", r'"name":"adm1"'),
    ("-f tsv list vhosts name", r"^adm1$"),
    ("-f bash list vhosts name", r"adm1"),
    ("export {file}", r"Exported definitions"),
    ("import {file}", r"Uploaded definitions"),
    ("-V adm1 purge queue name=q", r"queue purged"),
    ("-V adm1 delete queue name=q", r"queue deleted"),
    ("-V adm1 delete exchange name=x", r"exchange deleted"),
    ("delete user name=adm1", r"user deleted"),
    ("delete vhost name=adm1", r"vhost deleted"),
    ("close connection name=nowhere", r"Not found", 1),
]

# Commands of version 2.
SECOND = [
    ("show overview", r"Product name"),
    ("show churn", r""),
    ("list nodes", r"rabbit@"),
    ("vhosts declare --name adm2", r""),
    ("declare user --name adm2 --password p --tags management", r""),
    ("--vhost adm2 declare permissions --user guest --configure .* --read .* --write .*", r""),
    ("--vhost adm2 exchanges declare --name x --type topic", r""),
    ("""--vhost adm2 queues declare --name q --type classic --arguments '{"x-max-length": 10}'""", r""),
    ("--vhost adm2 declare binding --source x --destination-type queue --destination q --routing-key '#'", r""),
    ("--vhost adm2 publish message --exchange x --routing-key a --payload hello", r"routed successfully"),
    ("--vhost adm2 get messages --queue q --ack-mode ack_requeue_false", r"hello"),
    ("--vhost adm2 list queues", r"\bq\b.*classic"),
    ("list exchanges", r"amq\.topic"),
    ("list bindings", r"\bx\b"),
    ("list users", r"adm2"),
    ("list vhosts", r"adm2"),
    ("list permissions", r"adm2"),
    ("list connections", r"name"),
    ("list channels", r"name"),
    ("list consumers", r"consumer_tag"),
    ("""--vhost adm2 policies declare --name p --pattern ^q --definition '{"max-length": 5}' --apply-to queues --priority 1""", r""),
    ("policies list", r"max-length"),
    ("operator_policies list", r"name"),
    ("--vhost adm2 policies delete --name p", r""),
    ("feature_flags list", r"name"),
    ("deprecated_features list", r"name"),
    ("health_check local_alarms", r"passed"),
    ("health_check cluster_wide_alarms", r"passed"),
    ("health_check port_listener --port {amqp}", r"passed"),
    ("health_check protocol_listener --protocol amqp", r"passed"),
    ("health_check node_is_quorum_critical", r"passed"),
    ("definitions export --file {file}", r""),
    ("definitions import --file {file}", r""),
    ("definitions export --stdout", r'"vhosts"'),
    ("rebalance queues", r""),
    ("--vhost adm2 queues purge --name q", r""),
    ("--vhost adm2 queues delete --name q", r""),
    ("--vhost adm2 exchanges delete --name x", r""),
    ("users delete --name adm2", r""),
    ("vhosts delete --name adm2", r""),
    ("--vhost adm2 queues delete --name q", r"", 65),
]


def tools() -> list[tuple[str, list[str] | None, list]]:
    """Each version: how it is called, if it is there, and its commands."""
    where = [os.environ["AMQP_HOST"], os.environ["HTTP_PORT"]]
    first = CACHE / "rabbitmqadmin-1" / "rabbitmqadmin"
    second = CACHE / "rabbitmqadmin-2" / "bin" / "rabbitmqadmin"
    return [
        ("1", [sys.executable, str(first), "-H", where[0], "-P", where[1]] if first.exists() else None, FIRST),
        ("2", [str(second), "--host", where[0], "--port", where[1]] if second.exists() else None, SECOND),
    ]


def filled(word: str, given: dict) -> str:
    """A word with what stands in for its names; the braces of JSON stay."""
    for name, value in given.items():
        word = word.replace(f"{{{name}}}", str(value))
    return word


def main() -> int:
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        given = {"file": Path(folder) / "definitions.json", "amqp": os.environ["AMQP_PORT"]}
        for version, called, commands in tools():
            if called is None:
                print(f"skip rabbitmqadmin version {version}: could not be fetched")
                continue
            for line, expected, *code in commands:
                words = [filled(word, given) for word in shlex.split(line)]
                done = subprocess.run([*called, *words], capture_output=True, text=True, timeout=SECONDS, check=False)
                text = done.stdout + done.stderr
                if done.returncode == (code or [0])[0] and re.search(expected, text, re.MULTILINE):
                    print(f"ok   rabbitmqadmin {version}: {line}")
                    continue
                failures += 1
                print(f"FAIL rabbitmqadmin {version}: {line}\n     ended with {done.returncode}, expected {expected!r} in")
                print("\n".join(f"     {shown}" for shown in text.splitlines()[-20:]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
