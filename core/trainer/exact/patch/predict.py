"""`predict` over members: each predicts its rows of every batch, then all get all rows, in order.

To check that rows do not depend on each other, each model's first batches are also predicted whole and
compared, then every batch whose number is a power of two.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras import local_state, model_state
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.collectives import MOST_BYTES, Collectives, LeftMidway
from core.trainer.exact.patch.callbacks import SharedCallbacks
from core.trainer.exact.steps.data import SharedEpochIterator
from core.trainer.exact.steps.division import ROWS_DIFFER
from core.trainer.exact.steps.engine import Engine
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import split_rows

_log = logging.getLogger(__name__)

_MOST_PENDING = 1 << 28
"""Most bytes of data held until outputs are exchanged."""
CHECKS_FIRST_S = 0.5
"""While checks of a model have taken less than this, every batch is checked."""
_TOLERANCE, _TOLERANCE_HALF = 1e-3, 3e-2
"""Relative to the largest output; few rows are summed in another order than many. The second: for 16 bits."""


def predict(engine: Engine, model: Any, iterator: SharedEpochIterator, callbacks: SharedCallbacks) -> Any:
    """All batches' outputs, joined as in Keras: NumPy arrays, equal on every member.

    Outputs are exchanged at the end, or after each batch if a callback needs them.
    """
    function: Callable[..., Any] | None = None
    every, whole = iterator.pace.each_batch, False
    batches: list[Any] = []
    pending: list[Any] = []
    """Batches whose outputs are not exchanged yet: they are predicted again if a member leaves, or if a later
    batch shows that rows depend on each other."""
    before = local_state.StateSnapshot([])
    """The state that predictions write, from before the pending ones."""
    pending_bytes = 0
    own: list[list[np.ndarray]] = []
    rows: list[int] = []
    structure: Any = None

    def exchanged() -> list[Any]:
        nonlocal own, rows, pending_bytes
        while not whole:
            try:
                give = functools.partial(exchange, engine.collectives, engine.share_numbers, own, rows)
                own = engine.collectives.atomically(give)
                break
            except LeftMidway:
                engine.update_members()
                own = predicted_again()
        found, own, rows, pending_bytes = own, [], [], 0
        pending.clear()
        return found

    def predicted_again() -> list[list[np.ndarray]]:
        assert function is not None
        before.restore()
        outputs = [function(data, engine.shares)[0] for data in pending]
        return [[_array(leaf) for leaf in private.flatten(each)] for each in outputs]

    model.stop_predicting = False
    callbacks.on_predict_begin()
    with iterator.catch_stop_iteration():
        for begin, end, portion in iterator:
            callbacks.on_predict_batch_begin(begin)
            for _ in range(portion.steps):
                try:
                    data = next(portion.iterator)
                except (StopIteration, tf.errors.OutOfRangeError):
                    break
                if function is None and steps.rows_differ(data):
                    engine.compute_whole(model, ROWS_DIFFER)
                checked = model not in engine.whole and _is_due(engine, model, data)
                if checked:
                    _check(engine, model, data, exchanged=engine.predicted[model][0] - 1 - len(pending))
                if function is None or checked:
                    whole, function = model in engine.whole, _function(engine, model)
                    # The check may have shown that rows depend on each other, or that a member is gone.
                    if pending and (engine.update_members() or whole):
                        own = predicted_again()
                if not pending:
                    engine.update_members()
                    before = _state(model)
                if not whole:
                    pending.append(data)
                    pending_bytes += steps.bytes_of(data)
                outputs, batch_rows = function(data, engine.shares)
                portion.done += 1
                structure = outputs
                rows.append(int(batch_rows))
                own.append([_array(leaf) for leaf in private.flatten(outputs)])
            if not portion.done:
                raise StopIteration
            if every:
                batches += exchanged()
                callbacks.on_predict_batch_end(end, {"outputs": _packed(structure, batches[-1])})
                if engine.collectives.any([bool(model.stop_predicting)], "to decide whether to stop")[0]:
                    break
            elif pending_bytes > _MOST_PENDING:
                batches += exchanged()
    batches += exchanged()
    callbacks.on_predict_end()
    if structure is None:
        raise ValueError("predict was given no data.")
    joined = [_joined(leaves) for leaves in zip(*batches, strict=True)]
    return _packed(structure, joined)


def _is_due(engine: Engine, model: Any, data: Any) -> bool:
    """Counts a batch, and returns whether to check it. A single row shows nothing."""
    if steps.count_rows(data) < 2:
        return False
    count, checked_s = engine.predicted.get(model, (0, 0.0))
    count += 1
    engine.predicted[model] = count, checked_s
    return checked_s < CHECKS_FIRST_S or count & (count - 1) == 0


def _state(model: Any) -> local_state.StateSnapshot:
    """What predictions may write, such as the state of random numbers."""
    kept = local_state.values_of([*model.non_trainable_variables, *model_state.outside_keras(model)])
    return local_state.StateSnapshot([], [variable.handle for variable in kept])


def _check(engine: Engine, model: Any, data: Any, exchanged: int) -> None:
    """Checks whether rows depend on each other: whether the own rows give the same within the whole batch.

    ``exchanged``: how many batches were predicted before, whose outputs the script may have.
    """
    function = _function(engine, model)
    every = tf.one_hot(engine.rank, engine.members, dtype=tf.int64)  # All rows are this member's.
    before = _state(model)
    outputs, unlike, unseen, began = [], False, False, time.perf_counter()
    try:
        for shares in (every, engine.shares):
            try:
                found, rows = function(data, shares)
            finally:
                before.restore()  # The second time draws the same numbers.
            outputs.append([_array(leaf) for leaf in private.flatten(found)])
    except tf.errors.ResourceExhaustedError:
        _log.info("Not enough memory to check the predictions", exc_info=True)
        unseen = True
    except tf.errors.OpError:
        _log.info("A part of a batch breaks the script's predictions", exc_info=True)
        unlike = True
    else:
        begin, end = split_rows(int(rows), engine.share_numbers)[engine.rank]
        near = _TOLERANCE_HALF if "16" in model.dtype_policy.compute_dtype else _TOLERANCE
        pairs = zip(*outputs, strict=True)
        unlike = not all(_near(all_[begin:end], own[: end - begin], near) for all_, own in pairs if all_.ndim)
    count, checked_s = engine.predicted[model]
    own_s = time.perf_counter() - began if count > 1 else 0.0  # The first check traces.
    found = engine.collectives.gather_numbers([unlike, unseen, own_s], "whether predictions are by row")
    unlike, unseen = any(each[0] for each in found), any(each[1] for each in found)
    engine.predicted[model] = count, checked_s + found[0][2]
    if unlike and exchanged > 2:  # The first two were checked.
        engine.whole.add(model)
        engine.say_once(
            "From here on every laptop predicts whole batches, since a row's prediction depends on the other "
            f"rows in its batch. Up to {exchanged:,} batches that predict returned before may differ from "
            "one laptop's.",
            difference=True,
        )
    elif unlike:
        engine.compute_whole(model, "a row's prediction depends on the other rows in its batch")
    elif unseen:
        engine.say_once(
            "A laptop does not have enough memory to predict a whole batch: if a layer uses the batch as a "
            "whole, the predictions are not those of one laptop. Use a smaller batch size to have this "
            "checked.",
            difference=True,
        )


def _near(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return True  # Integers may be the argmax of values that are equal except for rounding.
    size = float(np.abs(np.nan_to_num(one)).max(initial=0.0))
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * size, equal_nan=True))


def _function(engine: Engine, model: Any) -> Callable[..., Any]:
    """Predicts the own rows of a global batch: (outputs, global rows)."""

    def one_step(data: Any, shares: Any) -> Any:
        data = tf.nest.map_structure(steps.without_optional, data)
        rows = steps.rows_of(data)
        if model in engine.whole:
            return model.predict_step(data), rows
        begin, end = steps.bounds(rows, shares, engine.rank)
        present = end > begin
        own = steps.take_rows(data, tf.where(present, begin, 0), tf.where(present, end, 1))
        return model.predict_step(own), rows

    if model.run_eagerly:
        return one_step
    if model not in engine.predictors or model in engine.whole:  # It may have become whole since.
        engine.predictors[model] = tf.function(one_step, autograph=False, reduce_retracing=True)
    return engine.predictors[model]


def exchange(
    collectives: Collectives, shares: tuple[int, ...], own: list[list[np.ndarray]], rows: list[int]
) -> list[list[np.ndarray]]:
    """Joins each member's rows of each batch into whole batches: [batch][output]."""
    if not rows:
        return []
    rank = collectives.rank
    mine = []
    for batch, count in zip(own, rows, strict=True):
        begin, end = split_rows(count, shares)[rank]
        mine.append([_checked(leaf, max(1, end - begin))[: end - begin] for leaf in batch])
    packed = b"".join(np.ascontiguousarray(leaf).tobytes() for batch in mine for leaf in batch)
    splits = [split_rows(count, shares) for count in rows]
    sizes = [
        sum(
            (split[member][1] - split[member][0]) * _row_bytes(leaf)
            for split, batch in zip(splits, mine, strict=True)
            for leaf in batch
        )
        for member in range(collectives.members)
    ]
    # Twice the size, so that longer outputs of another member are reported below.
    most = max(MOST_BYTES, len(packed), 2 * max(sizes))
    gathered = collectives.gather_bytes(packed, f"predictions of {sum(rows)} rows", most)
    parts = dict(zip(collectives.met, gathered, strict=True))
    if any(len(part) != sizes[member] for member, part in parts.items()):
        raise _not_shared("outputs whose rows have another size on another laptop")
    whole: list[list[np.ndarray]] = []
    places = [0] * collectives.members
    for batch, split in zip(mine, splits, strict=True):
        outputs = []
        for leaf in batch:
            pieces = []
            for member, part in parts.items():
                begin, end = split[member]
                size = (end - begin) * _row_bytes(leaf)
                data = part[places[member] : places[member] + size]
                places[member] += size
                pieces.append(np.frombuffer(data, leaf.dtype).reshape(end - begin, *leaf.shape[1:]))
            outputs.append(np.concatenate(pieces))
        whole.append(outputs)
    return whole


def _row_bytes(leaf: np.ndarray) -> int:
    return int(np.prod(leaf.shape[1:], dtype=np.int64)) * leaf.dtype.itemsize


def _array(leaf: Any) -> np.ndarray:
    if isinstance(leaf, tf.RaggedTensor | tf.SparseTensor):
        raise _not_shared("ragged or sparse outputs")
    array = np.asarray(leaf)
    if array.dtype.hasobject:
        raise _not_shared("text outputs")
    return array


def _checked(leaf: np.ndarray, rows: int) -> np.ndarray:
    if leaf.ndim == 0 or len(leaf) != rows:
        raise _not_shared("outputs without one entry a row")
    return leaf


def _not_shared(what: str) -> TandemError:
    return TandemError(
        code="predict-outputs",
        what=f"predict over several members can't join {what}.",
        fix="Use model.predict_on_batch or model(x), which every member computes whole.",
    )


def _packed(structure: Any, leaves: list[Any]) -> Any:
    return private.pack_sequence_as(structure, leaves)


def _joined(leaves: tuple[np.ndarray, ...]) -> Any:
    if len({leaf.shape[1:] for leaf in leaves}) == 1:
        return np.concatenate(leaves)
    return private.potentially_ragged_concat([tf.constant(leaf) for leaf in leaves])
