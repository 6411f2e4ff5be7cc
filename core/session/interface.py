"""The interfaces of a session's threaded driver: its connections, and its user."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from core.session.frames import MalformedFrame
from core.session.state import Bytes, NotSent
from core.vocabulary.errors import Problem

Direction = Literal["sending", "receiving"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


class Stream(Protocol):
    """One connection. Reading and writing raise ``OSError`` once it is broken, or woken."""

    def read_some(self, into: memoryview) -> int: ...
    def write(self, *parts: Bytes) -> None: ...

    def write_at_once(self, *parts: Bytes) -> None:
        """Write without waiting. Unwritten bytes are sent before anything that is written next."""

    @property
    def is_behind(self) -> bool:
        """Whether something waits to be written."""

    def limit(self, until_s: float | None) -> None:
        """When to give up reading and writing, by ``time.monotonic``; None: never."""

    def limit_silence(self, each_s: float) -> None:
        """Let reading raise ``TimeoutError`` after ``each_s`` without a byte. It can be retried."""

    def wake(self) -> None:
        """Break the connection, from any thread."""

    def end(self) -> None:
        """Close the connection, from the thread that used it."""


@dataclass(eq=False, slots=True)
class ConnectionPair:
    sending: Stream
    receiving: Stream
    used: set[Direction] = field(default_factory=set)
    """Directions that a thread serves, and will close."""
    read_until_s: float = math.inf
    """After sending failed: until when received data is still read, by ``time.monotonic``."""

    @property
    def is_cut(self) -> bool:
        """Whether sending failed."""
        return self.read_until_s < math.inf

    def stream(self, direction: Direction) -> Stream:
        return self.sending if direction == "sending" else self.receiving

    def end(self) -> None:
        """Break both streams. Call once no thread will begin to serve the pair."""
        for direction in DIRECTIONS:
            stream = self.stream(direction)
            if direction in self.used:
                stream.wake()
            else:
                stream.end()


class User(Protocol):
    """The user of a session. Called from the session's threads, without its lock."""

    def call(self, seen: int) -> ConnectionPair:
        """Dial the peer and tell it ``seen``. Raises ``OSError``."""

    def connected(self) -> None: ...

    def disconnected(self) -> None:
        """The live pair is no longer live: ask ``is_live`` again."""

    def announced(self, about: bytes, size: int, is_live: Callable[[], bool]) -> memoryview | None:
        """Buffer for the next message; None: discard it. May wait for room; raises ``ConnectionError`` when
        ``is_live`` no longer holds, ``MalformedFrame`` for an invalid message."""

    def came(self, received: int) -> None:
        """The first ``received`` bytes of the message have arrived."""

    def arrived(self) -> None:
        """The message is complete."""

    def left(self, problem: Problem) -> None:
        """The peer said goodbye."""

    def given_up(self, error: MalformedFrame | NotSent) -> Problem:
        """The peer's messages can't be read any more. Returns the reason, to be sent to the peer."""

    def broke(self, error: Exception) -> None:
        """A bug on this side."""
