"""Choosing and opening the one TCP port of a node, for IPv4 and IPv6 alike."""

from __future__ import annotations

import asyncio
import errno
import random
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psutil

from core.vocabulary.errors import Problem, TandemError

NEIGHBOURS = range(27600, 27700)
"""Ports to try, in this order, when the wanted one is taken."""

_ANY = range(10_000, 20_000)
"""Ports to choose from for port 0: below the trainers' ports, far from the ephemeral range, which any program
may use."""

EVERYWHERE = ("0.0.0.0", "::")
LOOPBACK = ("127.0.0.1", "::1")
_BACKLOG = 64
_NO_SUCH_FAMILY = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})


@dataclass(frozen=True, slots=True)
class Opened:
    """``notice``: why it is not the wanted port."""

    sockets: tuple[socket.socket, ...]
    port: int
    notice: Problem | None = None


async def open_port(
    wanted: int, hosts: Sequence[str] = EVERYWHERE, *, neighbours: Sequence[int] = NEIGHBOURS
) -> Opened:
    """Listen on ``wanted``, or on a neighbour if it is taken; 0: on any port. Raises ``TandemError``."""
    candidates = (
        random.sample(_ANY, 200) if wanted == 0 else [wanted, *(p for p in neighbours if p != wanted)]
    )
    for port in candidates:
        sockets = _open(port, hosts)
        if sockets is not None:
            notice = None if wanted in (0, port) else await _taken(wanted, port)
            return Opened(sockets, port, notice)
    raise TandemError(
        code="no-port",
        what=f"Port {wanted} and all from {neighbours[0]} to {neighbours[-1]} are in use.",
        fix="End the programs that use them, or choose another port in the settings.",
    )


def _open(port: int, hosts: Iterable[str]) -> tuple[socket.socket, ...] | None:
    """Sockets that listen on ``port``; None: it is taken. Raises ``TandemError``."""
    sockets: list[socket.socket] = []
    try:
        for host in hosts:
            try:
                sockets.append(_listen(host, port))
            except OSError as error:
                # A machine without IPv6 (or IPv4) has only the other.
                if error.errno not in _NO_SUCH_FAMILY:
                    raise
    except OSError as error:
        for opened in sockets:
            opened.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise _unusable(port, error) from error
    if not sockets:
        raise _unusable(port, OSError(errno.EADDRNOTAVAIL, "neither IPv4 nor IPv6 is available"))
    return tuple(sockets)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listening.setblocking(False)
    return listening


def _unusable(port: int, error: OSError) -> TandemError:
    return TandemError(
        code="port-unusable",
        what=f"Tandem can't listen on port {port} ({error.strerror or error}).",
        fix="Choose another port in the settings, 1024 or higher, or 0 for any.",
    )


async def _taken(wanted: int, port: int) -> Problem:
    holder = await asyncio.to_thread(_holder, wanted)
    return Problem(
        code="port-taken",
        what=f"Port {wanted} is in use by {holder}, so Tandem listens on port {port}.",
        fix=f"Nothing, if the laptops find each other. Otherwise enter this laptop's address with :{port}.",
    )


def _holder(port: int) -> str:
    """The program that listens there, in words. Only root sees other users' processes."""
    try:
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr
            if listens and listens.port == port and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    except (psutil.Error, OSError):
        pass
    return "another program"
