"""Which scenario runs at which shares, and what comes of a cell. Runs each set of processes once."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.exactness import processes
from tests.exactness.names import CORE, EVERY

ALONE: tuple[int, ...] = ()
EVEN, UNEVEN, THREE, EXTREME = (32, 32), (48, 16), (40, 16, 8), (63, 1)
DEVICES: dict[tuple[int, ...], tuple[int, ...]] = {EVEN: (0, 1)}
"""Members of these shares compute on unlike devices: on logical ones, in place of a graphics card."""
NO_PROGRESS_S = 240.0
"""A set of processes that finishes no scenario for so long is stuck; a quiet machine needs 3 s for one."""


def scenarios_at(shares: tuple[int, ...]) -> tuple[str, ...]:
    return EVERY if shares in (ALONE, UNEVEN, THREE) else CORE


CELLS = [(name, shares) for shares in (UNEVEN, THREE, EVEN, EXTREME) for name in scenarios_at(shares)]


@dataclass(frozen=True)
class Ran:
    """A set of processes after its run: each one's folder, and why it broke off, if it did."""

    folders: tuple[Path, ...]
    failure: str

    def arrays(self, name: str) -> list[dict[str, np.ndarray]]:
        """Each process's arrays of a scenario. Where one is missing: AssertionError with what is known."""
        for folder in self.folders:
            error = folder / f"{name}.error"
            assert not error.exists(), f"{folder.name}: {error.read_text()}"
            assert (folder / f"{name}.npz").exists(), self.failure or f"{folder.name} left no {name}.npz"
        return [dict(np.load(folder / f"{name}.npz")) for folder in self.folders]


@functools.cache
def ran(shares: tuple[int, ...]) -> Ran:
    out = Path(tempfile.mkdtemp(prefix="tandem-matrix-"))
    atexit.register(shutil.rmtree, out, ignore_errors=True)
    folders = tuple(out / f"rank{rank}" for rank in range(max(1, len(shares))))
    try:
        processes.run(shares, scenarios_at(shares), out, NO_PROGRESS_S, devices=DEVICES.get(shares, ()))
    except AssertionError as failure:
        return Ran(folders, str(failure))
    return Ran(folders, "")


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """The largest absolute difference; infinite for different shapes or one NaN."""
    if one.shape != other.shape:
        return float("inf")
    if one.size == 0 or np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
        return 0.0
    apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return float("inf") if np.isnan(apart).any() else float(apart.max())
