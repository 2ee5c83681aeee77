"""Fixtures and the one-line-a-test report of the Python suite."""

import contextlib
import os
import select
import socket
import uuid

import pika
import pytest

from api import Api, q
from wire import address, connected


def pytest_configure(config):
    config.addinivalue_line("markers", "leveret_only(reason): RabbitMQ 4.3 differs here, and the reason says how")
    config.addinivalue_line("markers", "not_yet(reason): RabbitMQ does this, and ours will; until then it refuses, which another test checks")
    config.addinivalue_line("markers", "needs_control: asks the harness to restart the broker or to raise an alarm")


def pytest_collection_modifyitems(items):
    for item in items:
        mark = item.get_closest_marker("leveret_only")
        if mark and os.environ.get("LEVERET") == "0":
            item.add_marker(pytest.mark.skip(reason=mark.args[0]))
        mark = item.get_closest_marker("not_yet")
        if mark and os.environ.get("LEVERET") != "0":
            item.add_marker(pytest.mark.skip(reason=mark.args[0]))
        if item.get_closest_marker("needs_control") and not os.environ.get("CONTROL_PORT"):
            item.add_marker(pytest.mark.skip(reason="no control over this broker"))


def pytest_runtest_logreport(report):
    name = report.nodeid.removesuffix("]").replace(".py::", " ").replace("[", " ")
    if report.failed:
        # What went wrong comes before where: a report that is cut off still tells it.
        print(f"FAIL python {name} ({report.when})")
        crash = getattr(report.longrepr, "reprcrash", None)
        told = [*(crash.message.splitlines() if crash else []), *report.longreprtext.splitlines()]
        print("\n".join(f"     {line}" for line in told), flush=True)
    elif report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        print(f"skip python {name}: {reason.removeprefix('Skipped: ')}")
    elif report.when == "call":
        print(f"ok   python {name} ({report.duration:.2f} s)", flush=True)


def pytest_collectreport(report):
    if report.failed:
        print(f"FAIL python collection of {report.nodeid}\n{report.longreprtext}")


# What a test has opened.
OPENED: list[pika.BlockingConnection] = []


def connect(port=None, **options) -> pika.BlockingConnection:
    host, default_port = address()
    options = {"socket_timeout": 10, "blocked_connection_timeout": 30} | options
    connection = pika.BlockingConnection(pika.ConnectionParameters(host=host, port=port or default_port, **options))
    OPENED.append(connection)
    return connection


def elsewhere() -> int | None:
    """The port of another node of the broker's cluster, if it is one."""
    return int(os.environ["OTHER_PORT"]) if "OTHER_PORT" in os.environ else None


def control(verb: str, answering: bool = True) -> None:
    """Asks the harness for something to happen to the broker, and waits until it has. Meanwhile a broker that closes connections is
    answered, for it gives its clients some seconds to do so."""
    with socket.create_connection(("127.0.0.1", int(os.environ["CONTROL_PORT"])), timeout=120) as line:
        line.sendall(f"{verb}\n".encode())
        while answering and verb == "restart" and not select.select([line], [], [], 0.02)[0]:
            answer_goodbyes()
        answer = line.makefile().readline().strip()
    assert answer == "ok", f"{verb}: {answer}"


def answer_goodbyes() -> None:
    for connection in OPENED:
        with contextlib.suppress(pika.exceptions.AMQPError):
            if connection.is_open:
                connection.process_data_events(0)


@pytest.fixture(autouse=True)
def nothing_stays_open():
    """A client that is forgotten answers no goodbye, and the next stop of the broker waits for it."""
    yield
    for connection in OPENED:
        with contextlib.suppress(pika.exceptions.AMQPError):
            if connection.is_open:
                connection.close()
    OPENED.clear()


@pytest.fixture
def name() -> str:
    """A name nothing else uses."""
    return f"py.{uuid.uuid4().hex[:12]}"


@pytest.fixture
def connection():
    opened = connect()
    yield opened
    if opened.is_open:
        opened.close()


@pytest.fixture
def channel(connection):
    return connection.channel()


@pytest.fixture
def queue(channel, name):
    """A queue that leaves no trace."""
    channel.queue_declare(name, auto_delete=False, durable=True)
    yield name
    cleaner = connect()
    cleaner.channel().queue_delete(name)
    cleaner.close()


@pytest.fixture
def api():
    """The HTTP API, as an administrator sees it."""
    return Api()


@pytest.fixture
def vhost(api, name):
    """A virtual host that leaves no trace."""
    assert api.put(f"/vhosts/{q(name)}").status == 201
    yield name
    assert api.delete(f"/vhosts/{q(name)}").status in (204, 404)


@pytest.fixture
def wire():
    """A raw connection with channel 1 open."""
    opened = connected()
    opened.channel(1)
    yield opened
    opened.close()
