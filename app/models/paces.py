"""A run's recent speed, and the time left at that speed: one answer for every display."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import NamedTuple

from app.words.run_words import FAR_S, range_words, steps_left
from core.vocabulary.ids import RunId
from core.vocabulary.plausible import is_step_time
from core.vocabulary.progress import Progress
from core.vocabulary.state import Run

LEAST = 6
"""Reports, two a second, before the time left is more than a guess."""
MOST = 20
"""Reports whose median is the speed, and whose spread bounds the time left: ten seconds of them."""


class Pace(NamedTuple):
    """One report: seconds per step, and seconds from one step to the next including the gap between them."""

    step_s: float
    every_s: float | None


class Paces:
    """``hear`` each change; ``recent`` has the chief's recent reports within one fit, newest last."""

    def __init__(self, every_s: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        """``every_s``: a report that comes sooner after another is skipped. ``clock``: seconds."""
        self.recent: deque[Pace] = deque(maxlen=MOST)
        self._every_s = every_s
        self._clock = clock
        self._heard_s = float("-inf")
        self._run: RunId | None = None
        self._newest: Progress | None = None

    def hear(self, run: Run) -> None:
        if self._run != run.plan.run:
            self._run = run.plan.run
            self.recent.clear()
        progress = run.members[run.chief.device].progress
        if progress is None or progress.step_s is None or progress == self._newest:
            return
        if self._newest is not None and self._newest.fit != progress.fit:
            self.recent.clear()
        elif self._clock() - self._heard_s < self._every_s:
            return
        self._heard_s, self._newest = self._clock(), progress
        self.recent.append(Pace(progress.step_s, 1 / progress.steps_s if progress.steps_s else None))


def left_words(progress: Progress, paces: Sequence[Pace]) -> str:
    """``4:10–5:30``: until this ``fit`` ends; validation is not counted. The range lies between the recent
    quartiles; ``""`` before there are enough reports, or if the length is unknown."""
    steps = steps_left(progress)
    every_s = [pace.every_s for pace in paces if pace.every_s is not None and is_step_time(pace.every_s)]
    if steps is None or len(every_s) < LEAST:
        return ""
    least_s, _, most_s = (steps * each for each in quantiles(every_s, n=4, method="inclusive"))
    return range_words(least_s, most_s) if most_s < FAR_S else ""
