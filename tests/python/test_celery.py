"""Celery, and with it Kombu, as they come: a worker, results over `rpc://`, retries and remote control. And once more with quorum queues."""

import contextlib
import os
import subprocess
import sys
import time

import pytest

from api import q
from waiting import until

HOST, PORT = os.environ.get("AMQP_HOST", "127.0.0.1"), os.environ.get("AMQP_PORT", "5672")
URL = f"amqp://guest:guest@{HOST}:{PORT}//"
os.environ["CELERY_URL"] = URL

import celery_app  # noqa: E402 - the application reads the address
from celery import group  # noqa: E402
from kombu import Connection, Exchange, Queue, pools  # noqa: E402


def start(app):
    """A worker of an application, in processes of its own, once it answers."""
    here = f"{app.replace(':', '.')}@localhost"
    command = [sys.executable, "-m", "celery", "-A", app, "worker", "--hostname", here, "--concurrency", "2", "--loglevel", "warning"]
    process = subprocess.Popen(command, cwd=os.path.dirname(__file__), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    control = getattr(celery_app, app.split(":")[1]).control
    end = time.monotonic() + 60
    while not control.ping([here], timeout=0.3):
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < end, "the worker does not answer"
    return process


def stop(process, app, queue):
    process.terminate()
    output, _ = process.communicate(timeout=30)
    with Connection(URL) as connection:
        connection.default_channel.queue_delete(queue)
    # What it keeps open would have any later stop of the broker wait for an answer.
    if app.backend.result_consumer._connection:
        app.backend.result_consumer.stop()
    pools.reset()
    assert "Traceback" not in output, output


@pytest.fixture(scope="module")
def plain():
    """An application with Celery's defaults and its worker."""
    process = start("celery_app:app")
    yield celery_app.app
    stop(process, celery_app.app, "celery")


def task(app, name):
    return app.tasks[f"celery_app.{name}"]


def run_tasks(app):
    assert task(app, "add").delay(2, 3).get(timeout=20) == 5
    results = group(task(app, "add").s(number, number) for number in range(50)).apply_async()
    assert results.get(timeout=30) == [2 * number for number in range(50)]


def wait_for_countdown(app):
    begin = time.monotonic()
    assert task(app, "add").apply_async((1, 1), countdown=1).get(timeout=20) == 2
    assert time.monotonic() - begin >= 0.9


def test_tasks_run_and_their_results_come_back(plain):
    run_tasks(plain)


def test_a_countdown_is_waited_for(plain):
    wait_for_countdown(plain)


def test_a_task_is_retried(plain):
    assert task(plain, "stubborn").delay(2).get(timeout=30) == 2


def test_an_expired_task_is_not_run(plain):
    result = task(plain, "add").apply_async((1, 1), countdown=1, expires=0.2)
    with pytest.raises(Exception, match="expired"):
        result.get(timeout=20)


def test_remote_control_reaches_the_worker(plain):
    inspect = plain.control.inspect(["celery_app.app@localhost"], timeout=10)
    assert all("celery_app.add" in tasks for tasks in inspect.registered().values())
    (queues,) = inspect.active_queues().values()
    assert [queue["name"] for queue in queues] == ["celery"]


def test_quorum_queues_wait_in_the_broker_and_bring_again_what_a_worker_died_of(api, tmp_path):
    """Celery limits what a consumer of a quorum queue holds by itself, and delays by 28 queues, one a bit, that dead-letter to the next one."""
    app, queue = celery_app.quorum, "celery.quorum"
    process = start("celery_app:quorum")
    try:
        shown = {entry["name"]: entry for entry in api.get("/queues/%2F").json if entry["name"].startswith("celery")}
        assert shown[queue]["type"] == "quorum"
        assert {shown[f"celery_delayed_{bit}"]["type"] for bit in range(28)} == {"quorum"}
        run_tasks(app)
        wait_for_countdown(app)
        assert task(app, "stubborn").delay(1).get(timeout=30) == 1
        again = task(app, "dies_once").delay(str(tmp_path / "died"))
        process.wait(timeout=30)
        process.stdout.close()
        process = start("celery_app:quorum")
        assert again.get(timeout=30) == "came again"
        until(lambda: api.get(f"/queues/%2F/{q(queue)}").json.get("messages"), lambda count: count == 0)
    finally:
        with contextlib.suppress(ValueError):
            stop(process, app, queue)
        for bit in range(28):
            api.delete(f"/queues/%2F/celery_delayed_{bit}")
            api.delete(f"/exchanges/%2F/celery_delayed_{bit}")
        api.delete("/exchanges/%2F/celery_delayed_delivery")


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
