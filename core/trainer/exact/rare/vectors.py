"""A model's variables as one vector, and back. In place where possible: a large model's vector has a hundred
megabytes, and new memory for it takes longer than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from core.trainer.exact.rare import codec
from core.trainer.exact.rare.codec import Floats


def counts(numbers: Floats) -> bool:
    """Whether none is NaN, infinite or too large."""
    return not numbers.size or bool(numbers.max() <= codec.MOST and numbers.min() >= -codec.MOST)


def size(variables: Sequence[Any]) -> int:
    return sum(int(v.shape.num_elements()) for v in variables)


def flat(variables: Sequence[Any]) -> Floats:
    """A copy of the variables' numbers, float32 [n]."""
    found = np.empty(size(variables), np.float32)
    for variable, at in _places(variables):
        # The variable's own methods take three times as long, which counts where a model has many.
        value = tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)
        found[at] = np.ravel(value.numpy())
    return found


def assign(variables: Sequence[Any], numbers: Floats) -> None:
    """``numbers``: float32 [n], as from ``flat``."""
    for variable, at in _places(variables):
        part = numbers[at].reshape(variable.shape)
        value = part.astype(variable.dtype.as_numpy_dtype)
        tf.raw_ops.AssignVariableOp(resource=variable.handle, value=value)


def difference(to: Floats, since: Floats, unsent: Floats | None) -> Floats:
    """``to - since``, plus what earlier messages lost, if anything."""
    found: Floats = to - since
    if unsent is not None:
        found += unsent
    return found


def _places(variables: Sequence[Any]) -> Iterator[tuple[Any, slice]]:
    begin = 0
    for variable in variables:
        end = begin + int(variable.shape.num_elements())
        yield variable, slice(begin, end)
        begin = end
