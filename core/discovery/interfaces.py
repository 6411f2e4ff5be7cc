"""Chooses the network interfaces on which to find other laptops. Pure, except for ``present``."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass

import ifaddr
import psutil

_NOT_A_LAN = re.compile(
    r"docker|br-[0-9a-f]{6,}|veth|virbr|vmnet|vboxnet|vnet|lxc|lxd|podman|cni|flannel|cali|kube|weave|wsl"
    r"|tun|tap|wg|ppp|ipsec|utun|tailscale|zt|nordlynx|proton|mullvad"
    r"|awdl|llw|anpi|ap[0-9]|p2p|ifb|dummy|sit|gre|ip6tnl|wwan|rmnet|bluetooth",
    re.IGNORECASE,
)
"""Name prefixes of containers, virtual machines, VPNs, and interfaces without a local network."""


@dataclass(frozen=True, slots=True)
class Interface:
    """``addresses`` without prefix, IPv4 first; a link-local IPv6 address carries its scope (``%eth0``)."""

    name: str
    addresses: tuple[str, ...]
    up: bool = True
    loopback: bool = False
    point_to_point: bool = False


def present() -> tuple[Interface, ...]:
    """This laptop's present interfaces, with the addresses that can already be used."""
    stats = psutil.net_if_stats()
    interfaces = []
    for adapter in ifaddr.get_adapters():
        name = adapter.nice_name
        status = stats.get(name)
        flags = status.flags.split(",") if status is not None else []
        addresses = [_with_scope(ip.ip, adapter.name) for ip in adapter.ips]
        usable = sorted((a for a in addresses if _usable(a)), key=_order)
        interfaces.append(
            Interface(
                name=name,
                addresses=tuple(usable),
                up=status.isup if status is not None else True,
                loopback=_is_loopback(usable, flags),
                point_to_point="pointopoint" in flags,
            )
        )
    return tuple(interfaces)


def chosen(interfaces: Iterable[Interface], wanted: Iterable[str] = ()) -> tuple[Interface, ...]:
    """The interfaces named in ``wanted``; without names every suitable one, or loopback if there is no
    other."""
    names = frozenset(wanted)
    usable = [each for each in interfaces if each.up and each.addresses]
    if names:
        return tuple(each for each in usable if each.name in names)
    lans = [each for each in usable if not each.loopback and _is_lan(each)]
    return tuple(lans or [each for each in usable if each.loopback])


def hosts(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """Addresses where others can reach this laptop, as people type them: link-local IPv6 only if there is no
    other."""
    every = sorted((a for each in interfaces for a in each.addresses), key=_order)
    roomy = [address for address in every if not _is_link_local(address)]
    return tuple(dict.fromkeys(roomy or [address.partition("%")[0] for address in every]))


def announced(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """The addresses for the mDNS record; the receiver adds the scope of its own interface."""
    every = sorted((a for each in interfaces for a in each.addresses), key=_order)
    return tuple(dict.fromkeys(address.partition("%")[0] for address in every))


def multicast(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """One address of each interface, for mDNS to join it: IPv4 if there is any, else link-local IPv6."""
    joined = (min(each.addresses, key=lambda a: (":" in a, not _is_link_local(a))) for each in interfaces)
    return tuple(dict.fromkeys(address.partition("%")[0] for address in joined))


def _is_lan(interface: Interface) -> bool:
    return not interface.point_to_point and not _NOT_A_LAN.match(interface.name)


def _is_loopback(addresses: Iterable[str], flags: Iterable[str]) -> bool:
    return "loopback" in flags or any(a == "::1" or a.startswith("127.") for a in addresses)


def _is_link_local(address: str) -> bool:
    return address.startswith(("fe80:", "169.254."))


def _order(address: str) -> tuple[bool, bool]:
    return (":" in address, _is_link_local(address))


def _with_scope(ip: str | tuple[str, int, int], interface: str) -> str:
    if isinstance(ip, str):
        return ip
    return f"{ip[0]}%{interface}" if _is_link_local(ip[0]) else ip[0]


def _usable(address: str) -> bool:
    # A new IPv6 address is tentative at first and can't be bound; a change is reported once it can.
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind(
                socket.getaddrinfo(address, 0, family, socket.SOCK_DGRAM, 0, socket.AI_NUMERICHOST)[0][4]
            )
    except OSError:
        return False
    return True
