"""Where a process listens that others could reach, as the system itself tells it. Linux."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator
from pathlib import Path

_LISTEN = "0A"
_TABLES = ("tcp", "tcp6")


def reachable(pid: int) -> tuple[str, ...]:
    """``address:port`` of each TCP socket of a process that listens in *this* process's network, but not on
    its loopback. Raises ``OSError`` where it cannot be read.

    A process in a network of its own has none, unless it brought a socket from here along.
    """
    own = {
        link.removeprefix("socket:[").removesuffix("]")
        for link in _links(Path(f"/proc/{pid}/fd"))
        if link.startswith("socket:[")
    }
    found = (
        address(line.split()[1])
        for table in _TABLES
        for line in _rows(Path("/proc/self/net") / table)
        if line.split()[3] == _LISTEN and line.split()[9] in own
    )
    return tuple(sorted(f"{host}:{port}" for host, port in found if not _is_loopback(host)))


def address(text: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    """What proc(5) writes as ``0100007F:1F90``: words of 32 bits, as they lie in memory."""
    host, _, port = text.partition(":")
    words = [bytes.fromhex(host[at : at + 8]) for at in range(0, len(host), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    return ipaddress.ip_address(packed), int(port, 16)


def _is_loopback(host: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = host.ipv4_mapped if isinstance(host, ipaddress.IPv6Address) else None
    return (mapped or host).is_loopback


def _links(folder: Path) -> Iterator[str]:
    for entry in folder.iterdir():
        try:
            yield str(entry.readlink())
        except FileNotFoundError:  # closed meanwhile
            continue


def _rows(table: Path) -> list[str]:
    try:
        return table.read_text(encoding="utf-8").splitlines()[1:]
    except FileNotFoundError:  # no IPv6 here
        return []
