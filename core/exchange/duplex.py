"""A session: the two connections with a peer, one per direction, and how one of its threads writes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from core.exchange import frames
from core.exchange.frames import Begin
from core.exchange.handshake import wake
from core.exchange.send_window import MessagePiece
from core.exchange.tls_stream import TlsStream


@dataclass(eq=False, slots=True)
class Session:
    sending: TlsStream
    receiving: TlsStream
    seen: int | None = None
    """The number that the peer had seen when it dialled; None: this side dialled."""
    number: int = 0
    begin: Begin | None = None
    """The peer's, where it came first."""
    is_resumed: bool = False
    """It is known from where on the peer needs what was not confirmed."""
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def worn_bytes(self) -> int:
        """By the more used one of its two pairs of keys."""
        return max(self.sending.passed_bytes, self.receiving.passed_bytes)

    def wake(self) -> None:
        """Its threads find it broken."""
        wake(self.sending.sock)
        wake(self.receiving.sock)


def write_piece(stream: TlsStream, words: bytes, piece: MessagePiece | None) -> None:
    """``words``: whole frames, which go before the piece."""
    if piece and piece.head:
        words += frames.encode(piece.head)
    length = piece.end - piece.begin if piece else 0
    if piece is None or not length:
        stream.write(words)
        return
    data = piece.payload.piece(piece.begin, piece.end).data
    stream.write(words + frames.piece_header(length), data)
