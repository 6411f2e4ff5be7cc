"""Audits of steps that cannot be computed twice: of the members' sums, or of the gradients alone.

Every member must call them; they reach the same decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from core.trainer.exact.keras import local_state
from core.trainer.exact.members.sketches import FAULT, NONE, wrong_sums
from core.trainer.exact.members.step import count_rows, take_rows
from core.trainer.exact.steps import auditable, probe
from core.trainer.exact.steps.audited_values import Discrepancy
from core.trainer.exact.steps.course import Course
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.result import Batch, PortionResult, Traced
from core.vocabulary.errors import TandemError

_NOT_RUN = PortionResult({}, 0, 0.0, 0, stop=False, step_s=0.0, met=(), own_s=(), wait_s=())


def sums_audited(
    engine: Engine, model: Any, course: Course, run: Callable[[], PortionResult], step: int
) -> PortionResult:
    """Runs the training's `step`-th step, and checks the sums of gradients that members received.

    Raises ``TandemError`` if these are not the sums of what members sent.
    """
    collectives, meter = engine.collectives, engine.meter
    there, began = collectives.met, time.perf_counter()
    meter.sent.begin()
    meter.received.begin()
    result = run()
    marks = np.stack([meter.sent.end(), meter.received.end()])
    marks = np.nan_to_num(marks, nan=NONE, posinf=NONE, neginf=NONE)
    beyond_s = time.perf_counter() - began - course.step_s
    cost_s = max(0.0, 2 * beyond_s)  # Twice, for the portion that it cuts in two.
    gathered = np.array(collectives.gather_numbers([cost_s, *marks.ravel()], "to check sums"))
    course.spend(engine.audits, float(gathered[0, 0]))
    sent, received = gathered[:, 1:].reshape(-1, *marks.shape).swapaxes(0, 1)
    rounding = auditable.sums_rounding(engine, model)
    if collectives.met == there and wrong_sums(sent, received, rounding):
        collectives.failure = TandemError(
            code="wrong-sums",
            what=f"In step {step:,}, the laptops received sums of gradients that do not match what they "
            "sent.",
            fix=FAULT,
        )
        raise collectives.failure
    return result


def gradients_audited(
    engine: Engine, model: Any, traced: Traced, batch: Batch, run: Callable[[], PortionResult], step: int
) -> tuple[PortionResult, list[Discrepancy]]:
    """Checks the gradients of the training's `step`-th step, then runs it, unless they are of the batch as a
    whole.

    The limit is the coarser one: perturbed weights, which would show what rounding is, are not tried.
    """
    began = time.perf_counter()
    some = take_rows(batch, 0, min(count_rows(batch), traced.course.gradient_rows))
    weights = local_state.values_of(model.trainable_variables)
    verdict = probe.gradients_judged(engine, traced, [some], weights, coarse=True)
    own = [time.perf_counter() - began]
    ((cost_s,), *_) = engine.collectives.gather_numbers(own, "what an audit found")
    traced.course.spend(engine.audits, cost_s)
    if verdict == "whole":
        return _NOT_RUN, [Discrepancy("gradients", "gradients")]
    traced.course.found_right(step)
    return run(), []
