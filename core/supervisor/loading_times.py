"""TensorFlow's loading times in a home's last trainers, and the limit that follows. Blocks.

A timeout counts as a time, too: a laptop that needs longer gets longer at the next try.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from pathlib import Path

import msgspec

from core.home.private_file import read_private, write_atomically
from core.vocabulary.errors import TandemError
from core.vocabulary.limits import LOAD_MOST_S, LOAD_S

KEPT = 5
TIMES = 4.0
"""The limit as a multiple of the slowest recent time: other programs may now use the disk and processors."""
_log = logging.getLogger(__name__)


class LoadingTimes:
    """The last few loading times in seconds, newest last, in the file ``path``. Used from any thread."""

    def __init__(self, path: Path, least_s: float = LOAD_S) -> None:
        self._path = path
        self._least_s = least_s
        self._guard = threading.Lock()

    def limit_s(self) -> float:
        """The longest time that a trainer started now may take to load TensorFlow."""
        with self._guard:
            slowest_s = max(self._read(), default=0.0)
        return min(max(self._least_s, TIMES * slowest_s), LOAD_MOST_S)

    def add(self, seconds: float) -> None:
        """Record one more. If the disk fails, only the next trainer's limit suffers."""
        with self._guard:
            times = (*self._read(), round(seconds, 1))[-KEPT:]
            try:
                write_atomically(self._path, msgspec.json.encode(times))
            except OSError as error:
                _log.warning("TensorFlow's loading time could not be saved: %s", error)

    def _read(self) -> tuple[float, ...]:
        with contextlib.suppress(OSError, TandemError, msgspec.MsgspecError):
            times = msgspec.json.decode(read_private(self._path), type=tuple[float, ...])
            return tuple(seconds for seconds in times if 0.0 <= seconds <= LOAD_MOST_S)
        return ()
