"""A source's invented records displace its own, and nobody else's."""

from __future__ import annotations

import pytest
from zeroconf import (  # type: ignore[attr-defined]
    DNSAddress,
    DNSIncoming,
    DNSOutgoing,
    DNSPointer,
    DNSService,
    DNSText,
    ServiceInfo,
)

from core.discovery.record import SERVICE
from core.discovery.sources import SETTLED_S, Announcers, instances_in

FLOOD = "10.0.0.66"


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def out() -> list[str]:
    return []


@pytest.fixture
def sources(clock: Clock, out: list[str]) -> Announcers:
    return Announcers(clock, out.append, most=20, per_source=8)


def test_a_source_with_one_instance_is_heard_during_anothers_flood(sources: Announcers, clock: Clock) -> None:
    heard = 0
    for number in range(5000):
        clock.now_s = number / 1000
        heard += sources.admit(FLOOD, {f"fake {number}.{SERVICE}"})
    assert heard <= 8 * (1 + 5 / SETTLED_S)
    assert sources.admit("10.0.0.7", {f"Tandem real.{SERVICE}"})
    for number in range(5000):
        sources.admit(FLOOD, {f"more {number}.{SERVICE}"})
    assert f"tandem REAL.{SERVICE}" in sources, "and it stays"


def test_many_sources_share_what_there_is_and_the_largest_gives_way(
    sources: Announcers, clock: Clock, out: list[str]
) -> None:
    for source in ("10.0.0.1", "10.0.0.2"):
        assert sources.admit(source, {f"{source} {number}" for number in range(8)})
    assert sources.admit("10.0.0.3", {f"3 {number}" for number in range(4)})
    assert not sources.admit("10.0.0.4", {"real"}), "all are young"
    clock.now_s = SETTLED_S
    assert sources.admit("10.0.0.4", {"real"})
    (gone,) = out
    assert gone.startswith(("10.0.0.1", "10.0.0.2")) and gone not in sources


def test_a_full_sources_newest_instance_replaces_its_oldest(
    sources: Announcers, clock: Clock, out: list[str]
) -> None:
    for number in range(8):
        assert sources.admit(FLOOD, {f"fake {number}"})
    assert not sources.admit(FLOOD, {"new"}) and not out
    assert sources.admit(FLOOD, {"fake 3", "FAKE 4"}), "what is known may change"
    clock.now_s = SETTLED_S
    assert sources.admit(FLOOD, {"new"})
    assert out == ["fake 0"]
    assert not sources.admit(FLOOD, {f"at once {number}" for number in range(9)}) and len(out) == 1


def test_a_released_instance_makes_room(sources: Announcers) -> None:
    for number in range(8):
        assert sources.admit(FLOOD, {f"fake {number}"})
    sources.release("FAKE 5")
    assert sources.admit(FLOOD, {"new"})


def datagram(*names: str, ttl: int = 120, response: bool = True, kind: str = SERVICE) -> bytes:
    message = DNSOutgoing(0x8400 if response else 0)
    for name in names:
        message.add_answer_at_time(DNSPointer(kind, 12, 1, ttl, name), 0)
        message.add_answer_at_time(DNSService(name, 33, 1, ttl, 0, 0, 27600, "fake.local."), 0)
        message.add_answer_at_time(DNSText(name, 16, 1, ttl, b"\x04id=x"), 0)
    message.add_answer_at_time(DNSAddress("fake.local.", 1, 1, ttl, bytes((10, 0, 0, 1))), 0)
    (packet,) = message.packets()
    assert DNSIncoming(packet).valid
    return packet


def made_up(number: int) -> bytes:
    """A non-existent laptop's complete record: one datagram."""
    device = f"{number:064x}"
    info = ServiceInfo(
        SERVICE,
        f"Tandem {number:016x}.{SERVICE}",
        port=27600,
        properties={"id": device, "name": f"fake {number}", "v": "1"},
        server=f"fake-{number}.local.",
        parsed_addresses=[f"10.9.{number // 250 % 250}.{1 + number % 250}"],
    )
    message = DNSOutgoing(0x8400)
    for record in (info.dns_pointer(), info.dns_service(), info.dns_text(), *info.dns_addresses()):
        message.add_answer_at_time(record, 0)
    (packet,) = message.packets()
    return packet


def test_nodes_announced_by_a_datagram_are_found() -> None:
    names = {f"one.{SERVICE}", f"two.{SERVICE}"}
    assert instances_in(datagram(*names)) == names
    assert instances_in(datagram(f"one.{SERVICE}").upper()) == {f"ONE.{SERVICE.upper()}"}
    assert instances_in(datagram(*names, ttl=0)) == set(), "a goodbye"
    assert instances_in(datagram(*names, response=False)) == set()
    assert instances_in(datagram("x._ipp._tcp.local.", kind="_ipp._tcp.local.")) == set()
    assert instances_in(b"_tandem" + bytes(40)) == set()
