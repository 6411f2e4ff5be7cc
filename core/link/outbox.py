"""What waits to be sent over one link: in order, bounded, telemetry only in its newest form. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from core.link import frames
from core.vocabulary.peer_messages import Message, TelemetrySent

LIMIT_BYTES = 8 << 20
"""More than this waiting means that the peer does not keep up: memory here is not its buffer."""

FLOW_BYTES = 1 << 20
"""Whoever waits for room (files) adds to no more than this, so that other messages stay quick."""


@dataclass(slots=True)
class _Waiting:
    frame: bytes


class Outbox:
    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._telemetry: _Waiting | None = None
        self.waiting_bytes = 0

    @property
    def flows(self) -> bool:
        """There is room for a message that can wait."""
        return self.waiting_bytes < FLOW_BYTES

    def put(self, message: Message) -> bool:
        """False: over the limit, nothing was added. Raises ``TandemError`` for one too large for a frame."""
        frame = frames.encode(message)
        coalesced = self._telemetry if isinstance(message, TelemetrySent) else None
        if self.waiting_bytes + len(frame) > LIMIT_BYTES:
            return False
        self.waiting_bytes += len(frame)
        if coalesced is not None:
            self.waiting_bytes -= len(coalesced.frame)
            coalesced.frame = frame
            return True
        self._waiting.append(_Waiting(frame))
        if isinstance(message, TelemetrySent):
            self._telemetry = self._waiting[-1]
        return True

    def take(self) -> bytes | None:
        """The next frame to send; None where nothing waits."""
        if not self._waiting:
            return None
        waiting = self._waiting.popleft()
        if waiting is self._telemetry:
            self._telemetry = None
        self.waiting_bytes -= len(waiting.frame)
        return waiting.frame
