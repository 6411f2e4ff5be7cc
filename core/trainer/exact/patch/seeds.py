"""Random numbers inside a step differ between members (dropout masks); seed states stay equal on all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from core.trainer.exact.members import step as steps

_STRIDE = 0x3C6EF372
"""Far from the small increments by which Keras advances a seed's state."""


def next_seed(original: Callable[..., Any], generator: Any, *args: Any, **kwargs: Any) -> Any:
    """A SeedGenerator's next value, offset by rank inside a step. The chief draws what one process would."""
    value = original(generator, *args, **kwargs)
    step = steps.current()
    if step is None or step.collectives.rank == 0:
        return value
    offset = tf.constant([(step.collectives.rank * _STRIDE) % 2**31, 0], tf.int64)
    return value + tf.cast(offset, value.dtype)
