"""The doctor's findings about the network."""

import asyncio
import socket
from pathlib import Path
from unittest.mock import AsyncMock, MagicMock

import pytest
from msgspec.structs import replace

from core.doctor import network
from core.doctor.view import Examined
from core.vocabulary import events as ev
from core.vocabulary.settings import Settings
from tests.core.doctor.views import view
from tests.core.fake_node import HARDWARE, OTHER, VERSIONS, found
from tests.core.wires import Network

LOOPBACK_ONLY = ev.AddressesChanged(addresses=("127.0.0.1:27600",))


def test_the_addresses_for_the_others_are_shown(tmp_path: Path) -> None:
    assert "192.168.1.2:27600" in network.check_interfaces(view(tmp_path)).what


def test_a_laptop_in_no_network_is_reported(tmp_path: Path) -> None:
    finding = network.check_interfaces(view(tmp_path, LOOPBACK_ONLY))

    assert (finding.level, finding.code) == ("error", "no-network")
    assert network.check_interfaces(view(tmp_path, port=None)).level == "note"


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


@pytest.mark.real
async def test_a_port_that_answers_is_fine_and_a_silent_one_is_not(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert (await network.check_port(view(tmp_path, port=port))).level in ("ok", "warning")

    finding = await network.check_port(view(tmp_path, port=port))
    assert (finding.level, finding.code) == ("error", "port-silent")


@pytest.mark.real
async def test_a_port_among_the_systems_own_is_warned_of(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        finding = await network.check_port(view(tmp_path, port=port), range(port, port + 1))
        assert finding.code == "port-ephemeral"


@pytest.mark.real
async def test_without_a_node_the_port_is_tried(tmp_path: Path) -> None:
    seen = view(tmp_path, port=None)
    with socket.create_server(("", 0)) as server:
        taken = Examined(seen.home, settings=Settings(port=server.getsockname()[1]))
        assert (await network.check_port(taken)).code == "port-taken"
    assert (await network.check_port(taken)).level == "ok"
    assert (await network.check_port(Examined(seen.home, settings=Settings(port=0)))).level == "note"


@pytest.mark.real
async def test_mdns_is_heard_on_this_laptop(tmp_path: Path) -> None:
    finding = await network.check_mdns(view(tmp_path, LOOPBACK_ONLY), limit_s=60.0)

    assert (finding.level, finding.code) == ("ok", "mdns")


@pytest.mark.real
async def test_an_announcement_that_nobody_hears_is_an_error(tmp_path: Path) -> None:
    finding = await network.check_mdns(view(tmp_path, LOOPBACK_ONLY), limit_s=0.01)

    assert (finding.level, finding.code) == ("error", "mdns")
    assert "5353" in finding.fix


@pytest.mark.real
async def test_an_address_that_is_gone_is_an_error_not_a_crash(tmp_path: Path) -> None:
    gone = ev.AddressesChanged(addresses=("192.0.2.7:27600",))

    assert (await network.check_mdns(view(tmp_path, gone), limit_s=0.2)).level == "error"


async def test_the_nodes_own_port_has_to_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    air = Network()
    monkeypatch.setattr(asyncio, "open_connection", air.open_connection)

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await air.start_server(greet) as server:
        finding = await network.check_port(view(tmp_path, port=server.port))
        assert (finding.level, finding.code) == ("ok", "port") and str(server.port) in finding.what
    finding = await network.check_port(view(tmp_path, port=server.port))
    assert (finding.level, finding.code) == ("error", "port-silent")
    assert "refused" in finding.what and finding.fix


async def test_a_port_that_the_system_may_lend_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(host: str, port: int) -> tuple[None, MagicMock]:
        writer = MagicMock()
        writer.wait_closed = AsyncMock()
        return None, writer

    monkeypatch.setattr(asyncio, "open_connection", answer)
    codes = {
        port: (await network.check_port(view(tmp_path, port=port))).code
        for port in (32767, 32768, 60999, 61000)
    }
    assert codes == {32767: "port", 32768: "port-ephemeral", 60999: "port-ephemeral", 61000: "port"}


async def test_a_node_on_any_port_needs_no_check(tmp_path: Path) -> None:
    nothing = Examined(view(tmp_path, port=None).home, settings=Settings(port=0))
    assert (await network.check_port(nothing)).level == "note"


@pytest.mark.parametrize(("heard", "level"), [(True, "ok"), (False, "error")])
async def test_the_round_of_an_announcement_is_reported_with_its_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: bool, level: str
) -> None:
    looks: list[tuple[list[str], float]] = []

    async def look(hosts: list[str], limit_s: float) -> bool:
        looks.append((hosts, limit_s))
        return heard

    monkeypatch.setattr(network, "_announce_and_look", look)
    both = ev.AddressesChanged(addresses=("10.0.0.5:27600", "[fd00::5]:27600"))
    finding = await network.check_mdns(view(tmp_path, both), limit_s=2.5)
    assert (finding.level, finding.code) == (level, "mdns")
    assert "10.0.0.5" in finding.what and "fd00" not in finding.what
    assert ("2.5 s" in finding.what and "5353" in finding.fix) is not heard
    await network.check_mdns(view(tmp_path, port=None))
    assert looks == [(["10.0.0.5"], 2.5), (["127.0.0.1"], network.ROUND_S)]


async def test_mdns_that_the_system_refuses_is_an_error_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(hosts: list[str], limit_s: float) -> bool:
        raise OSError(19, "No such device")

    monkeypatch.setattr(network, "_announce_and_look", refuse)
    finding = await network.check_mdns(view(tmp_path))
    assert finding.what == "mDNS can't be used here (No such device)." and finding.level == "error"


def test_only_addresses_outside_this_laptop_are_shown(tmp_path: Path) -> None:
    some = ev.AddressesChanged(addresses=("127.0.0.1:1", "[::1]:1", "10.0.0.5:27600", "10.0.0.6:27600"))
    finding = network.check_interfaces(view(tmp_path, some))
    assert finding.what == "Others reach this laptop at 10.0.0.5:27600, 10.0.0.6:27600."
    assert (finding.level, finding.code) == ("ok", "interfaces")


def test_a_laptop_without_a_firewall_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "none"
    monkeypatch.setattr(network.shutil, "which", lambda name: None)  # type: ignore[attr-defined]
    assert network.check_firewall(view(tmp_path), empty, empty).level == "ok"
    monkeypatch.setattr(
        network.shutil,  # type: ignore[attr-defined]
        "which",
        lambda name: "/usr/sbin/iptables" if name == "iptables" else None,
    )
    assert "made by hand" in network.check_firewall(view(tmp_path), empty, empty).what


@pytest.mark.parametrize(
    "events",
    [
        (found(),),
        (ev.DevicePaired(device=OTHER, name="other"),),
        (
            found(),
            ev.DevicePaired(device=OTHER, name="other"),
            ev.LinkUp(device=OTHER, name="other", address="a:1", versions=VERSIONS, hardware=HARDWARE),
        ),
    ],
)
def test_only_a_paired_device_that_is_seen_but_not_linked_is_out_of_reach(
    tmp_path: Path, events: tuple[ev.Event, ...]
) -> None:
    assert network.check_isolation(view(tmp_path, *events), tmp_path / "none") is None


def test_a_firewall_is_named_with_its_commands(tmp_path: Path) -> None:
    seen = view(tmp_path)
    etc, run = tmp_path / "etc", tmp_path / "run"
    (etc / "ufw").mkdir(parents=True)
    run.mkdir()

    (etc / "ufw/ufw.conf").write_text("# comment\nENABLED=no\n")
    assert "ufw" not in network.check_firewall(seen, etc, run).what

    (etc / "ufw/ufw.conf").write_text("LOGLEVEL=low\nENABLED=yes\n")
    assert "sudo ufw allow 27600/tcp" in network.check_firewall(seen, etc, run).fix

    (run / "firewalld").mkdir()
    assert "firewall-cmd" in network.check_firewall(seen, tmp_path / "none", run).fix


def test_seen_but_out_of_reach_names_what_keeps_them_apart(tmp_path: Path) -> None:
    seen = view(tmp_path, found(), ev.DevicePaired(device=OTHER, name="other"))

    finding = network.check_isolation(seen)

    assert finding is not None and finding.code == "seen-not-reached"
    assert "client isolation" in finding.fix


def test_a_wireless_laptop_that_finds_nobody_gets_the_hint(tmp_path: Path) -> None:
    net = tmp_path / "net"
    (net / "wlan0" / "wireless").mkdir(parents=True)
    (net / "eth0").mkdir()

    finding = network.check_isolation(view(tmp_path), net)
    assert finding is not None and "wlan0" in finding.what

    assert network.check_isolation(view(tmp_path, found()), net) is None
    assert network.check_isolation(view(tmp_path), tmp_path / "none") is None
    assert network.check_isolation(replace_port(view(tmp_path)), net) is None


def replace_port(seen: Examined) -> Examined:
    assert seen.state.me is not None
    return Examined(seen.home, state=replace(seen.state, me=None), port=None)
