"""Logins that others than the catalog decide about: a service asked over HTTP, a directory, and their answers kept for a while."""

import threading
import time

import pika
import pytest

from certificates import Authority
from directory import Directory, Service
from api import Api
from test_audit import call
from test_command_line import ctl
from test_process import broker, pytestmark, refuses_to_start  # noqa: F401 - a fixture and a mark
from test_tls import said
from waiting import until

REFUSED = pika.exceptions.ProbableAuthenticationError
OPEN = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture
def asking(broker):  # noqa: F811
    """Makes brokers that ask a backend about passwords, then the catalog, which knows jane without a password."""

    def make(backend, settings, start=True):
        chain = {"auth_backends.1.authn": backend, "auth_backends.1.authz": "internal", "auth_backends.2": "internal"}
        one = broker(chain | settings)
        if not start:
            return one
        one.start()
        assert call(one, "PUT", "/users/jane", {"password_hash": "", "tags": "management"}) == 201
        assert call(one, "PUT", "/permissions/%2F/jane", OPEN) == 201
        return one

    return make


def login(one, user, password):
    credentials = pika.PlainCredentials(user, password)
    pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", one.port, "/", credentials, socket_timeout=20, blocked_connection_timeout=20)).close()


def knows(fields):
    return "allow monitoring" if (fields["username"], fields.get("password")) == ("jane", "pass & word") else "deny"


@pytest.fixture
def service():
    made = []

    def make(answer=knows, certificate=None):
        made.append(Service(answer, certificate))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def people():
    made = []

    def make(*arguments, **options):
        made.append(Directory(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_service_is_asked_about_a_password_and_gives_tags(asking, service, method):
    server = service()
    one = asking("http", {"auth_http.user_path": server.address, "auth_http.http_method": method})
    server.asked.clear()
    login(one, "jane", "pass & word")
    assert server.asked == [(method.upper(), {"username": "jane", "password": "pass & word"})]
    # The tags of both: jane may watch the node.
    assert call(one, "GET", "/nodes", user="jane", password="pass & word") == 200
    with pytest.raises(REFUSED):
        login(one, "jane", "wrong")
    said(one, "login refused: user 'jane'")
    # Who is not in the catalog has no permissions there; who is in it alone comes in by its own password.
    login(one, "guest", "guest")
    assert "pass & word" not in one.log_text() and "wrong" not in one.log_text()


def test_who_is_let_in_must_be_in_the_catalog(asking, service):
    server = service(lambda fields: "allow")
    one = asking("http", {"auth_http.user_path": server.address})
    with pytest.raises(REFUSED):
        login(one, "stranger", "x")


def test_a_service_that_gives_no_answer_lets_nobody_in(asking, service):
    answers = [500, 302, "perhaps", "", "<html>allow</html>", "allowed", "x" * 100_000]
    server = service(lambda fields: answers[0])
    one = asking("http", {"auth_http.user_path": server.address})
    while answers:
        with pytest.raises(REFUSED):
            login(one, "jane", "pass & word")
        answers.pop(0) if len(answers) > 1 else answers.clear()
        if not answers:
            break
    server.close()
    with pytest.raises(REFUSED):
        login(one, "jane", "pass & word")
    login(one, "guest", "guest")


def test_why_a_service_gave_no_answer_is_in_the_log_without_the_password(broker, service):  # noqa: F811
    server = service(lambda fields: 500)
    one = broker({"auth_backends.1.authn": "http", "auth_backends.1.authz": "internal", "auth_http.user_path": server.address}).start()
    with pytest.raises(REFUSED):
        login(one, "jane", "s3cret-word")
    said(one, "login refused: user 'jane'", f"{server.address} answers with status 500", "auth_http.user_path")
    server.close()
    with pytest.raises(REFUSED):
        login(one, "jane", "s3cret-word")
    said(one, f"{server.address} can't be asked")
    assert "s3cret-word" not in one.log_text()


def test_a_service_that_gives_no_answer_is_named_though_the_catalog_decides(asking, service):
    server = service(lambda fields: 500)
    one = asking("http", {"auth_http.user_path": server.address})
    with pytest.raises(REFUSED):
        login(one, "jane", "s3cret-word")
    said(one, "the login of user 'jane'", f"{server.address} answers with status 500")
    server.close()
    login(one, "guest", "guest")
    said(one, "the login of user 'guest'", f"{server.address} can't be asked")
    assert "s3cret-word" not in one.log_text()


def test_a_slow_service_holds_up_nobody_else_and_is_given_up(asking, service):
    go_on = threading.Event()
    server = service(lambda fields: (go_on.wait(20), "allow")[1] if fields["username"] == "slow" else knows(fields))
    one = asking("http", {"auth_http.user_path": server.address, "auth_http.request_timeout": "1500"})
    ended = []

    def try_slow():
        try:
            login(one, "slow", "x")
        except pika.exceptions.AMQPError as error:
            ended.append(error)

    began = time.monotonic()
    waiting = [threading.Thread(target=try_slow) for _ in range(8)]
    for thread in waiting:
        thread.start()
    until(lambda: sum(fields["username"] == "slow" for _, fields in server.asked) == 8)
    login(one, "jane", "pass & word")
    assert time.monotonic() - began < 1.5 or not ended
    for thread in waiting:
        thread.join()
    go_on.set()
    assert len(ended) == 8


def test_a_service_is_known_by_its_certificate(asking, service, tmp_path):
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    server = service(certificate=authority.server())
    settings = {"auth_http.user_path": server.address, "auth_http.ssl_options.cacertfile": str(authority.certificate), "auth_http.ssl_options.verify": "verify_peer"}
    login(asking("http", settings), "jane", "pass & word")
    one = asking("http", settings | {"auth_http.ssl_options.cacertfile": str(stranger.certificate)})
    with pytest.raises(REFUSED):
        login(one, "jane", "pass & word")


def test_the_certificate_of_a_service_must_have_the_expected_name(asking, service, tmp_path):
    authority = Authority(tmp_path)
    server = service(certificate=authority.issue("other", "/CN=other", "DNS:auth.example"))
    settings = {"auth_http.user_path": server.address, "auth_http.ssl_options.cacertfile": str(authority.certificate)}
    login(asking("http", settings | {"auth_http.ssl_options.sni": "auth.example"}), "jane", "pass & word")
    with pytest.raises(REFUSED):
        login(asking("http", settings), "jane", "pass & word")


def test_the_chain_of_a_service_must_not_be_too_long(asking, service, tmp_path):
    authority = Authority(tmp_path)
    between = authority.subordinate("between")
    own, key = between.server()
    chain = tmp_path / "chain.pem"
    chain.write_text("".join(one.read_text() for one in (own, between.certificate, authority.certificate)))
    server = service(certificate=(chain, key))
    settings = {"auth_http.user_path": server.address, "auth_http.ssl_options.cacertfile": str(authority.certificate)}
    for depth, enters in (("1", True), ("0", False)):
        one = asking("http", settings | {"auth_http.ssl_options.depth": depth})
        if enters:
            login(one, "jane", "pass & word")
        else:
            with pytest.raises(REFUSED):
                login(one, "jane", "pass & word")


def test_answers_that_are_cleared_are_asked_for_again(asking, service):
    server = service()
    one = asking("cache", {"auth_cache.cached_backend": "http", "auth_http.user_path": server.address, "auth_cache.cache_ttl": "60000"})
    asked = lambda: sum(fields["username"] == "jane" for _, fields in server.asked)  # noqa: E731
    login(one, "jane", "pass & word")
    login(one, "jane", "pass & word")
    assert asked() == 1
    assert ctl(one, "clear_auth_backend_cache") == (0, "Will clear rabbitmq_auth_backend_cache plugin's cache on the target node...\n", "")
    login(one, "jane", "pass & word")
    assert asked() == 2
    without = asking("http", {"auth_http.user_path": server.address})
    code, _, why = ctl(without, "clear_auth_backend_cache", "-q")
    assert code != 0 and "no answers are cached on this node" in why


def test_users_with_permissions_of_another_server_are_not_internal(broker, service, people):  # noqa: F811
    server = service(lambda fields: "allow management" if "password" in fields else "allow")
    paths = {f"auth_http.{kind}_path": server.address for kind in ("user", "vhost", "resource", "topic")}
    directory = people({"uid=jane,ou=people,dc=example": "pass & word"})
    settings = {
        "http": paths,
        "ldap": {
            "auth_ldap.servers.1": "127.0.0.1",
            "auth_ldap.port": str(directory.port),
            "auth_ldap.user_dn_pattern": "uid=${username},ou=people,dc=example",
            "auth_ldap.queries.tags": "[{management, {constant, true}}]",
        },
    }
    for backend, own in settings.items():
        one = broker({"auth_backends.1": backend, "auth_backends.2": "internal"} | own).start()
        root = f"http://{one.host}:{one.http_port}"
        who = Api("jane", "pass & word", root).get("/whoami").json
        assert who == {"name": "jane", "tags": ["management"], "is_internal_user": False}, backend
        assert backend == "http" or Api(root=root).get("/whoami").json["is_internal_user"] is True


def test_answers_are_kept_for_a_while(asking, service):
    server = service()
    one = asking("cache", {"auth_cache.cached_backend": "http", "auth_http.user_path": server.address, "auth_cache.cache_ttl": "60000"})
    for _ in range(3):
        login(one, "jane", "pass & word")
    for _ in range(2):
        with pytest.raises(REFUSED):
            login(one, "jane", "wrong")
    asked = [fields["password"] for _, fields in server.asked if fields["username"] == "jane"]
    assert asked == ["pass & word", "wrong", "wrong"], "refusals are not kept unless that is said"


def test_a_directory_is_logged_in_to_as_the_user(asking, people):
    server = people({"uid=jane,ou=people,dc=example": "pass & word"})
    one = asking("ldap", {"auth_ldap.servers.1": "127.0.0.1", "auth_ldap.port": str(server.port), "auth_ldap.user_dn_pattern": "uid=${username},ou=people,dc=example"})
    login(one, "jane", "pass & word")
    assert call(one, "GET", "/overview", user="jane", password="pass & word") == 200
    for wrong in ("", "wrong"):
        with pytest.raises(REFUSED):
            login(one, "jane", wrong)
    with pytest.raises(REFUSED):
        login(one, "jane,ou=people", "pass & word")
    assert ("uid=jane\\,ou\\=people,ou=people,dc=example", False) in server.binds
    server.close()
    with pytest.raises(REFUSED):
        login(one, "jane", "pass & word")
    login(one, "guest", "guest")


def test_a_name_is_looked_up_in_the_directory(asking, people):
    server = people({"cn=reader": "s3cret", "cn=Jane Doe,dc=example": "x", "cn=twin 1": "x"}, {("mail", "jane"): ["cn=Jane Doe,dc=example"], ("mail", "twin"): ["cn=twin 1", "cn=twin 2"]})
    lookup = {"auth_ldap.dn_lookup_attribute": "mail", "auth_ldap.dn_lookup_base": "dc=example", "auth_ldap.dn_lookup_bind.user_dn": "cn=reader", "auth_ldap.dn_lookup_bind.password": "s3cret"}
    one = asking("ldap", {"auth_ldap.servers.1": "127.0.0.1", "auth_ldap.port": str(server.port)} | lookup)
    login(one, "jane", "x")
    assert [name for name, _ in server.binds][-2:] == ["cn=reader", "cn=Jane Doe,dc=example"]
    for nobody in ("nobody", "twin", "*"):
        with pytest.raises(REFUSED):
            login(one, nobody, "x")
    assert "s3cret" not in one.log_text()


@pytest.mark.parametrize("key", ["use_ssl", "use_starttls"])
def test_a_directory_is_secured_and_known_by_its_certificate(asking, people, tmp_path, key):
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    server = people({"jane": "x"}, certificate=authority.server(), tls_at_start=key == "use_ssl")
    settings = {"auth_ldap.servers.1": "localhost", "auth_ldap.port": str(server.port), f"auth_ldap.{key}": "true", "auth_ldap.ssl_options.cacertfile": str(authority.certificate)}
    login(asking("ldap", settings), "jane", "x")
    assert ("jane", True) in server.binds
    server.binds.clear()
    with pytest.raises(REFUSED):
        login(asking("ldap", settings | {"auth_ldap.ssl_options.cacertfile": str(stranger.certificate)}), "jane", "x")
    assert not server.binds, "the password stays here"


def test_what_would_let_others_in_is_refused(broker, asking):  # noqa: F811
    for settings, words in [
        ({"auth_backends.1": "http", "auth_http.user_path": "http://h/user"}, "auth_http.vhost_path must be set"),
        ({"auth_backends.1": "ldap"}, "auth_ldap.servers.1 must be set"),
    ]:
        refuses_to_start(broker(settings), words)
    for backend, words in [("http", "auth_http.user_path must be set"), ("ldap", "auth_ldap.servers.1 must be set"), ("cache", "auth_cache.cached_backend must be set")]:
        refuses_to_start(asking(backend, {}, start=False), words)
    refuses_to_start(asking("ldap", {"auth_ldap.queries.tags": "x"}, start=False), "auth_ldap.queries.tags is not a query")
