"""Passwords: slow hashes, storms of wrong ones, and that no secret is told."""

import base64
import hashlib
import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pika
import pytest

from test_audit import call
from test_auth_backends import OPEN, REFUSED, login
from test_process import broker, pytestmark  # noqa: F401 - a fixture and a mark
from test_tls import said

SLOW = {"password_hashing_module": "leveret_password_hashing_argon2id"}


def get(one, path):
    request = urllib.request.Request(f"http://127.0.0.1:{one.http_port}/api{path}", headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.loads(reply.read())


def make_jane(one, password="pass & word"):
    assert call(one, "PUT", "/users/jane", {"password": password, "tags": "management"}) in (201, 204)
    assert call(one, "PUT", "/permissions/%2F/jane", OPEN) in (201, 204)


def test_new_passwords_are_hashed_slowly_if_that_is_said(broker):  # noqa: F811
    one = broker(SLOW).start()
    make_jane(one)
    for user in ("jane", "guest"):
        shown = get(one, f"/users/{user}")
        assert shown["hashing_algorithm"] == "leveret_password_hashing_argon2id"
        assert shown["password_hash"].startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    for _ in range(2):
        login(one, "jane", "pass & word")
        assert call(one, "GET", "/overview", user="jane", password="pass & word") == 200
    for wrong in ("", "Pass & word", "x" * 5000):
        with pytest.raises(REFUSED):
            login(one, "jane", wrong)
    with pytest.raises(REFUSED):
        login(one, "nobody", "x")
    # A new password counts at once, and the former one no more.
    make_jane(one, "another")
    login(one, "jane", "another")
    with pytest.raises(REFUSED):
        login(one, "jane", "pass & word")
    one.restart()
    login(one, "jane", "another")


def test_hashes_of_any_length_are_kept_and_those_of_md5_let_in(broker):  # noqa: F811
    """As in RabbitMQ, which takes any base64 and looks at its length when somebody logs in."""
    one = broker().start()
    make_jane(one)
    for given, kept in [("AAAA", "AAAA"), (" A AA\nA", "AAAA"), (base64.b64encode(b"x" * 500).decode(),) * 2]:
        assert call(one, "PUT", "/users/jane", {"password_hash": given, "tags": "management"}) == 204
        assert get(one, "/users/jane")["password_hash"] == kept
        with pytest.raises(REFUSED):
            login(one, "jane", "pass & word")
    for wrong in ["AA", "AAA!", "A" * 5000]:
        with pytest.raises(urllib.error.HTTPError) as refused:
            call(one, "PUT", "/users/jane", {"password_hash": wrong, "tags": "management"})
        assert json.loads(refused.value.read()) == {"error": "bad_request", "reason": ["not_base64", wrong]}
    salt = b"salt"
    old = base64.b64encode(salt + hashlib.md5(salt + b"secret").digest()).decode()
    user = {"name": "jane", "password_hash": old, "hashing_algorithm": "rabbit_password_hashing_md5", "tags": ["management"]}
    assert call(one, "POST", "/definitions", {"users": [user]}) == 204
    said(one, "user 'jane' has a password hash by MD5, which is quickly guessed")
    one.restart()
    login(one, "jane", "secret")
    shown = get(one, "/users/jane")
    assert (shown["password_hash"], shown["hashing_algorithm"]) == (old, "rabbit_password_hashing_md5")
    with pytest.raises(REFUSED):
        login(one, "jane", "Secret")


def test_slow_hashes_come_along_in_definitions(broker):  # noqa: F811
    one, other = broker(SLOW).start(), broker().start()
    make_jane(one)
    exported = get(one, "/definitions")
    user = next(user for user in exported["users"] if user["name"] == "jane")
    assert user["hashing_algorithm"] == "leveret_password_hashing_argon2id"
    assert call(other, "POST", "/definitions", {"users": [user], "permissions": exported["permissions"]}) == 204
    login(other, "jane", "pass & word")
    assert get(other, "/users/jane")["password_hash"] == user["password_hash"]
    # Both kinds live side by side, and a password that is changed becomes one of the node's kind.
    make_jane(other, "new")
    assert get(other, "/users/jane")["hashing_algorithm"] == "rabbit_password_hashing_sha256"
    login(other, "jane", "new")
    for wrong in (user["password_hash"].replace("m=19456", "m=19456000"), "$argon2id$", "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            call(other, "PUT", "/users/jane", {"password_hash": wrong, "hashing_algorithm": user["hashing_algorithm"], "tags": ""})
        assert refused.value.code == 400


def test_hashes_of_rabbitmq_with_sha512_come_along_in_definitions(broker):  # noqa: F811
    one, other = broker({"password_hashing_module": "rabbit_password_hashing_sha512"}).start(), broker().start()
    known = base64.b64encode(b"\1\2\3\4" + hashlib.sha512(b"\1\2\3\4secret").digest()).decode()
    jane = {"name": "jane", "password_hash": known, "hashing_algorithm": "rabbit_password_hashing_sha512", "tags": []}
    assert call(other, "POST", "/definitions", {"users": [jane]}) == 204
    assert call(other, "PUT", "/permissions/%2F/jane", OPEN) == 201
    login(other, "jane", "secret")
    with pytest.raises(REFUSED):
        login(other, "jane", "Secret")
    other.restart()
    login(other, "jane", "secret")
    shown = next(user for user in get(other, "/definitions")["users"] if user["name"] == "jane")
    assert (shown["password_hash"], shown["hashing_algorithm"]) == (known, "rabbit_password_hashing_sha512")
    make_jane(one)
    assert get(one, "/users/jane")["hashing_algorithm"] == "rabbit_password_hashing_sha512"
    login(one, "jane", "pass & word")


@pytest.mark.parametrize("settings", [{}, SLOW], ids=["quick", "slow"])
def test_a_storm_of_wrong_passwords_holds_up_nobody(broker, settings):  # noqa: F811
    one = broker(settings).start()
    login(one, "guest", "guest")
    refused, over = [], threading.Event()

    def guess(number):
        at = 0
        while not over.is_set():
            try:
                login(one, ("guest", "nobody")[at % 2], f"s3cret-guess-{number}")
            except pika.exceptions.AMQPError:
                refused.append(number)
            at += 1

    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", one.port))
    channel = connection.channel()
    channel.queue_declare("q", exclusive=True)
    channel.confirm_delivery()
    guessing = [threading.Thread(target=guess, args=(number,)) for number in range(12)]
    for thread in guessing:
        thread.start()
    slowest = 0.0
    while len(refused) < 24:
        began = time.monotonic()
        channel.basic_publish("", "q", b"x")
        slowest = max(slowest, time.monotonic() - began)
    # Who is known comes in beside the storm.
    began = time.monotonic()
    login(one, "guest", "guest")
    entered = time.monotonic() - began
    over.set()
    for thread in guessing:
        thread.join()
    connection.close()
    assert slowest < 2 and entered < 5, (slowest, entered)
    assert "s3cret-guess" not in one.log_text() and not one.panics()


def test_no_secret_is_told(broker):  # noqa: F811
    one = broker({"default_pass": "s3cret-default", "log.console.level": "debug", "event_exchange.vhost": "/"}).start()

    def ctl(*words, stdin=None):
        done = subprocess.run([one.binary, "ctl", *words], input=stdin, capture_output=True, text=True, timeout=60, env=os.environ | {"LEVERET_DATA_DIR": str(one.data)}, check=False)
        assert done.returncode == 0, done
        return done.stdout + done.stderr

    login(one, "guest", "s3cret-default")
    told = [ctl("add_user", "jane", "s3cret-jane"), ctl("change_password", "jane", "s3cret-changed"), ctl("authenticate_user", "jane", "s3cret-changed")]
    told += [ctl("set_user_tags", "jane", "administrator"), ctl("set_permissions", "jane", ".*", ".*", ".*")]
    for password in ("s3cret-wrong", "s3cret-default"):
        with pytest.raises(REFUSED):
            login(one, "jane", password)
    said(one, "login refused: user 'jane'")
    assert call(one, "PUT", "/users/joe", {"password": "s3cret-joe", "tags": ""}, "jane", "s3cret-changed") == 201
    with pytest.raises(urllib.error.HTTPError):
        call(one, "PUT", "/users/joe", {"password": "s3cret-unsaid"}, "jane", "s3cret-changed")
    told += [ctl(command) for command in ("status", "list_users", "list_connections")]
    told.append(ctl("export_definitions", "-"))
    for path in ("/leveret/config", "/leveret/logs", "/leveret/audit", "/definitions", "/users"):
        request = urllib.request.Request(f"http://127.0.0.1:{one.http_port}/api{path}", headers={"Authorization": "Basic " + base64.b64encode(b"jane:s3cret-changed").decode()})
        with urllib.request.urlopen(request, timeout=30) as reply:
            told.append(reply.read().decode())
    told.append(one.log_text())
    for text in told:
        assert "s3cret" not in text, text[max(0, text.find("s3cret") - 300) :][:600]
