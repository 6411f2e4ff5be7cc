"""The node's one TCP port: accepts pairing, links and proofs, which their first bytes tell apart.

First byte 0x00: a pairing frame. 0x01: files, for a paired device. 0x16: TLS, for pinned certificates only;
its first frame decides. Anything else is closed. Few strangers are admitted at once, for a short time. On the
core loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import select
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from core.home.identity import Identity
from core.link.frames import BadFrame, decode, read_body
from core.net import tls
from core.net.address import host_of
from core.net.port import EVERYWHERE, open_port
from core.net.strangers import Guest, Strangers
from core.pairing.throttle import Refusals
from core.runtime.background import Background
from core.runtime.timers import Clock
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.peer_messages import Hello

FIRST_FRAME_BYTES = 1 << 16
_PAIRING, _FILES, _TLS = 0x00, 0x01, 0x16
_OUT_OF_FILES_S = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListenLimits:
    """How long a connection may take to identify itself."""

    first_byte_s: float = 5.0
    first_frame_s: float = 10.0
    pending_s: float = 5.0
    """How long a hello may wait for the pairing to be stored here: the other side may be quicker."""


LISTEN_LIMITS = ListenLimits()


class Listener:
    """Each callback owns the connection that it gets.

    ``on_pairing(sock, guest)``: its first byte is peeked, not read; call ``leave`` of ``guest``, its place
    among strangers. ``on_files(sock, guest)``: likewise. ``on_proof(streams)``: the reader has the first
    frame and nothing after it. ``on_hello(streams, hello)``: a pinned device (``peer_der`` identifies it) and
    its first message.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        on_pairing: Callable[[socket.socket, Guest], None],
        on_files: Callable[[socket.socket, Guest], None],
        on_hello: Callable[[tls.Streams, Hello], None],
        on_proof: Callable[[tls.Streams], Awaitable[None]],
        strangers: Strangers | None = None,
        clock: Clock | None = None,
        limits: ListenLimits = LISTEN_LIMITS,
    ) -> None:
        self._identity = identity
        self._limits = limits
        self._on_pairing, self._on_files = on_pairing, on_files
        self._on_hello = on_hello
        self._on_proof = on_proof
        self._pins: frozenset[bytes] = frozenset()
        self._pending: bytes | None = None
        self._context = tls.server_context(identity, ())
        self._pins_changed = asyncio.Event()
        self._sockets: tuple[socket.socket, ...] = ()
        self._new: set[socket.socket] = set()
        """Connections whose first byte is still to come."""
        self._background = Background()
        self.strangers = strangers or Strangers()
        self.refusals = Refusals((clock or asyncio.get_running_loop()).time, _log.warning)
        self.port = 0

    async def start(self, port: int, hosts: Sequence[str] = EVERYWHERE) -> Problem | None:
        """Listen (``port`` 0: any). Returns a notice where another port was taken. Raises ``TandemError``."""
        opened = await open_port(port, hosts)
        self._sockets, self.port = opened.sockets, opened.port
        for listening in self._sockets:
            self._background.start("accepting connections", self._accept(listening))
        return opened.notice

    def trust(self, pins: Iterable[bytes], pending: bytes | None = None) -> None:
        """Accept links from these certificates (DER) only; ``pending`` may only prove its pairing."""
        self._pins, self._pending = frozenset(pins), pending
        self._context = tls.server_context(self._identity, sorted(self._known()))
        self._pins_changed.set()
        self._pins_changed = asyncio.Event()

    async def close(self) -> None:
        """Stop listening and end connections that have not been handed on."""
        await self._background.cancel()
        for each in (*self._sockets, *self._new):
            each.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                sock, name = await _next_connection(listening)
            except (BlockingIOError, ConnectionError):
                continue
            except OSError as error:
                # Out of file descriptors: the connection stays in the queue until some are free.
                self.refusals.add("the network", f"accepting failed: {error.strerror or error}")
                await asyncio.sleep(_OUT_OF_FILES_S)
                continue
            sock.setblocking(False)
            host = host_of(name)
            guest = self.strangers.admit(host)
            if guest is not None:
                self._new.add(sock)
                self._background.start(f"serving {host}", self._serve(sock, host, guest))
            else:
                sock.close()
                self.refusals.add(host, "too many strangers at once")

    async def _serve(self, sock: socket.socket, host: str, guest: Guest) -> None:
        passed_on = False
        try:
            first = await _peek(sock, self._limits.first_byte_s)
            self._new.discard(sock)
            if first == _PAIRING:
                passed_on = True
                self._on_pairing(sock, guest)
            elif first == _FILES:
                passed_on = True
                self._on_files(sock, guest)
            elif first == _TLS:
                await self._serve_tls(sock, host)
            else:
                sock.close()
                why = "nothing was said" if first is None else "neither TLS nor pairing"
                self.refusals.add(host, why)
        except (TandemError, OSError, EOFError) as error:
            self.refusals.add(host, error.code if isinstance(error, TandemError) else "broken off")
        except Exception:
            _log.exception("serving a connection from %s", host)
        finally:
            if not passed_on:
                guest.leave()
            if sock in self._new:
                self._new.discard(sock)
                sock.close()

    async def _serve_tls(self, sock: socket.socket, host: str) -> None:
        streams = await tls.accept(sock, self._context, self._known())
        handed_on = False
        try:
            async with asyncio.timeout(self._limits.first_frame_s):
                body = await read_body(streams[0], FIRST_FRAME_BYTES)
            certificate = tls.peer_der(streams[1])
            if body[:1] == b"{":
                if certificate == self._pending:
                    handed_on = True
                    await self._on_proof((_replayed(body), streams[1]))
                    return
                self.refusals.add(host, "a proof that nobody waits for")
                return
            message = decode(body)
            if not isinstance(message, Hello):
                raise BadFrame(f"{type(message).__name__} before a hello")
            if await self._pinned(certificate):
                handed_on = True
                self._on_hello(streams, message)
            else:
                self.refusals.add(host, "not paired")
        finally:
            if not handed_on:
                streams[1].transport.abort()

    async def _pinned(self, certificate: bytes) -> bool:
        """Whether this is still pinned, or becomes so within ``pending_s`` while its pairing is under way."""
        if certificate == self._pending:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.pending_s):
                    while certificate not in self._pins:
                        await self._pins_changed.wait()
        return certificate in self._pins

    def _known(self) -> frozenset[bytes]:
        return self._pins if self._pending is None else self._pins | {self._pending}


def _replayed(body: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(len(body).to_bytes(4, "big") + body)
    reader.feed_eof()
    return reader


async def _next_connection(listening: socket.socket) -> tuple[socket.socket, Any]:
    """Accepts without a wait in between: ``sock_accept`` leaves a connection open if it is cancelled once
    it has one."""
    try:
        await _readable(listening)
    except NotImplementedError:  # Windows' loop
        return await asyncio.get_running_loop().sock_accept(listening)
    return listening.accept()


async def _peek(sock: socket.socket, limit_s: float) -> int | None:
    """The first byte, left in place; None where the other side closed. Raises ``OSError``."""
    try:
        async with asyncio.timeout(limit_s):
            await _readable(sock)
    except NotImplementedError:
        # Windows' loop waits for data only by consuming it; a thread waits instead.
        if not await asyncio.to_thread(lambda: select.select([sock], [], [], limit_s)[0]):
            raise TimeoutError from None
    first = sock.recv(1, socket.MSG_PEEK)
    return first[0] if first else None


async def _readable(sock: socket.socket) -> None:
    """Raises ``NotImplementedError`` on Windows."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sock, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sock)
