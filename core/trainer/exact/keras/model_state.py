"""A model's whole state: whether members agree on it, and how the others get the chief's."""

from __future__ import annotations

import hashlib
import logging
import weakref
from collections import defaultdict
from typing import Any

import numpy as np
import tensorflow as tf

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.members import agreement
from core.trainer.exact.members.collectives import Collectives
from core.vocabulary.errors import TandemError

_log = logging.getLogger(__name__)

outer_momentum: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""A variable that Tandem adds to a model if members meet rarely (rare/outer.py)."""
_ROUNDING = 1e-3
"""Relative to a variable's norm: members that differ by less differ only by their processors' rounding."""


def optimizers(model: Any) -> list[Any]:
    """The compiled optimizer and any other that the model holds, as a GAN does."""
    found = {id(value): value for value in vars(model).values() if isinstance(value, private.BaseOptimizer)}
    compiled = getattr(model, "optimizer", None)
    if isinstance(compiled, private.BaseOptimizer):
        found[id(compiled)] = compiled
    return list(found.values())


def build(model: Any, data_spec: Any, *, is_training: bool) -> None:
    """Makes Keras create the variables of model, metrics and optimizer, which is cheaper than a trace.

    Only if the step would create all of them: evaluate creates no optimizer's, a custom step different ones.
    """
    if is_training and type(model).train_step is not private.TensorFlowTrainer.train_step:
        return
    if not private.is_built_before_a_step(model.optimizer, is_training=is_training):
        return
    try:
        private.build(model, data_spec)
    except Exception:
        _log.debug("%s is built by its first step", model.name, exc_info=True)


def variables(model: Any) -> list[Any]:
    """All state that training continues from: weights, seeds' states, optimizers' variables, what layers hold
    outside Keras, and `outer_momentum`."""
    every = [*model.variables, *(v for optimizer in optimizers(model) for v in optimizer.variables)]
    own = [outer_momentum[model]] if model in outer_momentum else []
    return list({id(v): v for v in [*every, *outside_keras(model), *own]}.values())


def outside_keras(model: Any) -> list[Any]:
    """Numeric TensorFlow variables of a fixed shape that the script's layers hold outside Keras."""
    left: list[Any] = [value for layer in private.layers_of(model) for value in vars(layer).values()]
    found = []
    while left:
        value = left.pop(0)
        if isinstance(value, tf.Variable):
            is_number = value.dtype.is_floating or value.dtype.is_integer
            found += [value] if is_number and value.shape.is_fully_defined() else []
        elif isinstance(value, tf.random.Generator):
            found.append(value.state)
        elif isinstance(value, list | tuple):
            left += [each for each in value if isinstance(each, tf.Variable)]
        elif isinstance(value, dict):
            left += [each for each in value.values() if isinstance(each, tf.Variable)]
    return found


def weights_digest(models: list[Any]) -> str:
    """SHA-256 of models' weights, and of what their layers hold outside Keras: shapes, dtypes and bytes."""
    return _digest([v for model in models for v in [*model.weights, *outside_keras(model)]]).hexdigest()


def equalise(model: Any, collectives: Collectives) -> bool:
    """Gives every member the chief's state if any differs; returns whether any did.

    Raises TandemError if the members' models differ in structure.
    """
    own = variables(model)
    shape = hashlib.sha256(repr([(tuple(v.shape), str(v.dtype)) for v in own]).encode()).digest()
    size = sum(int(np.prod(v.shape, dtype=np.int64)) for v in own)
    what = f"a model of {size:,} numbers in {len(own)} variables ({shape.hex()[:8]})"
    states = collectives.gather_ints(_words(shape) + _words(_digest(own).digest()), what)
    if any(state[:8] != states[0][:8] for state in states):
        raise TandemError(
            code="models-differ",
            what=f"The members built different models (here: {model.name}, {len(own)} variables).",
            fix="Make the script build the same model on every laptop: same arguments, same data.",
        )
    if all(state == states[0] for state in states):
        return False
    _from_chief(own, collectives)
    return True


def settle(model: Any, collectives: Collectives, call: str) -> bool:
    """Gives the chief's state to members that rounded differently in `call`. Returns whether any did.

    All members must call it. Raises TandemError if they differ by more than rounding.
    """
    own = variables(model)
    digests = collectives.gather_ints(_words(_digest(own).digest()), "its weights")
    if all(digest == digests[0] for digest in digests):
        return False
    marks = [agreement.marks_of(_array(variable)) for variable in own]
    gathered = np.array(collectives.gather_numbers(np.ravel(marks).tolist(), "its weights"))
    chief, *others = gathered.reshape(len(gathered), len(own), -1).tolist()
    names = [
        getattr(variable, "path", variable.name)
        for index, variable in enumerate(own)
        if not all(agreement.near(chief[index], each[index], _ROUNDING) for each in others)
    ]
    if names:
        raise _went_apart(names, call)
    _from_chief(own, collectives)
    return True


def _went_apart(names: list[str], call: str) -> TandemError:
    rate = any(name.endswith("learning_rate") for name in names)
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return TandemError(
        code="members-differ",
        what="A callback sets the learning rate differently on each laptop, so their weights diverged"
        if rate
        else f"The members' weights diverged in {call}: {listed} differ from the chief's",
        fix="Have the callback compute it from the epoch or the step, not from a clock or the laptop."
        if rate
        else "Look for what differs between the laptops: a clock, an unseeded generator, the laptop's "
        "name, or a train_step that writes weights from its rows without the optimizer.",
    )


def _words(digest: bytes) -> list[int]:
    return np.frombuffer(digest, np.uint32).tolist()


def _digest(values: list[Any]) -> Any:
    digest = hashlib.sha256()
    for variable in values:
        array = np.ascontiguousarray(_array(variable))
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(array.tobytes())
    return digest


def _array(variable: Any) -> Any:
    return (variable if isinstance(variable, tf.Variable) else variable.value).numpy()


def _from_chief(own: list[Any], collectives: Collectives) -> None:
    """Sends the chief's values: one sum per dtype."""
    by_dtype: dict[Any, list[Any]] = defaultdict(list)
    for variable in own:
        by_dtype[_array(variable).dtype].append(variable)
    wide = []
    for dtype, group in by_dtype.items():
        flat = np.concatenate([np.ravel(_array(variable)) for variable in group])
        wide.append(flat.astype(np.int64 if dtype.kind in "iub" else flat.dtype))
    totals = collectives.arrays_from_chief(wide, "the chief's weights")
    for (dtype, group), total in zip(by_dtype.items(), totals, strict=True):
        begin = 0
        for variable in group:
            size = int(np.prod(variable.shape, dtype=np.int64))
            variable.assign(total[begin : begin + size].astype(dtype).reshape(variable.shape))
            begin += size
