"""The outer step: what members do with their mean difference of weights when they meet. Pure.

Nesterov momentum as in DiLoCo (Douillard et al. 2023), but with less momentum: DiLoCo's 0.9 gives a higher
loss in trainings as short as a laptop's (docs/slow-networks.md has the numbers).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.trainer.exact.rare.codec import Floats

RATE = np.float32(0.7)
MOMENTUM = np.float32(0.5)


def mean(arrays: Sequence[Floats], weights: Sequence[int]) -> Floats:
    """The mean of arrays of one shape by weights, of which one is positive.

    The same bits on every machine, and exactly the first array where all are equal.
    """
    total, first = sum(weights), arrays[0]
    found = first.copy()
    for array, weight in zip(arrays[1:], weights[1:], strict=True):
        found += (array - first) * np.float32(weight / total)
    return found


def stepped(weights: Floats, momentum: Floats, difference: Floats) -> tuple[Floats, Floats]:
    """New weights and momentum, from those of the last meeting and the mean difference since; float32 [n]."""
    momentum = np.multiply(MOMENTUM, momentum, dtype=np.float32) + difference
    step: Floats = RATE * (difference + MOMENTUM * momentum)
    return weights + step, momentum
