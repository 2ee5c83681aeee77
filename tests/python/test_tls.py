"""TLS: who is served, with which certificate, under which name; what wrong certificates get."""

import http.client
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pika
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from certificates import Authority
from harness.broker import free_port
from test_process import BINARY, broker, pytestmark, refuses_to_start  # noqa: F401 - a fixture and a mark
from waiting import until


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def secured(broker, authority):  # noqa: F811
    """Makes brokers that speak TLS at `tls_port`."""

    def make(settings=None, start=True, **certificate):
        pem, key = authority.server(**certificate)
        port = free_port()
        given = {
            "listeners.ssl.default": f"127.0.0.1:{port}",
            "ssl_options.certfile": str(pem),
            "ssl_options.keyfile": str(key),
            "ssl_options.cacertfile": str(authority.certificate),
        }
        one = broker(given | (settings or {}))
        one.tls_port = port
        return one.start() if start else one

    return make


def context(authority, certificate=None):
    made = ssl.create_default_context(cafile=authority.certificate)
    if certificate:
        made.load_cert_chain(*certificate)
    return made


def pika_at(one, tls, **options):
    parameters = pika.ConnectionParameters("127.0.0.1", one.tls_port, ssl_options=pika.SSLOptions(tls, "localhost"), socket_timeout=10, **options)
    return pika.BlockingConnection(parameters)


def roundtrip(connection, bodies):
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.confirm_delivery()
    for body in bodies:
        channel.basic_publish("", queue, body)
    got = []
    for _, _, body in channel.consume(queue, auto_ack=True):
        got.append(body)
        if len(got) == len(bodies):
            break
    return got


def said(one, *words):
    """Waits until the log says all of this."""
    until(one.log_text, lambda text: all(word in text for word in words), what=f"{words} are not in the log")


def served(one, tls):
    """The certificate that the broker shows."""
    with socket.create_connection(("127.0.0.1", one.tls_port), timeout=10) as line, tls.wrap_socket(line, server_hostname="localhost") as secure:
        return secure.getpeercert(binary_form=True)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("key", ["ec", "rsa:2048"])
def test_messages_of_all_sizes_pass(secured, authority, version, key):
    one = secured(key=key)
    tls = context(authority)
    tls.minimum_version = tls.maximum_version = version
    bodies = [bytes([size % 251]) * size for size in (0, 1, 100, 16_383, 16_384, 16_385, 131_072, 1_000_000, 5_000_000)]
    with pika_at(one, tls) as connection:
        assert roundtrip(connection, bodies) == bodies


def test_a_slow_reader_gets_everything(secured, authority):
    one = secured({"tcp_listen_options.sndbuf": "4096"})
    with pika_at(one, context(authority)) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        for number in range(200):
            channel.basic_publish("", queue, str(number).encode() * 20_000)
        got = []
        for _, _, body in channel.consume(queue, auto_ack=True):
            got.append(body)
            time.sleep(0.001)
            if len(got) == 200:
                break
        assert got == [str(number).encode() * 20_000 for number in range(200)]


def test_plain_connections_go_on_beside(secured, authority):
    one = secured()
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", one.port)) as plain:
        assert roundtrip(plain, [b"x"]) == [b"x"]
    with pika_at(one, context(authority)) as connection:
        assert roundtrip(connection, [b"x"]) == [b"x"]


def test_who_speaks_no_tls_is_hung_up_on_and_logged(secured):
    one = secured()
    with socket.create_connection(("127.0.0.1", one.tls_port), timeout=10) as line:
        line.sendall(b"AMQP\x00\x00\x09\x01")
        line.settimeout(10)
        while line.recv(1000):
            pass
    said(one, "TLS handshake failed")


def test_who_says_nothing_is_hung_up_on_in_time(secured):
    one = secured({"ssl_handshake_timeout": "200"})
    with socket.create_connection(("127.0.0.1", one.tls_port), timeout=10) as line:
        assert line.recv(1) == b""
    said(one, "TLS handshake timeout")


def test_clients_without_a_certificate_are_refused_where_one_is_needed(secured, authority, tmp_path):
    one = secured({"ssl_options.verify": "verify_peer", "ssl_options.fail_if_no_peer_cert": "true"})
    with pytest.raises(Exception):
        pika_at(one, context(authority))
    stranger = Authority(tmp_path, "stranger").issue("foreign", "/CN=jane")
    with pytest.raises(Exception):
        pika_at(one, context(authority, stranger))
    with pika_at(one, context(authority, authority.issue("client", "/CN=jane"))) as connection:
        assert roundtrip(connection, [b"x"]) == [b"x"]


def external(settings):
    return {"ssl_options.verify": "verify_peer", "auth_mechanisms.1": "EXTERNAL", "auth_mechanisms.2": "PLAIN"} | settings


@pytest.mark.parametrize(
    ("settings", "user"),
    [
        ({"ssl_cert_login_from": "common_name"}, "jane"),
        ({}, "CN=jane,O=Shop\\, Ltd,C=AT"),
        ({"ssl_cert_login_from": "subject_alternative_name"}, "jane.example"),
        ({"ssl_cert_login_from": "subject_alternative_name", "ssl_cert_login_san_index": "1"}, "second.example"),
        ({"ssl_cert_login_from": "subject_alternative_name", "ssl_cert_login_san_type": "email"}, "jane@example.org"),
        ({"ssl_cert_login_from": "subject_alternative_name", "ssl_cert_login_san_type": "uri"}, "urn:user:jane"),
    ],
)
def test_a_certificate_says_who_comes(secured, authority, settings, user):
    quoted = f"'{user}'" if "," in user else user
    one = secured(external(settings) | {"default_user": quoted, "default_pass": "p"})
    names = "DNS:jane.example,DNS:second.example,email:jane@example.org,URI:urn:user:jane"
    client = authority.issue("client", "/C=AT/O=Shop, Ltd/CN=jane", names)
    with pika_at(one, context(authority, client), credentials=pika.credentials.ExternalCredentials()) as connection:
        assert roundtrip(connection, [b"x"]) == [b"x"]
    said(one, f"user '{user}' authenticated")


def test_a_certificate_of_nobody_and_none_at_all_are_refused(secured, authority):
    one = secured(external({"ssl_cert_login_from": "common_name"}))
    login = pika.credentials.ExternalCredentials()
    for certificate, reason in [(authority.issue("who", "/CN=nobody"), "user 'nobody'"), (None, "no TLS (x.509) certificate")]:
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            pika_at(one, context(authority, certificate), credentials=login)
        said(one, "EXTERNAL login refused")
        said(one, reason)


def test_passwords_do_beside_certificates(secured, authority):
    one = secured(external({}))
    with pika_at(one, context(authority)) as connection:
        assert roundtrip(connection, [b"x"]) == [b"x"]


def test_a_new_certificate_is_served_without_a_restart(secured, authority, tmp_path):
    one = secured()
    tls = context(authority)
    first = served(one, tls)
    with pika_at(one, tls) as connection:
        pem, key = authority.server("renewed")
        # The certificate first: while the key is missing, the old pair stays in use.
        shutil.copy(pem, tmp_path / "server.pem")
        assert served(one, tls) == first
        said(one, "is not the key of the certificate")
        shutil.copy(key, tmp_path / "server.key")
        second = served(one, tls)
        assert second != first
        assert second == ssl.PEM_cert_to_DER_cert(pem.read_text())
        assert roundtrip(connection, [b"x"]) == [b"x"]


def test_versions_and_ciphers_are_the_ones_that_were_chosen(secured, authority):
    one = secured({"ssl_options.versions.1": "tlsv1.2", "ssl_options.ciphers.1": "ECDHE-ECDSA-AES128-GCM-SHA256", "ssl_options.ciphers.2": "DHE-RSA-AES256-SHA"})
    said(one, "DHE-RSA-AES256-SHA is not spoken here")
    with socket.create_connection(("127.0.0.1", one.tls_port), timeout=10) as line, context(authority).wrap_socket(line, server_hostname="localhost") as secure:
        assert (secure.version(), secure.cipher()[0]) == ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256")
    new = context(authority)
    new.minimum_version = ssl.TLSVersion.TLSv1_3
    with pytest.raises(ssl.SSLError):
        served(one, new)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ssl_options.keyfile": "/nowhere/key.pem"}, ["ssl_options.keyfile /nowhere/key.pem", "cannot be read"]),
        ({"ssl_options.certfile": "/etc/hostname"}, ["ssl_options.certfile /etc/hostname has no certificate"]),
        ({"ssl_options.verify": "verify_peer", "ssl_options.cacertfile": "/nowhere/ca.pem"}, ["ssl_options.cacertfile /nowhere/ca.pem"]),
        ({"ssl_options.fail_if_no_peer_cert": "true"}, ["needs ssl_options.verify = verify_peer"]),
        ({"ssl_options.ciphers.1": "DHE-RSA-AES256-SHA"}, ["names no cipher suite that is spoken here"]),
        ({"ssl_options.versions.1": "tlsv1"}, ["ssl_options.versions.1", "tlsv1.2, tlsv1.3"]),
        ({"ssl_options.crl_check": "true"}, ["ssl_options.crl_check needs ssl_options.verify = verify_peer"]),
        ({"ssl_options.crl_check": "peer", "ssl_options.verify": "verify_peer"}, ["ssl_options.crl_check needs lists", "ssl_options.crl_sources.1 = dir"]),
        ({"ssl_options.crl_check": "true", "ssl_options.verify": "verify_peer", "ssl_options.crl_sources.1": "dir", "ssl_options.crl_sources.1.path": "/nowhere"}, ["ssl_options.crl_sources /nowhere cannot be read"]),
        ({"management.ssl.port": "0", "management.ssl.crl_check": "true"}, ["management.ssl.crl_check needs management.ssl.certfile"]),
        ({"ssl_options.crl_sources.1": "http"}, ["ssl_options.crl_sources.1", "not fetched over HTTP"]),
        ({"ssl_options.verify": "maybe"}, ["verify_peer, verify_none"]),
    ],
)
def test_wrong_options_are_named_at_start(secured, settings, words):
    refuses_to_start(secured(settings, start=False), *words)


def test_a_passphrase_opens_the_key(secured, authority):
    _, key = authority.server("guarded")
    settings = {"ssl_options.certfile": str(authority.directory / "guarded.pem"), "ssl_options.keyfile": str(authority.guard(key, "pass phrase"))}
    one = secured(settings | {"ssl_options.password": "pass phrase"})
    assert roundtrip(pika_at(one, context(authority)), [b"x"]) == [b"x"]
    assert "pass phrase" not in one.log_text()
    refuses_to_start(secured(settings, start=False), "is guarded by a passphrase: set ssl_options.password")
    refuses_to_start(secured(settings | {"ssl_options.password": "wrong"}, start=False), "cannot be opened with ssl_options.password")


def test_revoked_certificates_come_in_no_more(secured, authority, tmp_path):
    lists = tmp_path / "lists"
    lists.mkdir()
    good, bad = authority.issue("good", "/CN=guest"), authority.issue("bad", "/CN=guest")
    authority.revoke(lists / "made.r0")
    one = secured({"ssl_options.verify": "verify_peer", "ssl_options.fail_if_no_peer_cert": "true", "ssl_options.crl_check": "true", "ssl_options.crl_sources.1": "dir", "ssl_options.crl_sources.1.path": str(lists)})
    for certificate in (good, bad):
        pika_at(one, context(authority, certificate)).close()
    # The next handshake looks at the new list.
    authority.revoke(lists / "made.new", bad[0])
    (lists / "made.new").rename(lists / "made.r0")
    pika_at(one, context(authority, good)).close()
    with pytest.raises((pika.exceptions.AMQPError, OSError)):
        pika_at(one, context(authority, bad))
    said(one, "invalid peer certificate: Revoked")


@pytest.mark.parametrize(("check", "comes_in"), [("true", False), ("peer", False), ("best_effort", True)])
def test_without_a_list_of_its_authority_a_certificate_is_unknown(secured, authority, tmp_path, check, comes_in):
    lists = tmp_path / "lists"
    lists.mkdir()
    Authority(lists.parent, "stranger").revoke(lists / "other.pem")
    one = secured({"ssl_options.verify": "verify_peer", "ssl_options.crl_check": check, "ssl_options.crl_sources.1": "dir", "ssl_options.crl_sources.1.path": str(lists)})
    certificate = authority.issue("good", "/CN=guest")
    if comes_in:
        return pika_at(one, context(authority, certificate)).close()
    with pytest.raises((pika.exceptions.AMQPError, OSError)):
        pika_at(one, context(authority, certificate))


def over_http(port, authority, certificate, path):
    """The status that a door of HTTP answers with."""
    line = http.client.HTTPSConnection("localhost", port, timeout=10, context=context(authority, certificate))
    login = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
    wishes = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": "amqp"}
    try:
        line.request("GET", path, headers=wishes if path == "/ws/amqp" else login)
        return line.getresponse().status
    finally:
        line.close()


@pytest.mark.parametrize(("section", "path", "status"), [("management.ssl", "/api/whoami", 200), ("management.ssl", "/ws/amqp", 101), ("management.listener.ssl_opts", "/api/whoami", 200), ("prometheus.ssl", "/metrics", 200)])
def test_revoked_certificates_come_in_no_more_by_other_doors(secured, authority, tmp_path, section, path, status):
    lists = tmp_path / "lists"
    lists.mkdir()
    good, bad = authority.issue("good", "/CN=jane"), authority.issue("bad", "/CN=joan")
    authority.revoke(lists / "made.r0")
    pem, key = authority.server("door")
    port = free_port()
    kept = ("certfile", pem), ("keyfile", key), ("cacertfile", authority.certificate), ("verify", "verify_peer"), ("fail_if_no_peer_cert", "true"), ("crl_check", "peer")
    settings = {f"{section}.{name}": str(value) for name, value in kept}
    address = {"management.listener.ssl": "true", "management.listener.port": str(port)} if "listener" in section else {f"{section}.ip": "127.0.0.1", f"{section}.port": str(port)}
    one = secured(settings | address | {f"{section}.crl_sources.1": "dir", f"{section}.crl_sources.1.path": str(lists)}, start=False)
    if "listener" in section:
        one.http_port = port
    one.start()
    for certificate in (good, bad):
        assert over_http(port, authority, certificate, path) == status
    authority.revoke(lists / "made.new", bad[0])
    (lists / "made.new").rename(lists / "made.r0")
    assert over_http(port, authority, good, path) == status
    with pytest.raises(OSError):
        over_http(port, authority, bad, path)
    # AMQP has no list here, and no say in it.
    pika_at(one, context(authority)).close()


def test_a_key_of_another_certificate_is_named_at_start(secured, authority):
    _, other = authority.issue("other", "/CN=other")
    refuses_to_start(secured({"ssl_options.keyfile": str(other)}, start=False), "is not the key of the certificate")


def test_the_load_generator_speaks_it(secured, authority):
    one = secured()
    line = [BINARY, "perf", "--uri", f"amqps://guest:guest@127.0.0.1:{one.tls_port}/%2f", "--pmessages", "20000", "--cmessages", "20000", "--confirm", "500", "--time", "30"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def https(one, port, authority, path="/api/whoami", certificate=None):
    request = urllib.request.Request(f"https://localhost:{port}{path}", headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="})
    with urllib.request.urlopen(request, timeout=10, context=context(authority, certificate)) as answer:
        return json.loads(answer.read())


def test_the_http_api_speaks_it_with_the_certificate_of_amqp_or_its_own(secured, authority, tmp_path):
    port = free_port()
    settings = {"management.ssl.ip": "127.0.0.1", "management.ssl.port": str(port)}
    one = secured(settings)
    assert https(one, port, authority)["name"] == "guest"
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{one.http_port}/api/whoami", headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="})) as plain:
        assert plain.status == 200
    found = https(one, port, authority, "/api/overview")["listeners"]
    assert {(door["protocol"], door["tls"]) for door in found} >= {("amqp", False), ("amqp/ssl", True), ("http", False), ("https", True)}
    other = Authority(tmp_path, "other")
    pem, key = other.server("own")
    two = secured(settings | {"management.ssl.port": str(free_port()), "management.ssl.certfile": str(pem), "management.ssl.keyfile": str(key)})
    port = int(two.settings["management.ssl.port"])
    assert https(two, port, other)["name"] == "guest"
    with pytest.raises(urllib.error.URLError):
        https(two, port, authority)


def test_the_health_check_reads_the_certificates_that_the_doors_have(secured, authority):
    port = free_port()
    one = secured({"management.ssl.ip": "127.0.0.1", "management.ssl.port": str(port)})
    assert https(one, port, authority, "/api/health/checks/certificate-expiration/1/weeks") == {"status": "ok"}
    with pytest.raises(urllib.error.HTTPError) as refused:
        https(one, port, authority, "/api/health/checks/certificate-expiration/2/months")
    assert refused.value.code == 503
    found = json.loads(refused.value.read())
    assert found["reason"] == "Certificates expiring" and {door["protocol"] for door in found["expired"]} == {"amqp/ssl", "https"}
    door = found["expired"][0]
    assert door["certfile"].endswith("server.pem") and len(door["certfile_expires_on"]) == 1 == len(door["cacertfile_expires_on"])
    # What counts is what the next start would find.
    (authority.directory / "server.pem").unlink()
    with pytest.raises(urllib.error.HTTPError) as refused:
        https(one, port, authority, "/api/health/checks/certificate-expiration/1/days")
    assert "cannot be read" in json.loads(refused.value.read())["expired"][0]["certfile_expires_on"][0]


def test_operators_see_how_a_connection_is_secured(secured, authority):
    port = free_port()
    one = secured({"management.ssl.ip": "127.0.0.1", "management.ssl.port": str(port), "ssl_options.verify": "verify_peer"})
    with pika_at(one, context(authority, authority.issue("client", "/CN=jane"))):
        [found] = https(one, port, authority, "/api/connections")
    assert found["ssl"] is True
    assert (found["ssl_protocol"], found["ssl_key_exchange"], found["ssl_hash"]) == ("tlsv1.3", "any", "aead")
    assert found["ssl_cipher"] in ("aes_256_gcm", "aes_128_gcm", "chacha20_poly1305")
    assert (found["peer_cert_subject"], found["peer_cert_issuer"]) == ("CN=jane", "CN=authority,O=Leveret tests")
    assert " - 20" in found["peer_cert_validity"]


def test_a_hangup_signal_reads_the_certificates_again(secured, authority):
    one = secured()
    one.process.send_signal(signal.SIGHUP)
    said(one, "the certificates of ssl_options were read again")
    with pika_at(one, context(authority)) as connection:
        assert roundtrip(connection, [b"x"]) == [b"x"]


def test_the_metrics_speak_it(secured, authority):
    port = free_port()
    one = secured({"prometheus.ssl.ip": "127.0.0.1", "prometheus.ssl.port": str(port)})
    said(one, f"metrics for Prometheus on https://127.0.0.1:{port}/metrics")
    with urllib.request.urlopen(f"https://localhost:{port}/metrics", timeout=10, context=context(authority)) as page:
        assert b"rabbitmq_build_info" in page.read()
