"""Messages that a peer has not confirmed: sent piece by piece, and again after a lost connection. Pure."""

from __future__ import annotations

from collections import deque

from core.session.frames import PIECE_BYTES
from core.session.state import Message, NotSent, Piece

MESSAGE_BYTES = 1 << 10
"""Approximate memory that a message takes besides its bytes."""


class SendWindow:
    def __init__(self) -> None:
        self.held_bytes = 0
        """Bytes of the unconfirmed messages."""
        self._unconfirmed: deque[Message] = deque()
        self._waiting: deque[Message] = deque()
        self._first = 0
        """Number of the first unconfirmed message."""
        self._at, self._offset = 0, 0
        """The next piece: message number, and its first byte."""
        self._needs_head = True

    def put(self, message: Message) -> None:
        self._waiting.append(message)
        self.held_bytes += _taken(message)

    def drop(self, floor: tuple[int, ...]) -> None:
        """Forget messages with a lower key, except numbered ones: the peer counts them."""
        self._waiting = deque(message for message in self._waiting if message.key >= floor)
        self.held_bytes = sum(map(_taken, (*self._unconfirmed, *self._waiting)))

    def __len__(self) -> int:
        """Unconfirmed messages, whether sent or not."""
        return len(self._unconfirmed) + len(self._waiting)

    def next(self) -> Piece | None:
        if self._at == self._first + len(self._unconfirmed):
            if not self._waiting:
                return None
            self._unconfirmed.append(self._waiting.popleft())
        message = self._unconfirmed[self._at - self._first]
        end = min(message.size, self._offset + PIECE_BYTES)
        piece = Piece(self._at, message, self._offset, end, self._needs_head)
        self._needs_head = end == message.size
        if self._needs_head:
            self._at, self._offset = self._at + 1, 0
        else:
            self._offset = end
        return piece

    def confirm(self, message: int) -> None:
        """The peer has all messages before ``message``. Raises ``NotSent``."""
        if message > self._at:
            raise NotSent(
                f"messages before {message} were confirmed, but only those before {self._at} were sent"
            )
        while self._first < message:
            self.held_bytes -= _taken(self._unconfirmed.popleft())
            self._first += 1

    def resume(self, message: int, offset: int) -> None:
        """Continue from byte ``offset`` of ``message`` over a new connection. Raises ``NotSent``."""
        end = self._first + len(self._unconfirmed)
        if not self._first <= message <= end:
            raise NotSent(f"message {message} was requested; {self._first} to {end} are available")
        size = self._unconfirmed[message - self._first].size if message < end else 0
        if offset and (offset >= size or offset % PIECE_BYTES):
            raise NotSent(f"byte {offset} was requested in a message of {size} bytes")
        self._at, self._offset, self._needs_head = message, offset, True
        self.confirm(message)


def _taken(message: Message) -> int:
    return message.size + len(message.about) + MESSAGE_BYTES
