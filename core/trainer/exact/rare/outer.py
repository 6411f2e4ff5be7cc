"""The outer step, which members take with the mean of their differences of weights when they meet. Pure.

Nesterov momentum as in DiLoCo (Douillard et al. 2023), but with less momentum: DiLoCo's 0.9 gives a higher
loss in trainings as short as a laptop's (docs/slow-networks.md has the numbers).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core.trainer.exact.rare.codec import Floats

RATE = np.float32(0.7)
MOMENTUM = np.float32(0.5)


def mean(arrays: Sequence[Floats], weights: Sequence[int]) -> Floats:
    """The weighted mean of arrays of one shape; at least one weight is positive.

    The same bits on every machine, and exactly the first array where all are equal.
    """
    total, first = sum(weights), arrays[0]
    found = first.copy()
    for array, weight in zip(arrays[1:], weights[1:], strict=True):
        for at in _parts(len(found)):
            found[at] += (array[at] - first[at]) * np.float32(weight / total)
    return found


_TURNS = np.array([12.9898, 78.233, 37.719, 93.989])
"""Radians between two entries of each wave, as in `members/sketches.py`."""
_ACROSS = 64
_ROUNDING = 1e-5
_CHUNK = _ACROSS * 1024
"""Numbers processed at once, so that intermediate results stay in a processor's cache. New memory for each
takes longer than the arithmetic."""
_MARKED = _ACROSS * 128
"""The same for marks: for more, the linear algebra would start threads, which compete with the training's."""


def marks(numbers: Floats) -> npt.NDArray[np.float64]:
    """float64 [5]: the squared norm, and four sums with fixed waves, which are linear in the numbers."""
    waves = np.sin(np.outer(np.arange(1, 1 + _ACROSS), _TURNS))
    found = np.zeros(5)
    for begin in range(0, len(numbers), _MARKED):
        part = numbers[begin : begin + _MARKED].astype(np.float64)
        rows = np.concatenate([part, np.zeros(-len(part) % _ACROSS)]).reshape(-1, _ACROSS)
        first = 1 + begin // _ACROSS
        along = np.sin(np.outer(np.arange(first, first + len(rows)), _TURNS))
        found += [np.vdot(rows, rows), *(2.0 * along * (rows @ waves)).sum(axis=0)]
    return found


def is_mean(found: npt.NDArray[np.float64], of: npt.NDArray[np.float64], weights: Sequence[int]) -> bool:
    """Whether marks, float64 [5], are those of the mean of arrays with these marks, float64 [n, 5]."""
    parts = np.array(weights) / sum(weights)
    limit = _ROUNDING * float(np.sqrt(of[:, 0]) @ parts)
    return bool(np.linalg.norm(found[1:] - parts @ of[:, 1:]) <= limit)


def stepped(weights: Floats, momentum: Floats, difference: Floats) -> tuple[Floats, Floats]:
    """New weights and momentum, float32 [n], from the last meeting's and the mean difference since then.
    Overwrites the last two."""
    for at in _parts(len(weights)):
        momentum[at] = np.multiply(MOMENTUM, momentum[at], dtype=np.float32) + difference[at]
        difference[at] = weights[at] + RATE * (difference[at] + MOMENTUM * momentum[at])
    return difference, momentum


def _parts(count: int) -> list[slice]:
    return [slice(begin, begin + _CHUNK) for begin in range(0, count, _CHUNK)]
