"""Pairs the two connections of one call, on the side that is called. Any thread."""

from __future__ import annotations

import threading

from core.session.interface import ConnectionPair, Stream

MOST = 4
"""Enough for a peer that makes one call at a time."""


class Halves:
    """``most``: how many calls may lack their second connection at once; beyond it the oldest is closed."""

    def __init__(self, most: int = MOST) -> None:
        self._lock, self._most = threading.Lock(), most
        self._first: dict[bytes, tuple[str, Stream]] = {}
        """First connections, by the call's nonce."""
        self._is_over = False

    def add(self, nonce: bytes, carries: str, stream: Stream) -> ConnectionPair | None:
        """The pair, once both have come: one ``from-caller``, one ``to-caller``. Closes connections without a
        partner."""
        stale = []
        with self._lock:
            if self._is_over:
                stale, first = [stream], None
            elif (first := self._first.pop(nonce, None)) is None:
                if len(self._first) >= self._most:
                    stale = [self._first.pop(next(iter(self._first)))[1]]
                self._first[nonce] = carries, stream
        if first is not None and {first[0], carries} != {"from-caller", "to-caller"}:
            stale, first = [first[1], stream], None
        for each in stale:
            each.end()
        if first is None:
            return None
        both = dict((first, (carries, stream)))
        return ConnectionPair(sending=both["to-caller"], receiving=both["from-caller"])

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            left, self._first = self._first, {}
        for _, stream in left.values():
            stream.end()
