"""Measures inside a step: the wait for others, bytes sent, the gradients' norm, and marks of the data.

All are in variables local to this process; the wait is read in meetings, the others when a step is reported.
Measured on 2 cores: a few microseconds per step, and one pass over the gradients every `NORM_EVERY_S`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from core.trainer.exact.members.data_marks import DataMarks
from core.trainer.exact.members.sketches import Sketches

ONCE = "tandem_once"
"""Part of the names of operations that do nothing while `StepMeter.repeats`."""
NORM_EVERY_S = 0.5
"""The norm of a large model's gradients takes milliseconds, so not every step computes it."""


class StepMeter:
    """One per process. The ops are traced into steps; `norm` is called between them."""

    def __init__(self, *, is_audited: bool = True) -> None:
        with tf.device("CPU:0"):
            self._waited_s = tf.Variable(0.0, trainable=False, dtype=tf.float64)
            self._sent_bytes = tf.Variable(0.0, trainable=False, dtype=tf.float64)
            self._norm = tf.Variable(math.nan, trainable=False, dtype=tf.float32)
            self._norm_at_s = tf.Variable(0.0, trainable=False, dtype=tf.float64)
            self.repeats = tf.Variable(False, trainable=False)
        """`repeats`: the step is computed a second time, for an audit, so it prints nothing."""
        self._counted_at_step = 0
        self.data = DataMarks()
        self.sketches = Sketches(are_taken=is_audited)
        self.sent, self.received = Sketches(are_taken=is_audited), Sketches(are_taken=is_audited)
        """Sketches of packs that this member sends to be summed in few bits, and of the sums."""

    @property
    def variables(self) -> list[Any]:
        return [
            self._waited_s,
            self._sent_bytes,
            self._norm,
            self._norm_at_s,
            self.data.sums,
            self.sketches.sums,
            self.sent.sums,
            self.received.sums,
        ]

    def begin_trace(self) -> None:
        """Call before another step is traced."""
        self.sketches.begin_trace()
        self.sent.begin_trace()
        self.received.begin_trace()

    def exchange(self, own: Sequence[Any], exchange: Callable[[], list[Any]]) -> list[Any]:
        """Returns what `exchange` returns; counts the time from `own` being ready until the result is."""
        with tf.device("CPU:0"), tf.control_dependencies(arrived(_tensors(own))):
            began_s = tf.timestamp()
        summed = exchange()
        with tf.device("CPU:0"), tf.control_dependencies(_tensors(summed)):
            self._waited_s.assign_add(tf.timestamp() - began_s)
        return summed

    def record_sent(self, sent_bytes: Any) -> None:
        """Records the bytes of gradients that this member sends in this step: a number, or a scalar."""
        with tf.device("CPU:0"):
            self._sent_bytes.assign_add(tf.cast(sent_bytes, tf.float64))

    def record_norm(self, gradients: Sequence[Any], scale: Any) -> None:
        """Occasionally takes the norm of `gradients`, which are `scale` times too large."""
        tensors = _tensors(gradients)
        if not tensors:
            return

        def take() -> Any:
            squares = [tf.cast(tf.nn.l2_loss(tensor), tf.float32) for tensor in tensors]
            norm = tf.sqrt(2.0 * tf.add_n(squares)) / tf.cast(scale, tf.float32)
            with tf.device("CPU:0"):
                self._norm.assign(norm)
                self._norm_at_s.assign(tf.timestamp())
            return tf.constant(0)

        with tf.device("CPU:0"):
            due = tf.timestamp() - self._norm_at_s > NORM_EVERY_S
        tf.cond(due, take, lambda: tf.constant(0))

    def begin_after(self, step: int) -> None:
        """Call if steps up to `step` were another process's."""
        self._counted_at_step = step

    def waited_s(self) -> Any:
        """Seconds waited in all exchanges so far: a float64 scalar."""
        with tf.device("CPU:0"):
            return self._waited_s.read_value()

    def times(self, waited_before_s: Any, after: list[Any], done: Any, began_s: Any) -> tuple[Any, ...]:
        """Mean seconds of own work and of waiting per step, for `done` steps of a call; 0 if it is not timed.

        ``after``: the steps' results. ``began_s``: when the call began, a scalar; 0 if it is not timed.
        """
        with tf.device("CPU:0"):
            waited_s = self.waited_s()
            with tf.control_dependencies([*arrived(after), waited_s, tf.convert_to_tensor(done)]):
                took_s = tf.timestamp() - began_s
            waited_s -= waited_before_s
            count = tf.cast(tf.maximum(done, 1), tf.float64)
            own_s = tf.maximum(took_s - waited_s, 0.0)
            return tuple(tf.where(began_s > 0, time / count, 0.0) for time in (own_s, waited_s))

    def norm(self) -> float | None:
        """The newest norm, if any."""
        norm = float(self._norm.numpy())
        return norm if math.isfinite(norm) else None

    def sent_bytes(self) -> float:
        """Bytes of gradients sent since the last call of `wire_bytes`."""
        return float(self._sent_bytes.numpy())

    def wire_bytes(self, step: int) -> int:
        """Mean bytes of gradients sent per step since the last call, up to `step`."""
        steps, self._counted_at_step = max(1, step - self._counted_at_step), step
        sent_bytes = self.sent_bytes() / steps
        self._sent_bytes.assign(0.0)
        return round(sent_bytes)


def arrived(tensors: Sequence[Any]) -> list[Any]:
    """Dependencies that ensure `tensors` are computed: on a GPU an op ends once its kernel is queued."""
    if not tensors or not tf.config.list_logical_devices("GPU"):
        return list(tensors)
    with tf.control_dependencies(tensors):
        last = tf.reshape(tensors[0], [-1])[:1]  # queued behind all of them
    with tf.device("CPU:0"):
        return [tf.identity(last)]


def loss_scale(optimizer: Any) -> Any:
    """The factor by which an optimizer scaled up the loss, and so its gradients."""
    scale = getattr(optimizer, "loss_scale_factor", None) or 1.0
    if hasattr(optimizer, "initial_scale"):  # LossScaleOptimizer
        return scale * (optimizer.dynamic_scale if optimizer.built else optimizer.initial_scale)
    return scale


def _tensors(gradients: Sequence[Any]) -> list[Any]:
    """Dense gradients, and sparse ones' values: repeated rows count separately, as in Keras' clipping."""
    present = (gradient for gradient in gradients if gradient is not None)
    return [each.values if isinstance(each, tf.IndexedSlices) else each for each in present]
