"""Measures, before a model's first shared steps, what a step costs each member; sets shares and expectations.

Each member times steps alone; then all rehearse a few portions together. Everything runs on the fit's first
batch, which is trained on afterwards, and every variable gets its value back: training continues as if
nothing had happened. Every member must call these functions in the same order; their decisions follow from
values that are the same on all members.
"""

from __future__ import annotations

import functools
import logging
import math
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, Protocol

import tensorflow as tf

from core.cluster.balance import Balancer
from core.cluster.costs import Cost, line, together_s
from core.trainer.exact.keras.local_state import StateSnapshot
from core.trainer.exact.members import memory
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.collectives import Collectives, NoCollectives
from core.trainer.exact.members.step_meter import StepMeter
from core.trainer.exact.steps import auditable, while_loop
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.pace import without_call
from core.trainer.exact.steps.result import PortionResult, Traced
from core.vocabulary.plan import split_rows
from core.vocabulary.progress import Expectation

_log = logging.getLogger(__name__)

LEAST_STEPS = 30
"""Least steps of a fit: a shorter one ends before calibration pays off."""
ALONE_S = 0.3
"""Time for measuring one number of rows."""
PORTION_S = 0.1
"""The length of a portion in training; see pace.py."""
TOGETHER_S = 0.6
"""Time for rehearsing portions together."""
LOOPS = 3
"""Most loops timed; their median counts, so one disturbance does not spoil the result."""
_MOST_STEPS = 100
"""Most steps of a loop."""
_MOST_OF_FIT = 20
"""A loop has at most a twentieth of the fit's remaining steps: a short fit's calibration takes no longer than
the fit itself."""
_NUMBERS = 6
"""Numbers that members exchange at once; always the same count, so that one trace serves."""
_MOST_MEASURED = 1e15
"""Most seconds, rows or bytes accepted."""
_LONG_S = 0.5
"""A step this long is timed twice, and the shorter time counts."""
_TOO_LONG_S = 2.0
"""A step expected to take this long is not tried: its time is assumed proportional to its rows."""
_LEAST_APART, _LEAST_APART_FEW = 1.1, 1.25
"""How many times longer or shorter a step may be than expected, at least; with fewer than three samples."""


class Rehearsal(Protocol):
    """One model's steps, which can be tried before training."""

    @property
    def model(self) -> Any: ...

    @property
    def is_training(self) -> bool: ...

    @property
    def engine(self) -> Engine: ...

    def step(self, data_spec: Any, collectives: Collectives, meter: StepMeter) -> Any:
        """One step, traced for batches like `data_spec` with any number of rows."""

    def call(self, traced: Traced, name: str, iterator: Any, steps: int) -> PortionResult:
        """Runs this many steps in one call into TensorFlow, then meets the other members."""


def wanted(rehearsal: Rehearsal, traced: Traced) -> bool:
    """Whether to calibrate before the next portion. The same on every member."""
    engine = rehearsal.engine
    if not engine.fitting or not rehearsal.is_training or rehearsal.model.run_eagerly or traced.calibrated:
        return False
    if len(engine.collectives.present) < engine.members:
        return False  # A calibration covers all members of the plan.
    left = _steps_left(engine)
    if left is not None and left < LEAST_STEPS:
        return False
    traced.calibrated = True
    return True


def _steps_left(engine: Engine) -> int | None:
    """Steps of the fit from the current epoch on, if known."""
    fit = engine.fit
    return None if fit.steps is None else (fit.epochs - fit.epoch) * fit.steps


def _most_steps(engine: Engine) -> int:
    left = _steps_left(engine)
    return _MOST_STEPS if left is None else max(1, min(_MOST_STEPS, left // _MOST_OF_FIT))


def repeated(batch: Any, spec: Any) -> Any:
    """An endless iterator over one batch, of the same type as the iterator that gave the batch."""

    def loosened(*element: Any) -> Any:
        whole = element if isinstance(spec, tuple) else element[0]
        return tf.nest.map_structure(_loosened, whole, spec)

    whole = tf.data.Dataset.from_tensors(batch).repeat()
    try:
        return iter(whole.map(tf.autograph.experimental.do_not_convert(loosened)))
    except (TypeError, ValueError):
        _log.debug("A batch of %s is repeated with its own shapes", spec, exc_info=True)
        return iter(whole)


def _loosened(leaf: Any, spec: Any) -> Any:
    """A tensor with a shape no more specific than `spec`'s: otherwise steps would be retraced for it."""
    if isinstance(leaf, tf.Tensor) and isinstance(spec, tf.TensorSpec):
        return tf.raw_ops.PlaceholderWithDefault(input=leaf, shape=spec.shape)
    return leaf


def uncalibrated(rows: int, shares: tuple[int, ...]) -> Balancer:
    """A balancer that knows only the number of rows."""
    return Balancer(rows, [Cost(0.0, 1.0)] * len(shares), _rows(rows, shares))


def calibrate(rehearsal: Rehearsal, traced: Traced, batches: Any) -> None:
    """Measures steps on `batches`, one batch repeated, and reports to the observer what to expect.

    With balancing on, gives `traced` its balancer and the engine its first shares.
    """
    engine = rehearsal.engine
    batch = next(batches)
    rows = steps.count_rows(batch)
    alone = NoCollectives(engine.rank, engine.members)
    meter = StepMeter(is_audited=False)  # Held here: a traced step does not keep it alive.
    snapshot = None
    numbers = [0.0] * _NUMBERS
    try:
        step = traced.step if traced.alone else rehearsal.step(batches.element_spec, alone, meter)
        snapshot = StateSnapshot([traced.step.graph, step.graph])
        numbers = [*_alone(step, batches, rows, alone, snapshot, _most_steps(engine))]
    except Exception:  # The step may do something that cannot be tried; it is trained anyway.
        _log.info("%s is not calibrated", rehearsal.model.name, exc_info=True)
    try:
        gathered = measurements(engine, numbers)
        if snapshot is not None and len(gathered) == engine.members and all(number[0] for number in gathered):
            costs = _costs([number[1:] for number in gathered], rows, engine)
            traced.row_limits = tuple(math.inf if number[-1] >= rows else number[-1] for number in gathered)
            if engine.balance:
                traced.balancer = Balancer(rows, costs, _rows(rows, engine.share_numbers))
                engine.set_shares(traced.balancer.shares)
            step_s, wire_s, wire_bytes, apart = _together(rehearsal, traced, batches, snapshot)
            apart = max(apart, *(number[0] for number in gathered))
            shares = _rows(rows, engine.share_numbers)
            expectation = Expectation(
                alone_s=tuple(cost.of(rows) for cost in costs),
                step_s=step_s,
                step_range_s=(step_s / apart, step_s * apart),
                wire_s=wire_s,
                wire_bytes=wire_bytes,
                shares=shares,
                computing_s=(together_s(costs, shares), together_s(costs, [2 * own for own in shares])),
                audit_bytes=auditable.needed_bytes(engine, rehearsal.model, traced, batch, step_s),
            )
            engine.on_measured(expectation)
    finally:
        if snapshot is not None:
            snapshot.restore()


# --- alone


def _alone(
    step: Any, batches: Any, rows: int, alone: NoCollectives, snapshot: StateSnapshot, most_steps: int
) -> tuple[float, ...]:
    """Seconds of a step without other members, with a quarter of the rows and with all that fit in memory.

    ``most_steps``: the most steps of a loop.

    Returns how far its times were apart (at least 1), few rows, their seconds, many rows, their seconds, and
    the rows that fit.
    """

    def steps_of(shares: Any, limit: Any) -> Any:
        return while_loop.up_to(limit, step, lambda: step(batches.get_next(), shares))

    call = tf.function(steps_of, autograph=False)

    def took(own: int, count: int) -> float:
        shares = [0] * alone.members
        shares[alone.rank], shares[alone.rank - 1] = own, rows - own
        began = time.perf_counter()
        for output in call(tf.constant(shares, tf.int64), tf.constant(count)):
            output.numpy()  # On a GPU, a step is done once its output can be read.
        return (time.perf_counter() - began) / count

    def measured(own: int) -> float:
        found = _samples(functools.partial(took, own), snapshot, most_steps)
        apart.append(max(found) / min(found))
        return median(found)

    few, apart = max(1, rows // 4), [1.0]
    before = memory.peak_bytes()
    took(few, 1)  # The first call prepares the graph.
    few_s = measured(few)
    many = most = memory.fitting_rows(few, memory.peak_bytes() - before, rows)
    while few < many and few_s * many / few < _TOO_LONG_S:
        try:
            many_s = measured(many)
            return max(apart), few, few_s, many, many_s, most
        except tf.errors.ResourceExhaustedError:
            many = most = max(few, many // 2)
    return max(apart), few, few_s, few, few_s, most


def _samples(took: Callable[[int], float], snapshot: StateSnapshot, most_steps: int) -> list[float]:
    """Seconds of a step in each of a few loops that take ``ALONE_S`` in all, after a warm-up."""
    first_s = took(1)
    if first_s >= _LONG_S:
        return [min(first_s, took(1))]
    first_s = took(1)
    count = max(1, min(int(ALONE_S / LOOPS / max(first_s, 1e-6)), most_steps))
    found = [] if count > 1 else [first_s]
    while len(found) < LOOPS and sum(found) * count < ALONE_S:
        snapshot.restore()
        found.append(took(count))
    return found


def _costs(gathered: Sequence[Sequence[float]], rows: int, engine: Engine) -> list[Cost]:
    """The cost of a step on each member, from its measurements.

    Drops memory limits that no split can respect: trying is the only option then.
    """
    limits = [None if most >= rows else int(most) for *_, most in gathered]
    if sum(rows if most is None else most for most in limits) < rows:
        limits = [None] * len(limits)
        engine.say_once(
            f"A batch of {rows} rows may not fit in the members' memory together. "
            "Use a smaller batch_size, or add a laptop."
        )
    return [
        line(int(few), few_s, int(many), many_s, most)
        for (few, few_s, many, many_s, _), most in zip(gathered, limits, strict=True)
    ]


# --- together


def _together(
    rehearsal: Rehearsal, traced: Traced, batches: Any, snapshot: StateSnapshot
) -> tuple[float, float, int, float]:
    """Measures portions like the training's. Returns a step's seconds, the exchange's seconds, bytes sent,
    and how many times longer or shorter a step may be.

    With balancing on, the first portion shows the wire's time, and so what other shares would gain.
    """
    engine = rehearsal.engine

    def rehearse(count: int) -> PortionResult:
        snapshot.restore()
        return rehearsal.call(traced, "sure", batches, count)

    snapshot.restore()
    before_bytes = engine.meter.sent_bytes()
    rehearse(1)
    first = rehearse(1)
    if traced.balancer is not None and traced.balancer.improve(min(first.wait_s)):
        engine.set_shares(traced.balancer.shares)
        first = rehearse(1)
    first_s = max(1e-6, first.mean_s)
    each_batch = engine.fit.iterator is None or engine.fit.iterator.pace.each_batch
    count = 1 if each_batch else max(1, min(int(PORTION_S / first_s), _most_steps(engine)))
    most = min(LOOPS, int(TOGETHER_S / (first_s * count)))
    portions = [rehearse(count) for _ in range(most or first_s < _LONG_S * 2)]
    portions += [first] if count == 1 else []
    sent_bytes = (engine.meter.sent_bytes() - before_bytes) / portions[0].done
    step_s = median(each.step_s for each in portions)
    wire_s = median(min(each.wait_s) for each in portions)
    apart = max(each.step_s for each in portions) / min(each.step_s for each in portions)
    apart = max(apart, _LEAST_APART if len(portions) > 2 else _LEAST_APART_FEW)
    step_s, call_s = without_call(first.step_s, step_s, count)
    costs = engine.costs(rehearsal.model)
    portion_s, most, meeting_s, meeting_bytes = PORTION_S, engine.steps_in_epoch or _MOST_STEPS, 0.0, 0
    if costs is not None:
        meeting_s, meeting_bytes = costs.rehearse(step_s)
        portion_s, most = costs.portion_s, costs.met_every
    usual = 1 if each_batch else max(1, min(int(portion_s / step_s), most))
    numbers = [step_s + call_s / usual + meeting_s, sent_bytes + meeting_bytes, apart]
    gathered = measurements(engine, numbers)
    longest_s, most_bytes, apart, *_ = (max(each) for each in zip(*gathered, strict=True))
    return longest_s, wire_s + meeting_s, round(most_bytes), apart


def measurements(engine: Engine, numbers: Sequence[float]) -> list[list[float]]:
    """Every member's measurements, by rank. Raises TandemError for impossible ones."""
    what = "measured times"
    gathered = engine.collectives.gather_numbers([*numbers, *[0.0] * (_NUMBERS - len(numbers))], what)
    for rank, measured in enumerate(gathered):
        if not all(0.0 <= number <= _MOST_MEASURED for number in measured):
            raise engine.collectives.unsound(rank, what, "impossible measurements")
    return gathered


def _rows(rows: int, shares: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(end - begin for begin, end in split_rows(rows, shares))
