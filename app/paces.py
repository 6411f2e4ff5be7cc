"""How fast a run has been of late, and by that how long it still takes: one answer for every display."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from statistics import quantiles
from typing import NamedTuple

from app.run_words import FAR_S, range_words, steps_left
from core.vocabulary.ids import RunId
from core.vocabulary.plausible import a_step
from core.vocabulary.progress import Progress
from core.vocabulary.state import Run

LEAST = 6
"""Reports, two a second, before the time left is more than a guess."""
MOST = 20
"""Reports whose median is the speed, and by whose spread the time left is told: ten seconds of them."""


class Pace(NamedTuple):
    """Of a report: the seconds of its step, and from one step to the next, what is between them included."""

    step_s: float
    every_s: float | None


class Paces:
    """``hear`` each change; ``recent`` has what the chief reported of late in one fit, the newest last."""

    def __init__(self, every_s: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        """``every_s``: a report that comes sooner after another one is passed over. ``clock``: seconds."""
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
        progress = run.members[run.plan.chief.device].progress
        if progress is None or progress.step_s is None or progress == self._newest:
            return
        if self._newest is not None and self._newest.fit != progress.fit:
            self.recent.clear()
        elif self._clock() - self._heard_s < self._every_s:
            return
        self._heard_s, self._newest = self._clock(), progress
        self.recent.append(Pace(progress.step_s, 1 / progress.steps_s if progress.steps_s else None))


def left_words(progress: Progress, paces: Sequence[Pace]) -> str:
    """``4:10–5:30``: until this ``fit`` ends; validation is not counted. As sure as it is: between the
    quartiles of late, and ``""`` before there are enough of them, or where nobody knows how long it is."""
    steps = steps_left(progress)
    every_s = [pace.every_s for pace in paces if pace.every_s is not None and a_step(pace.every_s)]
    if steps is None or len(every_s) < LEAST:
        return ""
    least_s, _, most_s = (steps * each for each in quantiles(every_s, n=4, method="inclusive"))
    return range_words(least_s, most_s) if most_s < FAR_S else ""
