"""The last transfer rate of each laptop, so that a question can say how long its files will take. Blocks."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from pathlib import Path
from typing import Annotated

import msgspec

from core.home.private_file import read_private, write_atomically
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId

KEPT = 50
"""The number of laptops, those with the newest transfers."""
_Rates = Annotated[dict[DeviceId, float], msgspec.Meta(max_length=KEPT)]
_log = logging.getLogger(__name__)


class TransferRates:
    """Bytes a second by laptop, in the file ``path``. Used from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()

    def get(self, device: DeviceId) -> float:
        """0: not known."""
        with self._guard:
            return self._read().get(device, 0.0)

    def put(self, device: DeviceId, bytes_s: float) -> None:
        """If the disk fails, only the next question suffers."""
        with self._guard:
            rates = self._read()
            rates.pop(device, None)
            rates[device] = round(bytes_s)
            kept = dict(list(rates.items())[-KEPT:])
            try:
                write_atomically(self._path, msgspec.json.encode(kept))
            except OSError as error:
                _log.warning("the rate of a transfer could not be saved: %s", error)

    def _read(self) -> dict[DeviceId, float]:
        with contextlib.suppress(OSError, TandemError, msgspec.MsgspecError):
            rates = msgspec.json.decode(read_private(self._path), type=_Rates)
            return {device: rate for device, rate in rates.items() if 0 < rate < math.inf}
        return {}
