"""Gradients in fewer bits while they travel: narrowed before the all-reduce, float32 again for the optimizer.

All members still end with the same bits, for each gets the same sum; it is no longer the sum of one process.
bfloat16 keeps float32's range and 8 bits of precision; float16 has 11 bits, and what is beyond its range is
held at its edge. Infinities and NaNs pass, so that loss scaling still finds them.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

LARGE_ELEMENTS = 1_000_000
"""``auto`` narrows from here on: below, a step's time on the wire is latency, which no narrowing shortens."""


def wire_type(wire: str, elements: int) -> Any:
    """The type in which dense float32 gradients of so many elements in all travel; None: as they are."""
    match wire:
        case "bf16":
            return tf.bfloat16
        case "fp16":
            return tf.float16
        case "auto" if elements >= LARGE_ELEMENTS:
            return tf.bfloat16
    return None


def narrowed(tensor: Any, kind: Any, members: int) -> Any:
    """``tensor`` as it travels. Anything but float32 stays as it is."""
    if kind is None or tensor.dtype != tf.float32:
        return tensor
    if kind == tf.float16:
        # The sum over the members must stay within the range, too.
        edge = tf.float16.max / members
        held = tf.clip_by_value(tensor, -edge, edge)
        tensor = tf.where(tf.math.is_finite(tensor), held, tensor)
    return tf.cast(tensor, kind)
