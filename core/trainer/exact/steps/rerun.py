"""Keeps the steps since the last one known to be right, to repeat them whole; or goes back to a checkpoint.

Only within an epoch, and if no script code sees results of single steps: what the script saw cannot be taken
back. After the first steps of a trace it keeps only slow steps, as reading single batches takes as long as a
small step.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from core.trainer.exact.interface import WentBack
from core.trainer.exact.keras.local_state import StateSnapshot
from core.trainer.exact.members.step import bytes_of
from core.trainer.exact.steps.course import WARM_UP, Course
from core.trainer.exact.steps.data import next_batches
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.result import Batch, Traced
from core.vocabulary import units
from core.vocabulary.errors import GOES_BACK, Problem
from core.vocabulary.plan import Moment

_log = logging.getLogger(__name__)

_MOST_MOMENTS = 4
"""Checkpoints that each member reports: more than it ever has."""
_NONE = (-1, -1, -1, -1)
"""Sent in place of a missing checkpoint's ``Moment.order``."""
_MOST_BYTES = 1 << 28
"""Most bytes of batches kept."""
_SLOW_S = 0.05
"""Seconds of a step that counts as slow."""


class Rerun:
    """Kept steps of one model's training."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        """``most_bytes``: most bytes of batches kept; 0: none are kept."""
        self._most_bytes = most_bytes
        self._first = 0
        """How many steps came before the kept ones."""
        self._before: StateSnapshot | None = None
        self._batches: list[Batch] = []
        self._bytes = 0

    def begin(self, traced: Traced) -> bool:
        """Call before unaudited steps. Returns whether they are kept."""
        course = traced.course
        worth_it = self._most_bytes > 0 and (course.steps < WARM_UP or course.step_s >= _SLOW_S)
        if not self.keeps and course.able and course.confirmed == course.steps and worth_it:
            self.drop()
            self._first = course.steps
            self._before = StateSnapshot([], course.written)
        return self.keeps

    def drop(self) -> None:
        """Forgets the kept steps: the script sees their results, or nothing is known of them."""
        self._before, self._batches, self._bytes = None, [], 0

    @property
    def keeps(self) -> bool:
        return self._before is not None

    def read(self, iterator: Any, count: int) -> list[Batch]:
        """The next batches, `count` or as many as there are."""
        found = next_batches(iterator, count)
        self.add(found)
        return found

    def add(self, batches: Sequence[Batch]) -> None:
        """Records these batches' steps as done."""
        self._batches += batches if self.keeps else []
        self._bytes += sum(map(bytes_of, batches))
        if self._bytes > self._most_bytes:
            self.drop()

    def passed(self, traced: Traced, batch: Batch) -> None:
        """Records a step that an audit confirmed. Kept steps stay, as steps before it may have been wrong."""
        course = traced.course
        if course.certain > course.steps or course.steps >= WARM_UP:
            self.drop()
        self.add([batch])

    def take_back(self, traced: Traced) -> list[Batch]:
        """Undoes the steps not known to be right, and returns their batches; none if that is impossible."""
        if self._before is None or len(self._batches) != traced.course.steps - self._first:
            return []
        self._before.restore()
        batches = self._batches
        self.drop()
        return batches


def kept_bytes(engine: Engine, batch: Batch, values_bytes: int, step_s: float) -> int:
    """The most memory for steps kept in the present fit: their batches, like this one, and a copy of the
    values before them. ``step_s``: of a step."""
    fit = engine.fit
    if fit.each_batch[0]:
        return 0
    steps = fit.steps if step_s >= _SLOW_S else WARM_UP
    batches_bytes = _MOST_BYTES if steps is None else min(_MOST_BYTES, steps * bytes_of(batch))
    return batches_bytes + values_bytes


def go_back(engine: Engine, course: Course, sure_step: int | None, step: int) -> None:
    """Goes back to the newest checkpoint of at most `sure_step` that all members have, to compute whole
    batches from there on: raises WentBack. ``step``: the step that was wrong.

    Does nothing without such a checkpoint, or if `sure_step` is None. All members must call it.
    """
    if sure_step is None:
        return
    moments: dict[tuple[int, ...], Moment] = {
        moment.order: moment for moment in engine.keeper.moments_until(sure_step)
    }
    orders = [*moments, *[_NONE] * _MOST_MOMENTS][:_MOST_MOMENTS]
    gathered = engine.collectives.gather_ints([number for order in orders for number in order], "to go back")
    width = len(_NONE)
    common = set.intersection(
        *({tuple(row[at : at + width]) for at in range(0, len(row), width)} for row in gathered)
    )
    common.discard(_NONE)
    if not common:
        return
    moment = moments[max(common)]
    try:
        engine.keeper.go_back(moment)
    except OSError:
        _log.warning("A checkpoint could not be marked", exc_info=True)
    raise WentBack(
        Problem(
            code=GOES_BACK,
            what=f"The training goes back to step {moment.step:,}, since audits found nothing wrong until "
            f"then, and repeats {units.number_of(step - moment.step, 'step')}. From there on every laptop "
            f"computes each batch whole.{course.cost_words}",
        )
    )
