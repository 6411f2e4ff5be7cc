"""Being found and finding others: in memory, and by real mDNS on loopback only."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from core.discovery import browser
from core.discovery.browser import BrowseLimits
from core.discovery.interfaces import Interface, present
from core.discovery.presence import Presence
from core.discovery.record import SERVICE, Announcement
from core.discovery.sources import PER_SOURCE
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from tests.core.discovery.air import Air, FakeZeroconf
from tests.core.discovery.test_sources import made_up

LIMIT_S = 60
FAKES = 5000
LO = Interface("lo", ("127.0.0.1",), loopback=True)
WIFI = Interface("wlp2s0", ("192.168.1.20",))


@dataclass
class Node:
    """Records its presence's events."""

    name: str
    device: DeviceId
    interfaces: tuple[Interface, ...] = (LO,)
    found: dict[DeviceId, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    own: list[tuple[str, ...]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    presence: Presence = field(init=False)

    def on_found(self, device: DeviceId, name: str, addresses: tuple[str, ...]) -> None:
        self.found[device] = (name, addresses)
        self.news.set()

    def on_gone(self, device: DeviceId) -> None:
        del self.found[device]
        self.news.set()

    def on_problem(self, problem: Problem) -> None:
        self.problems.append(problem)
        self.news.set()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not condition():
                self.news.clear()
                await self.news.wait()


Make = Callable[..., Awaitable[Node]]


@pytest.fixture(params=["memory", pytest.param("mdns", marks=pytest.mark.real)])
async def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    nodes: list[Node] = []
    if request.param == "memory":
        Air().install(monkeypatch)

    async def make(
        name: str, port: int = 27600, *, start: bool = True, device: DeviceId | None = None, **options: object
    ) -> Node:
        options.setdefault("wanted", ["lo"])
        node = Node(name, device or DeviceId(secrets.token_hex(32)))
        node.presence = Presence(
            Announcement(node.device, name, port, 1),
            on_found=node.on_found,
            on_gone=node.on_gone,
            on_addresses=node.own.append,
            on_problem=node.on_problem,
            find_interfaces=lambda: node.interfaces,
            **options,  # type: ignore[arg-type]
        )
        nodes.append(node)
        if start:
            await node.presence.start()
        return node

    yield make
    for node in nodes:
        await node.presence.close()


async def test_two_nodes_find_each_other_and_see_a_goodbye(make: Make) -> None:
    anna, bert = await make("anna", 27601), await make("bert", 27602)
    await anna.wait_until(lambda: bert.device in anna.found)
    await bert.wait_until(lambda: anna.device in bert.found)
    assert anna.found[bert.device] == ("bert", ("127.0.0.1:27602",))
    assert bert.found[anna.device] == ("anna", ("127.0.0.1:27601",))
    assert anna.device not in anna.found
    await bert.presence.close()
    await anna.wait_until(lambda: bert.device not in anna.found)
    assert not anna.problems


async def test_a_new_name_is_seen(make: Make) -> None:
    anna, bert = await make("anna"), await make("bert")
    await anna.wait_until(lambda: bert.device in anna.found)
    await bert.presence.change(name="Bert's other name")
    await anna.wait_until(lambda: anna.found[bert.device][0] == "Bert's other name")


async def test_a_node_that_comes_into_a_network_later_is_found(make: Make) -> None:
    anna, bert = await make("anna"), await make("bert", start=False)
    bert.interfaces = ()
    await bert.presence.start()
    assert [problem.code for problem in bert.problems] == ["no-network"]
    assert bert.presence.addresses == ()
    await bert.presence.look_again()
    assert len(bert.problems) == 1
    bert.interfaces = (LO,)
    await bert.presence.look_again()
    assert bert.own == [("127.0.0.1:27600",)]
    await anna.wait_until(lambda: bert.device in anna.found)
    await bert.wait_until(lambda: anna.device in bert.found)


async def test_an_address_that_joins_an_interface_is_announced(make: Make) -> None:
    anna, bert = await make("anna"), await make("bert")
    await anna.wait_until(lambda: bert.device in anna.found)
    bert.interfaces = (Interface("lo", ("127.0.0.1", "127.0.0.2"), loopback=True),)
    await bert.presence.look_again()
    await anna.wait_until(lambda: len(anna.found[bert.device][1]) == 2)
    assert bert.own == [("127.0.0.1:27600", "127.0.0.2:27600")]


async def test_discovery_can_be_switched_off_and_on(make: Make) -> None:
    anna, bert = await make("anna"), await make("bert", discovery=False)
    cleo = await make("cleo")
    await anna.wait_until(lambda: cleo.device in anna.found)
    assert bert.device not in anna.found
    assert not bert.found
    assert bert.presence.addresses == ("127.0.0.1:27600",)
    await bert.presence.change(discovery=True)
    await anna.wait_until(lambda: bert.device in anna.found)
    await bert.wait_until(lambda: anna.device in bert.found)
    await bert.presence.change(discovery=False)
    await anna.wait_until(lambda: bert.device not in anna.found)
    assert not bert.found
    assert not bert.problems


async def test_without_discovery_addresses_are_known_and_followed_and_nobody_is_told_of_mdns(
    make: Make,
) -> None:
    anna = await make("anna", discovery=False, wanted=[])
    anna.interfaces = (LO, WIFI)
    await anna.presence.look_again()
    assert anna.own == [("192.168.1.20:27600",)]
    anna.interfaces = ()
    await anna.presence.look_again()
    assert anna.own[-1] == ()
    assert not anna.problems


async def test_a_laptop_with_nothing_but_loopback_is_told_so_once(make: Make) -> None:
    anna = await make("anna", wanted=[])
    await anna.presence.look_again()
    assert [problem.code for problem in anna.problems] == ["no-network"]
    assert "not on a network" in anna.problems[0].what
    assert anna.presence.addresses == ("127.0.0.1:27600",)


async def test_an_interface_that_is_not_there_is_named(make: Make) -> None:
    anna = await make("anna", wanted=["lan7"])
    assert anna.problems[0].code == "no-network"
    assert "lan7" in anna.problems[0].what
    assert anna.problems[0].fix


async def test_unusable_mdns_is_a_notice_and_no_exception(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**options: object) -> AsyncZeroconf:
        raise OSError(98, "Address already in use")

    monkeypatch.setattr(browser, "AsyncZeroconf", refused)
    anna = await make("anna")
    assert anna.problems[0].code == "no-multicast"
    assert "5353" in anna.problems[0].fix
    assert anna.presence.addresses == ("127.0.0.1:27600",)


async def test_hostile_records_are_ignored_and_a_spoofed_id_does_not_hide_the_real_device(make: Make) -> None:
    anna, bert = await make("anna"), await make("bert", 27602)
    await anna.wait_until(lambda: bert.device in anna.found)
    # Loopback is shared with everything else on this machine: foreign records may appear.
    mark, first_port = secrets.token_hex(4), 30_000 + secrets.randbelow(30_000)
    evil: AsyncZeroconf = vars(browser)["AsyncZeroconf"](interfaces=["127.0.0.1"])
    try:

        async def announce(instance: str, properties: dict[str, str | bytes], port: int) -> None:
            instance = f"{instance} {mark}"
            info = AsyncServiceInfo(
                SERVICE,
                f"{instance}.{SERVICE}",
                port=first_port + port,
                properties=properties,
                server=f"{instance}.local.",
                parsed_addresses=["127.0.0.1"],
            )
            await (await evil.async_register_service(info, cooperating_responders=True))

        await announce("no-id", {"name": "x", "v": "1"}, 1)
        await announce("long", {"id": "f" * 200, "name": "n" * 200, "v": "1"}, 2)
        await announce("odd", {"id": b"\xff\x00" * 32, "name": b"\x1b[2J", "v": "\u0661"}, 3)
        await announce("annas-own", {"id": anna.device, "name": "it is me", "v": "1"}, 4)
        await announce("spoof", {"id": bert.device, "name": "Not bert", "v": "1"}, 5)
        await anna.wait_until(lambda: len(anna.found[bert.device][1]) == 2)
    finally:
        await evil.async_close()
    await anna.wait_until(lambda: len(anna.found[bert.device][1]) == 1)
    assert anna.found[bert.device] == ("bert", ("127.0.0.1:27602",))
    assert anna.device not in anna.found
    made_up = {f"127.0.0.1:{first_port + number}" for number in range(1, 6)}
    assert made_up.isdisjoint(address for _, addresses in anna.found.values() for address in addresses)


async def test_a_record_that_becomes_another_devices_removes_the_first(make: Make) -> None:
    anna = await make("anna")
    evil: AsyncZeroconf = vars(browser)["AsyncZeroconf"](interfaces=["127.0.0.1"])
    instance = f"turning {secrets.token_hex(4)}"
    first, second = (DeviceId(secrets.token_hex(32)) for _ in range(2))

    def saying(device: str) -> AsyncServiceInfo:
        return AsyncServiceInfo(
            SERVICE,
            f"{instance}.{SERVICE}",
            port=27610,
            properties={"id": device, "name": "x", "v": "1"},
            server=f"{instance}.local.",
            parsed_addresses=["127.0.0.1"],
        )

    try:
        await (await evil.async_register_service(saying(first), cooperating_responders=True))
        await anna.wait_until(lambda: first in anna.found)
        await (await evil.async_update_service(saying(second)))
        await anna.wait_until(lambda: second in anna.found)
        assert first not in anna.found
        await (await evil.async_update_service(saying("no id")))
        await anna.wait_until(lambda: second not in anna.found)
    finally:
        await evil.async_close()


async def test_a_flood_of_records_does_not_fill_the_memory(make: Make) -> None:
    anna = await make("anna", limits=BrowseLimits(most_records=3))
    bert, cleo = await make("bert", 27602), await make("cleo", 27603)
    await anna.wait_until(lambda: {bert.device, cleo.device} <= anna.found.keys())
    dora, emil = await make("dora", 27604), await make("emil", 27605)
    await bert.presence.change(name="bert the second")
    await anna.wait_until(lambda: anna.found[bert.device][0] == "bert the second")
    assert not {dora.device, emil.device} <= anna.found.keys(), "three at most, the own one may count"


@pytest.mark.real
@pytest.mark.timed
async def test_a_new_laptop_shows_within_five_seconds_under_a_flood_of_made_up_ones() -> None:
    """By real mDNS alone: the flood comes from another address than the laptop."""
    anna, bert = Node("anna", DeviceId("a1" * 32)), Node("bert", DeviceId("b2" * 32))
    for node in (anna, bert):
        node.presence = Presence(
            Announcement(node.device, node.name, 27600, 1),
            on_found=node.on_found,
            on_gone=node.on_gone,
            on_addresses=node.own.append,
            on_problem=node.on_problem,
            wanted=["lo"],
            find_interfaces=lambda: (LO,),
        )
    await anna.presence.start()
    try:
        sent = 0
        flooding = asyncio.Event()

        async def flood() -> None:
            nonlocal sent
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.bind(("127.0.0.66", 0))
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
                while True:
                    for _ in range(25):
                        sender.sendto(made_up(sent), ("224.0.0.251", 5353))
                        sent += 1
                    if sent >= FAKES:
                        flooding.set()
                    await asyncio.sleep(0.005)

        under_way = asyncio.create_task(flood())
        try:
            async with asyncio.timeout(LIMIT_S):
                await flooding.wait()
            await anna.wait_until(lambda: len(anna.found) >= PER_SOURCE // 2)
            began_s = asyncio.get_running_loop().time()
            await bert.presence.start()
            await anna.wait_until(lambda: bert.device in anna.found)
            took_s = asyncio.get_running_loop().time() - began_s
            assert took_s < 5.0, took_s
            assert sum(name.startswith("fake ") for name, _ in anna.found.values()) <= PER_SOURCE
        finally:
            under_way.cancel()
            await asyncio.gather(under_way, return_exceptions=True)
    finally:
        await bert.presence.close()
        await anna.presence.close()


async def test_a_laptop_that_is_silent_when_its_record_is_old_is_gone_and_one_that_answers_stays(
    make: Make,
) -> None:
    quick = BrowseLimits(fresh_s=0.5, confirm_s=3.0)
    anna, bert = await make("anna", limits=quick), await make("bert", 27602)
    ghost, name = DeviceId("c3" * 32), f"ghost {secrets.token_hex(4)}.{SERVICE}"
    info = AsyncServiceInfo(
        SERVICE,
        name,
        port=27610,
        properties={"id": ghost, "name": "ghost", "v": "1"},
        server=f"ghost-{secrets.token_hex(4)}.local.",
        parsed_addresses=["127.0.0.1"],
    )
    evil: AsyncZeroconf = vars(browser)["AsyncZeroconf"](interfaces=["127.0.0.1"])
    try:
        await (await evil.async_register_service(info, cooperating_responders=True))
        await anna.wait_until(lambda: {ghost, bert.device} <= anna.found.keys())
        # It says no goodbye: from now on nobody answers for it.
        if (air := getattr(evil, "air", None)) is not None:
            del air.records[name]
            vars(evil)["_own"].clear()
        else:
            evil.zeroconf.registry.async_remove(info)
        await anna.wait_until(lambda: ghost not in anna.found)
        assert bert.device in anna.found
    finally:
        await evil.async_close()


async def test_two_records_of_a_device_are_reported_together_its_usual_one_first(make: Make) -> None:
    anna, bert = await make("anna"), await make("bert", 27602)
    await anna.wait_until(lambda: bert.device in anna.found)
    twin = await make("not bert", 27603, device=bert.device)
    await anna.wait_until(lambda: len(anna.found[bert.device][1]) == 2)
    assert anna.found[bert.device] == ("bert", ("127.0.0.1:27602", "127.0.0.1:27603"))
    await twin.presence.close()
    await anna.wait_until(lambda: len(anna.found[bert.device][1]) == 1)


async def test_an_announcement_that_fails_is_reported_and_others_are_found_all_the_same(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(self: object, info: object, **options: bool) -> None:
        raise OSError(1, "Operation not permitted")

    bert, cleo = await make("bert"), await make("cleo")
    await cleo.wait_until(lambda: bert.device in cleo.found)
    with monkeypatch.context() as broken:
        broken.setattr(FakeZeroconf, "async_register_service", refused)
        broken.setattr(AsyncZeroconf, "async_register_service", refused)
        anna = await make("anna")
        await anna.wait_until(lambda: bool(anna.problems))
    assert anna.problems[0].code == "no-multicast" and "Operation" in anna.problems[0].detail
    await anna.wait_until(lambda: bert.device in anna.found)


async def test_a_closed_presence_finds_nobody(make: Make) -> None:
    anna, bert = await make("anna"), await make("bert")
    await anna.wait_until(lambda: bert.device in anna.found)
    await anna.presence.close()
    assert anna.found == {}


async def test_two_records_of_one_name_live_side_by_side(make: Make) -> None:
    """A node's usual name is taken (a copied home, a spoof): it is announced under another."""
    anna, cleo = await make("anna"), await make("cleo")
    await cleo.wait_until(lambda: anna.device in cleo.found)
    await make("twin", 27603, device=anna.device)
    await cleo.wait_until(lambda: len(cleo.found[anna.device][1]) == 2)
    assert set(cleo.found[anna.device][1]) == {"127.0.0.1:27600", "127.0.0.1:27603"}


@pytest.mark.real
async def test_this_machines_loopback_can_be_asked_for_by_its_name() -> None:
    name = next(each.name for each in present() if each.loopback)
    node = Node("anna", DeviceId("a1" * 32))
    node.presence = Presence(
        Announcement(node.device, "anna", 27600, 1),
        on_found=node.on_found,
        on_gone=node.on_gone,
        on_addresses=node.own.append,
        on_problem=node.on_problem,
        wanted=[name],
        discovery=False,
    )
    await node.presence.start()
    try:
        assert "127.0.0.1:27600" in node.presence.addresses
    finally:
        await node.presence.close()
