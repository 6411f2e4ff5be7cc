"""Chooses the graphics cards on which a trainer computes. Pure; imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def taken(gpus: Sequence[T], most: int | None, place: int | None) -> list[T]:
    """At most ``most`` GPUs, or the one at ``place`` among them if each of a laptop's trainers takes one.

    A trainer left without one computes on the processor.
    """
    chosen = list(gpus[:most])
    return chosen if place is None else chosen[place : place + 1]


def idle_words(gpus: int, trainers: int) -> str:
    """A message if trainers that take one GPU each leave some idle; ``""`` if they don't."""
    if gpus <= trainers:
        return ""
    first = "the first takes" if trainers == 1 else f"the first {trainers} take"
    roles = ",".join(["worker"] * gpus)
    return (
        f"This laptop has {gpus} GPUs, but only {first} part. To use all of them, give the laptop a role for "
        f"each: --role NAME={roles}, or chief for the first."
    )
