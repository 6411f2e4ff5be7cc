"""A session: the two connections with a peer, one per direction, and how one of its threads writes."""

from __future__ import annotations

import ssl
import threading
from dataclasses import dataclass, field

from core.exchange import frames
from core.exchange.frames import Begin
from core.exchange.greeting import wake
from core.exchange.send_window import Piece

_SMALL_BYTES = 16 * 1024
"""So much is copied behind its header rather than written for itself: a record of TLS holds as much."""


@dataclass(eq=False, slots=True)
class Session:
    sending: ssl.SSLSocket
    receiving: ssl.SSLSocket
    seen: int | None = None
    """The number that the peer had seen when it dialled; None: this side dialled."""
    number: int = 0
    begin: Begin | None = None
    """The peer's, where it came first."""
    is_resumed: bool = False
    """It is known from where on the peer needs what was not confirmed."""
    threads: list[threading.Thread] = field(default_factory=list)

    def wake(self) -> None:
        """Its threads find it broken."""
        wake(self.sending)
        wake(self.receiving)


def write_piece(tls: ssl.SSLSocket, words: bytes, piece: Piece | None) -> None:
    if piece and piece.head:
        words += frames.encode(piece.head)
    length = piece.end - piece.begin if piece else 0
    if piece is None or not length:
        write(tls, words)
        return
    words += frames.piece_header(length)
    data = piece.payload.piece(piece.begin, piece.end).data
    if length <= _SMALL_BYTES:
        write(tls, words + data)
        return
    write(tls, words)
    write(tls, data)


def write(tls: ssl.SSLSocket, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[tls.write(view) :]
