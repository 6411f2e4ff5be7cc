"""The values of a step that an audit compares: gradients, metrics, logs, and state other than weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras import local_state, model_state
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.own_writes import functions
from core.trainer.exact.steps.result import PortionResult, Traced

LAST_BIT = 2.0**-24
_TOLERANCE = 1e-5
"""Relative to a number's size: smaller differences are rounding."""
_OF_ALL = 3e-7
"""Relative to the norm of all gradients: if summands cancel out in one gradient, their rounding remains.
Smaller differences count only if the weights' last bits show less rounding than that."""
_TIMES = 8.0
_TIMES_NORMALISED = 16.0
"""If a batch's mean and variance are in the step: their rounding moves all rows alike, and more than other
last bits of the weights do if the rows have few different values (9 times was measured)."""
_LONG = 8192
"""From this number of summands on, both limits grow with it: float32 sums of so many round in one direction,
while changes of their last bits average out."""
_KERNELS = frozenset(
    {
        "Conv2DBackpropFilter",
        "Conv3DBackpropFilterV2",
        "DepthwiseConv2dNativeBackpropFilter",
    }
)
"""Operations that compute a kernel's gradient from images and the gradient of their output."""

Kind = Literal["gradients", "state", "metric"]


class AuditedValue(NamedTuple):
    """One compared value. Differences in `numbers` up to `least` don't count, nor up to `times` those that
    perturbing the weights' last bits causes. Beyond `rounding` they count even if that causes none."""

    kind: Kind
    numbers: np.ndarray
    rounding: float
    times: float = _TIMES
    least: float = math.inf

    @property
    def size(self) -> float:
        return norm(self.numbers)

    def is_suspect(self, far: float, spread: float | None, *, is_new: bool, finely: bool) -> bool:
        """Whether the difference `far` calls for perturbing the weights' last bits, to show what rounding is.

        ``spread``: how far that moved the value in an earlier audit, relative to its size. ``is_new``: the
        trace is new, so that suspects are common. ``finely``: there is time for differences below `rounding`.
        """
        is_explained = spread is not None and far <= self.times * spread * self.size
        if far > self.rounding:
            return not (is_explained and is_new)
        return finely and far > self.least and not is_explained

    def is_fault(self, far: float, spread: float) -> bool:
        """Whether the difference `far` is more than rounding. ``spread``: how far perturbing the weights'
        last bits moved the value in this audit."""
        return far > self.times * spread and (spread > 0.0 or far > self.rounding)


class LongSum(NamedTuple):
    """A gradient that adds up `places` numbers of each row."""

    places: int
    power: float
    """How the limits grow: a kernel's with the square root, since kernels are added up in blocks."""

    def longer(self, rows: int) -> float:
        """The factor for the gradient's limits."""
        return max(1.0, rows * self.places / _LONG) ** self.power


_APART = 100.0
"""Members wrote different values if the marks of their states differ by this many times the rounding."""


class Discrepancy(NamedTuple):
    """A difference that an audit found."""

    kind: Kind
    name: str


ONE = LongSum(1, 1.0)
"""A gradient that adds up one number of each row."""


def is_deep(findings: Sequence[Discrepancy]) -> bool:
    """Whether more than metrics differ."""
    return any(finding.kind != "metric" for finding in findings)


class AuditedValues:
    """The values compared after a step on `rows` rows, relative to the state before it."""

    def __init__(self, engine: Engine, model: Any, traced: Traced, rows: int) -> None:
        sums, sizes = traced.course.sums, traced.record.sizes
        self._longer = {place: sums.get(size, ONE).longer(rows) for place, size in sizes.items()}
        """Factors for gradients' limits, by place."""
        self._times = _TIMES_NORMALISED if traced.record.moments else _TIMES
        self._own = {
            id(variable.handle): metric.name
            for listed in private.every_metric(model)
            for metric in getattr(listed, "metrics", None) or [listed]
            for variable in local_state.values_of(metric.variables)
        }
        weights = local_state.values_of(
            [
                *model.trainable_variables,
                *(v for each in model_state.optimizers(model) for v in each.variables),
            ]
        )
        left_out = {id(variable.handle) for variable in [*weights, *engine.meter.variables]}
        self._handles = [
            handle
            for handle in traced.course.written
            if id(handle) not in left_out and local_state.is_number(handle)
        ]
        names = {id(variable.handle): variable.name for variable in local_state.values_of(model.variables)}
        self._names = [
            self._own.get(id(handle)) or names.get(id(handle), "a variable") for handle in self._handles
        ]
        self._before = [local_state.read(handle) for handle in self._handles]
        self.state = np.zeros(2)
        """A mark of the state after the newest step, equal on all members after a shared one; and its
        rounding."""

    def after(self, result: PortionResult, marks: np.ndarray) -> dict[str, AuditedValue]:
        """The compared values by name. ``marks``: of the gradients. Sets ``state``."""
        found: dict[str, AuditedValue] = {}
        self.state = np.zeros(2)
        total = math.sqrt(max(0.0, float(np.nan_to_num(marks[:, 0]).sum())))
        for place, row in enumerate(marks):
            if row.any():
                size = math.sqrt(row[0]) if np.isfinite(row[0]) else math.inf
                longer = self._longer.get(place, 1.0)
                least = _TOLERANCE * longer * size
                rounding = least + _OF_ALL * total
                numbers = np.append(row[1:], size)  # A common factor hardly shows in the waves.
                found[of_gradient(place)] = AuditedValue(
                    "gradients", numbers, rounding, self._times * longer, least
                )
        for place, (handle, name, before) in enumerate(
            zip(self._handles, self._names, self._before, strict=True)
        ):
            after = local_state.read(handle)
            change = np.ravel(after.astype(np.float64) - before.astype(np.float64))
            rounding = 4 * LAST_BIT * norm(after.astype(np.float64)) if after.dtype.kind == "f" else 0.0
            rounding += _TOLERANCE * norm(change)
            kind: Kind = "metric" if id(handle) in self._own else "state"
            if kind == "state":
                finite = np.nan_to_num(np.ravel(after.astype(np.float64)), posinf=0.0, neginf=0.0)
                waves = np.sin(np.arange(place + 1, place + 1 + finite.size))
                self.state += np.array([waves @ finite, rounding])
            found[f"{name} ({place})" if kind == "state" else f"{place}:{name}"] = AuditedValue(
                kind, change, rounding
            )
        for name, value in private.numbers(result.logs if isinstance(result.logs, dict) else {}).items():
            found[f"log:{name}"] = AuditedValue("metric", np.array([value]), _TOLERANCE * abs(value) + 1e-7)
        return found


def long_sums(graph: Any) -> dict[int, LongSum]:
    """Gradients that are sums over places within a row, by their number of elements: such as those of a
    convolution's bias and kernel, over all pixels."""
    found: dict[int, LongSum] = {}
    for op in graph.get_operations():
        if (here := _long_sum(op)) is not None:
            size, longest = here
            found[size] = max(longest, found.get(size, ONE), key=_reach)
        for inner in functions(op):
            for size, longest in long_sums(inner).items():
                found[size] = max(longest, found.get(size, ONE), key=_reach)
    return found


def _long_sum(op: Any) -> tuple[int, LongSum] | None:
    """How many numbers the operation's result has, and what each of them adds up."""
    if op.type in ("Sum", "BiasAddGrad"):
        summed, power = op.inputs[0].shape, 1.0
        size = summed[-1] if summed.rank else None
    elif op.type in _KERNELS:
        summed, power = op.inputs[2].shape, 0.5
        size = op.outputs[0].shape.num_elements()
    else:
        return None
    if size is None or not summed.rank or summed.rank < 3 or not summed[1:].is_fully_defined():
        return None
    return size, LongSum(summed[1:-1].num_elements(), power)


def _reach(one: LongSum) -> float:
    return float(one.places) ** one.power


def of_gradient(place: int) -> str:
    return f"gradient {place}"


def metric_of(finding: Discrepancy) -> str:
    return finding.name.split(":", 1)[-1]


def distance(one: AuditedValue | None, other: AuditedValue | None) -> float:
    """The norm of the difference; infinite if only one is finite somewhere. None counts as zero."""
    if one is None or other is None:
        there = one or other
        return 0.0 if there is None else there.size if np.isfinite(there.numbers).all() else math.inf
    if one.numbers.shape != other.numbers.shape:
        return math.inf
    finite = np.isfinite(one.numbers)
    if not np.array_equal(finite, np.isfinite(other.numbers)):
        return math.inf
    return norm(one.numbers[finite] - other.numbers[finite])


def norm(numbers: np.ndarray) -> float:
    finite = numbers[np.isfinite(numbers)]
    return float(np.linalg.norm(finite)) if finite.size else 0.0


def are_apart(states: np.ndarray) -> bool:
    """Whether members wrote different states. ``states``: each member's mark and rounding."""
    return bool(np.ptp(states[:, 0]) > _APART * states[:, 1].max())
