"""Splits a stream of bytes into lines, however the bytes arrive. Pure."""

from __future__ import annotations


class Lines:
    """Returns lines without their ends, and a line longer than ``most_bytes`` in pieces of ``most_bytes``.

    With ``skip_rest``, only the first ``most_bytes + 1`` of a long line are returned: the length shows that
    it was cut.
    """

    def __init__(self, most_bytes: int = 65536, *, skip_rest: bool = False) -> None:
        self._most = most_bytes
        self._skip_rest = skip_rest
        self._part = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        lines: list[bytes] = []
        *whole, rest = data.split(b"\n")
        for piece in whole:
            if not self._part and not self._skipping and len(piece) <= self._most:
                lines.append(piece)  # fast path for nearly all of a flood of short lines
                continue
            self._add(piece, lines)
            if not self._skipping:
                lines.append(bytes(self._part))
            self._part.clear()
            self._skipping = False
        self._add(rest, lines)
        return lines

    def end(self) -> list[bytes]:
        """The rest after the last line end, once the stream has ended."""
        rest = bytes(self._part)
        self._part.clear()
        return [rest] if rest else []

    def _add(self, piece: bytes, lines: list[bytes]) -> None:
        if self._skipping:
            return
        self._part += piece
        while len(self._part) > self._most:
            if self._skip_rest:
                lines.append(bytes(self._part[: self._most + 1]))
                self._part.clear()
                self._skipping = True
            else:
                lines.append(bytes(self._part[: self._most]))
                del self._part[: self._most]
