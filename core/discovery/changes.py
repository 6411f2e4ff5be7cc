"""Reports when this laptop's interfaces or addresses change. On the core loop.

On Linux the kernel reports changes (rtnetlink(7)). Elsewhere this polls every 10 s.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from typing import Literal

from core.runtime.timers import Clock, Timers

SETTLE_S = 0.3
"""Joining a network causes a burst of changes, which are reported together."""

LOOK_EVERY_S = 10.0
_Timer = Literal["settle", "look"]

# linux/rtnetlink.h
_RTMGRP_LINK, _RTMGRP_IPV4_IFADDR, _RTMGRP_IPV6_IFADDR = 0x1, 0x10, 0x100
_log = logging.getLogger(__name__)


class Changes:
    """Calls ``on_change`` after something may have changed; the callee checks."""

    def __init__(
        self,
        on_change: Callable[[], None],
        open_socket: Callable[[], socket.socket] | None = None,
        *,
        clock: Clock | None = None,
        settle_s: float = SETTLE_S,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._on_change = on_change
        self._open_socket = open_socket or _kernel
        self._settle_s, self._look_every_s = settle_s, look_every_s
        self._socket: socket.socket | None = None
        self._timers: Timers[_Timer] = Timers(clock or asyncio.get_running_loop(), self._on_time)

    @property
    def followed(self) -> bool:
        """Whether the kernel reports changes; otherwise they are seen within ``look_every_s``."""
        return self._socket is not None

    def start(self) -> None:
        try:
            self._socket = self._open_socket()
            asyncio.get_running_loop().add_reader(self._socket, self._on_readable)
        except (OSError, NotImplementedError) as error:
            _log.info("polling for network changes every %.0f s: %s", self._look_every_s, error)
            self._close_socket()
            self._timers.set("look", self._look_every_s)

    def close(self) -> None:
        self._timers.cancel_all()
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._close_socket()

    def _on_readable(self) -> None:
        assert self._socket is not None
        try:
            # The kind of change does not matter. An overrun buffer (ENOBUFS) means many changes.
            self._socket.recv(65536)
        except BlockingIOError:
            return
        except OSError as error:
            _log.debug("reading network changes: %s", error)
        if "settle" not in self._timers:
            self._timers.set("settle", self._settle_s)

    def _on_time(self, timer: _Timer) -> None:
        if timer == "look":
            self._timers.set("look", self._look_every_s)
        self._on_change()

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


if sys.platform == "linux":

    def _kernel() -> socket.socket:
        kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK
        kernel = socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE)
        try:
            kernel.bind((0, _RTMGRP_LINK | _RTMGRP_IPV4_IFADDR | _RTMGRP_IPV6_IFADDR))
        except OSError:
            kernel.close()
            raise
        return kernel

else:

    def _kernel() -> socket.socket:
        raise NotImplementedError(f"{sys.platform} has no rtnetlink")
