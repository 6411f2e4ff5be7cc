"""How many steps one call into TensorFlow runs: as many as fit in the reporting interval."""

from __future__ import annotations

import math

_LIMIT = 10_000
_BRIEF = 3


class PortionPace:
    """Grows portions towards ``target_s``. Every member must feed it the same numbers."""

    def __init__(self, target_s: float = 0.1) -> None:
        self.target_s = target_s
        self._steps = 1
        self.each_batch = False
        """The user's callbacks need every batch: portions keep Keras' size."""
        self.brief = False
        """The next portion is to measure a few steps."""

    def steps(self, once: int, left: float = math.inf) -> int:
        """Steps of the next portion, a multiple of Keras' steps_per_execution or all that are `left`."""
        if self.each_batch:
            return int(min(once, left))
        steps = -(-(min(self._steps, _BRIEF) if self.brief else self._steps) // once) * once
        # A small remainder would cost a meeting of its own.
        rest_too = left < 1.5 * steps and not self.brief
        return int(left if rest_too else min(steps, left))

    def measured(self, step_s: float) -> None:
        """Records a step's mean seconds over the members. The first steps trace: portions grow slowly."""
        if step_s > 0:
            wanted = int(self.target_s / step_s)
            self._steps = max(1, min(wanted, 4 * self._steps, _LIMIT))


def without_call(first_s: float, step_s: float, count: int) -> tuple[float, float]:
    """Seconds of a step, and what each call takes besides its steps.

    ``first_s``, ``step_s``: a step's mean time in a call of one step, and in calls of `count`.
    """
    if count == 1:
        return step_s, 0.0
    call_s = min(max(0.0, first_s - step_s) * count / (count - 1), step_s * count / 2)
    return step_s - call_s / count, call_s
