"""Addresses as people type them."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.net.address import Address, host_of, hosts, nearest, parse, plain_host
from core.vocabulary.errors import TandemError


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("192.168.1.20", "192.168.1.20", 27600),
        (" 192.168.1.20:4000 ", "192.168.1.20", 4000),
        ("annas-laptop.local", "annas-laptop.local", 27600),
        ("annas-laptop:27601", "annas-laptop", 27601),
        ("[fe80::1]:27601", "fe80::1", 27601),
        ("[fe80::1%eth0]", "fe80::1%eth0", 27600),
        ("fe80::1", "fe80::1", 27600),
        ("::1", "::1", 27600),
    ],
)
def test_an_address_is_read(text: str, host: str, port: int) -> None:
    assert parse(text) == Address(host, port)
    assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        ":27600",
        "host:",
        "host:0",
        "host:65536",
        "host:port",
        "host:-1",
        "host: 1",
        "host:१",
        "300.1.1.1",
        "1.2.3",
        "[fe80::1",
        "[fe80::1]27600",
        "[fe80::1]:",
        "[host]:1",
        "fe80::zz",
        "a b",
        "-x",
        "a..b",
        "http://host",
        "host/path",
        "x" * 300,
        "a\0b",
    ],
)
def test_an_invalid_address_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(TandemError) as failure:
        parse(text)
    assert failure.value.code == "bad-address"
    assert failure.value.fix


@given(st.text(max_size=60))
def test_no_text_raises_anything_but_a_refusal_and_what_is_read_survives_writing(text: str) -> None:
    try:
        address = parse(text)
    except TandemError:
        return
    assert parse(str(address)) == address
    assert 1 <= address.port <= 65535


def test_one_host_has_one_spelling() -> None:
    assert plain_host("::ffff:192.168.1.20") == "192.168.1.20"
    assert plain_host("FE80::1%eth0") == "fe80::1%eth0"
    assert plain_host("Annas-Laptop.local.") == "annas-laptop.local"


def test_the_address_in_our_own_network_comes_first() -> None:
    theirs = ["10.1.1.7:27600", "fe80::1%eth0", "laptop.local:27600", "192.168.1.20:27600", "[fd00::2]:27600"]

    assert nearest(theirs, ["192.168.1.2:27600", "172.16.0.1:27600"])[:2] == [
        "192.168.1.20:27600",
        "10.1.1.7:27600",
    ]
    assert nearest(theirs, ["[fd00::9]:27600"])[0] == "[fd00::2]:27600"
    assert nearest(theirs, []) != [] and nearest([], theirs) == []


@pytest.mark.parametrize(
    ("sockname", "host"),
    [
        (("192.168.1.20", 27600), "192.168.1.20"),
        (("::ffff:192.168.1.20", 27600, 0, 0), "192.168.1.20"),
        (("2001:db8::5", 27600, 0, 0), "2001:db8::5"),
        (("fe80::1%eth0", 27600, 0, 2), "fe80::1%eth0"),
        (("fe80::1", 27600, 0, 999999), "fe80::1%999999"),
    ],
)
def test_a_host_is_written_in_one_way(sockname: tuple[object, ...], host: str) -> None:
    assert host_of(sockname) == host


def test_a_link_local_host_keeps_its_interface() -> None:
    index, name = socket.if_nameindex()[0]
    assert host_of(("fe80::1", 27600, 0, index)) == f"fe80::1%{name}"


def test_the_hosts_of_addresses_have_one_spelling_and_what_is_none_is_left_out() -> None:
    told = (
        "192.0.2.7:27600",
        "[::ffff:192.0.2.7]:4000",
        "Ben.local:27600",
        "not an address",
        "[fe80::1%eth0]",
    )
    assert hosts(told) == {"192.0.2.7", "ben.local", "fe80::1%eth0"}
