"""Permissions and tags by the queries of a real directory (OpenLDAP)."""

import time
import urllib.error
from pathlib import Path

import pika
import pytest

from slapd import BINARY as SLAPD
from slapd import Slapd
from test_audit import call
from test_process import broker, pytestmark, refuses_to_start  # noqa: F401 - a fixture and a mark
from test_tls import authority, context, external, pika_at, said, secured  # noqa: F401 - two fixtures

needs_slapd = pytest.mark.skipif(not SLAPD.exists(), reason="OpenLDAP's server could not be fetched")
REFUSED = pika.exceptions.ProbableAuthenticationError
PEOPLE = "ou=people,dc=example"
GROUPS = "ou=groups,dc=example"


def person(name, **more):
    rdn = name.replace("\\", "\\\\").replace("*", "\\2A").replace("(", "\\28").replace(")", "\\29").replace("=", "\\3D")
    lines = [f"dn: uid={rdn},{PEOPLE}", "objectClass: inetOrgPerson", f"uid: {name}", f"cn: {name}", f"sn: {name}", f"userPassword: {name}-pw"]
    return "\n".join(lines + [f"{key}: {value}" for key, values in more.items() for value in values]) + "\n\n"


def group(name, *members, under=GROUPS):
    return f"dn: cn={name},{under}\nobjectClass: groupOfNames\ncn: {name}\n" + "".join(f"member: {member}\n" for member in members) + "\n"


def unit(name, under="dc=example"):
    return f"dn: ou={name},{under}\nobjectClass: organizationalUnit\nou: {name}\n\n"


def named(user):
    return f"uid={user},{PEOPLE}"


OBJECTS = (
    "dn: dc=example\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n\n"
    "dn: cn=reader,dc=example\nobjectClass: person\ncn: reader\nsn: reader\nuserPassword: reader-pw\n\n"
    + unit("people")
    + unit("groups")
    + unit("hidden")
    + person("jane", mail=["jane@example", "j@example"], description=["^orders-"])
    + person("bob")
    + person("carl")
    + person("*)(uid=*")
    + person(".*")
    + group("admins", named("jane"))
    + group("shop-users", named("jane"), named("bob"))
    + group("inner", named("bob"))
    + group("middle", f"cn=inner,{GROUPS}", f"cn=outer,{GROUPS}")
    + group("outer", f"cn=middle,{GROUPS}")
    + group("secret", named("jane"), under="ou=hidden,dc=example")
    + f"dn: cn=away,{GROUPS}\nobjectClass: referral\nobjectClass: extensibleObject\ncn: away\nref: ldap://198.51.100.1/cn=away,{GROUPS}\n\n"
)


@pytest.fixture(scope="module")
def directory():
    one = Slapd(OBJECTS)
    yield one
    one.close()


@pytest.fixture
def asking(broker, directory):  # noqa: F811
    """Makes brokers that ask the directory about everything, then the catalog, which knows guest."""

    def make(settings, start=True, backend="ldap"):
        chain = {"auth_backends.1": backend, "auth_backends.2": "internal", "auth_ldap.servers.1": "127.0.0.1", "auth_ldap.port": str(directory.port)}
        one = broker(chain | {"auth_ldap.user_dn_pattern": f"uid=${{username}},{PEOPLE}"} | settings)
        return one.start() if start else one

    return make


def connect(one, user, vhost="/", password=None):
    credentials = pika.PlainCredentials(user, password or f"{user}-pw")
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", one.port, vhost, credentials, socket_timeout=20, blocked_connection_timeout=20))


def tries(connection, deed):
    """True if it may be done on a channel of its own; else it is refused with 403."""
    channel = connection.channel()
    try:
        deed(channel)
    except pika.exceptions.ChannelClosedByBroker as closed:
        assert closed.reply_code == 403, closed
        return False
    channel.close()
    return True


def declares(connection, queue):
    return tries(connection, lambda channel: channel.queue_declare(queue))


def enters(one, user, vhost):
    try:
        connect(one, user, vhost).close()
    except (pika.exceptions.ProbableAccessDeniedError, pika.exceptions.ConnectionClosedByBroker):
        return False
    return True


@needs_slapd
def test_groups_decide_about_virtual_hosts(asking):
    one = asking({"auth_ldap.queries.vhost_access": f'{{in_group, "cn=${{vhost}}-users,{GROUPS}"}}'})
    for name in ("shop", "bank"):
        assert call(one, "PUT", f"/vhosts/{name}", {}) == 201
    assert enters(one, "jane", "shop") and enters(one, "bob", "shop")
    assert not enters(one, "carl", "shop"), "not in the group"
    assert not enters(one, "jane", "bank"), "there is no such group"
    with pytest.raises(REFUSED):
        connect(one, "jane", "shop", "wrong")
    connect(one, "guest", password="guest").close()


@needs_slapd
def test_groups_give_tags(asking):
    tags = f"[{{administrator, {{in_group, \"cn=admins,{GROUPS}\"}}}}, {{management, {{constant, true}}}}, {{policymaker, {{in_group, \"cn=no,{GROUPS}\"}}}}]"
    one = asking({"auth_ldap.queries.tags": tags})
    assert call(one, "GET", "/users", user="jane", password="jane-pw") == 200
    assert call(one, "GET", "/overview", user="bob", password="bob-pw") == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        call(one, "GET", "/users", user="bob", password="bob-pw")
    assert refused.value.code == 401


@needs_slapd
def test_tags_and_permissions_can_be_of_two_who_are_asked(broker, directory):  # noqa: F811
    settings = {"auth_backends.1.authn": "ldap", "auth_backends.1.authz": "internal", "auth_backends.2": "internal", "auth_ldap.servers.1": "127.0.0.1", "auth_ldap.port": str(directory.port)}
    settings |= {"auth_ldap.user_dn_pattern": f"uid=${{username}},{PEOPLE}", "auth_ldap.queries.tags": "[{management, {constant, true}}]"}
    one = broker(settings).start()
    assert call(one, "PUT", "/users/jane", {"password_hash": "", "tags": ""}) == 201
    assert call(one, "GET", "/overview", user="jane", password="jane-pw") == 200
    assert not enters(one, "jane", "/"), "the catalog gives no permission"


@needs_slapd
def test_groups_in_groups_are_found_and_circles_end(asking):
    one = asking(
        {
            "auth_ldap.group_lookup_base": GROUPS,
            "auth_ldap.queries.vhost_access": "{constant, true}",
            "auth_ldap.queries.resource_access": f'{{for, [{{permission, configure, {{in_group_nested, "cn=${{name}},{GROUPS}"}}}}, {{permission, write, {{constant, false}}}}, {{permission, read, {{constant, false}}}}]}}',
        }
    )
    connection = connect(one, "bob")
    # bob is in inner, which is in middle, which is in outer, which is in middle.
    for queue in ("inner", "middle", "outer", "OUTER"):
        assert declares(connection, queue), queue
    assert not declares(connection, "admins") and not declares(connection, "nowhere")
    connection.close()


@needs_slapd
def test_what_is_done_to_whom_decides(asking):
    query = '''{for, [{resource, queue, {'or', [{match, {string, "${name}"}, {string, "^${username}-"}},
                       {match, "${name}", {attribute, "${user_dn}", "description"}}]}},
              {resource, exchange, {'and', [{equals, "${permission}", "write"}, {'not', {equals, "${name}", "amq.default"}}]}}]}'''
    one = asking({"auth_ldap.queries.resource_access": "'''" + query + "'''"})
    connection = connect(one, "jane")
    assert declares(connection, "jane-1") and declares(connection, "orders-1")
    assert not declares(connection, "bob-1")
    assert not tries(connection, lambda channel: channel.exchange_declare("jane-x"))

    def publish(exchange):
        def deed(channel):
            channel.confirm_delivery()
            channel.basic_publish(exchange, "k", b"x")

        return tries(connection, deed)

    assert publish("amq.fanout") and not publish("")
    connection.close()


@needs_slapd
def test_routing_keys_are_asked_about_at_topic_exchanges(asking):
    one = asking({"auth_ldap.queries.topic_access": '{\'and\', [{equals, "${resource}", "topic"}, {equals, "${name}", "amq.topic"}, {match, "${routing_key}", "^${username}[.]"}]}', "auth_ldap.queries.vhost_access": "{constant, true}"})
    connection = connect(one, "jane")

    def publish(exchange, key):
        def deed(channel):
            channel.confirm_delivery()
            channel.basic_publish(exchange, key, b"x")

        return tries(connection, deed)

    assert publish("amq.topic", "jane.a") and publish("amq.direct", "bob.a")
    assert not publish("amq.topic", "bob.a") and not publish("amq.topic", "janes.a")
    connection.close()


@needs_slapd
def test_a_name_is_never_part_of_a_question(asking):
    """Names that would mean something in a filter, a directory name or an expression mean nothing."""
    resource = '{match, "${name}", "^${username}-"}'
    one = asking({"auth_ldap.queries.vhost_access": f'{{in_group, "cn=${{vhost}}-users,{GROUPS}"}}', "auth_ldap.queries.resource_access": resource})
    for vhost in ("shop", "*", "shop-users,ou=groups,dc=example", "x)(cn=*"):
        quoted = vhost.replace(",", "%2C").replace("=", "%3D").replace("*", "%2A").replace("(", "%28").replace(")", "%29")
        assert call(one, "PUT", f"/vhosts/{quoted}", {}) == 201
    for user in ("*)(uid=*", ".*"):
        assert not enters(one, user, "shop"), "they are in no group"
    for vhost in ("*", "x)(cn=*", "shop-users,ou=groups,dc=example"):
        assert not enters(one, "jane", vhost), vhost
    for user in ("jane,ou=people", "*", f"jane,{PEOPLE}", "jane\\", "jane#", " jane", "jane\0"):
        with pytest.raises((REFUSED, pika.exceptions.AMQPConnectionError)):
            connect(one, user, "/", "jane-pw")
    two = asking({"auth_ldap.queries.resource_access": resource})
    connection = connect(two, ".*")
    assert declares(connection, ".*-1") and not declares(connection, "jane-1")
    connection.close()


@needs_slapd
def test_a_user_is_looked_up_and_asked_about_as_somebody_else(asking):
    lookup = {"auth_ldap.user_dn_pattern": "${username}", "auth_ldap.dn_lookup_attribute": "mail", "auth_ldap.dn_lookup_base": PEOPLE, "auth_ldap.dn_lookup_bind.user_dn": "cn=reader,dc=example"}
    secret = '{in_group, "cn=secret,ou=hidden,dc=example"}'
    lookup |= {"auth_ldap.dn_lookup_bind.password": "reader-pw", "auth_ldap.queries.vhost_access": secret, "auth_ldap.queries.tags": f"[{{management, {secret}}}]"}
    reader = {"auth_ldap.other_bind.user_dn": "cn=reader,dc=example", "auth_ldap.other_bind.password": "reader-pw"}
    one = asking(lookup | reader)
    connect(one, "j@example", password="jane-pw").close()
    assert call(one, "GET", "/overview", user="jane@example", password="jane-pw") == 200
    for user, password in (("nobody@example", "jane-pw"), ("*", "jane-pw"), ("j@example", "wrong")):
        with pytest.raises(REFUSED):
            connect(one, user, password=password)
    # The user must not see the group, so it is not there for them; and its opposite isn't, either.
    for query in (secret, f"{{'not', {secret}}}"):
        two = asking(lookup | {"auth_ldap.queries.vhost_access": query})
        assert not enters_with(two, "j@example", "jane-pw"), query
        with pytest.raises(urllib.error.HTTPError):
            call(two, "GET", "/overview", user="j@example", password="jane-pw")
    assert "reader-pw" not in one.log_text() and "jane-pw" not in one.log_text()


def enters_with(one, user, password):
    try:
        connect(one, user, password=password).close()
    except pika.exceptions.AMQPConnectionError:
        return False
    return True


@needs_slapd
def test_a_referral_is_not_followed(asking):
    one = asking({"auth_ldap.queries.vhost_access": f'{{\'not\', {{in_group, "cn=away,{GROUPS}"}}}}'})
    began = time.monotonic()
    assert not enters(one, "jane", "/")
    assert time.monotonic() - began < 5
    said(one, "it refers to another directory, which is not asked (auth_ldap.queries.vhost_access)")


@needs_slapd
def test_a_directory_that_is_silent_permits_nothing_and_is_given_up(broker):  # noqa: F811
    slow = Slapd(OBJECTS)
    try:
        settings = {"auth_backends.1": "ldap", "auth_backends.2": "internal", "auth_ldap.servers.1": "127.0.0.1", "auth_ldap.port": str(slow.port), "auth_ldap.timeout": "700"}
        settings |= {"auth_ldap.user_dn_pattern": f"uid=${{username}},{PEOPLE}", "auth_ldap.queries.resource_access": '{exists, "${user_dn}"}'}
        one = broker(settings).start()
        connection = connect(one, "jane")
        assert declares(connection, "a")
        slow.freeze()
        began = time.monotonic()
        other = connect(one, "guest", password="guest")
        assert declares(other, "other"), "nobody else waits"
        assert not declares(connection, "b")
        assert time.monotonic() - began < 10
        said(one, "user 'jane' is refused configure on queue 'b' in vhost '/': 127.0.0.1", "it took too long")
        slow.thaw()
        assert declares(connection, "b"), "and goes on when it answers again"
        slow.stop()
        assert not declares(connection, "c")
        said(one, "user 'jane' is refused configure on queue 'c'")
        slow.start()
        assert declares(connection, "c"), "the connections that were kept have ended"
        connection.close()
        other.close()
    finally:
        slow.close()


@needs_slapd
def test_answers_are_kept_for_a_while(broker):  # noqa: F811
    one_directory = Slapd(OBJECTS)
    try:
        settings = {"auth_backends.1": "cache", "auth_backends.2": "internal", "auth_cache.cached_backend": "ldap", "auth_cache.cache_ttl": "60000", "auth_ldap.servers.1": "127.0.0.1"}
        settings |= {"auth_ldap.port": str(one_directory.port), "auth_ldap.user_dn_pattern": f"uid=${{username}},{PEOPLE}", "auth_ldap.queries.resource_access": '{exists, "${user_dn}"}'}
        one = broker(settings).start()
        connection = connect(one, "jane")
        assert declares(connection, "a")
        one_directory.stop()
        again = connect(one, "jane")
        assert declares(again, "a"), "both the login and the permission are known"
        assert not declares(again, "b")
        with pytest.raises(REFUSED):
            connect(one, "jane", password="wrong")
        connection.close()
        again.close()
    finally:
        one_directory.close()


@needs_slapd
def test_rabbitmqs_advanced_config_says_the_same(asking):
    one = asking({"auth_backends.1": "internal"}, start=False)
    del one.settings["auth_backends.2"]
    (one.directory / "advanced.config").write_text(f"""%% beside the configuration file
[{{rabbit, [{{auth_backends, [rabbit_auth_backend_ldap, rabbit_auth_backend_internal]}}]}},
 {{rabbitmq_auth_backend_ldap, [
   {{vhost_access_query, {{in_group, "cn=${{vhost}}-users,{GROUPS}"}}}},
   {{tag_queries, [{{administrator, {{in_group, "cn=admins,{GROUPS}"}}}}]}}]}}].
""")
    one.start()
    assert call(one, "PUT", "/vhosts/shop", {}) == 201
    assert enters(one, "jane", "shop") and not enters(one, "carl", "shop")
    assert call(one, "GET", "/users", user="jane", password="jane-pw") == 200


@needs_slapd
def test_queries_have_rabbitmqs_answers(asking):
    """All but one: names of attributes are the same in any case to a directory, so they are here."""
    lines = (Path(__file__).parent / "directory_answers.txt").read_text().splitlines()
    answers = [line.split("\t", 1) for line in lines if not line.startswith("#")]
    assert len(answers) == 55
    wrong = []
    for answer, query in answers:
        one = asking({"auth_ldap.group_lookup_base": GROUPS, "auth_ldap.queries.resource_access": f"'''{query}'''"})
        connection = connect(one, "jane")
        if declares(connection, "jane-1") != (answer == "true") and '"MAIL"' not in query:
            wrong.append(query)
        connection.close()
        one.close()
    assert not wrong


@needs_slapd
def test_questions_are_secret_once_both_have_agreed(asking, authority):  # noqa: F811
    secret = Slapd(OBJECTS, authority.server())
    try:
        settings = {"auth_ldap.servers.1": "localhost", "auth_ldap.port": str(secret.port), "auth_ldap.use_starttls": "true", "auth_ldap.ssl_options.cacertfile": str(authority.certificate)}
        connection = connect(asking(settings | {"auth_ldap.queries.resource_access": f'{{in_group, "cn=${{name}},{GROUPS}"}}'}), "jane")
        # More than one question on one connection to the directory.
        assert declares(connection, "admins") and declares(connection, "shop-users") and not declares(connection, "inner")
        connection.close()
    finally:
        secret.close()


@needs_slapd
def test_a_certificate_names_who_is_asked_about(secured, authority, directory):  # noqa: F811
    """Whoever comes by a certificate has no password, so somebody else asks about them; nobody does as the user."""
    settings = {"ssl_cert_login_from": "common_name", "auth_backends.1": "ldap", "auth_ldap.servers.1": "127.0.0.1", "auth_ldap.port": str(directory.port)}
    settings |= {"auth_ldap.user_dn_pattern": f"uid=${{username}},{PEOPLE}", "auth_ldap.queries.vhost_access": f'{{in_group, "cn=shop-users,{GROUPS}"}}'}
    reader = {"auth_ldap.other_bind.user_dn": "cn=reader,dc=example", "auth_ldap.other_bind.password": "reader-pw"}
    login = pika.credentials.ExternalCredentials()
    one = secured(external(settings | reader))
    jane, carl, nobody = (context(authority, authority.issue(name, f"/CN={name}")) for name in ("jane", "carl", "nobody"))
    pika_at(one, jane, credentials=login).close()
    for tls in (carl, nobody):
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            pika_at(one, tls, credentials=login)
    said(one, "the directory does not have them")
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        pika_at(secured(external(settings)), jane, credentials=login)


@needs_slapd
def test_a_directory_can_permit_what_another_has_let_in(broker, directory):  # noqa: F811
    """Both must know the password, and the directory's tags count."""
    settings = {"auth_backends.1.authn": "internal", "auth_backends.1.authz": "ldap", "auth_ldap.servers.1": "127.0.0.1", "auth_ldap.port": str(directory.port)}
    settings |= {"auth_ldap.user_dn_pattern": f"uid=${{username}},{PEOPLE}", "auth_ldap.queries.vhost_access": f'{{in_group, "cn=shop-users,{GROUPS}"}}'}
    settings |= {"auth_ldap.queries.tags": f'[{{management, {{in_group, "cn=admins,{GROUPS}"}}}}]'}
    one = broker(settings | {"default_user": "jane", "default_pass": "jane-pw", "default_user_tags.administrator": "false"}).start()
    assert enters(one, "jane", "/")
    assert call(one, "GET", "/overview", user="jane", password="jane-pw") == 200
    for user, password in (("bob", "bob-pw"), ("jane", "wrong")):
        with pytest.raises(REFUSED):
            connect(one, user, password=password)


def test_queries_that_are_none_and_unknown_keys_end_the_start(broker, tmp_path):  # noqa: F811
    refuses_to_start(broker({"auth_ldap.queries.tags": "[{administrator, {in_grp, \"x\"}}]"}), "auth_ldap.queries.tags is not a query: line 1, column 18 of its text: 'in_grp' is not a query")
    refuses_to_start(broker({"auth_ldap.queries.vhost_access": "{exists, \"cn=${vhots}\"}"}), "'vhots' is not known here")
    nested = {"auth_backends.1": "ldap", "auth_ldap.servers.1": "h", "auth_ldap.queries.vhost_access": '{in_group_nested, "cn=x"}'}
    refuses_to_start(broker(nested), "auth_ldap.group_lookup_base must be set")
    one = broker({})
    (one.directory / "advanced.config").write_text("[{rabbit, [\n  {heartbeat, 10},\n  {mirroring_flow_control, false}]}].")
    refuses_to_start(one, "advanced.config:3: column 3: the key mirroring_flow_control of the application rabbit is not part of this version")
