"""Clients behind load balancers that speak the PROXY protocol."""

import socket
import struct
import time

import pytest

from harness.stream_link import Closed, Code, StreamLink
from test_process import at, broker, pytestmark  # noqa: F401 - a fixture and a mark
from test_tls import said

V2 = b"\r\n\r\n\0\r\nQUIT\n"


def v2(source, destination, command=0x21):
    ends = socket.inet_aton(source[0]) + socket.inet_aton(destination[0]) + struct.pack(">HH", source[1], destination[1])
    extension = b"\x04\0\x02ab"
    return V2 + bytes([command, 0x11]) + struct.pack(">H", len(ends + extension)) + ends + extension


def introduced(one, header):
    """A connection that begins with this header, its pieces apart."""
    wire = at(one)
    for start in range(0, len(header), 7):
        wire.socket.sendall(header[start : start + 7])
        time.sleep(0.001)
    return wire


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"PROXY TCP4 192.0.2.1 192.0.2.9 56324 5672\r\n", "192.0.2.1:56324 -> 192.0.2.9:5672"),
        (b"PROXY TCP6 2001:db8::1 2001:db8::2 1 5672\r\n", "[2001:db8::1]:1 -> [2001:db8::2]:5672"),
        (b"PROXY TCP6 ::ffff:192.0.2.1 ::ffff:192.0.2.9 56324 5672\r\n", "192.0.2.1:56324 -> 192.0.2.9:5672"),
        (v2(("192.0.2.1", 56324), ("192.0.2.9", 5672)), "192.0.2.1:56324 -> 192.0.2.9:5672"),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1:"),
        (v2(("192.0.2.1", 1), ("192.0.2.9", 2), command=0x20), "127.0.0.1:"),
    ],
    ids=["1, IPv4", "1, IPv6", "1, IPv4 as IPv6", "2", "1, unknown", "2, local"],
)
def test_a_client_is_where_its_load_balancer_says(broker, header, name):  # noqa: F811
    one = broker({"proxy_protocol": "true", "loopback_users": "none"}).start()
    with introduced(one, header) as wire:
        wire.open()
        said(one, f"accepting AMQP connection {name}")


@pytest.mark.parametrize("header", [b"AMQP\0\0\x09\x01----", b"PROXY TCP4 1.1.1.1\r\n", V2 + b"\x21\x11\xff\xff", b"PROXY " + b"x" * 200], ids=["none", "short", "long", "long line"])
def test_without_a_good_header_nobody_comes_in(broker, header):  # noqa: F811
    one = broker({"proxy_protocol": "true"}).start()
    with socket.create_connection((one.host, one.port), timeout=10) as line:
        line.sendall(header)
        try:
            assert line.recv(100) == b""
        except ConnectionResetError:
            pass
    said(one, "could not be served: PROXY protocol: ")


def test_who_may_come_from_this_machine_only_may_not_come_through_a_proxy(broker):  # noqa: F811
    one = broker({"proxy_protocol": "true"}).start()
    with introduced(one, b"PROXY TCP4 192.0.2.1 192.0.2.9 56324 5672\r\n") as wire:
        wire.start()
        wire.login()
        assert wire.expect_connection_close().reply_code == 403


def test_others_than_the_trusted_speak_for_themselves(broker):  # noqa: F811
    one = broker({"proxy_protocol": "true", "proxy_protocol_trusted_sources.1": "192.0.2.0/24"}).start()
    with at(one) as wire:
        wire.open()
        said(one, "accepting AMQP connection 127.0.0.1:")


@pytest.mark.parametrize(
    ("settings", "of_streams", "name"),
    [
        ({"stream.proxy_protocol": "true"}, v2(("192.0.2.1", 56324), ("192.0.2.9", 5552)), "192.0.2.1:56324 -> 192.0.2.9:5552"),
        ({"proxy_protocol": "true"}, b"", "127.0.0.1:"),
    ],
    ids=["streams", "AMQP"],
)
def test_stream_clients_come_through_load_balancers_if_their_own_key_says_so(broker, settings, of_streams, name):  # noqa: F811
    one = broker({"loopback_users": "none"} | settings).start()
    with StreamLink(one.stream_port, introduction=of_streams):
        said(one, f"accepting stream connection {name}")
    of_amqp = b"" if of_streams else b"PROXY UNKNOWN\r\n"
    with introduced(one, of_amqp) as wire:
        wire.open()


def test_without_a_good_header_no_stream_client_comes_in(broker):  # noqa: F811
    one = broker({"stream.proxy_protocol": "true"}).start()
    with pytest.raises(Closed):
        StreamLink(one.stream_port)
    said(one, "could not be served: PROXY protocol: ")


def test_who_may_come_from_this_machine_only_reads_no_stream_through_a_proxy(broker):  # noqa: F811
    one = broker({"stream.proxy_protocol": "true"}).start()
    with pytest.raises(Code):
        StreamLink(one.stream_port, introduction=b"PROXY TCP4 192.0.2.1 192.0.2.9 56324 5552\r\n")
