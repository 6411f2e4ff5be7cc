"""Which interfaces are used to find other laptops."""

from __future__ import annotations

import pytest

from core.discovery import interfaces
from core.discovery.interfaces import Interface, announced, chosen, hosts, multicast, present

LO = Interface("lo", ("127.0.0.1", "::1"), loopback=True)
WIFI = Interface("wlp2s0", ("192.168.1.20", "2001:db8::5", "fe80::1%wlp2s0"))
CABLE = Interface("enp3s0", ("10.0.0.7",))
V6_ONLY = Interface("eth1", ("2001:db8::9", "fe80::2%eth1"))


def test_every_lan_is_taken_and_loopback_left_out() -> None:
    assert chosen([LO, WIFI, CABLE]) == (WIFI, CABLE)


def test_loopback_is_taken_only_where_there_is_nothing_else() -> None:
    assert chosen([LO]) == (LO,)
    assert chosen([LO, Interface("wlp2s0", ("192.168.1.20",), up=False)]) == (LO,)
    assert chosen([LO, Interface("wlp2s0", ())]) == (LO,)


GUESTS = ["docker0", "br-3f2a9c01d4e5", "veth12ab", "virbr0", "vmnet8", "vboxnet0", "cni0", "lxcbr0", "ifb0"]
TUNNELS = ["tun0", "tap0", "wg0", "tailscale0", "utun3", "ppp0", "zt5u4", "awdl0"]
LANS = ["eth0", "enp3s0", "wlan0", "wlp2s0", "en0", "lan0", "br0", "Ethernet", "Wi-Fi", "usb0", "enx00e04c"]


@pytest.mark.parametrize("name", [*GUESTS, *TUNNELS])
def test_containers_virtual_machines_and_tunnels_are_left_out(name: str) -> None:
    odd = Interface(name, ("172.17.0.1",))
    assert chosen([odd, WIFI]) == (WIFI,)
    assert chosen([odd, LO]) == (LO,)


@pytest.mark.parametrize("name", LANS)
def test_interfaces_that_people_connect_laptops_by_are_chosen(name: str) -> None:
    lan = Interface(name, ("192.168.1.20",))
    assert chosen([lan, LO]) == (lan,)


def test_a_point_to_point_interface_is_no_lan_whatever_its_name() -> None:
    assert chosen([Interface("office", ("10.8.0.2",), point_to_point=True), WIFI]) == (WIFI,)


def test_named_interfaces_are_taken_whatever_they_are_and_no_others() -> None:
    veth = Interface("veth0", ("10.99.0.1",))
    assert chosen([LO, WIFI, veth], ["veth0"]) == (veth,)
    assert chosen([LO, WIFI], ["lo"]) == (LO,)
    assert chosen([LO, WIFI], ["missing0"]) == ()


def test_people_are_shown_ipv4_first_and_link_local_only_where_there_is_no_other() -> None:
    assert hosts([V6_ONLY, WIFI]) == ("192.168.1.20", "2001:db8::9", "2001:db8::5")
    assert hosts([Interface("eth1", ("fe80::2%eth1",))]) == ("fe80::2",)
    assert announced([WIFI]) == ("192.168.1.20", "2001:db8::5", "fe80::1")


def test_mdns_joins_each_interface_by_one_address() -> None:
    assert multicast([WIFI, V6_ONLY, CABLE]) == ("192.168.1.20", "fe80::2", "10.0.0.7")


@pytest.mark.real
def test_this_machine_has_a_loopback_interface_with_its_address() -> None:
    loopback = [each for each in present() if each.loopback]
    assert loopback
    assert "127.0.0.1" in loopback[0].addresses
    assert loopback[0].up


class _Ip:
    def __init__(self, ip: object) -> None:
        self.ip = ip


class _Adapter:
    def __init__(self, name: str, *ips: object) -> None:
        self.name = self.nice_name = name
        self.ips = [_Ip(ip) for ip in ips]


class _Stats:
    def __init__(self, isup: bool, flags: str) -> None:
        self.isup, self.flags = isup, flags


def test_the_systems_interfaces_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    adapters = [
        _Adapter("lo", "127.0.0.1", ("::1", 0, 0)),
        _Adapter("eth0", ("fe80::5", 0, 2), ("fd00::5", 0, 0), "169.254.3.4", "192.168.1.5", "10.9.9.9"),
        _Adapter("tun0", "10.8.0.2"),
        _Adapter("new0"),
    ]
    stats = {
        "lo": _Stats(True, "up,loopback,running"),
        "eth0": _Stats(False, "broadcast,multicast"),
        "tun0": _Stats(True, "up,pointopoint"),
    }
    monkeypatch.setattr("ifaddr.get_adapters", lambda: adapters)
    monkeypatch.setattr("psutil.net_if_stats", lambda: stats)
    monkeypatch.setattr(interfaces, "_usable", lambda address: address != "10.9.9.9")
    lo, eth, tun, new = interfaces.present()
    assert lo == Interface("lo", ("127.0.0.1", "::1"), loopback=True)
    assert eth == Interface("eth0", ("192.168.1.5", "169.254.3.4", "fd00::5", "fe80::5%eth0"), up=False)
    assert tun == Interface("tun0", ("10.8.0.2",), point_to_point=True)
    assert new == Interface("new0", ())


def test_an_interface_with_a_loopback_address_is_one_whatever_its_flags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "ifaddr.get_adapters", lambda: [_Adapter("a", "127.0.0.1"), _Adapter("b", ("::1", 0, 0))]
    )
    monkeypatch.setattr("psutil.net_if_stats", dict)
    monkeypatch.setattr(interfaces, "_usable", lambda address: True)
    assert [each.loopback for each in interfaces.present()] == [True, True]
