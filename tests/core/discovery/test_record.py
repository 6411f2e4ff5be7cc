"""mDNS records: round trips, and malicious ones."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zeroconf.asyncio import AsyncServiceInfo

from core.discovery.record import (
    MOST_ADDRESSES,
    SERVICE,
    Announcement,
    Sighting,
    instance_name,
    service_info,
    sighting,
)
from core.net.address import parse
from core.vocabulary.ids import DeviceId

ANNA, BERT = DeviceId("a1" * 32), DeviceId("b2" * 32)


def record(
    *,
    port: int | None = 27600,
    addresses: list[str] | None = None,
    drop: bytes = b"",
    **fields: bytes | str | None,
) -> AsyncServiceInfo:
    properties: dict[str | bytes, bytes | str | None] = {
        b"id": BERT.encode(),
        b"name": b"bert",
        b"v": b"1",
        **{k.encode(): v for k, v in fields.items()},
    }
    properties.pop(drop, None)
    return AsyncServiceInfo(
        SERVICE,
        f"x.{SERVICE}",
        port=port,
        properties=properties,
        server="x.local.",
        parsed_addresses=["192.168.1.20"] if addresses is None else addresses,
    )


def seen(info: AsyncServiceInfo, *, loopback: bool = False) -> Sighting | None:
    return sighting(info, ANNA, loopback=loopback)


def test_a_nodes_announcement_is_read_by_another() -> None:
    announcement = Announcement(BERT, "Bert's laptop", 27601, 1)
    info = service_info(announcement, ["192.168.1.20", "2001:db8::5"])
    assert seen(info) == Sighting(BERT, "Bert's laptop", 1, ("192.168.1.20:27601", "[2001:db8::5]:27601"))
    assert info.name == instance_name(BERT)
    assert len(info.name.removesuffix("." + SERVICE).encode()) <= 63


@given(name=st.text(max_size=400), addresses=st.lists(st.ip_addresses().map(str), max_size=20))
def test_any_name_and_any_number_of_addresses_can_be_announced(name: str, addresses: list[str]) -> None:
    info = service_info(Announcement(BERT, name, 27600, 1), addresses)
    assert all(len(entry) <= 255 for entry in _entries(info.text))
    sighted = seen(info)
    if sighted is not None:
        assert sighted.name


def test_our_own_record_is_ignored() -> None:
    assert seen(record(id=ANNA)) is None


@pytest.mark.parametrize(
    "info",
    [
        record(drop=b"id"),
        record(id=b""),
        record(id=BERT[:-1]),
        record(id=BERT + "0"),
        record(id=BERT.upper()),
        record(id=b"\xff" * 64),
        record(id=BERT[:-1] + "\n"),
        record(id=None),
        record(drop=b"v"),
        record(v=b"one"),
        record(v=b"9" * 200),
        record(v=b"-1"),
        record(port=0),
        record(port=None),
        record(addresses=[]),
        record(addresses=["0.0.0.0", "::", "224.0.0.251", "ff02::fb", "255.255.255.255"]),
        record(addresses=["127.0.0.1", "::1"]),
        record(addresses=["fe80::1"]),
        record(addresses=["8.8.8.8", "2a00:1450:4001:81b::200e", "::ffff:8.8.8.8"]),
    ],
)
def test_a_record_that_cannot_be_a_nodes_is_ignored(info: AsyncServiceInfo) -> None:
    assert seen(info) is None


def test_loopback_is_believed_only_where_this_node_uses_it_itself() -> None:
    info = record(addresses=["127.0.0.1"])
    assert seen(info) is None
    found = seen(info, loopback=True)
    assert found is not None
    assert found.addresses == ("127.0.0.1:27600",)


def test_public_addresses_in_a_record_are_ignored() -> None:
    local = ["10.1.2.3", "172.16.0.9", "192.168.1.20", "169.254.7.7", "100.64.0.1", "fd00::5"]
    for address in local:
        found = seen(record(addresses=["93.184.215.14", address, "2606:2800:21f:cb07::1"]))
        assert found is not None
        assert [parse(each).host for each in found.addresses] == [address]


def test_a_flood_of_addresses_is_cut() -> None:
    found = seen(record(addresses=[f"192.168.1.{n}" for n in range(1, 200)]))
    assert found is not None
    assert len(found.addresses) == MOST_ADDRESSES


@pytest.mark.parametrize("name", [None, b"", b"   ", b"\x1b[2J\x07", "\u202e\u200b".encode()])
def test_a_name_that_shows_nothing_is_replaced(name: bytes | None) -> None:
    found = seen(record(name=name))
    assert found is not None
    assert found.name.strip()


@given(name=st.binary(max_size=240), port=st.integers(0, 65535), addresses=st.lists(st.ip_addresses()))
def test_every_sighting_is_bounded_and_clean(name: bytes, port: int, addresses: list[object]) -> None:
    found = seen(record(name=name, port=port, addresses=[str(each) for each in addresses]), loopback=True)
    if found is None:
        return
    assert 0 < len(found.name) <= 64
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp", "Co") for sign in found.name)
    assert 0 < len(found.addresses) <= MOST_ADDRESSES
    assert all(parse(address).port == port for address in found.addresses)


@given(text=st.binary(max_size=2000))
def test_any_txt_bytes_give_a_sighting_or_nothing(text: bytes) -> None:
    info = AsyncServiceInfo(
        SERVICE, f"x.{SERVICE}", port=27600, properties=text, parsed_addresses=["192.168.1.20"]
    )
    assert seen(info) is None or isinstance(seen(info), Sighting)


def _entries(text: bytes) -> list[bytes]:
    entries = []
    while text:
        entries.append(text[1 : 1 + text[0]])
        text = text[1 + text[0] :]
    return entries
