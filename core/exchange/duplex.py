"""A session: the two connections with a peer, one per direction; dialling them, and writing to one."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import msgspec

from core.exchange import frames, handshake
from core.exchange.frames import Begin, MemberHello
from core.exchange.handshake import Sockets, wake
from core.exchange.keys import Keyring
from core.exchange.send_window import MessagePiece
from core.exchange.state import Address
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


def dial(
    address: Address, rank: int, keyring: Keyring, hello: MemberHello, sockets: Sockets, handshake_s: float
) -> Session:
    """Both connections; ``hello`` is what the first of them says. Raises ``OSError``."""
    sending = handshake.dial(address, rank, keyring, hello, sockets, handshake_s)
    back = msgspec.structs.replace(hello, carries="to-caller")
    try:
        receiving = handshake.dial(address, rank, keyring, back, sockets, handshake_s)
    except BaseException:
        sockets.end(sending.stream.sock)
        raise
    return Session(sending.stream, receiving.stream)


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
