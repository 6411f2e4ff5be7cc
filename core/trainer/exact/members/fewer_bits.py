"""Gradients in fewer bits on the wire (``Cluster.wire``).

All members still end with the same bits, since each gets the same sum, though not that of one process.
bfloat16 keeps float32's range and 8 bits of precision; float16 has 11 bits, and larger numbers are clamped to
its range. Infinities and NaNs pass, so that loss scaling still finds them.

int8 has 7 bits and a sign, and each 64 numbers share a power of two. What rounding loses, a member adds to
its next gradients (error feedback: Seide et al. 2014, "1-bit stochastic gradient descent").
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

LARGE_ELEMENTS = 1_000_000
"""``auto`` uses bfloat16 from this many elements on: below, latency dominates a step's time on the wire."""


def wire_type(wire: str, elements: int) -> Any:
    """The wire type of dense float32 gradients with so many elements in total; None: unchanged."""
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
    """Relative error of a number of this type. None: float32; that of wider types, which is less, counts
    likewise."""
    return {tf.bfloat16: 2.0**-9, tf.float16: 2.0**-12}.get(kind, 2.0**-24)


def as_sent(tensor: Any, kind: Any, members: int) -> Any:
    """``tensor`` in wire format. Anything but float32 stays as it is, and what `encoded` is for."""
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
    """Whether ``tensor``, flat, travels by ``encoded``."""
    return kind == tf.int8 and tensor.dtype == tf.float32 and tensor.shape.is_fully_defined()


def encoded(tensor: Any) -> Any:
    """float32 [n] as uint8: 64 numbers a block, then each block's exponent, by which all members get the same
    bits. A block with an infinity or a NaN becomes NaN."""
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
    """``encoded``'s float32 [count]."""
    length = -(-count // BLOCK) * BLOCK
    numbers = tf.cast(tf.bitcast(coded[:length], tf.int8), tf.float32)
    exponents = tf.cast(coded[length:], tf.int32)
    scales = tf.where(exponents < _NOT_FINITE, _scales(exponents), float("nan"))
    return tf.reshape(tf.reshape(numbers, [-1, BLOCK]) * scales[:, None], [-1])[:count]


def _scales(exponents: Any) -> Any:
    return tf.bitcast(tf.bitwise.left_shift(exponents, _MANTISSA_BITS), tf.float32)


class Residuals:
    """What rounding lost in one model's steps so far, by the order in which a step sends its packs.

    Starts at zero, also when a training is resumed. Traced steps write it, so it is undone with them.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], Any] = {}

    @property
    def variables(self) -> list[Any]:
        return list(self._kept.values())

    def code(self, tensor: Any, place: int) -> tuple[Any, Any]:
        """``tensor`` as bytes, with what is left of the step before, and the numbers that others will get."""
        count = tensor.shape.num_elements()
        with tf.init_scope():
            if (place, count) not in self._kept:
                self._kept[place, count] = tf.Variable(tf.zeros([count]), trainable=False)
        residual = self._kept[place, count]
        wanted = tensor + residual
        coded = encoded(wanted)
        sent = decoded(coded, count)
        residual.assign(tf.where(tf.math.is_finite(sent), wanted - sent, 0.0))
        return coded, sent
