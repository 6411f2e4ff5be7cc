"""A peer's address and the outcome of calling it: for messages about members that never connect. Any
thread."""

from __future__ import annotations

import ipaddress
import queue
import socket
import ssl
import threading
from dataclasses import replace
from typing import Any

from core.exchange.state import Address, Calls, Trouble

_ABOUT_PINS = ("CERTIFICATE", "UNKNOWN_CA")
"""Parts of OpenSSL's names for certificate errors and alerts."""


class HandshakeRefused(ConnectionError):
    """The other end is not a member, or speaks another protocol."""


def failed(calls: Calls, error: OSError, now_s: float) -> Calls:
    """Record another failed call."""
    since_s = calls.since_s if calls.tried else now_s
    # If two runs can't connect, one gives up first, and then nothing listens there any more.
    trouble = "stranger" if calls.trouble == "stranger" else trouble_of(error)
    return replace(calls, tried=calls.tried + 1, since_s=since_s, trouble=trouble)


def trouble_of(error: OSError) -> Trouble:
    match error:
        case socket.gaierror():
            return "no-name"
        case ConnectionRefusedError():
            return "refused"
        case ssl.SSLError() if any(word in str(error).upper() for word in _ABOUT_PINS):
            return "stranger"
        case HandshakeRefused():
            return "stranger"
        case TimeoutError():
            return "silent"
        case ConnectionError() | ssl.SSLError():
            return "hung-up"
    return "unreachable"


def resolve(address: Address, limit_s: float) -> tuple[Any, ...]:
    """The first result of ``getaddrinfo``. Raises ``OSError``, ``TimeoutError`` after ``limit_s``.

    A resolver may take minutes for a name and can't be interrupted: its thread is left to end.
    """
    host, port = address
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    found: queue.SimpleQueue[list[tuple[Any, ...]] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except OSError as error:
            found.put(error)

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        answer = found.get(timeout=limit_s)
    except queue.Empty:
        raise TimeoutError(f"the address of {host} was not found within {limit_s:.0f} s") from None
    if isinstance(answer, OSError):
        raise answer
    return answer[0]
