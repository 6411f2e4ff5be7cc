"""What an audit compares of a step: gradients, metrics, logs, and what it writes beside weights."""

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
"""Relative to the norm of all gradients: where values cancel out in one, the summands' rounding remains."""

_TIMES = 8.0
_LONG = 8192
"""Summands from which on both limits grow with their number: float32 sums of so many round in one direction,
while changes of their last bits average out."""

Kind = Literal["gradients", "state", "metric"]


class Item(NamedTuple):
    """One thing compared. Differences in `numbers` don't count up to `rounding`, nor up to `times` those that
    the weights' last bits cause."""

    kind: Kind
    numbers: np.ndarray
    rounding: float
    times: float = _TIMES

    @property
    def size(self) -> float:
        return norm(self.numbers)


class Discrepancy(NamedTuple):
    """A difference that an audit found."""

    kind: Kind
    name: str


def is_deep(findings: Sequence[Discrepancy]) -> bool:
    """Whether more than metrics differ."""
    return any(finding.kind != "metric" for finding in findings)


class Sight:
    """What is compared of a step on so many `rows`, relative to the state before it."""

    def __init__(self, engine: Engine, model: Any, traced: Traced, rows: int) -> None:
        sums, sizes = traced.course.sums, traced.notes.sizes
        self._longer = {place: max(1.0, rows * sums.get(size, 1) / _LONG) for place, size in sizes.items()}
        """By a gradient's place, the factor for its limits."""
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
        left_out = {id(variable.handle) for variable in [*weights, *engine.gauge.variables]}
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

    def of(self, result: PortionResult, marks: np.ndarray) -> dict[str, Item]:
        """The compared things by name. ``marks``: of the gradients."""
        found: dict[str, Item] = {}
        total = math.sqrt(max(0.0, float(np.nan_to_num(marks[:, 0]).sum())))
        for place, row in enumerate(marks):
            if row.any():
                size = math.sqrt(row[0]) if np.isfinite(row[0]) else math.inf
                longer = self._longer.get(place, 1.0)
                rounding = _TOLERANCE * longer * size + _OF_ALL * total
                found[of_gradient(place)] = Item("gradients", row[1:], rounding, _TIMES * longer)
        for place, (handle, name, before) in enumerate(
            zip(self._handles, self._names, self._before, strict=True)
        ):
            after = local_state.read(handle)
            change = np.ravel(after.astype(np.float64) - before.astype(np.float64))
            rounding = 4 * LAST_BIT * norm(after.astype(np.float64)) if after.dtype.kind == "f" else 0.0
            rounding += _TOLERANCE * norm(change)
            kind: Kind = "metric" if id(handle) in self._own else "state"
            found[f"{name} ({place})" if kind == "state" else f"{place}:{name}"] = Item(
                kind, change, rounding
            )
        for name, value in private.numbers(result.logs if isinstance(result.logs, dict) else {}).items():
            found[f"log:{name}"] = Item("metric", np.array([value]), _TOLERANCE * abs(value) + 1e-7)
        return found


def long_sums(graph: Any) -> dict[int, int]:
    """Gradients that are sums over places within a row, such as a convolution's bias over all pixels: how
    many places, by the numbers in the gradient."""
    found: dict[int, int] = {}
    for op in graph.get_operations():
        if op.type in ("Sum", "BiasAddGrad"):
            shape = op.inputs[0].shape
            if shape.rank and shape.rank > 2 and shape[1:].is_fully_defined():
                size = int(shape[-1])
                found[size] = max(found.get(size, 1), shape[1:-1].num_elements())
        for inner in functions(op):
            for size, places in long_sums(inner).items():
                found[size] = max(found.get(size, 1), places)
    return found


def of_gradient(place: int) -> str:
    return f"gradient {place}"


def metric_of(finding: Discrepancy) -> str:
    return finding.name.split(":", 1)[-1]


def distance(one: Item | None, other: Item | None) -> float:
    """Infinite if one is not a number and the other one is; None counts as zero."""
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
