"""A network in memory: the socket functions the exchange needs, so that its tests need no sockets."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, cast

Address = tuple[str, int]
Socket = socket.socket
BUFFER_BYTES = 512 * 1024
"""Bytes buffered between two ends; a sender of more waits."""


class Network:
    """Replaces the module ``socket``. ``passed``: bytes sent by all; ``calls``: the time of each attempt
    to connect."""

    IPPROTO_TCP, TCP_NODELAY = socket.IPPROTO_TCP, socket.TCP_NODELAY
    SOCK_STREAM, SHUT_RDWR = socket.SOCK_STREAM, socket.SHUT_RDWR

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.passed, self.cuts = 0, 0
        self.calls: list[float] = []
        self.cut_after = -1
        """Cut once, after this many bytes; -1: never."""
        self.listeners: dict[Address, Listener] = {}
        self.ends: list[End] = []
        self._ports = count(1)

    def getaddrinfo(self, host: str, port: int, type: int) -> list[tuple[Any, ...]]:
        return [(socket.AF_INET, type, 0, "", (host, port))]

    def listener(self) -> Socket:
        return cast(Socket, Listener(self, ("127.0.0.1", next(self._ports))))

    def socket(self, *_: object) -> End:
        return End(self)

    def cut(self) -> None:
        """Breaks all connections and drops data under way. New ones are let through."""
        with self.changed:
            broken, self.ends = self.ends, []
            self.cuts += bool(broken)
            for end in broken:
                end.data.clear()
                end.is_shut = True
            self.changed.notify_all()


class _Socket:
    def __init__(self, network: Network) -> None:
        self.network, self.changed = network, network.changed
        self.is_shut = False
        self._limit_s: float | None = None

    def settimeout(self, limit_s: float | None) -> None:
        self._limit_s = limit_s

    def shutdown(self, _how: int) -> None:
        with self.changed:
            self.is_shut = True
            self.changed.notify_all()

    def close(self) -> None:
        self.shutdown(socket.SHUT_RDWR)

    def _wait_for(self, holds: Callable[[], object]) -> None:
        if not self.changed.wait_for(holds, self._limit_s):
            raise TimeoutError


class End(_Socket):
    """One end of a connection."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.data = bytearray()
        """Received but unread data."""
        self.other: End | None = None

    def setsockopt(self, *_: object) -> None:
        pass

    def connect(self, address: Address) -> None:
        with self.changed:
            self.network.calls.append(time.monotonic())
            listener = self.network.listeners.get(address)
            if listener is None or listener.is_shut:
                raise ConnectionRefusedError(f"nobody listens at {address}")
            self.other = End(self.network)
            self.other.other = self
            self.network.ends += [self, self.other]
            listener.callers.append(self.other)
            self.changed.notify_all()

    def sendall(self, data: bytes) -> None:
        network = self.network
        with self.changed:
            other = self.other
            assert other is not None
            self._wait_for(lambda: len(other.data) < BUFFER_BYTES or self.is_shut or other.is_shut)
            if self.is_shut or other.is_shut:
                raise BrokenPipeError("the connection is closed")
            other.data += data
            network.passed += len(data)
            is_due = 0 <= network.cut_after <= network.passed
            if is_due:
                network.cut_after = -1
            self.changed.notify_all()
        if is_due:
            network.cut()

    def send(self, data: memoryview, _at_once: int) -> int:
        with self.changed:
            assert self.other is not None
            if len(self.other.data) >= BUFFER_BYTES:
                raise BlockingIOError("full")
        self.sendall(bytes(data))
        return len(data)

    def recv_into(self, into: memoryview) -> int:
        with self.changed:
            other = self.other
            assert other is not None
            self._wait_for(lambda: self.data or self.is_shut or other.is_shut)
            got = 0 if self.is_shut else min(len(into), len(self.data))
            into[:got] = self.data[:got]
            del self.data[:got]
            self.changed.notify_all()
            return got


class Listener(_Socket):
    def __init__(self, network: Network, address: Address) -> None:
        super().__init__(network)
        self.address = address
        self.callers: deque[End] = deque()
        network.listeners[address] = self

    def getsockname(self) -> Address:
        return self.address

    def accept(self) -> tuple[End, Address]:
        with self.changed:
            self._wait_for(lambda: self.callers or self.is_shut)
            if self.is_shut:
                raise OSError("the listener is closed")
            return self.callers.popleft(), ("127.0.0.1", 1)
