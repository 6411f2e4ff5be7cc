"""A node's mDNS record, and which parts of others' records may be believed. Pure.

Anybody on the network can write such records: every field is bounded, and nothing in them is authenticated.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from zeroconf.asyncio import AsyncServiceInfo

from core.net.address import Address, plain_host
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.text import fit_name

SERVICE = "_tandem._tcp.local."
MOST_ADDRESSES = 8
_ENTRY_BYTES = 200
"""A TXT entry is limited to 255 bytes, including its key."""

_DEVICE = re.compile(rb"[0-9a-f]{64}")
_NUMBER = re.compile(rb"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class Announcement:
    """``protocol``: version of the messages on a link."""

    device: DeviceId
    name: str
    port: int
    protocol: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """The contents of one record. ``addresses`` as ``host:port``."""

    device: DeviceId
    name: str
    protocol: int
    addresses: tuple[str, ...]


def instance_name(device: DeviceId) -> str:
    """At most 63 bytes, whatever the device's name."""
    return f"Tandem {device[:16]}.{SERVICE}"


def service_info(
    announcement: Announcement, addresses: Iterable[str], instance: str = ""
) -> AsyncServiceInfo:
    """The record to announce. ``instance``: its name in the network, once that is settled."""
    name = fit_name(announcement.name).encode()[:_ENTRY_BYTES].decode(errors="ignore")
    return AsyncServiceInfo(
        SERVICE,
        instance or instance_name(announcement.device),
        port=announcement.port,
        properties={"id": announcement.device, "name": name, "v": str(announcement.protocol)},
        server=f"tandem-{announcement.device[:16]}.local.",
        parsed_addresses=list(addresses)[:MOST_ADDRESSES],
    )


def sighting(info: AsyncServiceInfo, own: DeviceId, *, loopback: bool = False) -> Sighting | None:
    """A record's contents, cleaned; None for our own, and for records that can't be a node's.

    ``loopback``: addresses of this machine itself are allowed, because this node uses them, too.
    """
    device = info.properties.get(b"id") or b""
    protocol = info.properties.get(b"v") or b""
    if not _DEVICE.fullmatch(device) or device == own.encode() or not _NUMBER.fullmatch(protocol):
        return None
    if info.port is None or not 1 <= info.port <= 65535:
        return None
    hosts = [host for text in info.parsed_scoped_addresses() if (host := _host(text, loopback))]
    if not hosts:
        return None
    found = DeviceId(device.decode("ascii"))
    return Sighting(
        device=found,
        name=_name(info.properties.get(b"name"), found),
        protocol=int(protocol),
        addresses=tuple(str(Address(host, info.port)) for host in dict.fromkeys(hosts))[:MOST_ADDRESSES],
    )


def _name(raw: bytes | None, device: DeviceId) -> str:
    text = (raw or b"")[:_ENTRY_BYTES].decode(errors="replace")
    return fit_name(text) if text.strip() else f"laptop {short(device)}"


def _host(text: str, loopback: bool) -> str | None:
    try:
        address = ipaddress.ip_address(plain_host(text))
    except ValueError:
        return None
    if address.is_unspecified or address.is_multicast or str(address) == "255.255.255.255":
        return None
    if address.is_loopback and not loopback:
        return None
    if address.is_link_local and address.version == 6 and "%" not in str(address):
        return None  # useless without its interface
    if address.is_global:
        return None  # a stranger must not make this laptop call anybody on the internet
    return str(address)
