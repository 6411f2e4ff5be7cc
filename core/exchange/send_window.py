"""What a peer has not confirmed yet: sent piece by piece, and again after a connection was lost.

Pure, but for the payload's making; not for two threads at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from core.exchange.frames import PIECE_BYTES, MessageHead
from core.exchange.pack import Payload
from core.exchange.state import Call, Key, Phase


@dataclass(frozen=True, slots=True)
class Message:
    key: Key
    phase: Phase
    call: Call
    payload: Payload


@dataclass(frozen=True, slots=True)
class MessagePiece:
    """``head`` None: the message goes on. ``begin == end``: a message without any bytes."""

    head: MessageHead | None
    payload: Payload
    begin: int
    end: int


class NotSent(ValueError):
    """A peer speaks of messages that it was never sent, or that it has long confirmed."""


class SendWindow:
    def __init__(self) -> None:
        self._unconfirmed: deque[Message] = deque()
        self._waiting: deque[Message] = deque()
        self._first = 0
        """The number of the first unconfirmed message."""
        self._at, self._offset = 0, 0
        """What is sent next: the message's number, and so many of its bytes were sent before."""
        self._head_is_due = True

    def put(self, message: Message) -> None:
        self._waiting.append(message)

    def drop(self, is_old: Callable[[Key], bool]) -> None:
        """Nobody needs these any more. One that was begun goes on: the peer counts messages."""
        self._waiting = deque(message for message in self._waiting if not is_old(message.key))

    def __len__(self) -> int:
        """Messages that were not confirmed, whether sent or not."""
        return len(self._unconfirmed) + len(self._waiting)

    def next(self) -> MessagePiece | None:
        if self._at == self._first + len(self._unconfirmed):
            if not self._waiting:
                return None
            self._unconfirmed.append(self._waiting.popleft())
        message = self._unconfirmed[self._at - self._first]
        head = None
        if self._head_is_due:
            head = MessageHead(
                message=self._at,
                offset=self._offset,
                key=message.key,
                phase=message.phase,
                call=message.call,
            )
        begin, end = self._offset, min(message.payload.size, self._offset + PIECE_BYTES)
        self._head_is_due = end == message.payload.size
        if self._head_is_due:
            self._at, self._offset = self._at + 1, 0
        else:
            self._offset = end
        return MessagePiece(head, message.payload, begin, end)

    def confirm(self, message: int) -> None:
        """The peer has all before ``message``. Raises ``NotSent``."""
        if message > self._at:
            raise NotSent(f"message {message} was confirmed where {self._at} is the next")
        while self._first < message:
            self._unconfirmed.popleft()
            self._first += 1

    def resume(self, message: int, offset: int) -> None:
        """On a new connection: send from there on. Raises ``NotSent``."""
        end = self._first + len(self._unconfirmed)
        if not self._first <= message <= end:
            raise NotSent(f"message {message} is asked for where {self._first} to {end} are kept")
        size = self._unconfirmed[message - self._first].payload.size if message < end else 0
        if offset and (offset >= size or offset % PIECE_BYTES):
            raise NotSent(f"byte {offset} is asked for in a message of {size}")
        self._at, self._offset, self._head_is_due = message, offset, True
        self.confirm(message)
