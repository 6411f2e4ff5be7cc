"""Keeps the positions of operations such as ``tf.random.normal`` in variables, not in TensorFlow's runtime.

Inside a step they draw the same numbers, but from a variable's position, as a ``tf.random.Generator`` does.
So a step can be computed twice, undone, or traced again, and each number is drawn once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import gen_random_ops, gen_stateful_random_ops
from tensorflow.python.ops import gen_stateless_random_ops_v2 as stateless

from core.trainer.exact.keras import keras_private as private

_PHILOX = 1
"""The algorithm of all of them (Salmon et al., SC 2011): a counter of 128 bits, and a key."""
_STATELESS = {
    "random_uniform": stateless.stateless_random_uniform_v2,
    "random_uniform_int": stateless.stateless_random_uniform_int_v2,
    "random_standard_normal": stateless.stateless_random_normal_v2,
    "truncated_normal": stateless.stateless_truncated_normal_v2,
}


class Positions:
    """The positions of one kind of step, over all its traces."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], Any] = {}
        self._seen: Counter[tuple[int, int]] = Counter()

    def __bool__(self) -> bool:
        return bool(self._known)

    def around(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The function `step`, to be traced, that draws from these positions."""

        def traced(*given: Any) -> Any:
            self._seen.clear()
            before, _active.positions = getattr(_active, "positions", None), self
            try:
                return step(*given)
            finally:
                _active.positions = before

        return traced

    def next(self, seed: int, seed2: int) -> Any:
        """The variable for the next operation with these seeds: each operation has its own."""
        self._seen[seed, seed2] += 1
        key = (seed, seed2, self._seen[seed, seed2])
        if key not in self._known:
            with tf.init_scope(), tf.device("CPU:0"):
                self._known[key] = tf.Variable([0, seed2, seed], trainable=False, dtype=tf.int64)
        return self._known[key]


_active = threading.local()
"""``positions``: of the step being traced in this thread."""


def replace_positions() -> None:
    for name, draw in _STATELESS.items():
        private.replace(gen_random_ops, name, _drawing(draw))


def _drawing(draw: Callable[..., Any]) -> Callable[..., Any]:
    def drawn(
        original: Callable[..., Any], shape: Any, *kind: Any, seed: int = 0, seed2: int = 0, **named: Any
    ) -> Any:
        """``kind``: a type, or bounds."""
        positions = getattr(_active, "positions", None)
        if positions is None or tf.executing_eagerly() or not (seed or seed2):
            return original(shape, *kind, seed=seed, seed2=seed2, **named)
        count = tf.cast(tf.reduce_prod(shape), tf.uint64)
        with tf.device("CPU:0"):
            at = gen_stateful_random_ops.rng_read_and_skip(
                positions.next(seed, seed2).handle, alg=_PHILOX, delta=count
            )
        at = tf.bitcast(at, tf.uint64)
        return draw(shape, at[2:], at[:2], _PHILOX, *kind, **named)

    return drawn
