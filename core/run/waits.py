"""The waits of a run: asked for by its machines, kept by its drivers. Each has a limit and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Wait = Literal[
    "consent", "receive", "start", "cause", "end", "stop", "finish", "outputs", "launch", "farewell"
]


@dataclass(frozen=True, slots=True)
class Await:
    """Begin a wait, or begin it anew."""

    wait: Wait
    seconds: float


@dataclass(frozen=True, slots=True)
class NoLonger:
    wait: Wait


@dataclass(frozen=True, slots=True)
class WaitOver:
    """Told to a machine: a wait ran out."""

    wait: Wait
