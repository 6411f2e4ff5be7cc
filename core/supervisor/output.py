"""Prepares a trainer's output for screens: plain lines, in batches. No I/O."""

from __future__ import annotations

import re
from collections import deque

from core.vocabulary.progress import LogLines

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LONGEST = 4096


def plain(line: str) -> str:
    """A line as a terminal would show it: after the last carriage return, without escapes or controls.

    Another laptop's script must not be able to control this one's terminal.
    """
    line = _ESCAPES.sub("", line.rstrip("\r"))
    line = _CONTROLS.sub("", line.rpartition("\r")[2])
    return line if len(line) <= _LONGEST else line[:_LONGEST] + " …"


class Batches:
    """At most one message per stream every ``interval_s``; of too many lines, the newest stay."""

    def __init__(
        self, task: str, *, interval_s: float = 0.1, most_lines: int = 100, most_chars: int = 16384
    ) -> None:
        self._task = task
        self._interval_s = interval_s
        self._most_lines = most_lines
        self._most_chars = most_chars
        self._next_s = 0.0
        self._waiting: dict[str, deque[bytes]] = {}
        """Raw: dropped lines cost next to nothing."""
        self._chars: dict[str, int] = {}
        self._dropped: dict[str, int] = {}

    def add(self, stream: str, lines: list[bytes]) -> None:
        waiting = self._waiting.setdefault(stream, deque())
        if (too_many := len(lines) - self._most_lines) > 0:
            self._dropped[stream] = self._dropped.get(stream, 0) + too_many
        for raw in lines[-self._most_lines :]:
            line = raw.rstrip(b"\r").rpartition(b"\r")[2]
            waiting.append(line)
            self._chars[stream] = self._chars.get(stream, 0) + len(line) + 1
            while len(waiting) > self._most_lines or (
                self._chars[stream] > self._most_chars and len(waiting) > 1
            ):
                self._chars[stream] -= len(waiting.popleft()) + 1
                self._dropped[stream] = self._dropped.get(stream, 0) + 1

    @property
    def due_s(self) -> float | None:
        """When ``pop_due`` has something to give; None while nothing waits."""
        return self._next_s if any(self._waiting.values()) else None

    def pop_due(self, now_s: float, *, all_of_it: bool = False) -> list[LogLines]:
        """The messages due now. ``all_of_it``: the process ended, nothing more will come."""
        due_s = self.due_s
        if due_s is None or (now_s < due_s and not all_of_it):
            return []
        self._next_s = now_s + self._interval_s
        batches = [
            LogLines(
                task=self._task,
                stream=stream,
                text="\n".join(plain(line.decode("utf-8", "replace")) for line in lines),
                dropped=self._dropped.get(stream, 0),
            )
            for stream, lines in self._waiting.items()
            if lines
        ]
        self._waiting.clear()
        self._chars.clear()
        self._dropped.clear()
        return batches
