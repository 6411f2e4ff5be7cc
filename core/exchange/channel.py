"""The session with one peer: its identity, how to call it, and its messages."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Protocol

from core.exchange import frames, handshake, problems, reach
from core.exchange.frames import MemberHello, PackHead
from core.exchange.handshake import MemberConnection
from core.exchange.keys import Keyring
from core.exchange.pack import Landing, Payload
from core.exchange.state import Address, Call, Calls, Key, Limits, PeerStatus, Phase
from core.net.tls_stream import Sockets
from core.session.driver import SessionDriver
from core.session.frames import MalformedFrame
from core.session.halves import Halves
from core.session.interface import ConnectionPair
from core.session.state import Message, NotSent
from core.vocabulary.errors import Problem


class Owner(Protocol):
    """Called from a channel's threads, which then hold no lock."""

    def announced(self, rank: int, head: PackHead, size: int, is_live: Callable[[], bool]) -> Landing | None:
        """Buffer for the message of ``size`` bytes; None: discard it. May wait for room. Raises
        ``ConnectionError`` if the connection ends first, ``MalformedFrame`` for a wrong size."""
        ...

    def came(self, rank: int, head: PackHead) -> None:
        """Another piece of the message is in its buffer."""
        ...

    def arrived(self, rank: int, head: PackHead) -> None:
        """The message is complete."""
        ...

    def disconnected(self) -> None:
        """The connection that ``is_live`` asks about is no longer live."""

    def left(self, rank: int, problem: Problem) -> None:
        """The peer said goodbye, or its messages can't be read any more."""

    def broke(self, error: Exception) -> None:
        """A bug on this side."""


class Channel:
    def __init__(
        self,
        own_rank: int,
        rank: int,
        name: str,
        address: Address | None,
        run: str,
        keyring: Keyring,
        sockets: Sockets,
        owner: Owner,
        limits: Limits,
    ) -> None:
        """``name``: the peer's laptop. ``address``: None if the peer can't be called; it then calls us."""
        self.rank, self._name = rank, name
        self._own_rank, self._address, self._run = own_rank, address, run
        self._keyring, self._sockets, self._owner, self._limits = keyring, sockets, owner, limits
        self._calls = Calls(address)
        self._halves = Halves()
        self._head: PackHead | None = None
        self._landing: Landing | None = None
        """For the incoming message."""
        self.session = SessionDriver(
            self,
            f"exchange-{rank}",
            leads=own_rank < rank,
            can_call=address is not None,
            limits=limits,
        )

    def send(self, key: Key, phase: Phase, call: Call, payload: Payload) -> None:
        about = frames.encode_head(PackHead(key, phase, call))
        piece = payload.piece
        self.session.put(Message(about, payload.size, lambda begin, end: piece(begin, end).data, key))

    @property
    def status(self) -> PeerStatus:
        with self.session.locked() as machine:
            return PeerStatus(
                rank=self.rank,
                connection="closed" if machine.has_left else "connected" if machine.live else "dialling",
                session=machine.number,
                heard_s=machine.silent_s(time.monotonic()),
                unconfirmed=machine.unconfirmed,
                calls=self._calls,
            )

    def end(self) -> None:
        """Stop sending and receiving."""
        self._halves.end()
        self.session.end()

    # Calls

    def called(self, connection: MemberConnection) -> None:
        """Accept an incoming connection; the peer's second one completes the pair. May wait."""
        hello = connection.hello
        if pair := self._halves.add(hello.nonce, hello.carries, connection.stream):
            self.session.offer(pair, hello.seen)

    def call(self, seen: int) -> ConnectionPair:
        """Raises ``OSError``."""
        hello = MemberHello(
            version=frames.VERSION,
            run=self._run,
            rank=self._own_rank,
            nonce=os.urandom(8),
            carries="from-caller",
            seen=seen,
        )
        assert self._address is not None
        try:
            sending, receiving = handshake.dial_both(
                self._address, self.rank, self._keyring, hello, self._sockets, self._limits.handshake_s
            )
        except OSError as error:
            self._calls = reach.failed(self._calls, error, time.monotonic())
            raise
        return ConnectionPair(sending, receiving)

    def connected(self) -> None:
        self._calls = Calls(self._address)

    def disconnected(self) -> None:
        self._owner.disconnected()

    # Messages

    def announced(self, about: bytes, size: int, is_live: Callable[[], bool]) -> memoryview | None:
        self._head = head = frames.decode_head(about)
        self._landing = self._owner.announced(self.rank, head, size, is_live)
        return self._landing.data.data if self._landing else None

    def came(self, received: int) -> None:
        assert self._landing is not None and self._head is not None
        self._landing.received = received
        self._owner.came(self.rank, self._head)

    def arrived(self) -> None:
        assert self._head is not None
        self._landing = None
        self._owner.arrived(self.rank, self._head)

    def left(self, problem: Problem) -> None:
        self._owner.left(self.rank, problem)

    def given_up(self, error: MalformedFrame | NotSent) -> Problem:
        problem = (
            problems.restarted(self._name)
            if isinstance(error, NotSent)
            else problems.incomprehensible(self._name, str(error))
        )
        self.left(problem)
        return problem

    def broke(self, error: Exception) -> None:
        self._owner.broke(error)
