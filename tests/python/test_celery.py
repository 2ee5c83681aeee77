"""Celery, and with it Kombu, as they come: a worker, results over `rpc://`, retries and remote control."""

import os
import subprocess
import sys
import time

import pytest

HOST, PORT = os.environ.get("AMQP_HOST", "127.0.0.1"), os.environ.get("AMQP_PORT", "5672")
URL = f"amqp://guest:guest@{HOST}:{PORT}//"
os.environ["CELERY_URL"] = URL

from celery import group  # noqa: E402 - the application reads the address
from celery_app import add, app, stubborn  # noqa: E402
from kombu import Connection, Exchange, Queue  # noqa: E402


@pytest.fixture(scope="module")
def worker():
    """A worker with Celery's defaults, in processes of its own; yields once it answers."""
    command = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "--concurrency", "2", "--loglevel", "warning"]
    process = subprocess.Popen(command, cwd=os.path.dirname(__file__), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    end = time.monotonic() + 60
    while not app.control.inspect(timeout=1).ping():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < end, "the worker does not answer"
    yield process
    process.terminate()
    output, _ = process.communicate(timeout=30)
    with Connection(URL) as connection:
        connection.default_channel.queue_delete("celery")
    assert "Traceback" not in output, output


def test_tasks_run_and_their_results_come_back(worker):
    assert add.delay(2, 3).get(timeout=20) == 5
    results = group(add.s(number, number) for number in range(50)).apply_async()
    assert results.get(timeout=30) == [2 * number for number in range(50)]


def test_a_countdown_is_waited_for(worker):
    begin = time.monotonic()
    assert add.apply_async((1, 1), countdown=1).get(timeout=20) == 2
    assert time.monotonic() - begin >= 0.9


def test_a_task_is_retried(worker):
    assert stubborn.delay(2).get(timeout=30) == 2


def test_an_expired_task_is_not_run(worker):
    result = add.apply_async((1, 1), countdown=1, expires=0.2)
    with pytest.raises(Exception, match="expired"):
        result.get(timeout=20)


def test_remote_control_reaches_the_worker(worker):
    inspect = app.control.inspect(timeout=1)
    assert all("celery_app.add" in tasks for tasks in inspect.registered().values())
    (queues,) = inspect.active_queues().values()
    assert [queue["name"] for queue in queues] == ["celery"]


def test_kombu_publishes_with_confirms_and_consumes(name):
    exchange = Exchange(name, "topic", durable=False, auto_delete=True)
    queue = Queue(name, exchange, "a.#", exclusive=True)
    got = []
    with Connection(URL, transport_options={"confirm_publish": True}) as connection:
        with connection.Consumer(queue, callbacks=[lambda body, message: (got.append(body), message.ack())]):
            producer = connection.Producer()
            for number in range(20):
                producer.publish({"number": number}, exchange=exchange, routing_key="a.b", compression="zlib" if number % 2 else None)
            while len(got) < 20:
                connection.drain_events(timeout=5)
    assert got == [{"number": number} for number in range(20)]
