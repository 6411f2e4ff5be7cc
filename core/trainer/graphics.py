"""Chooses the graphics cards on which a trainer computes. Pure; imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def choose(gpus: Sequence[T], most: int | None, index: int | None) -> list[T]:
    """The first ``most`` GPUs; of these only the one at ``index``, if each of a laptop's trainers uses one.

    ``most``: None for all. A trainer left without a GPU computes on the processor.
    """
    chosen = list(gpus[:most])
    return chosen if index is None else chosen[index : index + 1]


def idle_words(gpus: int, trainers: int) -> str:
    """A message if trainers that use one GPU each leave some idle; ``""`` if they don't."""
    if gpus <= trainers:
        return ""
    first = "the first takes" if trainers == 1 else f"the first {trainers} take"
    roles = ",".join(["worker"] * gpus)
    return (
        f"This laptop has {gpus} GPUs, but only {first} part. To use all of them, give the laptop a role for "
        f"each: --role NAME={roles}, or chief for the first."
    )
