"""Listening sockets of a process that others could reach, as the system reports them. Linux only."""

from __future__ import annotations

import ipaddress

import psutil


def reachable(pid: int) -> tuple[str, ...]:
    """``address:port`` of each TCP socket of a process that listens in *this* process's network, except on
    the loopback. Raises ``OSError`` if the sockets cannot be read.

    A process in a network of its own has none, unless it brought a socket from this network along: psutil
    looks its sockets up in this process's ``/proc/net``.
    """
    try:
        sockets = psutil.Process(pid).net_connections("tcp")
    except psutil.NoSuchProcess as error:
        raise ProcessLookupError(str(error)) from error
    except psutil.Error as error:
        raise PermissionError(str(error)) from error
    listening = (each.laddr for each in sockets if each.status == psutil.CONN_LISTEN)
    return tuple(sorted(f"{at.ip}:{at.port}" for at in listening if not _is_loopback(at.ip)))


def _is_loopback(text: str) -> bool:
    host = ipaddress.ip_address(text)
    mapped = host.ipv4_mapped if isinstance(host, ipaddress.IPv6Address) else None
    return (mapped or host).is_loopback
