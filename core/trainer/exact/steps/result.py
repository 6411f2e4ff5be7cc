"""What comes of steps: a step traced for one kind of data, and what one call of steps gave. Data only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from core.cluster.balance import Balancer
from core.trainer.exact.keras.local_state import LocalState


@dataclass(slots=True)
class Traced:
    """A step for one kind of data: with its state, and the calls that run it."""

    step: Any
    """A traced function, or an ordinary one where the model runs eagerly."""
    state: LocalState
    calls: dict[str, Callable[..., Any]] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    """The calls made so far: the first of each traces, and is not measured."""
    balancer: Balancer | None = None
    calibrated: bool = False


@dataclass(frozen=True, slots=True)
class PortionResult:
    """What came of one call into TensorFlow, after which the members met."""

    logs: Any
    rows: int
    """Of the last global batch."""
    done: int
    stop: bool
    """A member was asked to stop."""
    step_s: float
    """Mean time of a step, the meeting included; 0 where it was not measured, as are the others."""
    own_s: tuple[float, ...]
    """By rank: mean time of a step without the wait for others."""
    wait_s: tuple[float, ...]
    """By rank: mean time in which a step waited for others, and for the wire."""

    @property
    def timed(self) -> bool:
        return all(self.own_s)
