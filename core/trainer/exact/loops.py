"""Runs steps of one model: several in one call into TensorFlow, then one meeting of the members."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from core.trainer.exact import keras_private as private
from core.trainer.exact import local_state, model_state
from core.trainer.exact import step as steps
from core.trainer.exact.data import Portion
from core.trainer.exact.local_state import LocalState
from core.trainer.exact.step import Step

if TYPE_CHECKING:
    from core.trainer.exact.engine import Engine

_log = logging.getLogger(__name__)
_TRACES = 4
"""The first makes variables, and what it makes may lead to more."""


@dataclass(slots=True)
class Traced:
    """A step for one kind of data: with its state, and the calls that run it."""

    step: Callable[..., Any]
    state: LocalState
    calls: dict[str, Callable[..., Any]] = field(default_factory=dict)


class Loop:
    """A model's train_function or test_function: takes a Portion, or Keras' generator of one batch."""

    def __init__(
        self, model: Any, step_function: Callable[[Any], Any], engine: Engine, *, is_training: bool
    ) -> None:
        self.model = model
        self.is_training = is_training
        self.step_s = 0.0
        """Mean time of a step in the newest call; 0 where it was not measured, as when it traced."""
        self._step_function = step_function
        self._engine = engine
        self._traced: dict[str, Traced] = {}
        if model.jit_compile:
            engine.say_once(
                "jit_compile is left out: laptops exchange gradients inside a step, and XLA cannot compile "
                "that. What comes out is the same."
            )

    def __call__(self, source: Portion | Iterator[Any]) -> dict[str, Any]:
        if isinstance(source, Portion):
            return self._run(source)
        return self._run_batch(next(source))

    def _run(self, portion: Portion) -> dict[str, Any]:
        count = len(self._traced)
        traced = self._for(portion.iterator.element_spec)
        self._engine.equalise(self.model)
        began = time.perf_counter()
        if self.model.run_eagerly:
            outputs = self._eagerly(traced, portion)
        else:
            call = traced.calls["sure" if portion.sure else "unsure"]
            limit = tf.constant(portion.steps)
            try:
                outputs = call(portion.iterator, limit, self._engine.shares, self._words())
            except tf.errors.OutOfRangeError:
                raise StopIteration from None
        logs, rows, done, stops, seconds = outputs
        portion.done = int(done)
        if portion.done == 0:
            raise StopIteration
        portion.pace.measured(float(seconds) / self._engine.members)
        new = len(self._traced) > count
        self.step_s = 0.0 if new else (time.perf_counter() - began) / portion.done
        self._engine.on_portion(self, logs, int(rows), portion.done, bool(stops > 0))
        return logs

    def _run_batch(self, data: Any) -> dict[str, Any]:
        data = tf.nest.map_structure(lambda leaf: None if leaf is None else tf.convert_to_tensor(leaf), data)
        traced = self._for(tf.nest.map_structure(_spec, data))
        self._engine.equalise(self.model)
        call = traced.calls.get("batch", functools.partial(self._on_batch, traced))
        logs, rows, _, stops, _ = call(data, self._engine.shares, self._words())
        self._engine.on_portion(self, logs, int(rows), 1, bool(stops > 0))
        return logs

    def _words(self) -> Any:
        """What this member tells the others at the next meeting: asked to stop, its newest step's time."""
        return tf.constant([float(self._engine.asked_to_stop()), self.step_s], tf.float64)

    # --- tracing

    def _for(self, data_spec: Any) -> Traced:
        """The step for batches like `data_spec` with any number of rows."""
        spec = _free_rows(data_spec)
        key = repr(spec)
        if key not in self._traced:
            self._traced[key] = self._eager() if self.model.run_eagerly else self._trace(spec)
        return self._traced[key]

    def _eager(self) -> Traced:
        return Traced(self._one_step, self._state(local_state.statistic_variables(self.model)))

    def _trace(self, data_spec: Any) -> Traced:
        """Traces the step; again if that made variables, as a trace that makes them runs only once."""
        shares_spec = tf.TensorSpec([self._engine.members], tf.int64)
        self._build(data_spec)
        for _ in range(_TRACES):
            before = self._variables()
            step = tf.function(self._one_step, autograph=False).get_concrete_function(data_spec, shares_spec)
            if self._variables() == before:
                break
        written = local_state.written(step.graph, local_state.statistic_variables(self.model))
        traced = Traced(step, self._state(written))
        for name, call in (("sure", self._sure), ("unsure", self._unsure), ("batch", self._on_batch)):
            bound = functools.partial(call, traced)
            traced.calls[name] = tf.function(bound, autograph=False, reduce_retracing=True)
        return traced

    def _build(self, data_spec: Any) -> None:
        """Has Keras make the variables of model, metrics and optimizer, which is cheaper than a trace.

        Only where the step would make all of them: evaluate makes no optimizer's, a step of one's own others.
        """
        optimizer = self.model.optimizer
        if self.is_training and type(self.model).train_step is not private.TensorFlowTrainer.train_step:
            return
        if not self.is_training and optimizer is not None and not optimizer.built:
            return
        try:
            self.model._symbolic_build(data_batch=data_spec)
        except Exception:
            _log.debug("%s is built by its first step", self.model.name, exc_info=True)

    def _variables(self) -> list[int]:
        found = local_state.metric_variables(self.model) + local_state.statistic_variables(self.model)
        return [*(id(v) for v in found), *(id(v) for v in model_state.variables(self.model))]

    def _state(self, statistics: list[Any]) -> LocalState:
        return LocalState(local_state.metric_variables(self.model), statistics, self._engine.collectives)

    def _one_step(self, data: Any, shares: Any) -> tuple[Any, Any, Any, Any]:
        """One step on a global batch: (logs of the own rows, own weight, global rows, own rows there)."""
        data = tf.nest.map_structure(steps.without_optional, data)
        rows = steps.rows_of(data)
        begin, end = steps.bounds(rows, shares, self._engine.rank)
        present = end > begin
        weight = tf.cast(end - begin, tf.float32) / tf.cast(rows, tf.float32)
        # A member without rows computes on the batch's first row, and all of it counts for nothing.
        own = steps.take_rows(data, tf.where(present, begin, 0), tf.where(present, end, 1))
        engine = self._engine
        step = Step(engine.collectives, weight, present, rows, engine.gauge, engine.wire)
        with steps.active(step):
            logs = self._step_function(own)
        return logs, weight, rows, present

    # --- several steps

    def _step(self, traced: Traced, data: Any, shares: Any) -> Any:
        before = traced.state.snapshot()
        outputs = traced.step(data, shares)
        traced.state.restore_unless(outputs[3], before)
        return outputs

    def _sure(self, traced: Traced, iterator: Any, limit: Any, shares: Any, words: Any) -> Any:
        def body(done: Any, *_: Any) -> Any:
            return done + 1, *_flat(self._step(traced, iterator.get_next(), shares))

        before = traced.state.snapshot()
        done, *last = _loop(lambda done, *_: done < limit, body, [tf.constant(0)], traced.step)
        return self._meet(traced, before, _packed(traced.step, last), done, shares, words)

    def _unsure(self, traced: Traced, iterator: Any, limit: Any, shares: Any, words: Any) -> Any:
        """As `_sure`, for data that may end: stops before the first step that has none."""

        def body(done: Any, batch: Any, *_: Any) -> Any:
            outputs = self._step(traced, batch.get_value(), shares)
            # Never one more than the limit: what is taken from an iterator is gone.
            batch = tf.cond(done + 1 < limit, iterator.get_next_as_optional, lambda: batch)
            return done + 1, batch, *_flat(outputs)

        before = traced.state.snapshot()
        start = [tf.constant(0), iterator.get_next_as_optional()]
        done, _, *last = _loop(
            lambda done, batch, *_: (done < limit) & batch.has_value(), body, start, traced.step
        )
        return self._meet(traced, before, _packed(traced.step, last), done, shares, words)

    def _eagerly(self, traced: Traced, portion: Portion) -> Any:
        before = dict(zip(map(id, traced.state.variables), traced.state.snapshot(), strict=True))
        last, done = None, 0
        for _ in range(portion.steps):
            try:
                data = next(portion.iterator)
            except StopIteration:
                break
            last, done = self._step(traced, data, self._engine.shares), done + 1
        if last is None:
            raise StopIteration
        # The first step makes variables; what a metric begins with is zero.
        traced.state = self._state(local_state.statistic_variables(self.model))
        values = [before.get(id(v), tf.zeros_like(v)) for v in traced.state.variables]
        return self._meet(traced, values, last, done, self._engine.shares, self._words())

    def _on_batch(self, traced: Traced, data: Any, shares: Any, words: Any) -> Any:
        before = traced.state.snapshot()
        last = self._step(traced, data, shares)
        return self._meet(traced, before, last, tf.constant(1), shares, words)

    # --- meeting

    def _meet(self, traced: Traced, before: list[Any], last: Any, done: Any, shares: Any, words: Any) -> Any:
        """Metrics and statistics of all members, and the logs they give; what members told each other."""
        logs, weight, rows, _ = last
        share = tf.cast(shares[self._engine.rank] / tf.reduce_sum(shares), tf.float64)
        scalars = {
            name: tf.math.multiply_no_nan(tf.cast(value, tf.float32), weight)
            for name, value in (logs.items() if isinstance(logs, dict) else ())
            if getattr(value, "shape", None) == () and value.dtype not in (tf.bool, tf.string)
        }
        stops, seconds, *sums = traced.state.meet(before, share, [words[0], words[1], *scalars.values()])
        averages = dict(zip(scalars, sums, strict=True))
        results = self._metric_results()
        if isinstance(logs, dict):
            # What is a metric is the metric of all rows; another value is the rows' mean in the last step.
            logs = {name: results.get(name, averages.get(name, logs[name])) for name in logs}
        return logs, rows, done, stops, seconds

    def _metric_results(self) -> dict[str, Any]:
        return {name: tf.convert_to_tensor(value) for name, value in self.model.get_metrics_result().items()}


def _loop(condition: Callable[..., Any], body: Callable[..., Any], start: list[Any], step: Any) -> Any:
    """A while loop over `start` and the step's outputs, which are zeros before the first step."""
    specs = tf.nest.flatten(step.structured_outputs)
    shapes = [tf.TensorShape([size or 0 for size in spec.shape.as_list()]) for spec in specs]
    zeros = [tf.zeros(shape, spec.dtype) for shape, spec in zip(shapes, specs, strict=True)]
    invariants = [tf.nest.map_structure(_invariant, value) for value in start]
    return tf.while_loop(
        condition,
        body,
        [*start, *zeros],
        shape_invariants=[*invariants, *(spec.shape for spec in specs)],
        parallel_iterations=1,
    )


def _invariant(value: Any) -> Any:
    return value.shape if isinstance(value, tf.Tensor) else tf.type_spec_from_value(value)


def _packed(step: Any, outputs: list[Any]) -> Any:
    return tf.nest.pack_sequence_as(step.structured_outputs, outputs)


def _flat(outputs: Any) -> list[Any]:
    return [tf.convert_to_tensor(value) for value in tf.nest.flatten(outputs)]


def _spec(leaf: Any) -> Any:
    return None if leaf is None else tf.TensorSpec(leaf.shape, leaf.dtype)


def _free_rows(spec: Any) -> Any:
    """Specs with any number of rows."""

    def free(leaf: Any) -> Any:
        if isinstance(leaf, tf.TensorSpec) and leaf.shape.rank:
            return tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype)
        return leaf

    return tf.nest.map_structure(free, spec)
