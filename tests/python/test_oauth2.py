"""Logins by token: who comes in, what they may do, when it ends."""

import base64
import json
import time
import urllib.error
import urllib.request

import pika
import pytest
from pika import spec

from test_process import at, broker, pytestmark, refuses_to_start  # noqa: F401 - a fixture and a mark
from test_tls import said
from tokens import Issuer, KeyServer


@pytest.fixture
def issuer(tmp_path):
    return Issuer(tmp_path)


@pytest.fixture
def guarded(broker, issuer):  # noqa: F811
    """Makes brokers that take the issuer's tokens, and the users of their catalog."""

    def make(settings=None, start=True):
        given = {
            "auth_backends.1": "oauth2",
            "auth_backends.2": "internal",
            "auth_oauth2.resource_server_id": "rabbitmq",
            "auth_oauth2.signing_keys.one": str(issuer.public),
        }
        one = broker(given | (settings or {}))
        return one.start() if start else one

    return make


def login(one, token, user="anybody", vhost="/"):
    credentials = pika.PlainCredentials(user, token)
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", one.port, vhost, credentials, socket_timeout=10))


def test_a_token_is_a_password(guarded, issuer):
    one = guarded()
    with login(one, issuer.token()) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_publish("", "q", b"x")
        assert channel.basic_get("q", auto_ack=True)[2] == b"x"
    said(one, "user 'jane' authenticated")
    with login(one, "guest", "guest") as connection:
        assert connection.is_open


def test_scopes_say_what_may_be_done(guarded, issuer):
    one = guarded()
    token = issuer.token(scope="rabbitmq.configure:*/mine.* rabbitmq.write:%2F/mine.* rabbitmq.read:*/mine.*")
    with login(one, token) as connection:
        channel = connection.channel()
        channel.queue_declare("mine.q", durable=True)
        channel.exchange_declare("mine.x", "topic")
        channel.queue_bind("mine.q", "mine.x", "any")
        for wrong in (lambda it: it.queue_declare("yours"), lambda it: it.basic_publish("", "mine.q", b"default exchange")):
            broken = connection.channel()
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
                wrong(broken)
                broken.queue_declare("mine.q", passive=True)
            assert caught.value.reply_code == 403
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError):
        login(one, issuer.token(scope="rabbitmq.read:other/*"))


def test_keys_of_topic_exchanges_are_asked_about(guarded, issuer):
    one = guarded()
    with login(one, issuer.token(scope="rabbitmq.configure:*/* rabbitmq.write:*/x/good.* rabbitmq.write:*/q rabbitmq.read:*/x/good.*")) as connection:
        channel = connection.channel()
        channel.exchange_declare("x", "topic")
        channel.queue_declare("q")
        channel.queue_bind("q", "x", "good.#")
        channel.confirm_delivery()
        channel.basic_publish("x", "good.one", b"1")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
            channel.basic_publish("x", "bad.one", b"2")
        assert caught.value.reply_code == 403
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            connection.channel().queue_bind("q", "x", "bad.#")


def test_wrong_tokens_are_refused_and_never_logged(guarded, issuer, tmp_path):
    one = guarded()
    forged = issuer.token()[:-4] + "AAAA"
    for token, reason in [
        (issuer.token(seconds=-1), "it has expired"),
        (issuer.token(aud="other"), "it is not for"),
        (forged, "its signature is wrong"),
        (Issuer(tmp_path, "two").token(), "which is not known"),
    ]:
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            login(one, token)
        # The last of the chain says why; with the token backend alone it is that one.
        assert token not in one.log_text()
    alone = guarded({"auth_backends.2": "oauth2"})
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        login(alone, issuer.token(seconds=-1))
    said(alone, "PLAIN login refused", "it has expired")


def update_secret(wire, token):
    wire.send(0, spec.Connection.UpdateSecret(new_secret=token, reason="renewed"))


def test_a_connection_ends_with_its_token(guarded, issuer):
    one = guarded()
    started = time.time()
    with at(one) as wire:
        wire.open(response="\0x\0" + issuer.token(seconds=2))
        closed = wire.expect_connection_close()
        assert (closed.reply_code, closed.reply_text) == (320, "CONNECTION_FORCED - the credentials have expired")
    assert 0 < time.time() - started < 60


def test_a_connection_lives_on_with_a_new_token_and_its_rights(guarded, issuer):
    one = guarded()
    with at(one) as wire:
        wire.open(response="\0x\0" + issuer.token(seconds=3)).channel(1)
        wire.publish(1, "", "nowhere", b"1")
        update_secret(wire, issuer.token(scope="rabbitmq.read:*/*"))
        wire.expect(spec.Connection.UpdateSecretOk, 0)
        time.sleep(3)
        wire.call(1, spec.Basic.Qos(prefetch_count=1), spec.Basic.QosOk)
        wire.publish(1, "", "nowhere", b"2")
        closed = wire.expect(spec.Channel.Close, 1)
        assert closed.reply_code == 403


def test_a_wrong_new_token_ends_the_connection(guarded, issuer):
    one = guarded()
    for token in (issuer.token(seconds=-1), issuer.token(sub="somebody else"), "nonsense"):
        with at(one) as wire:
            wire.open(response="\0x\0" + issuer.token())
            update_secret(wire, token)
            closed = wire.expect_connection_close()
            assert (closed.reply_code, closed.reply_text) == (530, "NOT_ALLOWED - New secret was refused by one of the backends")


def test_keys_are_asked_for_and_new_ones_again(guarded, issuer, tmp_path):
    server = KeyServer(issuer.key_set())
    try:
        one = guarded({"auth_oauth2.jwks_uri": server.address, "auth_backends.2": "oauth2"})
        second = Issuer(tmp_path, "two")
        server.document = second.key_set()
        for _ in range(2):
            with login(one, second.token()) as connection:
                assert connection.is_open
        assert server.asked == 1
    finally:
        server.close()


def test_nobody_comes_in_while_the_keys_cannot_be_asked_for(guarded, tmp_path):
    server = KeyServer(None)
    try:
        one = guarded({"auth_oauth2.jwks_uri": server.address})
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            login(one, Issuer(tmp_path, "two").token())
        said(one, "no tokens can be verified with new keys", server.address)
        with login(one, "guest", "guest") as connection:
            assert connection.is_open
    finally:
        server.close()


def test_each_resource_server_takes_the_tokens_of_its_own_provider(guarded, issuer, tmp_path):
    second = Issuer(tmp_path, "two")
    server = KeyServer(second.key_set())
    try:
        one = guarded({
            "auth_oauth2.resource_servers.test.oauth_provider_id": "second",
            "auth_oauth2.resource_servers.test.require_exp": "false",
            "auth_oauth2.resource_servers.test.scope_aliases.1.alias": "api://all",
            "auth_oauth2.resource_servers.test.scope_aliases.1.scope": "test.configure:*/{sub}.* test.read:*/* test.write:*/*",
            "auth_oauth2.oauth_providers.second.jwks_uri": server.address,
        })
        with login(one, issuer.token()) as connection:
            connection.channel().queue_declare("any")
        with login(one, second.token(aud="test", exp=None, scope="api://all")) as connection:
            connection.channel().queue_declare("jane.own")
            with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
                connection.channel().queue_declare("other")
            assert caught.value.reply_code == 403
        for wrong in (issuer.token(aud="test"), second.token(), second.token(aud="rabbitmq test"), issuer.token(exp=None)):
            with pytest.raises(pika.exceptions.ProbableAuthenticationError):
                login(one, wrong)
    finally:
        server.close()


def api(one, header):
    request = urllib.request.Request(f"http://127.0.0.1:{one.http_port}/api/whoami", headers={"Authorization": header})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, None


def test_the_http_api_takes_tokens(guarded, issuer):
    one = guarded()
    token = issuer.token(scope="rabbitmq.tag:administrator")
    status, who = api(one, f"Bearer {token}")
    assert (status, who["name"], who["tags"]) == (200, "jane", ["administrator"])
    assert who["is_internal_user"] is False
    status, who = api(one, "Basic " + base64.b64encode(f"x:{token}".encode()).decode())
    assert (status, who["name"]) == (200, "jane")
    assert api(one, f"Bearer {issuer.token(seconds=-1)}")[0] == 401
    assert api(one, f"Bearer {issuer.token()}")[0] == 401, "no tag"


def test_the_catalog_may_have_the_permissions(guarded, issuer):
    one = guarded({"auth_backends.1": "internal", "auth_backends.3.authn": "oauth2", "auth_backends.3.authz": "internal"})
    with login(one, issuer.token(sub="guest", scope="")) as connection:
        connection.channel().queue_declare("q")
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        login(one, issuer.token(sub="nobody"))
    status, who = api(one, f"Bearer {issuer.token(sub='guest', scope='rabbitmq.tag:monitoring')}")
    assert (status, who["name"], sorted(who["tags"])) == (200, "guest", ["administrator", "monitoring"])


def test_settings_without_which_nothing_works_are_named(guarded):
    refuses_to_start(guarded({"auth_oauth2.signing_keys.one": "/nowhere.pem"}, start=False), "auth_oauth2.signing_keys.one /nowhere.pem")
    refuses_to_start(guarded({"auth_backends.1": "amqp"}, start=False), "auth_backends.1 is refused")
    refuses_to_start(guarded({"auth_oauth2.scope_pattern_syntax": "regexpr"}, start=False), "auth_oauth2.scope_pattern_syntax is refused")
    refuses_to_start(guarded({"auth_oauth2.default_oauth_provider": "zork"}, start=False), "there is no auth_oauth2.oauth_providers.zork")
    refuses_to_start(guarded({"management.oauth_client_secret": "s3cret"}, start=False), "management.oauth_client_secret is refused")
