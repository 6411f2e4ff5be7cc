"""Runs steps of one model: several in one call into TensorFlow, then one meeting of the members."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from core.trainer.exact.keras import local_state, model_state
from core.trainer.exact.keras.local_state import LocalState
from core.trainer.exact.members import agreement
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.collectives import Collectives
from core.trainer.exact.members.gauge import Gauge, arrived
from core.trainer.exact.members.notes import Notes
from core.trainer.exact.members.step import Step
from core.trainer.exact.steps import calibration, log_values, while_loop
from core.trainer.exact.steps.data import Portion
from core.trainer.exact.steps.division import Sharings
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.result import (
    Batch,
    CallOutputs,
    Logs,
    PortionResult,
    Sharing,
    Spec,
    StepOutputs,
    Tensor,
    Traced,
)

_log = logging.getLogger(__name__)
_TRACES = 4
"""The first makes variables, and what it makes may lead to more."""


@dataclass(slots=True)
class _Before:
    """How it was when a call began."""

    values: list[Tensor]
    waited_s: Tensor


class Loop:
    """A model's train_function or test_function: takes a Portion, or Keras' generator of one batch."""

    def __init__(
        self, model: Any, step_function: Callable[[Batch], Logs], engine: Engine, *, is_training: bool
    ) -> None:
        self.model = model
        self.is_training = is_training
        self.engine = engine
        self._step_function = step_function
        self._traced: dict[str, Traced] = {}
        self._sharings = Sharings(engine, model, is_training=is_training)
        self._notes = Notes()
        """Of the newest trace."""
        if model.jit_compile:
            engine.say_once(
                "jit_compile is left out: laptops exchange gradients inside a step, and XLA cannot compile "
                "that. What comes out is the same."
            )

    def __call__(self, source: Portion | Iterator[Batch]) -> Logs:
        if isinstance(source, Portion):
            return self._run(source)
        return self._run_batch(next(source))

    def prepare(self, data_spec: Spec) -> None:
        """Traces the step for batches like `data_spec`, which makes every variable that it needs."""
        self._for(data_spec)

    def _run(self, portion: Portion) -> Logs:
        engine = self.engine
        batch = next(portion.iterator) if engine.first_of_call(self.is_training) else None
        traced = self._for(portion.iterator.element_spec, batch)
        first = self._first(traced, batch, portion.iterator.element_spec)
        self._share(traced)
        result = self._meet_after(traced, portion, portion.steps - (first is not None)) or first
        if result is None:
            raise StopIteration
        if first is not None and result is not first:
            result = replace(result, done=result.done + 1, stop=result.stop or first.stop)
        portion.done = result.done
        if result.timed:
            step_s = sum(result.own_s + result.wait_s) / engine.members
            portion.pace.measured(step_s)
            engine.keeper.passed(step_s * result.done)
        engine.on_portion(self.model, result, self.is_training)
        self._balance(traced, result)
        portion.pace.brief = traced.balancer is not None and traced.balancer.unsure
        return result.logs

    def _first(self, traced: Traced, batch: Batch | None, spec: Spec) -> PortionResult | None:
        """A call's first step, of a batch that was looked at before."""
        self.engine.equalise(self.model)
        if batch is None:
            return None
        if self.model.run_eagerly:
            return self._met(traced, "eagerly", functools.partial(self._eagerly, traced), iter([batch]), 1)
        repeated = calibration.repeated(batch, spec)
        if calibration.wanted(self, traced):
            calibration.calibrate(self, traced, repeated)
        self._share(traced)
        return self.call(traced, "sure", repeated, 1)

    def _run_batch(self, data: Batch) -> Logs:
        data = tf.nest.map_structure(lambda leaf: None if leaf is None else tf.convert_to_tensor(leaf), data)
        first = self.engine.first_batch(self.model, self.is_training)
        spec = tf.nest.map_structure(while_loop.spec_of, data)
        known = self._traced.get(repr(while_loop.free_rows(spec)))
        # Batches of another kind may come at any time, and a single row shows nothing of a loss.
        looks = first or known is None or (not known.judged and steps.count_rows(data) > 1)
        traced = self._for(spec, data if looks else None)
        self.engine.equalise(self.model)
        self._share(traced)
        result = self._met(traced, "batch", functools.partial(self._on_batch, traced), data)
        self.engine.on_portion(self.model, result, self.is_training)
        self._balance(traced, result)
        return result.logs

    def _meet_after(self, traced: Traced, portion: Portion, steps: int) -> PortionResult | None:
        """The next steps of a portion; None where there are none, or no data for the first of them."""
        if steps == 0:
            return None
        if self.model.run_eagerly:
            return self._met(
                traced, "eagerly", functools.partial(self._eagerly, traced), portion.iterator, steps
            )
        result = self.call(traced, "sure" if portion.sure else "unsure", portion.iterator, steps)
        return result if result.done else None

    def call(self, traced: Traced, name: str, iterator: Any, steps: int) -> PortionResult:
        """So many steps in one call into TensorFlow. Raises StopIteration where `iterator` has too few."""
        try:
            return self._met(traced, name, None, iterator, tf.constant(steps))
        except tf.errors.OutOfRangeError:
            raise StopIteration from None

    def _met(
        self, traced: Traced, name: str, untraced: Callable[..., CallOutputs] | None, *source: Any
    ) -> PortionResult:
        """Runs a call on `source`, or what it is made of where it is not traced."""
        call = traced.calls.get(name, untraced)
        assert call is not None
        timed = name in traced.called
        traced.called.add(name)
        began = time.perf_counter()
        # What this member tells the others: whether it is asked to stop, and when it began, if that counts.
        words = tf.constant([float(self.engine.asked_to_stop()), time.time() if timed else 0.0], tf.float64)
        outputs = call(*source, self.engine.shares, words)
        done = int(outputs.done)
        step_s = (time.perf_counter() - began) / done if timed and done else 0.0
        own_s, wait_s = (tuple(row) for row in outputs.times_s.numpy().tolist())
        self.engine.compare_data(outputs.marks.numpy())
        stop = bool(outputs.stops > 0)
        return PortionResult(outputs.logs, int(outputs.rows), done, stop, step_s, own_s, wait_s)

    # --- shares

    @property
    def sharings(self) -> list[Sharing]:
        """How the rows of each kind of step so far are shared."""
        return [traced.sharing for traced in self._traced.values()]

    def _share(self, traced: Traced) -> None:
        """Each kind of step has shares of its own."""
        if traced.balancer is not None:
            self.engine.set_shares(traced.balancer.shares)

    def _balance(self, traced: Traced, result: PortionResult) -> None:
        """Shares follow the members' speeds. All members come to the same, from the same numbers."""
        engine = self.engine
        if not (engine.balance and self.is_training and result.timed) or traced.sharing.whole:
            return
        if traced.balancer is None:
            traced.balancer = calibration.uncalibrated(result.rows, engine.share_numbers)
        if result.rows == traced.balancer.rows and traced.balancer.measured(result.own_s, min(result.wait_s)):
            engine.set_shares(traced.balancer.shares)

    # --- tracing

    def _for(self, data_spec: Spec, batch: Batch | None = None) -> Traced:
        """The step for batches like `data_spec` with any number of rows. ``batch``: the first of a call."""
        spec = while_loop.free_rows(data_spec)
        key = repr(spec)
        same = batch is None or self.engine.agree_on_data(batch)
        if key not in self._traced or (batch is not None and not self._sharings.fits(key, batch)):
            self._sharings.look(key, batch)
            self._traced[key] = self._eager(key) if self.model.run_eagerly else self._trace(spec)
        if batch is not None and not self._traced[key].judged and steps.count_rows(batch) > 1:
            self.engine.equalise(self.model)
            seen = batch if same else agreement.of_chief(self.engine.collectives, batch)
            self._traced[key] = self._looked_at(key, spec, seen)
            self._traced[key].judged = True
        if not same and self.is_training and self._sharings.of(key).whole:
            raise agreement.drawn_apart()
        return self._traced[key]

    def _looked_at(self, key: str, spec: Spec, batch: Batch) -> Traced:
        trace = functools.partial(self._trace, spec)
        if not self.model.run_eagerly:
            return self._sharings.settle(key, batch, self._traced[key], trace)
        try:
            traced = trace()  # to be looked at, then to be run eagerly as it is known to be shared
        except Exception as why:
            _log.info("A step that runs eagerly cannot be traced", exc_info=True)
            self._sharings.share_nothing(key, f"what runs eagerly cannot be looked at ({type(why).__name__})")
        else:
            self._sharings.settle(key, batch, traced, trace)
        return self._eager(key)

    def _eager(self, key: str) -> Traced:
        plan = self._sharings.of(key)
        one = functools.partial(self._one_step, plan, self.engine.collectives, self.engine.gauge)
        return Traced(one, self._state(plan), sharing=plan, judged=plan.whole)

    def _trace(self, data_spec: Spec) -> Traced:
        """Traces the step; again if that made variables, as a trace that makes them runs only once."""
        key = repr(data_spec)
        model_state.build(self.model, data_spec, is_training=self.is_training)
        for _ in range(_TRACES):
            before = self._variables()
            step = self.step(data_spec, self.engine.collectives, self.engine.gauge)
            if self._variables() == before:
                break
        if not self._sharings.write_alike(key, step, self._notes):
            return self._trace(data_spec)
        self._sharings.tell_draws(self._notes)
        plan = self._sharings.of(key)
        state, whole = self._state(plan), plan.whole
        traced = Traced(step, state, notes=self._notes, sharing=plan, judged=whole, calibrated=whole)
        traced.log_values = log_values.of_metrics(step, state.variables)
        for name, call in (("sure", self._sure), ("unsure", self._unsure), ("batch", self._on_batch)):
            bound = functools.partial(call, traced)
            traced.calls[name] = tf.function(bound, autograph=False, reduce_retracing=True)
        return traced

    def step(self, data_spec: Spec, collectives: Collectives, gauge: Gauge) -> Any:
        """One step, traced for batches like `data_spec` with any number of rows."""
        shares_spec = tf.TensorSpec([self.engine.members], tf.int64)
        spec = while_loop.free_rows(data_spec)
        one = functools.partial(self._one_step, self._sharings.of(repr(spec)), collectives, gauge)
        return tf.function(one, autograph=False).get_concrete_function(spec, shares_spec)

    def _variables(self) -> list[int]:
        found = local_state.metric_variables(self.model)
        return [*(id(v) for v in found), *(id(v) for v in model_state.variables(self.model))]

    def _state(self, plan: Sharing) -> LocalState:
        """What members add up where they meet: nothing, where each has all of it."""
        metrics = [] if plan.whole else local_state.metric_variables(self.model)
        return LocalState(metrics, self.engine.collectives)

    def _one_step(
        self, plan: Sharing, collectives: Collectives, gauge: Gauge, data: Batch, shares: Tensor
    ) -> StepOutputs:
        """One step on a global batch."""
        data = tf.nest.map_structure(steps.without_optional, data)
        rows = steps.rows_of(data)
        gauge.data.take([(name == "x", tensor) for name, tensor in agreement.parts(data)])
        if plan.whole:
            # What every member computes, the chief tells.
            weight = tf.constant(1.0 if self.engine.rank == 0 else 0.0)
            return StepOutputs(self._step_function(data), weight, rows, tf.constant(True))
        begin, end = steps.bounds(rows, shares, self.engine.rank)
        present = end > begin
        weight = tf.cast(end - begin, tf.float32) / tf.cast(rows, tf.float32)
        step = Step(collectives, weight, present, rows, gauge, self.engine.wire)
        step.begin, step.end, step.gathers = begin, end, plan.gathers
        step.at_tape, step.own_step, step.sums = self._sharings.at_tape, self._sharings.own_step, plan.sums
        step.notes.is_own([begin, end])
        self._notes = step.notes
        # A member without rows computes on the batch's first row, and all of it counts for nothing.
        own = steps.take_rows(data, tf.where(present, begin, 0), tf.where(present, end, 1))
        with steps.active(step):
            logs = self._step_function(own)
        return StepOutputs(logs, weight, rows, present)

    # --- several steps

    def _step(self, traced: Traced, data: Batch, shares: Tensor) -> StepOutputs:
        before = traced.state.snapshot()
        outputs: StepOutputs = traced.step(data, shares)
        traced.state.restore_unless(outputs.present, before)
        return outputs

    def _sure(
        self, traced: Traced, iterator: Any, limit: Tensor, shares: Tensor, words: Tensor
    ) -> CallOutputs:
        before = self._before(traced)
        done, *last = while_loop.up_to(
            limit, traced.step, lambda: self._step(traced, iterator.get_next(), shares)
        )
        return self._meet(traced, before, while_loop.packed(traced.step, last), done, words)

    def _unsure(
        self, traced: Traced, iterator: Any, limit: Tensor, shares: Tensor, words: Tensor
    ) -> CallOutputs:
        """As `_sure`, for data that may end: stops before the first step that has none."""

        def body(done: Tensor, batch: Any, *_: Tensor) -> tuple[Tensor, ...]:
            outputs = self._step(traced, batch.get_value(), shares)
            # Never one more than the limit: what is taken from an iterator is gone.
            batch = tf.cond(done + 1 < limit, iterator.get_next_as_optional, lambda: batch)
            return done + 1, batch, *while_loop.flat(outputs)

        before = self._before(traced)
        start = [tf.constant(0), iterator.get_next_as_optional()]
        done, _, *last = while_loop.loop(
            lambda done, batch, *_: (done < limit) & batch.has_value(), body, start, traced.step
        )
        return self._meet(traced, before, while_loop.packed(traced.step, last), done, words)

    def _eagerly(
        self, traced: Traced, iterator: Iterator[Batch], limit: int, shares: Tensor, words: Tensor
    ) -> CallOutputs:
        known, before = traced.state.variables, self._before(traced)
        last, done = None, 0
        for _ in range(limit):
            try:
                data = next(iterator)
            except StopIteration:
                break
            last, done = self._step(traced, data, shares), done + 1
            self._sharings.tell_draws(self._notes)
        if last is None:
            raise StopIteration
        # The first step makes variables; what a metric begins with is zero.
        traced.state = self._state(traced.sharing)
        values = {id(variable): value for variable, value in zip(known, before.values, strict=True)}
        before.values = [values.get(id(v), tf.zeros_like(v)) for v in traced.state.variables]
        return self._meet(traced, before, last, tf.constant(done), words)

    def _on_batch(self, traced: Traced, data: Batch, shares: Tensor, words: Tensor) -> CallOutputs:
        before = self._before(traced)
        last = self._step(traced, data, shares)
        return self._meet(traced, before, last, tf.constant(1), words)

    # --- meeting

    def _before(self, traced: Traced) -> _Before:
        self.engine.gauge.data.begin()
        return _Before(traced.state.snapshot(), self.engine.gauge.waited_s())

    def _meet(
        self, traced: Traced, before: _Before, last: StepOutputs, done: Tensor, words: Tensor
    ) -> CallOutputs:
        """Metrics of all members, and the logs they give; what members told each other."""
        engine = self.engine
        logs = last.logs
        scalars = {
            name: tf.math.multiply_no_nan(tf.cast(value, tf.float32), last.weight)
            for name, value in (logs.items() if isinstance(logs, dict) else ())
            if getattr(value, "shape", None) == () and value.dtype not in (tf.bool, tf.string)
        }
        marks = tf.unstack(engine.gauge.data.so_far())
        times = (*self._times(before, traced.state.snapshot(), done, words), *marks)
        told = [tf.where(engine.rank == rank, time, 0.0) for time in times for rank in range(engine.members)]
        sums = traced.state.meet(before.values, [words[0], *told, *scalars.values()], done)
        stops, every, sums = sums[0], sums[1 : 1 + len(told)], sums[1 + len(told) :]
        averages = dict(zip(scalars, sums, strict=True))
        results = self._metric_results(traced)
        if isinstance(logs, dict):
            # What is a metric is the metric of all rows; another value is the rows' mean in the last step.
            logs = {name: results.get(name, averages.get(name, logs[name])) for name in logs}
        every = tf.reshape(tf.stack(every), [len(times), engine.members])
        return CallOutputs(logs, last.rows, done, stops, every[:2], every[2:])

    def _times(self, before: _Before, after: list[Tensor], done: Tensor, words: Tensor) -> tuple[Tensor, ...]:
        """Seconds of a step since the call began: of own work; of waiting. 0 where it is not to be timed."""
        with tf.device("CPU:0"):
            waited_s = self.engine.gauge.waited_s()
            with tf.control_dependencies([*arrived(after), waited_s, tf.convert_to_tensor(done)]):
                took_s = tf.timestamp() - words[1]
            waited_s -= before.waited_s
            count = tf.cast(tf.maximum(done, 1), tf.float64)
            own_s = tf.maximum(took_s - waited_s, 0.0)
            return tuple(tf.where(words[1] > 0, time / count, 0.0) for time in (own_s, waited_s))

    def _metric_results(self, traced: Traced) -> Logs:
        """Of the metrics that are added up here. A step of one's own may give a "loss" and update none."""
        if traced.sharing.whole:
            return {}
        results = self.model.get_metrics_result()
        if not self.model.run_eagerly:
            for metric in self.model.metrics:
                if not local_state.written(traced.step.graph, local_state.values_of(metric.variables)):
                    results.pop(metric.name, None)
        results = {name: tf.convert_to_tensor(value) for name, value in results.items()}
        others = {name: value() for name, value in traced.log_values.items() if name not in results}
        return {**results, **others}
