"""What one peer sends, over all its connections: messages in their order, each once. One thread at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from core.exchange import frames
from core.exchange.frames import PIECE_BYTES, Ack, Alive, Goodbye, MalformedFrame, MessageHead
from core.exchange.pack import Landing
from core.exchange.state import message_bytes
from core.exchange.tls_stream import TlsStream
from core.vocabulary.errors import Problem


class Owner(Protocol):
    """Called by a channel's threads, which hold no lock then."""

    def announced(self, rank: int, head: MessageHead, is_live: Callable[[], bool]) -> Landing | None:
        """Where the message goes; None: nowhere. May wait for room; raises ``ConnectionError`` if the session
        does not live so long."""
        ...

    def came(self, rank: int, head: MessageHead) -> None:
        """One more piece of a message lies where it was to go."""
        ...

    def arrived(self, rank: int, head: MessageHead) -> None:
        """All of it."""
        ...

    def left(self, rank: int, problem: Problem) -> None: ...

    def broke(self, error: Exception) -> None: ...


@dataclass(slots=True)
class _Incoming:
    """The message that is coming. ``landing`` None: it goes nowhere."""

    head: MessageHead
    size: int
    landing: Landing | None
    received: int = 0


class Inbox:
    def __init__(self, own_rank: int, rank: int, members: int, owner: Owner) -> None:
        self.expected = 0
        """The number of the message that comes next, or is coming. Other threads may read it."""
        self._own_rank, self._rank, self._members, self._owner = own_rank, rank, members, owner
        self._incoming: _Incoming | None = None
        self._heard_s = time.monotonic()
        self._is_held = False
        """We do not read at the moment: the silence is ours."""
        self._nowhere = memoryview(bytearray(PIECE_BYTES))

    @property
    def received(self) -> int:
        """Bytes of the message that is coming."""
        return self._incoming.received if self._incoming else 0

    @property
    def silent_s(self) -> float:
        """Seconds since anything came."""
        return 0.0 if self._is_held else time.monotonic() - self._heard_s

    def hear(self) -> None:
        self._heard_s = time.monotonic()

    def read(self, stream: TlsStream, is_live: Callable[[], bool], on_ack: Callable[[int], None]) -> Goodbye:
        """Until the peer says goodbye. Raises ``OSError``, ``MalformedFrame``, and what ``on_ack`` raises."""
        header = memoryview(bytearray(frames.HEADER.size))
        body = memoryview(bytearray(frames.MAX_WORD_BYTES))
        while True:
            self._fill(stream, header)
            kind, length = frames.read_header(header)
            if kind == frames.PIECE:
                self._read_piece(stream, length)
                continue
            self._fill(stream, body[:length])
            match frames.decode(body[:length]):
                case Alive():
                    pass
                case Ack(message):
                    on_ack(message)
                case MessageHead() as head:
                    self._begin(head, is_live)
                case Goodbye() as goodbye:
                    return goodbye
                case word:
                    raise MalformedFrame(f"{type(word).__name__} within a session")

    def _fill(self, stream: TlsStream, into: memoryview) -> None:
        at = 0
        while at < len(into):
            at += stream.read_some(into[at:])
            self._heard_s = time.monotonic()

    def _begin(self, head: MessageHead, is_live: Callable[[], bool]) -> None:
        incoming = self._incoming
        if head.message != self.expected or head.offset != (incoming.received if incoming else 0):
            raise MalformedFrame(
                f"message {head.message} from byte {head.offset}, {self.expected} is expected"
            )
        if incoming is None:
            size = message_bytes(head.call, head.phase, self._rank, self._own_rank, self._members)
            self._is_held = True
            try:
                landing = self._owner.announced(self._rank, head, is_live)
            finally:
                self.hear()
                self._is_held = False
            incoming = self._incoming = _Incoming(head, size, landing)
        elif (incoming.head.key, incoming.head.phase, incoming.head.call) != (
            head.key,
            head.phase,
            head.call,
        ):
            raise MalformedFrame(f"message {head.message} is another one than before")
        if incoming.received == incoming.size:
            self._finish(incoming)

    def _read_piece(self, stream: TlsStream, length: int) -> None:
        incoming = self._incoming
        if incoming is None or length != min(PIECE_BYTES, incoming.size - incoming.received):
            raise MalformedFrame(f"a piece of {length} bytes that no message has")
        begin = incoming.received
        landing = incoming.landing
        if landing is None:
            self._fill(stream, self._nowhere[:length])
        else:
            self._fill(stream, landing.data.data[begin : begin + length])
            landing.received = begin + length
            self._owner.came(self._rank, incoming.head)
        incoming.received = begin + length
        if incoming.received == incoming.size:
            self._finish(incoming)

    def _finish(self, incoming: _Incoming) -> None:
        self._incoming = None
        self.expected += 1
        if incoming.landing is not None:
            self._owner.arrived(self._rank, incoming.head)
