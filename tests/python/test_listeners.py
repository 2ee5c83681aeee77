"""Listeners: sockets in the file system, and what suspended listeners do."""

import re
import socket
import stat

import pytest

from api import Api
from test_events import Watcher
from test_management_clients import until
from test_process import at, broker, kept, persist, pytestmark, refuses_to_start  # noqa: F401 - a fixture and a mark
from wire import Closed, Wire, spec


def api_of(one):
    api = Api()
    api.root = f"http://127.0.0.1:{one.http_port}"
    return api


def test_events_name_the_socket_that_somebody_came_by(broker, tmp_path):  # noqa: F811
    path = tmp_path / "amqp"
    one = broker({"listeners.unix.default": str(path), "event_exchange.vhost": "/"}).start()
    watcher = Watcher(one)
    with Wire(where=str(path)) as wire:
        wire.open()
        login = watcher.next("user.authentication.success")
    assert login["peer_host"] == "unix" and login["connection_name"].startswith("unix:")
    watcher.connection.close()


def refused_logins(one):
    """The lines of the log about them."""
    return "\n".join(line for line in one.log_text().splitlines() if "login refused" in line)


def test_clients_of_this_machine_come_by_a_socket_in_the_file_system(broker, tmp_path):  # noqa: F811
    path = tmp_path / "amqp"
    one = broker({"listeners.unix.default": str(path), "listeners.unix_mode": "600"}).start()
    persist(one)
    assert stat.S_ISSOCK(path.stat().st_mode) and stat.S_IMODE(path.stat().st_mode) == 0o600
    with Wire(where=str(path)) as wire, Wire(where=str(path)) as other:
        wire.open().channel(1)
        other.open()
        assert wire.call(1, spec.Queue.Declare(queue="kept", passive=True), spec.Queue.DeclareOk).message_count == 50
        wire.publish(1, "", "kept", b"x" * 3_000_000)
        shown = api_of(one).get("/connections").json
        names = {row["name"] for row in shown}
        assert len(names) == 2 and {(row["host"], row["port"], row["peer_host"]) for row in shown} == {("unix", 0, "unix")}
        assert all(re.fullmatch(r"unix:\d+ -> unix", name) for name in names)
        assert wire.call(1, spec.Basic.Get(queue="kept"), spec.Basic.GetOk)
    doors = api_of(one).get("/overview").json["listeners"]
    assert (str(path), 0, "amqp") in {(door["ip_address"], door["port"], door["protocol"]) for door in doors}
    with Wire(where=str(path)) as wire, pytest.raises((Closed, AssertionError)):
        wire.open(response="\0guest\0wrong")
    assert until(lambda: "unix:" in refused_logins(one))
    assert "127.0.0.1" not in refused_logins(one)
    # A killed node leaves its socket, and the next start replaces it; a node that stops takes it away.
    one.kill()
    assert path.exists()
    one.start()
    with Wire(where=str(path)) as wire:
        wire.open()
    second = broker({"listeners.unix.default": str(path)})
    refuses_to_start(second, "another process listens there already")
    assert one.stop() == 0
    assert not path.exists()


def test_suspended_listeners_are_shut_and_open_again(broker, tmp_path):  # noqa: F811
    path = tmp_path / "amqp"
    one = broker({"listeners.unix.default": str(path)}).start()
    api = api_of(one)
    with at(one) as before:
        before.open().channel(1)
        assert api.put("/leveret/service", {"suspended": True}).status == 204
        until_refused(lambda: socket.create_connection((one.host, one.port), timeout=5))
        until_refused(lambda: Wire(where=str(path)))
        before.call(1, spec.Queue.Declare(queue="still", durable=True), spec.Queue.DeclareOk)
    assert api("GET", "/ws/amqp", headers={}).status == 503
    assert api.put("/leveret/service", {"suspended": False}).status == 204
    one.wait_until_serving()
    with at(one) as after:
        after.open()


def until_refused(come):
    """The door shuts on another thread than the one that answered."""
    for _ in range(2000):
        try:
            come().close()
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except ConnectionResetError:
            continue
    raise AssertionError("the door is still open")
