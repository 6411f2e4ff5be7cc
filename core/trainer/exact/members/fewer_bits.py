"""Gradients in fewer bits on the wire (``Cluster.wire``).

All members still end with the same bits, since each gets the same sum, though not that of one process.
bfloat16 keeps float32's range and 8 bits of precision; float16 has 11 bits, and larger numbers are clamped to
its range. Infinities and NaNs pass, so that loss scaling still finds them.
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
        case "auto" if elements >= LARGE_ELEMENTS:
            return tf.bfloat16
    return None


def rounding_of(kind: Any) -> float:
    """Relative error of a number of this type. None: float32; that of wider types, which is less, counts
    likewise."""
    return {tf.bfloat16: 2.0**-9, tf.float16: 2.0**-12}.get(kind, 2.0**-24)


def as_sent(tensor: Any, kind: Any, members: int) -> Any:
    """``tensor`` in wire format. Anything but float32 stays as it is."""
    if kind is None or tensor.dtype != tf.float32:
        return tensor
    if kind == tf.float16:
        # The sum over the members must stay within float16's range, too.
        edge = tf.float16.max / members
        held = tf.clip_by_value(tensor, -edge, edge)
        tensor = tf.where(tf.math.is_finite(tensor), held, tensor)
    return tf.cast(tensor, kind)
