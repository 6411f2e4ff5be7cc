"""Hosts as other programs may use them."""

from __future__ import annotations

import socket

import pytest

from core.net.host import host_of


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
