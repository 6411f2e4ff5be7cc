"""Which of a laptop's graphics cards a trainer computes on. Pure; imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def taken(gpus: Sequence[T], most: int | None, place: int | None) -> list[T]:
    """At most ``most`` GPUs; of these only the one at ``place`` if each of a laptop's trainers takes one.

    A trainer for which none is left computes on the processor.
    """
    chosen = list(gpus[:most])
    return chosen if place is None else chosen[place : place + 1]


def idle_words(gpus: int, trainers: int) -> str:
    """A message for when trainers that take one each leave some of a laptop's GPUs idle; ``""`` if none."""
    if gpus <= trainers:
        return ""
    first = "the first takes" if trainers == 1 else f"the first {trainers} take"
    roles = ",".join(["worker"] * gpus)
    return (
        f"Of this laptop's {gpus} GPUs {first} part. Given a role for each (--role NAME={roles}, or chief "
        "for the first), the laptop is as many members, and all take part."
    )
