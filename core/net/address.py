"""Addresses as people type them, devices announce them and sockets name them. Pure except for ``host_of``."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.vocabulary.errors import TandemError
from core.vocabulary.settings import DEFAULT_PORT

_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """The address of a listening device. ``host`` is a name or an IP address without brackets."""

    host: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str, default_port: int = DEFAULT_PORT) -> Address:
    """Read an address. Raises ``TandemError`` (``bad-address``), which names what is wrong with it."""
    text = text.strip()
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")) or ":" not in host:
            raise _bad(text, "an IPv6 address with a port is written [fe80::1]:27600")
        port_text = rest[1:] if rest else None
    elif text.count(":") > 1:
        host, port_text = text, None
    else:
        host, colon, rest = text.partition(":")
        port_text = rest if colon else None
    return Address(_host(text, host), default_port if port_text is None else _port(text, port_text))


def plain_host(host: str) -> str:
    """``host`` in canonical spelling: an IPv4-mapped IPv6 address is unwrapped, a scope is kept."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host.lower().rstrip(".")
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


def hosts(addresses: Iterable[str]) -> set[str]:
    """The hosts of ``addresses`` (``host:port``), in canonical spelling; skips invalid addresses."""
    found = set()
    for text in addresses:
        with contextlib.suppress(TandemError):
            found.add(plain_host(parse(text).host))
    return found


def nearest(addresses: Iterable[str], own: Iterable[str]) -> list[str]:
    """``addresses`` (``host:port``), sorted by the length of the prefix shared with one of ``own``, longest
    first.

    For a laptop on two networks, the address on our network comes first, without knowing a netmask.
    """
    ours = [number for text in own if (number := _number(text)) is not None]

    def apart(text: str) -> int:
        theirs = _number(text)
        if theirs is None:
            return 256
        same = [bits for version, bits in ours if version == theirs[0]]
        return min(((bits ^ theirs[1]).bit_length() for bits in same), default=255)

    return sorted(addresses, key=apart)


def _number(text: str) -> tuple[int, int] | None:
    """Version and bits of an address; None for a name."""
    try:
        found = ipaddress.ip_address(parse(text).host.partition("%")[0])
    except (TandemError, ValueError):
        return None
    return found.version, int(found)


def _host(text: str, host: str) -> str:
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host))
        except ValueError as error:
            raise _bad(text, f"{host!r} is not an IPv6 address") from error
    if re.fullmatch(r"[0-9.]+", host):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError as error:
            raise _bad(text, f"{host!r} is not an IPv4 address") from error
    if len(host) > 253 or not _HOST_NAME.fullmatch(host):
        raise _bad(text, "the host name is missing or has invalid characters")
    return host


def _port(text: str, port: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise _bad(text, "a port is a number from 1 to 65535")
    return int(port)


def _bad(text: str, why: str) -> TandemError:
    return TandemError(
        code="bad-address",
        what=f"{text[:80]!r} is not an address: {why}.",
        fix=f"Write it as the other device shows it, such as 192.168.1.20 or 192.168.1.20:{DEFAULT_PORT}.",
    )


def host_of(sockname: Sequence[object]) -> str:
    """The host of a socket's address, as people and other programs can use it.

    ``sockname`` as from ``getsockname`` and ``getpeername``; a link-local IPv6 host keeps its scope.
    """
    host = plain_host(str(sockname[0]))
    scope = sockname[3] if len(sockname) == 4 else 0
    if host.startswith("fe80:") and "%" not in host and isinstance(scope, int) and scope:
        try:
            return f"{host}%{socket.if_indextoname(scope)}"
        except OSError:
            return f"{host}%{scope}"
    return host
