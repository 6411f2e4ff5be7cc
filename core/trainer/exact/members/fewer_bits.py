"""Gradients in fewer bits on the wire (``Cluster.wire``).

All members still have the same bits, since each gets the same sum, though one process would get another.
bfloat16 has float32's range and 8 bits of precision; float16 has 11 bits, and larger numbers are clamped to
its range. Infinities and NaNs pass, so that loss scaling still finds them.

int8 has 7 bits and a sign, and every 64 numbers share a power of two. A member adds what rounding loses to
its next gradients (error feedback: Seide et al. 2014, "1-bit stochastic gradient descent").
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

LARGE_ELEMENTS = 1_000_000
"""``auto`` uses bfloat16 from this many elements on: below, latency dominates a step's time on the wire."""


def wire_type(wire: str, elements: int) -> Any:
    """The wire type of dense float32 gradients with ``elements`` in total; None: unchanged."""
    match wire:
        case "bf16":
            return tf.bfloat16
        case "fp16":
            return tf.float16
        case "int8":
            return tf.int8
        case "auto" if elements >= LARGE_ELEMENTS:
            return tf.bfloat16
    return None


def rounding_of(kind: Any) -> float:
    """Relative rounding error of a number of this type. None, and any wider type: that of float32."""
    return {tf.bfloat16: 2.0**-9, tf.float16: 2.0**-12}.get(kind, 2.0**-24)


def as_sent(tensor: Any, kind: Any, members: int) -> Any:
    """``tensor`` in wire format. Tensors for `encoded`, and all that are not float32, stay unchanged."""
    if kind in (None, tf.int8) or tensor.dtype != tf.float32:
        return tensor
    if kind == tf.float16:
        # The sum over the members must stay within float16's range, too.
        edge = tf.float16.max / members
        held = tf.clip_by_value(tensor, -edge, edge)
        tensor = tf.where(tf.math.is_finite(tensor), held, tensor)
    return tf.cast(tensor, kind)


BLOCK = 64
"""Numbers that share a power of two."""
_LARGEST = 127
_MANTISSA_BITS, _NOT_FINITE = 23, 255
"""float32: the bits behind the exponent, and the exponent of infinities and NaNs."""


def is_coded(tensor: Any, kind: Any) -> bool:
    """Whether ``tensor``, flat, is sent ``encoded``."""
    return kind == tf.int8 and tensor.dtype == tf.float32 and tensor.shape.is_fully_defined()


def encoded(tensor: Any) -> Any:
    """float32 [n] as uint8: blocks of 64 numbers, then each block's exponent. A block with an infinity or a
    NaN becomes NaN. All members decode the same bits."""
    count = tensor.shape.num_elements()
    blocks = tf.reshape(tf.pad(tensor, [[0, -count % BLOCK]]), [-1, BLOCK])
    bits = tf.bitcast(tf.reduce_max(tf.abs(blocks), axis=1) / _LARGEST, tf.int32)
    # To the next power of two above.
    exponents = tf.bitwise.right_shift(bits + 2**_MANTISSA_BITS - 1, _MANTISSA_BITS)
    is_finite = tf.reduce_all(tf.math.is_finite(blocks), axis=1)
    exponents = tf.where(is_finite, tf.clip_by_value(exponents, 1, _NOT_FINITE - 1), _NOT_FINITE)
    scaled = tf.where(is_finite[:, None], blocks / _scales(exponents)[:, None], 0.0)
    numbers = tf.cast(tf.round(tf.clip_by_value(scaled, -_LARGEST, _LARGEST)), tf.int8)
    return tf.concat([tf.reshape(tf.bitcast(numbers, tf.uint8), [-1]), tf.cast(exponents, tf.uint8)], axis=0)


def decoded(coded: Any, count: int) -> Any:
    """float32 [count] from what ``encoded`` returned."""
    length = -(-count // BLOCK) * BLOCK
    numbers = tf.cast(tf.bitcast(coded[:length], tf.int8), tf.float32)
    exponents = tf.cast(coded[length:], tf.int32)
    scales = tf.where(exponents < _NOT_FINITE, _scales(exponents), float("nan"))
    return tf.reshape(tf.reshape(numbers, [-1, BLOCK]) * scales[:, None], [-1])[:count]


def _scales(exponents: Any) -> Any:
    return tf.bitcast(tf.bitwise.left_shift(exponents, _MANTISSA_BITS), tf.float32)


class Residuals:
    """What rounding has lost in one model's steps, by pack, in the order in which a step sends them.

    Zero at first, also when a training is resumed. Traced steps write it, so it is undone with them.
    """

    def __init__(self) -> None:
        self._variables: dict[tuple[int, int], Any] = {}

    @property
    def variables(self) -> list[Any]:
        return list(self._variables.values())

    def code(self, tensor: Any, pack: int) -> tuple[Any, Any]:
        """Codes ``tensor``, flat, plus what the last step's rounding lost.

        Returns the code (uint8) and the float32 numbers that the other members will decode.
        """
        count = tensor.shape.num_elements()
        with tf.init_scope():
            if (pack, count) not in self._variables:
                self._variables[pack, count] = tf.Variable(tf.zeros([count]), trainable=False)
        residual = self._variables[pack, count]
        wanted = tensor + residual
        coded = encoded(wanted)
        sent = decoded(coded, count)
        residual.assign(tf.where(tf.math.is_finite(sent), wanted - sent, 0.0))
        return coded, sent
