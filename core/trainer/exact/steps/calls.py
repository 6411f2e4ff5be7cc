"""The parts of one call into TensorFlow: several steps of a model, then one meeting of the members."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from core.trainer.exact.steps import log_values, while_loop
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.result import Batch, CallOutputs, PortionResult, StepOutputs, Tensor, Traced


@dataclass(slots=True)
class Before:
    """The state when a call began."""

    values: list[Tensor]
    waited_s: Tensor
    kept: list[Any]
    """Operations that store what `Undo` needs: a step waits for them."""


class TracedCalls:
    """The calls of one model, as functions to be traced.

    ``report``: what this member reports to the others, float64 [4]: whether it was asked to stop, whether
    this is an audit's step, when the call began, and whether it is the chief now, which a trace cannot know.
    """

    def __init__(self, engine: Engine, model: Any) -> None:
        self._engine = engine
        self._model = model

    def step(self, traced: Traced, data: Batch, shares: Tensor) -> StepOutputs:
        before = traced.state.snapshot()
        outputs: StepOutputs = traced.step(data, shares)
        traced.state.restore_unless(outputs.present, before)
        return outputs

    def undoable_step(self, traced: Traced, data: Batch, shares: Tensor) -> StepOutputs:
        """A step that can be undone and repeated on the same batch."""
        assert traced.undo is not None
        with tf.control_dependencies([traced.undo.stage(data)]):
            return self.step(traced, data, shares)

    def sure(
        self, traced: Traced, iterator: Any, limit: Tensor, shares: Tensor, report: Tensor
    ) -> CallOutputs:
        """`limit` steps on the next batches, which are known to exist."""
        before = self.before(traced)
        with tf.control_dependencies(before.kept):
            done, rows, *last = while_loop.up_to(
                limit, traced.step, lambda: self.undoable_step(traced, iterator.get_next(), shares)
            )
        return self.meet(traced, before, while_loop.packed(traced.step, last), done, rows, report)

    def unsure(
        self, traced: Traced, iterator: Any, limit: Tensor, shares: Tensor, report: Tensor
    ) -> CallOutputs:
        """Like `sure`, for data that may end: stops before the first step without a batch."""
        before = self.before(traced)

        def body(done: Tensor, rows: Tensor, batch: Any, *_: Tensor) -> tuple[Tensor, ...]:
            step = self.undoable_step(traced, batch.get_value(), shares)
            outputs = while_loop.flat(step)
            with tf.control_dependencies(outputs):
                # Never read beyond the limit: a batch once read is gone from the iterator.
                batch = tf.cond(done + 1 < limit, iterator.get_next_as_optional, lambda: batch)
            return done + 1, rows + step.rows, batch, *outputs

        with tf.control_dependencies(before.kept):
            start = [tf.constant(0), while_loop.no_rows(), iterator.get_next_as_optional()]
            done, rows, _, *last = while_loop.loop(
                lambda done, _, batch, *__: (done < limit) & batch.has_value(), body, start, traced.step
            )
        return self.meet(traced, before, while_loop.packed(traced.step, last), done, rows, report)

    def on_batch(self, traced: Traced, data: Batch, shares: Tensor, report: Tensor) -> CallOutputs:
        before = self.before(traced)
        with tf.control_dependencies(before.kept):
            last = self.step(traced, data, shares)
        return self.meet(traced, before, last, tf.constant(1), last.rows, report)

    def run(
        self, traced: Traced, name: str, call: Callable[..., CallOutputs], is_audit: bool, *source: Any
    ) -> tuple[PortionResult, int]:
        """Runs a call on `source`. Returns its result, and how many members ran it for an audit."""
        engine = self._engine
        timed = name in traced.called
        traced.called.add(name)
        began = time.perf_counter()
        flags = [float(engine.asked_to_stop()), float(is_audit)]
        is_chief = float(engine.collectives.is_chief)
        report = tf.constant([*flags, time.time() if timed else 0.0, is_chief], tf.float64)
        outputs = call(*source, engine.shares, report)
        done = int(outputs.done)
        step_s = (time.perf_counter() - began) / done if timed and done else 0.0
        met = engine.collectives.met
        own_s, wait_s = (tuple(row[list(met)].tolist()) for row in outputs.times_s.numpy())
        engine.compare_data(outputs.marks.numpy())
        result = PortionResult(
            logs=outputs.logs,
            rows=int(outputs.rows),
            mean_rows=int(outputs.all_rows) / max(1, done),
            done=done,
            stop=bool(outputs.stops > 0),
            step_s=step_s,
            met=met,
            own_s=own_s,
            wait_s=wait_s,
        )
        return result, int(outputs.audits)

    # --- meeting

    def before(self, traced: Traced) -> Before:
        self._engine.meter.data.begin()
        kept = [] if traced.undo is None else traced.undo.begin()
        return Before(traced.state.snapshot(), self._engine.meter.waited_s(), kept)

    def meet(
        self,
        traced: Traced,
        before: Before,
        last: StepOutputs,
        done: Tensor,
        all_rows: Tensor,
        report: Tensor,
    ) -> CallOutputs:
        """Adds up metrics and the members' reports over all members; computes logs from these."""
        engine = self._engine
        logs = last.logs
        # If every member computes everything, the chief's values count.
        weight = tf.cast(report[3], tf.float32) if traced.sharing.whole else last.weight
        scalars = {
            name: tf.math.multiply_no_nan(tf.cast(value, tf.float32), weight)
            for name, value in (logs.items() if isinstance(logs, dict) else ())
            if getattr(value, "shape", None) == () and value.dtype not in (tf.bool, tf.string)
        }
        marks = tf.unstack(engine.meter.data.so_far())
        after = traced.state.snapshot()
        times = (*engine.meter.times(before.waited_s, after, done, report[2]), *marks)
        by_rank = [
            tf.where(engine.rank == rank, time, 0.0) for time in times for rank in range(engine.members)
        ]
        sums = traced.state.meet(before.values, [report[0], report[1], *by_rank, *scalars.values()], done)
        stops, audits, every, sums = sums[0], sums[1], sums[2 : 2 + len(by_rank)], sums[2 + len(by_rank) :]
        averages = dict(zip(scalars, sums, strict=True))
        results = {} if traced.sharing.whole else log_values.results(self._model, traced)
        if isinstance(logs, dict):
            # A log that is a metric covers all rows; any other is the mean over the last step's rows.
            logs = {name: results.get(name, averages.get(name, logs[name])) for name in logs}
        every = tf.reshape(tf.stack(every), [len(times), engine.members])
        if traced.undo is not None:
            traced.undo.end()
        return CallOutputs(logs, last.rows, all_rows, done, stops, audits, every[:2], every[2:])
