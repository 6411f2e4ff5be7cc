"""Members of one run on loopback, in this process, and relays between them."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from core.exchange.driver import Exchange
from core.exchange.keys import Keyring
from core.exchange.state import LIMITS, Key, Limits, Peer
from core.home.identity import Identity, load_or_create
from core.vocabulary.errors import Problem

T = TypeVar("T")
Array = npt.NDArray[Any]

DONE = Problem(code="done", what="The run is over.", fix="Nothing.")
LINGER_S = 10.0


def identities(folder: Path, members: int) -> list[Identity]:
    return [load_or_create(folder / f"member-{rank}") for rank in range(members)]


def keyring(of: Sequence[Identity], rank: int) -> Keyring:
    return Keyring(of[rank], {r: each.cert_der for r, each in enumerate(of) if r != rank})


def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=64)


def address(sock: socket.socket) -> tuple[str, int]:
    host, port = sock.getsockname()[:2]
    return host, port


class Way:
    """A byte-for-byte relay to an address, which can be cut. ``passed``: bytes towards the target."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target, self._listener = target, listener()
        self.address = address(self._listener)
        self.passed, self.cuts, self.cut_after = 0, 0, -1
        """Cut once, after this many bytes in both directions together; -1: never."""
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._all: list[socket.socket] = []
        self._is_closed = False
        self._threads = [threading.Thread(target=self._listen, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        """Breaks all connections at once; new ones are let through."""
        with self._lock:
            broken, self._sockets = self._sockets, []
            self.cuts += bool(broken)
        for sock in broken:
            # Abort without a shutdown: data under way is lost.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._is_closed = True
        self.cut()
        self._listener.close()
        for thread in self._threads:
            thread.join()
        for sock in self._all:
            sock.close()

    def _listen(self) -> None:
        self._listener.settimeout(0.1)
        while not self._is_closed:
            try:
                near = self._listener.accept()[0]
            except TimeoutError:
                continue
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            for sock in (
                near,
                far,
            ):  # so that little is under way when it is cut, however busy the machine is
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
            with self._lock:
                self._sockets += [near, far]
                self._all += [near, far]
            for source, sink in ((near, far), (far, near)):
                thread = threading.Thread(target=self._carry, args=(source, sink), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(32 * 1024):
                with self._lock:
                    self.passed += len(data)
                    is_due = 0 <= self.cut_after <= self.passed
                    if is_due:
                        self.cut_after = -1
                if is_due:
                    self.cut()
                    break
                sink.sendall(data)
        for sock in (source, sink):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def meeting(
    folder: Path,
    members: int,
    reach: Callable[[int, int, tuple[str, int]], tuple[str, int] | None] | None = None,
    limits: Limits = LIMITS,
    listen: Callable[[], socket.socket] = listener,
) -> Iterator[list[Exchange]]:
    """``reach``: where a rank calls another one, given its true address. All are closed afterwards."""
    of = identities(folder, members)
    listeners = [listen() for _ in range(members)]
    exchanges = []
    for rank in range(members):
        peers = [
            Peer(other, reach(rank, other, address(sock)) if reach else address(sock))
            for other, sock in enumerate(listeners)
            if other != rank
        ]
        exchanges.append(Exchange(rank, peers, keyring(of, rank), "run", listeners[rank], limits=limits))
    before = set(threading.enumerate())
    try:
        for exchange in exchanges:
            exchange.start()
        yield exchanges
    finally:
        together(lambda exchange: exchange.close(DONE), exchanges)
    left = [thread.name for thread in set(threading.enumerate()) - before if "exchange" in thread.name]
    assert not left, "no thread stays"


def together(act: Callable[[Exchange], T], exchanges: Sequence[Exchange]) -> list[T]:
    """Runs ``act`` on all members at once; the results by rank."""
    with ThreadPoolExecutor(len(exchanges)) as pool:
        return list(pool.map(act, exchanges))


@functools.cache
def numbers(rank: int, elements: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Some very small and some very large: their sum depends on the order. Read-only."""
    random = np.random.default_rng([rank, seed])
    spread = random.integers(-20, 20, elements)
    found = (random.standard_normal(elements) * 2.0**spread).astype(np.float32)
    found.flags.writeable = False
    return found


def rank_order_sum(arrays: Sequence[Array]) -> Array:
    total = arrays[0].copy()
    for array in arrays[1:]:
        total = total + array
    return total


def keys_of(step: int, packs: int, generation: int = 0, attempt: int = 0) -> list[Key]:
    return [Key(generation, attempt, step, pack) for pack in range(packs)]


def same_bits(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
