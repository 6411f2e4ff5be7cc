"""Checks, before a step is trained, that its losses, or its gradients, are means over rows, as the engine
assumes.

The step's numbers are computed from the whole batch at once, then from unequal parts by all members together:
the parts' mean, weighted by rows, must be the whole's. This is repeated with some of the batch's entries set
to zero, and once more with other biases. That reveals what equal masks hide, and what an untrained model
hides by giving every row nearly the same loss. All members must call it; they reach the same decision.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from core.trainer.exact.keras.local_state import StateSnapshot
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.sketches import MARKS, marks_of
from core.trainer.exact.members.trace_record import Scalar, Site
from core.trainer.exact.resume import randomness
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.excerpt import Unreadable, excerpt
from core.trainer.exact.steps.result import Traced
from core.vocabulary.plan import split_rows

_log = logging.getLogger(__name__)

GRADIENT_ROWS = 256
"""Most rows on which gradients are checked: a backward pass takes twice as long as a forward pass."""
_TOLERANCE = 2e-4
"""Relative to the larger of two numbers; float32 sums of some thousand rows differ by a tenth of this."""
_TOLERANCE_HALF = 3e-2
"""Tolerance for 16-bit numbers."""
_NONE = 1e300
"""Sent in place of NaN."""
_TOLERANCE_OF_GRADIENTS = 1e-3
_OF_ALL = 0.05
"""A gradient's size counts as at least this part of all gradients' norm: it may be nothing but rounding."""
_BROKE = -1e300
"""Sent in place of a number that could not be computed from a member's part of the batch."""
_BLOCK = 64
"""Numbers of a step are sent in multiples of this, so that one trace serves for nearly all steps."""
_WIDER = 3
"""Padding entries added to the rows of parts if the longest row sets the length."""

_Numbers = Callable[..., list[float]]
"""Takes (batch, shares, stir, wider), as an excerpt does."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one traced step's recorded numbers."""

    sums: frozenset[int] = frozenset()
    """Places of the numbers that are sums over rows."""
    whole: Scalar | None = None
    """The first number that is neither a mean nor a sum, but depends on the batch as a whole."""
    unsummed: tuple[Scalar, ...] = ()
    """Numbers that are not sums."""
    broke: bool = False
    """A part of the batch breaks the script's step: the cut pieces are not rows."""
    unseen: Scalar | None = None
    """The first number that could not be computed separately."""
    no_memory: bool = False
    """`unseen` is set because a member lacks memory."""


def judged(
    engine: Engine, traced: Traced, batch: Any, sites: set[Site], weights: Sequence[Any], *, half: bool
) -> Verdict:
    """Judges the numbers recorded at `sites`. Every variable gets its value back.

    ``batch``: in the traced step's form. ``weights``: the trained variables. ``half``: numbers have 16 bits.
    """
    noted = [each for each in enumerate(traced.record.scalars) if each[1].site in sites]
    chosen = [each for each in noted if each[1].tensor.graph is traced.step.graph]
    scalars = [scalar for _, scalar in chosen]
    unseen = next((scalar for _, scalar in noted if scalar.tensor.graph is not traced.step.graph), None)
    if steps.count_rows(batch) < 2 or not scalars:  # A single row cannot be divided.
        return Verdict(unseen=unseen)
    biases = [weight for weight in weights if weight.shape.rank == 1]

    def made() -> _Numbers:
        values = excerpt(traced.step, [each.tensor for each in scalars], traced.record.moments, biases)

        def numbers(*given: Any) -> list[float]:
            return [
                float(np.sum(value)) - scalar.before
                for value, scalar in zip(values(*given), scalars, strict=True)
            ]

        return numbers

    fewer = thinned(batch)
    cases = ((batch, 0.0), (fewer, 0.0), (fewer, 1.0))
    trial = _tried(engine, traced, cases, made, len(scalars))
    tolerance = _TOLERANCE_HALF if half else _TOLERANCE
    sums, whole, unsummed = set(), None, []
    for number_of, (place, scalar) in enumerate(chosen):
        kinds = []
        for number in range(len(cases)):
            at_once, parts = trial.at_once[number, number_of], trial.parts[:, number, number_of]
            if at_once == _NONE or not trial.known[number]:
                continue
            kinds.append(_kind(at_once, parts, trial.by_rows, tolerance))
        if "neither" in kinds or len({kind for kind in kinds if kind != "both"}) > 1:
            whole = whole or scalar
        elif "sum" in kinds:
            sums.add(place)
        if {"neither", "mean"} & set(kinds):
            unsummed.append(scalar)
    if not trial.known.any() or trial.no_memory:
        unseen = unseen or scalars[0]
    whole = whole or (scalars[0] if trial.broke else None)
    return Verdict(frozenset(sums), whole, tuple(unsummed), trial.broke, unseen, trial.no_memory)


def gradients_judged(
    engine: Engine, traced: Traced, batches: Sequence[Any], weights: Sequence[Any], *, coarse: bool
) -> Literal["means", "whole", "unseen"]:
    """Judges the gradients on `batches` of equally many rows, from the second one on with other weights.

    "unseen" if they could not be computed separately, but "means" if memory is lacking. Every variable gets
    its value back. ``coarse``: they are rounded as in 16 bits.
    """
    gradients = traced.record.gradients
    parts = tf.nest.flatten(gradients, expand_composites=True)
    if any(part.graph is not traced.step.graph for part in parts):
        return "unseen"

    def made() -> _Numbers:
        if traced.gradients is None:
            traced.gradients = excerpt(traced.step, parts, traced.record.moments, weights)
        values = traced.gradients

        def numbers(*given: Any) -> list[float]:
            found = tf.nest.pack_sequence_as(gradients, values(*given), expand_composites=True)
            return marks_of(found).ravel().tolist()

        return numbers

    cases = [(batch, float(place > 0)) for place, batch in enumerate(batches)]
    trial = _tried(engine, traced, cases, made, len(gradients) * MARKS)
    if trial.broke or not (trial.known.any() or trial.no_memory):
        return "whole" if trial.broke else "unseen"
    shape = (len(cases), -1, MARKS)
    wholes = trial.at_once[:, : len(gradients) * MARKS].reshape(shape)
    sums = np.tensordot(trial.by_rows, trial.parts, 1)[:, : len(gradients) * MARKS].reshape(shape)
    tolerance = _TOLERANCE_HALF if coarse else _TOLERANCE_OF_GRADIENTS
    for whole, of_parts, known in zip(wholes, sums, trial.known, strict=True):
        if not known or (whole == _NONE).any():
            continue
        sizes = np.sqrt(whole[:, 0])
        apart = np.abs(whole[:, 1:] - of_parts[:, 1:]).max(axis=1)
        if (apart > tolerance * np.maximum(sizes, _OF_ALL * np.linalg.norm(sizes))).any():
            return "whole"
    return "means"


@dataclass(frozen=True, slots=True)
class _Trial:
    """Numbers of a step, computed from whole batches on the chief and from their parts on each member."""

    at_once: np.ndarray
    """[cases, numbers]"""
    parts: np.ndarray
    """[members present, cases, numbers]"""
    by_rows: np.ndarray
    """[members present]: each member's fraction of the rows."""
    known: np.ndarray
    """[cases]: whether every member computed them."""
    broke: bool
    """Parts of the first batch cannot be computed."""
    no_memory: bool


def _tried(
    engine: Engine,
    traced: Traced,
    cases: Sequence[tuple[Any, float]],
    made: Callable[[], _Numbers],
    count: int,
) -> _Trial:
    """Computes `count` numbers of a step with the function that ``made`` returns. Restores all variables and
    random generators. ``cases``: batches, and how much weights are perturbed."""
    rows, there = steps.count_rows(cases[0][0]), engine.collectives.present
    unequal = _unequal(there, engine.members)
    size = -(-count // _BLOCK) * _BLOCK
    found, known = np.zeros((len(cases), 2, size)), np.zeros((len(cases), 2))
    snapshot, no_memory, drawn = None, False, randomness.Generators()
    engine.meter.repeats.assign(True)
    try:
        values = made()
        snapshot = StateSnapshot([traced.step.graph])
        for number, (given, stir) in enumerate(cases):
            for place, shares in enumerate((_on_chief(there, engine.members), unequal)):
                snapshot.restore()  # The step may write variables before it computes a number.
                wider = tf.constant(place * _WIDER)
                computed = values(given, tf.constant(shares, tf.int64), tf.constant(stir), wider)
                found[number, place, :count], known[number, place] = computed, 1.0
    except tf.errors.ResourceExhaustedError:
        _log.info("Not enough memory to check a step", exc_info=True)
        no_memory = True
    except tf.errors.OpError:
        _log.info("Parts of a batch cannot be computed", exc_info=True)
        if not known[0].all() and (engine.rank != there[0] or known[0, 0]):
            found[0, 1], known[0] = _BROKE, 1.0
    except Exception as why:  # Any failure becomes a verdict.
        _log.info("A step is not checked: %s", why, exc_info=not isinstance(why, Unreadable))
    finally:
        if snapshot is not None:
            snapshot.restore()
        engine.meter.repeats.assign(False)
        drawn.restore()
    finite = np.nan_to_num(found, nan=_NONE, posinf=_NONE, neginf=_NONE)
    own = [*finite.ravel(), *known.ravel(), float(no_memory)]
    gathered = np.array(engine.collectives.gather_numbers(own, "a step that is tried"))
    if engine.collectives.met != there:  # A member has left meanwhile.
        return _tried(engine, traced, cases, made, count)
    values_of = gathered[:, : found.size].reshape(len(there), *found.shape)
    known_of = gathered[:, found.size : -1].reshape(len(there), *known.shape).min(axis=(0, 2)) > 0
    splits = split_rows(rows, unequal)
    by_rows = np.array([splits[rank][1] - splits[rank][0] for rank in there]) / rows
    broke = bool((values_of[:, 0, 1] == _BROKE).any())
    parts = np.where(by_rows[:, None, None] > 0, values_of[:, :, 1], 0.0)
    return _Trial(values_of[0, :, 0], parts, by_rows, known_of, broke, bool(gathered[:, -1].any()))


def _kind(at_once: float, parts: Any, by_rows: Any, tolerance: float) -> str:
    parts = np.where(by_rows > 0, parts, 0.0)
    size = max(abs(at_once), float(np.abs(parts * by_rows).sum()), 1e-6)
    is_mean = bool(abs(float((parts * by_rows).sum()) - at_once) <= tolerance * size)
    is_sum = bool(abs(float(parts.sum()) - at_once) <= tolerance * size)
    return "both" if is_mean and is_sum else "mean" if is_mean else "sum" if is_sum else "neither"


def _on_chief(there: Sequence[int], members: int) -> tuple[int, ...]:
    """Shares that give the whole batch to the first member present."""
    return tuple(int(rank == there[0]) for rank in range(members))


def _unequal(there: Sequence[int], members: int) -> tuple[int, ...]:
    return tuple(2 * (members - rank) + 1 if rank in there else 0 for rank in range(members))


def thinned(batch: Any) -> Any:
    """The batch with some of its numbers set to zero, most of them in its first rows."""

    def thin(leaf: Any) -> Any:
        if not isinstance(leaf, tf.Tensor) or leaf.shape.rank in (0, None) or leaf.dtype == tf.string:
            return leaf
        kept = np.random.RandomState(7).uniform(size=leaf.shape.as_list())
        first = np.arange(kept.shape[0]) < max(1, kept.shape[0] // 3)
        kept = kept > np.where(first, 0.6, 0.1).reshape(-1, *[1] * (kept.ndim - 1))
        return tf.where(kept, leaf, tf.zeros_like(leaf))

    return tf.nest.map_structure(thin, batch)
