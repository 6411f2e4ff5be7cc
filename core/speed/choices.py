"""What a step would take if a run that was measured had been started in another way. Pure."""

from __future__ import annotations

from typing import NamedTuple

from core.vocabulary.options import LEAST_STEPS, MOST_STEPS
from core.vocabulary.plausible import step_range
from core.vocabulary.progress import Expectation

ESTIMATED = 1.15
"""How far these estimates may be off in either direction, besides what was measured."""
_EIGHT_BITS = 1 / 8
"""With 8 bits, each of *n* members sends *n* times this part of the bytes."""
_CODED_S = 7e-9
"""Seconds of computing for each member's code of a number. Measured on one core."""
_MEETING_S, _LEAST_MEETING_S = 15e-9, 0.004
"""The same for a number at a meeting; and a meeting's calls into TensorFlow and its round trips."""
_RARE_BYTES = 1 / 7.5
"""A meeting's bytes ÷ those of an exact step: 4 bits a number, and a scale for each 64."""
_RARE_PART = 0.1
"""Part of the time that members who choose their interval spend in meetings."""


class Choices(NamedTuple):
    """Seconds of a step: with gradients in bfloat16, in 8 bits; with rare meetings; of twice the rows."""

    narrow: float
    narrowest: float
    rare: float
    larger: float


def choices_s(expectation: Expectation, members: int) -> Choices:
    """``expectation``: of exact steps.

    With rare meetings members choose their interval; assumes that no meeting overlaps steps.
    """
    # An older Tandem tells the wire's part only, without what overlaps computing or waits in queues.
    apart_s = max(expectation.step_s - expectation.wire_s, ideal_s(expectation))
    computing_s, twice_s = expectation.computing_s or (apart_s, 2 * apart_s)
    waiting_s = max(0.0, expectation.step_s - computing_s)
    numbers = expectation.wire_bytes * members / (8 * max(1, members - 1))
    meeting_s = expectation.wire_s * _RARE_BYTES + numbers * _MEETING_S + _LEAST_MEETING_S
    every = min(max(LEAST_STEPS, meeting_s / (_RARE_PART * computing_s)), MOST_STEPS)
    return Choices(
        narrow=computing_s + waiting_s / 2,
        narrowest=computing_s + waiting_s * _EIGHT_BITS * members + numbers * _CODED_S * members,
        rare=computing_s + meeting_s / every,
        larger=twice_s + waiting_s,
    )


def ideal_s(expectation: Expectation) -> float:
    """Seconds of a step with rows shared by speed, on a network that takes no time."""
    return 1 / sum(1 / each for each in expectation.alone_s)


def spread(expectation: Expectation) -> tuple[float, float]:
    """The least and the most speed that is expected ÷ the expected one."""
    low_s, high_s = step_range(expectation)
    return expectation.step_s / high_s, expectation.step_s / low_s
