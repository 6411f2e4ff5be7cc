"""Audits that a step of a training or a test, shared by members, gives what one of them gets from all rows.

An audited step is computed twice by the same trace, from the same values and random draws: all rows on one
member, then shared (a trace's first step is shared first, and reported). Gradients, logs, metrics, and what
the step writes beside weights are compared. What differs by more than rounding is tried again with weights
perturbed in their last bits: a difference as large as these cause is rounding, too. Every member must call
it; the chief's findings count.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from core.trainer.exact.keras import local_state, model_state
from core.trainer.exact.keras.local_state import StateSnapshot
from core.trainer.exact.members.sketches import MOST
from core.trainer.exact.members.step import count_rows
from core.trainer.exact.steps import auditable, partial_audits
from core.trainer.exact.steps.audited_values import (
    LAST_BIT,
    AuditedValue,
    AuditedValues,
    Discrepancy,
    are_apart,
    distance,
    is_deep,
    long_sums,
    of_gradient,
)
from core.trainer.exact.steps.course import WARM_UP
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.probe import GRADIENT_ROWS
from core.trainer.exact.steps.result import Batch, PortionResult, Traced
from core.vocabulary.errors import TandemError

_log = logging.getLogger(__name__)

_LAST_BITS = 4 * LAST_BIT
"""Relative size by which weights are perturbed."""
_TRIALS = 5
_WATCHED_BY_BATCH = 8
"""Watched variables checked between batches, where the script may set them."""


class Auditor:
    """Audits one model's training steps, or its test steps: validations and ``evaluate``."""

    def __init__(self, engine: Engine, model: Any, *, is_training: bool) -> None:
        self._engine = engine
        self._model = model
        self._is_training = is_training
        self.time = engine.audits if is_training else engine.test_audits
        self.under_way = False

    # --- when

    def portion_begins(self, traced: Traced, rows: int) -> None:
        """Call between steps. Requests an audit when an epoch or a call begins, or a variable was set.

        ``rows``: of a batch, if known.
        """
        course = traced.course
        course.begins_at(self._engine.step)
        if not self._able(traced, rows):
            return
        course.members_are(self._engine.present)
        if not self._is_training:
            return
        fit = self._engine.innermost
        place = ("", 0) if fit is None else (fit.name, fit.epoch)
        if fit is not None and fit.batch and not fit.each_batch[0]:
            return  # No line of the script has run.
        begins = place != course.place
        values = _values(course.watched if begins else course.watched[:_WATCHED_BY_BATCH])
        for handle in course.watched[: len(values)]:
            known = course.values.get(id(handle))
            if known is None or np.array_equal(known, values[id(handle)], equal_nan=known.dtype.kind == "f"):
                continue
            course.event = course.was_set = True
            course.at_once |= id(handle) not in course.set_before  # One set every epoch waits its turn.
            course.set_before.add(id(handle))
            course.changed.setdefault(id(handle), (handle, known))
        if begins:
            # Values that the script sets may depend on the laptop; which step is audited must not.
            flags = [course.at_once, course.was_set]
            course.at_once, course.was_set = self._engine.collectives.any(flags, "to decide on audits")
            course.event |= course.was_set or course.place is not None
        course.place = place
        course.values |= values

    def ahead(self, traced: Traced, left: int, done: int = 0) -> int | None:
        """How many steps come before the next one to be audited; None if it is none of the next `left`.

        ``done``: steps already done in the current portion.
        """
        course = traced.course
        able, drawn = self._able(traced), self._engine.draws_apart
        if not (able or course.sums_alone or (course.gradient_rows > 1 and not drawn)):
            return None
        fit = self._engine.innermost
        epoch_ends = self._is_training and fit is not None and fit.epoch_ends_after(done + left)
        return course.ahead(self.time, left, epoch_ends=epoch_ends)

    def passed(self, traced: Traced, result: PortionResult) -> PortionResult:
        """Records that steps are done."""
        if not traced.sharing.whole:
            traced.course.steps += result.done
            traced.course.step_s = result.mean_s
            self.time.steps += result.done
        self.time.elapsed_s += result.mean_s * result.done
        return result

    def _able(self, traced: Traced, rows: int = 0) -> bool:
        """Whether the step can be computed twice; the same on all members."""
        if traced.sharing.whole:
            return False
        course = traced.course
        if course.able is None:
            why = self._why_not(traced, rows)
            sums_alone = self._is_training and auditable.sums_alone(self._engine, self._model)
            course.able, course.sums_alone = not why, sums_alone
            if course.able:
                course.written = local_state.written_handles(traced.step.graph)
                course.watched = auditable.watched(traced.step, course.written)
                course.sums = long_sums(traced.step.graph)
        if self._engine.draws_apart:
            self.time.why = self.time.why or "each laptop draws its own data"
            return False
        return course.able

    def _why_not(self, traced: Traced, rows: int) -> str:
        """Why no step is audited, for the summary, or "". Also finds the members with memory for a batch."""
        on_card = bool(tf.config.list_logical_devices("GPU"))
        why = auditable.unable(self._engine, self._model, traced)
        lacks = bool(why) or auditable.lacks_memory(traced, rows)
        alone = self._is_training and auditable.gradients_alone(self._engine, self._model, traced)
        fits = auditable.fitting_rows(traced, GRADIENT_ROWS) if alone else 0
        flags = [float(bool(why)), float(lacks), float(on_card), float(fits)]
        gathered = self._engine.collectives.gather_numbers(flags, "to decide on audits")
        unable, lacking, cards, fitting = zip(*gathered, strict=True)
        met = self._engine.collectives.met
        traced.course.hosts = tuple(rank for rank, lack in zip(met, lacking, strict=True) if not lack)
        if not any(unable) and len(set(cards)) > 1:
            why = "some laptops compute on graphics cards, which round differently"
        elif not any(unable) and not traced.course.hosts:
            why = "no laptop has enough memory for a whole batch"
        elif any(unable):
            why = why or "another laptop does not have enough memory for copies"
        traced.course.gradient_rows = 0 if any(cards) else int(fitting[0])
        if why:
            _log.info("Steps of %s are not audited: %s", self._model.name, why)
            self.time.why = self.time.why or why
        return why

    # --- what

    def audited(
        self, traced: Traced, batch: Batch, run: Callable[[], PortionResult], step: int
    ) -> tuple[PortionResult, list[Discrepancy]]:
        """Audits the training's `step`-th step: `run` computes it on `batch`, as often as needed.

        Leaves the state after one step; or the state before it, if the step is wrong: then it does not count.
        """
        course = traced.course
        if course.sums_alone:
            return partial_audits.sums_audited(self._engine, self._model, course, run, step), []
        if course.gradient_rows:
            return partial_audits.gradients_audited(self._engine, self._model, traced, batch, run, step)
        rows = count_rows(batch)
        changed, course.changed = course.changed, {}
        was_set = course.was_set
        course.event = course.at_once = course.was_set = False
        whole_on = self._host(traced, rows)
        if rows < 2 or whole_on is None:
            return run(), []
        began = time.perf_counter()
        before = StateSnapshot([], traced.course.written)
        result, findings, cost_s = self._compared(traced, rows, run, whole_on, before, began, step)
        if not self.is_wrong(findings):
            course.found_right(step)
        elif was_set and course.confirmed < course.steps:
            # Try with the values before the script set them: if that is right, nothing was wrong until here.
            now = _values([handle for handle, _ in changed.values()])
            _assign(changed)
            again = time.perf_counter()
            _, earlier, more_s = self._compared(traced, rows, run, whole_on, before, again, step)
            _assign({key: (changed[key][0], value) for key, value in now.items()})
            before.restore()
            cost_s += more_s
            if not is_deep(earlier):
                course.confirmed, course.confirmed_at = course.steps, step - 1
                course.is_known_since = True
        course.spend(self.time, cost_s)
        course.reported |= {finding.name for finding in findings}
        return result, findings

    def is_wrong(self, findings: Sequence[Discrepancy]) -> bool:
        """Whether a step with these findings must be computed whole: a test even for its metrics alone."""
        return is_deep(findings) if self._is_training else bool(findings)

    def _host(self, traced: Traced, rows: int) -> int | None:
        """The member that computes a whole batch: the largest share among those with enough memory."""
        engine, limits = self._engine, traced.row_limits
        hosts = [rank for rank in traced.course.hosts if rank in engine.present]
        hosts = [rank for rank in hosts if not limits or limits[rank] >= rows]
        return max(hosts, key=engine.share_numbers.__getitem__, default=None)

    def _compared(
        self,
        traced: Traced,
        rows: int,
        run: Callable[[], PortionResult],
        whole_on: int,
        before: StateSnapshot,
        began: float,
        step: int,
    ) -> tuple[PortionResult, list[Discrepancy], float]:
        """The shared step's result, the differences found, and the seconds that the audit cost.

        The cost is the time since `began` beyond the mean time of a step. It includes what a call of a single
        step takes beyond that, twice: for the audited step, and for the portion that it cuts in two.
        """
        values = AuditedValues(self._engine, self._model, traced, rows)

        def seen(on: int | None) -> tuple[dict[str, AuditedValue], PortionResult, float]:
            seen_at = time.perf_counter()
            self._engine.meter.sketches.begin()
            self._engine.meter.repeats.assign(on is not None)
            self.under_way = True
            try:
                with self._engine.given_to(on):
                    result = run()
            finally:
                self.under_way = False
                self._engine.meter.repeats.assign(False)
            found = values.after(result, self._engine.meter.sketches.end())
            return found, result, time.perf_counter() - seen_at

        if traced.course.audited:
            whole, _, whole_s = seen(whole_on)
            before.restore()
            shared, result, shared_s = seen(None)
            state = values.state
        else:  # Shared first: the user waits for the first step.
            shared, result, shared_s = seen(None)
            state = values.state
            if self._is_training:
                self._engine.on_first_step(self._model, result, step)
            after = StateSnapshot([], traced.course.written)
            before.restore()
            whole, _, whole_s = seen(whole_on)
            after.restore()
        usual_s = 2 * traced.course.step_s - shared_s
        either = {**shared, **whole}
        apart = {
            name: distance(whole.get(name), shared.get(name))
            for name in either
            if name not in traced.course.reported
        }
        course = traced.course
        is_new, finely = course.steps < WARM_UP, course.affords_trials(self.time, _TRIALS)
        suspects = [
            name
            for name, far in apart.items()
            if either[name].is_suspect(far, course.spread.get(name), is_new=is_new, finely=finely)
        ]
        findings: list[Discrepancy] = []
        # If suspected, members' values are compared first: different ones have different gradients.
        numbers = [float(bool(suspects)), time.perf_counter() - began - usual_s, whole_s / shared_s, *state]
        gathered = np.array(self._engine.collectives.gather_numbers(numbers, "what an audit found"))
        suspected, cost_s, slower = gathered[0, :3].tolist()
        traced.course.slower = slower if traced.course.audited else 0.0  # The first audit traces.
        if are_apart(gathered[:, 3:]):
            _log.info("An audit: members wrote different states, %s", gathered[:, 3:].tolist())
            before.restore()
            findings = [Discrepancy("state", "a variable that the step writes")]
        elif suspected and not model_state.settle(self._model, self._engine.collectives, self._call):
            after = StateSnapshot([], traced.course.written)
            spread = dict.fromkeys(suspects, 0.0)
            weights, unwritten = local_state.values_of(self._model.weights), StateSnapshot([])
            if self._is_training:
                trained = local_state.values_of(self._model.trainable_variables)
                weights = local_state.written(traced.step.graph, trained)
            else:
                unwritten = StateSnapshot([], [weight.handle for weight in weights])
            for trial in range(_TRIALS):
                before.restore()
                unwritten.restore()
                _perturb(weights, trial)
                perturbed, _, _ = seen(whole_on)
                for name in suspects:
                    spread[name] = max(spread[name], distance(whole.get(name), perturbed.get(name)))
                is_open = any(either[name].is_fault(apart[name], spread[name]) for name in suspects)
                if not self._chiefs([float(is_open)])[0]:
                    break
            # A gradient that is zero on this member may be nonzero on the chief.
            names = [
                *map(of_gradient, range(MOST)),
                *(name for name in either if either[name].kind != "gradients"),
            ]
            own = [
                float(name in spread and either[name].is_fault(apart[name], spread[name])) for name in names
            ]
            cost_s, *chiefs = self._chiefs([time.perf_counter() - began - usual_s, *own])
            findings = [
                Discrepancy(either[name].kind if name in either else "gradients", name)
                for name, flag in zip(names, chiefs, strict=True)
                if flag
            ]
            _log.info(
                "An audit: %s",
                {name: (apart[name], spread[name], either[name].rounding) for name in suspects},
            )
            traced.course.spread |= {
                name: (spread[name] or min(apart[name], either[name].rounding) / either[name].times)
                / either[name].size
                for name in suspects
                if 0.0 < either[name].size < math.inf
            }
            unwritten.restore()
            (before if self.is_wrong(findings) else after).restore()
        if self._is_training and self.is_wrong(findings) and not traced.course.audited:
            _, _, shared_s = seen(None)
            traced.course.slower = self._chiefs([whole_s / shared_s])[0]
            before.restore()
        return result, findings, cost_s

    def compare(self, audits: int) -> None:
        """Checks that all members audited their step, or none. ``audits``: how many did.

        Raises ``TandemError`` otherwise: the script set a variable on only some members, or to other values.
        """
        if audits in (0, len(self._engine.collectives.met)):
            return
        model_state.settle(self._model, self._engine.collectives, self._call)
        raise TandemError(
            code="members-differ",
            what="The script sets a variable that a training step reads to different values on the laptops.",
            fix="Compute it from the epoch or the step, not from a clock or the laptop.",
        )

    @property
    def _call(self) -> str:
        fit = self._engine.innermost
        return "train_on_batch" if fit is None else fit.kind

    def _chiefs(self, numbers: list[float]) -> list[float]:
        return self._engine.collectives.gather_numbers(numbers, "what an audit found")[0]


def _perturb(weights: list[Any], trial: int) -> None:
    drawn = np.random.RandomState(100 + trial)
    for weight in weights:
        if weight.dtype.is_floating:
            value = weight.numpy()
            by = drawn.uniform(-_LAST_BITS, _LAST_BITS, value.shape).astype(value.dtype)
            weight.assign(value + value * by)


def _values(handles: list[Any]) -> dict[int, np.ndarray]:
    return {id(handle): local_state.read(handle) for handle in handles}


def _assign(values: dict[int, tuple[Any, np.ndarray]]) -> None:
    for handle, value in values.values():
        local_state.assign(handle, value)
