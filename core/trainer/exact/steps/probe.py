"""Checks, before a step is trained, that its losses are means over rows, as the engine assumes.

The step's own numbers are computed from the whole batch at once, then from unequal parts by all members
together: the parts' mean, weighted by rows, must be the whole's. The same again with some of the batch's
entries set to zero, and once more with other biases. That reveals what equal masks hide, and what an
untrained model hides by giving every row nearly the same loss. Call it on every member; the decision is the
same.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from core.trainer.exact.keras.local_state import StateSnapshot
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.notes import Scalar, Site
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.excerpt import Unreadable, excerpt
from core.trainer.exact.steps.result import Traced
from core.vocabulary.plan import split_rows

_log = logging.getLogger(__name__)

_TOLERANCE = 2e-4
"""Relative to the larger of two numbers; float32 sums of some thousand rows differ by a tenth of it."""
_TOLERANCE_HALF = 3e-2
"""Tolerance for 16-bit numbers."""
_NONE = 1e300
"""Sent in place of NaN."""
_LOOKS = 3
"""On the batch; on part of its entries; on these with other biases."""
_BROKE = -1e300
"""Sent in place of a result that a member's part of the batch could not give."""
_BLOCK = 64
"""Numbers of a step are sent in multiples of this, so that one trace serves for nearly all steps."""
_WIDER = 3
"""Padding entries added to the rows of parts, where the longest row sets the length."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one traced step's recorded numbers."""

    sums: frozenset[int] = frozenset()
    """Places of the numbers that are sums over rows."""
    whole: Scalar | None = None
    """The first that is neither a mean nor a sum, but depends on the batch as a whole."""
    unsummed: tuple[Scalar, ...] = ()
    """Those that are not sums."""
    broke: bool = False
    """A part of the batch breaks the script's step: the cut pieces are not rows."""
    unseen: Scalar | None = None
    """The first that could not be computed separately."""
    no_memory: bool = False
    """`unseen` is so because a member lacks memory."""


def judged(
    engine: Engine, traced: Traced, batch: Any, sites: set[Site], weights: Sequence[Any], *, half: bool
) -> Verdict:
    """Judges the numbers recorded at `sites`. Every variable gets its value back.

    ``batch``: as the traced step takes it. ``weights``: the trained variables. ``half``: numbers have 16
    bits.
    """
    step, rows, there = traced.step, steps.count_rows(batch), engine.collectives.present
    unequal = _unequal(there, engine.members)
    noted = [each for each in enumerate(traced.notes.scalars) if each[1].site in sites]
    chosen = [each for each in noted if each[1].tensor.graph is step.graph]
    scalars = [scalar for _, scalar in chosen]
    unseen = next((scalar for _, scalar in noted if scalar.tensor.graph is not step.graph), None)
    if rows < 2 or not scalars:  # a single row belongs to one member, whole
        return Verdict(unseen=unseen)
    size = -(-len(scalars) // _BLOCK) * _BLOCK
    found, known = np.zeros((_LOOKS, 2, size)), np.zeros((_LOOKS, 2, size))
    snapshot, no_memory = None, False
    try:
        values = excerpt(step, [scalar.tensor for scalar in scalars], traced.notes.moments, weights)
        snapshot = StateSnapshot([step.graph])
        thinned = _thinned(batch)
        for number, (given, stir) in enumerate(((batch, 0.0), (thinned, 0.0), (thinned, 1.0))):
            for place, shares in enumerate((_on_chief(there, engine.members), unequal)):
                snapshot.restore()  # a number may be computed after a variable is written
                wider = tf.constant(place * _WIDER)
                computed = values(given, tf.constant(shares, tf.int64), tf.constant(stir), wider)
                told = [float(np.sum(v)) - s.before for v, s in zip(computed, scalars, strict=True)]
                found[number, place, : len(told)], known[number, place, : len(told)] = told, 1.0
    except tf.errors.ResourceExhaustedError:
        _log.info("Not enough memory to check the losses", exc_info=True)
        no_memory = True
    except tf.errors.OpError:
        _log.info("The losses of parts of a batch cannot be computed", exc_info=True)
        if engine.rank != there[0] or known[0, 0, 0]:
            found[0, 1], known[0] = _BROKE, 1.0
    except Exception as why:  # Any failure becomes a verdict.
        _log.info("The losses are not checked: %s", why, exc_info=not isinstance(why, Unreadable))
    finally:
        if snapshot is not None:
            snapshot.restore()
    finite = np.nan_to_num(found, nan=_NONE, posinf=_NONE, neginf=_NONE)
    own = [*finite.ravel(), *known.ravel(), float(no_memory)]
    gathered = np.array(engine.collectives.gather_numbers(own, "a step that is tried"))
    if engine.collectives.met != there:  # a member has left meanwhile
        return judged(engine, traced, batch, sites, weights, half=half)
    by_rank = gathered[:, :-1].reshape(len(there), 2, *found.shape)
    values_of, known_of = by_rank[:, 0], by_rank[:, 1].min(axis=0)
    splits = split_rows(rows, unequal)
    by_rows = np.array([splits[rank][1] - splits[rank][0] for rank in there]) / rows
    tolerance = _TOLERANCE_HALF if half else _TOLERANCE
    sums, whole, unsummed = set(), None, []
    for number_of, (place, scalar) in enumerate(chosen):
        kinds = []
        for number in range(_LOOKS):
            at_once, parts = values_of[0, number, 0, number_of], values_of[:, number, 1, number_of]
            if at_once == _NONE or not known_of[number, :, number_of].all():
                continue
            kinds.append(_kind(at_once, parts, by_rows, tolerance))
        if "neither" in kinds or len({kind for kind in kinds if kind != "both"}) > 1:
            whole = whole or scalar
        elif "sum" in kinds:
            sums.add(place)
        if {"neither", "mean"} & set(kinds):
            unsummed.append(scalar)
    broke = bool((values_of[:, 0, 1] == _BROKE).any())
    if not known_of.all(axis=1).any() or gathered[:, -1].any():
        unseen = unseen or scalars[0]
    whole = whole or (scalars[0] if broke else None)
    return Verdict(frozenset(sums), whole, tuple(unsummed), broke, unseen, bool(gathered[:, -1].any()))


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


def _thinned(batch: Any) -> Any:
    """The batch with some of its numbers set to zero, most of them in its first rows."""

    def thin(leaf: Any) -> Any:
        if not isinstance(leaf, tf.Tensor) or leaf.shape.rank in (0, None) or leaf.dtype == tf.string:
            return leaf
        kept = np.random.RandomState(7).uniform(size=leaf.shape.as_list())
        first = np.arange(kept.shape[0]) < max(1, kept.shape[0] // 3)
        kept = kept > np.where(first, 0.6, 0.1).reshape(-1, *[1] * (kept.ndim - 1))
        return tf.where(kept, leaf, tf.zeros_like(leaf))

    return tf.nest.map_structure(thin, batch)
