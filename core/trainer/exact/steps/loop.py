"""Runs steps of one model: several in one call into TensorFlow, then one meeting of the members."""

from __future__ import annotations

import functools
import itertools
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from core.trainer.exact.keras import local_state, model_state
from core.trainer.exact.keras.local_state import LocalState
from core.trainer.exact.members import agreement
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.collectives import Collectives, LeftMidway
from core.trainer.exact.members.step import Step
from core.trainer.exact.members.step_meter import StepMeter
from core.trainer.exact.members.trace_record import TraceRecord
from core.trainer.exact.steps import auditable, calibration, data_end, log_values, while_loop
from core.trainer.exact.steps.audit import Auditor
from core.trainer.exact.steps.batch_queue import BatchQueue
from core.trainer.exact.steps.calls import TracedCalls
from core.trainer.exact.steps.course import unaudited_among
from core.trainer.exact.steps.data import Portion, next_batches
from core.trainer.exact.steps.division import Sharings
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.random_positions import Positions
from core.trainer.exact.steps.rerun import Rerun, go_back
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
from core.trainer.exact.steps.undo import EagerUndo, Undo, handles_of

_log = logging.getLogger(__name__)
_TRACES = 4
"""Most traces of a step: the first one creates variables, which may make the next one create more."""


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
        self._calls = TracedCalls(engine, model)
        self._queues: dict[str, BatchQueue] = {}
        self._rerun = Rerun() if is_training else Rerun(most_bytes=0)
        self._audits = Auditor(engine, model, is_training=is_training)
        self._positions: defaultdict[str, Positions] = defaultdict(Positions)
        self._record = TraceRecord()
        """The newest trace's records."""
        self.sent_bits = 0
        """Bits of each number of gradients in the newest call, if they travelled in fewer than they have."""
        if model.jit_compile:
            why = "laptops exchange gradients inside a step, and XLA cannot compile that"
            if engine.sync != "exact":
                why = "shares may change, and XLA would compile a step anew for each number of rows"
            engine.say_once(f"jit_compile is ignored: {why}. The result is the same.")

    def __call__(self, source: Portion | Iterator[Batch]) -> Logs:
        if isinstance(source, Portion):
            with data_end.as_in_keras(self.engine, self.model, self._traced, source):
                return self._run(source)
        with self.engine.in_thread("train_on_batch" if self.is_training else "test_on_batch"):
            return self._run_batch(next(source))

    def prepare(self, data_spec: Spec) -> None:
        """Traces the step for batches like `data_spec`, which creates every variable that it needs."""
        self._traced_for(data_spec)

    def _run(self, portion: Portion) -> Logs:
        engine, spec = self.engine, portion.iterator.element_spec
        batch = next(portion.iterator) if engine.first_of_call(self.is_training) else None
        first = self._first(self._traced_for(spec, batch), batch, spec)
        results = [] if first is None else [self._audits.passed(self._traced_for(spec), first)]
        while (left := portion.steps - sum(each.done for each in results)) > 0:
            traced = self._traced_for(spec)
            self._share(traced)
            ahead = self._audits.ahead(traced, left, portion.steps - left)
            if ahead == 0:
                result = self._audited_next(traced, portion.iterator, portion.steps - left)
            elif self._rerun.begin(traced):
                batches = self._rerun.read(portion.iterator, ahead or left)
                result = self._of_batches(traced, batches, spec) if batches else None
            else:
                result = self._meet_after(traced, portion, ahead or left)
            if result is None:
                break
            results.append(self._audits.passed(self._traced_for(spec), result))
            if result.done < (1 if ahead == 0 else ahead or left):
                break  # The data has ended.
        if not results:
            raise StopIteration
        traced, done = self._traced_for(spec), sum(each.done for each in results)
        timed = next((each for each in reversed(results) if each.timed), results[-1])
        stop = any(each.stop for each in results)
        result = replace(timed, logs=results[-1].logs, rows=results[-1].rows, done=done, stop=stop)
        portion.done = done
        if portion.pace.each_batch:
            self._rerun.drop()
        if result.timed:
            portion.pace.measured(result.mean_s)
            engine.keeper.passed(result.mean_s * result.done)
        engine.on_portion(self.model, result, self.is_training)
        self._balance(traced, result)
        portion.pace.brief = traced.balancer is not None and traced.balancer.unsure
        return result.logs

    def _first(self, traced: Traced, batch: Batch | None, spec: Spec) -> PortionResult | None:
        """A call's first step, on `batch`, which was read to be checked; None if no batch was."""
        self.engine.equalise(self.model)
        if batch is None:
            self._portion_begins(traced, self.engine.fit.global_batch or 0)
            return None
        if self.model.run_eagerly:
            return self.call(traced, "eagerly", iter([batch]), 1)
        if calibration.wanted(self, traced):
            calibration.calibrate(self, traced, calibration.repeated(batch, spec))
        self._share(traced)
        self._portion_begins(traced, steps.count_rows(batch))
        if self._audits.ahead(traced, 1) == 0:
            return self._audited(traced, batch, spec)
        self._rerun.begin(traced)
        self._rerun.add([batch])
        return self._of_batches(traced, [batch], spec)

    def _portion_begins(self, traced: Traced, rows: int) -> None:
        self._audits.portion_begins(traced, rows)
        if self.engine.fit.batch == 0:
            self._rerun.drop()  # The script has seen the last epoch's results.

    def _audited_next(self, traced: Traced, iterator: Any, done: int) -> PortionResult | None:
        """The next step, audited; None if there is no data for it. ``done``: steps of the portion so far."""
        batches = next_batches(iterator, 1)
        return self._audited(traced, batches[0], iterator.element_spec, done) if batches else None

    def _audited(self, traced: Traced, batch: Batch, spec: Spec, done: int = 0) -> PortionResult:
        return self._audit(traced, spec, batch, lambda each: self._of_batches(each, [batch], spec), done)

    def _audit(
        self, traced: Traced, spec: Spec, batch: Batch, run: Callable[[Traced], PortionResult], done: int = 0
    ) -> PortionResult:
        """Compares a batch's step, done by `run`, with what one member computes from all rows.

        A wrong step is repeated whole, like all later ones; so are earlier ones in doubt, if possible.
        """
        key, step = repr(while_loop.free_rows(spec)), self.engine.step + done + 1
        result, findings = self._audits.audited(traced, batch, lambda: run(traced), step)
        if not self._audits.is_wrong(findings):
            self._sharings.report_metrics(findings)
            self._rerun.passed(traced, batch)
            if self.is_training:
                self.engine.keeper.sure_step = step
            return result
        again = self._rerun.take_back(traced)
        sure_step = self._sharings.report_findings(key, traced, findings, step, again=len(again))
        if self.is_training and not self._positions[key]:  # Checkpoints do not contain positions.
            go_back(self.engine, traced.course, sure_step, step)
        traced = self._traced[key] = self._trace(while_loop.free_rows(spec))
        if again:
            self._of_batches(traced, again, spec)
        return run(traced)

    def _of_batches(self, traced: Traced, batches: Sequence[Batch], spec: Spec) -> PortionResult:
        """Steps on batches that were already read: at least one."""
        queue = self._queues.get(repr(spec)) or self._queues.setdefault(repr(spec), BatchQueue(spec))
        results = [self.call(traced, "sure", iterator, count) for iterator, count in queue.of(batches)]
        return replace(results[-1], done=len(batches))

    def _run_batch(self, data: Batch) -> Logs:
        data = tf.nest.map_structure(lambda leaf: None if leaf is None else tf.convert_to_tensor(leaf), data)
        first = self.engine.first_batch(self.model, self.is_training)
        spec = tf.nest.map_structure(while_loop.spec_of, data)
        known = self._traced.get(repr(while_loop.free_rows(spec)))
        # Batches of another kind may come at any time, and a single row says nothing about a loss.
        is_checked = first or known is None or (not known.judged and steps.count_rows(data) > 1)
        traced = self._traced_for(spec, data if is_checked else None)
        self.engine.equalise(self.model)
        self._share(traced)

        def run(each: Traced) -> PortionResult:
            return self._run_call(each, "batch", functools.partial(self._calls.on_batch, each), data)

        self._audits.portion_begins(traced, steps.count_rows(data))
        due = self._audits.ahead(traced, 1) == 0
        result = self._audit(traced, spec, data, run) if due else run(traced)
        self._rerun.drop()
        traced = self._traced_for(spec)
        self._audits.passed(traced, result)
        self.engine.on_portion(self.model, result, self.is_training)
        self._balance(traced, result)
        return result.logs

    def _meet_after(self, traced: Traced, portion: Portion, steps: int) -> PortionResult | None:
        """Runs the next steps of a portion; None if there are none, or no data for the first one."""
        if steps == 0:
            return None
        result = self.call(traced, "sure" if portion.sure else "unsure", portion.iterator, steps)
        return result if result.done else None

    def call(self, traced: Traced, name: str, iterator: Any, steps: int) -> PortionResult:
        """Runs `steps` steps in one call into TensorFlow. Raises StopIteration if `iterator` has too few."""
        if self.model.run_eagerly:
            eagerly = functools.partial(self._eagerly, traced)
            return self._run_call(traced, "eagerly", eagerly, iterator, steps)
        try:
            return self._run_call(traced, name, None, iterator, tf.constant(steps))
        except tf.errors.OutOfRangeError:
            raise StopIteration from None

    def _run_call(
        self, traced: Traced, name: str, untraced: Callable[..., CallOutputs] | None, *source: Any
    ) -> PortionResult:
        """Runs the call `name` on `source`, or `untraced` if there is none; repeats it if a member leaves."""
        call = traced.calls.get(name, untraced)
        assert call is not None
        while True:
            if self.engine.update_members():
                self._share(traced)
            undo = traced.undo or EagerUndo(handles_of(self.model), source[0])
            given = (iter(undo), *source[1:]) if isinstance(undo, EagerUndo) and name == "eagerly" else source
            run = functools.partial(self._calls.run, traced, name, call, self._audits.under_way, *given)
            try:
                result, audits = self.engine.collectives.atomically(run)
            except LeftMidway:
                batches = self.engine.take_back(undo)
            else:
                self._audits.compare(audits)
                record = self._record if name == "eagerly" else traced.record
                self.sent_bits = self._sharings.report_sent(traced, record)
                return result
            if name == "eagerly":
                source = (itertools.chain(batches, source[0]), *source[1:])
            elif batches:
                iterator, limit = source
                batches += next_batches(iterator, int(limit) - len(batches))
                return self._of_batches(traced, batches, iterator.element_spec)

    @property
    def unaudited(self) -> str:
        return unaudited_among(self._traced.values())

    def _share(self, traced: Traced) -> None:
        """Sets the shares of this kind of step."""
        if traced.balancer is not None:
            traced.balancer.divide_among(self.engine.present)
            self.engine.set_shares(traced.balancer.shares)

    def _balance(self, traced: Traced, result: PortionResult) -> None:
        """Lets shares follow the members' speeds. All members compute the same, from the same numbers."""
        if not (self.engine.balance and self.is_training and result.timed) or traced.sharing.whole:
            return
        if traced.balancer is None:
            traced.balancer = calibration.uncalibrated(result.rows, self.engine.share_numbers)
            traced.balancer.divide_among(result.met)
        own_s = dict(zip(result.met, result.own_s, strict=True))
        if result.rows == traced.balancer.rows and traced.balancer.measured(own_s, min(result.wait_s)):
            self.engine.set_shares(traced.balancer.shares)

    # --- tracing

    def _traced_for(self, data_spec: Spec, batch: Batch | None = None) -> Traced:
        """The step for batches like `data_spec` with any number of rows. ``batch``: the first of a call."""
        spec = while_loop.free_rows(data_spec)
        key = repr(spec)
        same = batch is None or self.engine.agree_on_data(batch)
        if key not in self._traced or (batch is not None and not self._sharings.fits(key, batch)):
            self._sharings.check_model(key, batch)
            self._traced[key] = self._eager(key) if self.model.run_eagerly else self._trace(spec)
        if batch is not None and not self._traced[key].judged and steps.count_rows(batch) > 1:
            self.engine.equalise(self.model)
            seen = batch if same else agreement.with_chiefs_x(self.engine.collectives, batch)
            traced = self._traced[key] = self._checked(key, spec, seen)
            traced.judged = True
            self._sharings.report_not_compiled(traced, traced.record)
        if not same and self.is_training and self._sharings.of(key).whole:
            raise agreement.batches_differ()
        return self._traced[key]

    def _checked(self, key: str, spec: Spec, batch: Batch) -> Traced:
        trace = functools.partial(self._trace, spec)
        if not self.model.run_eagerly:
            return self._sharings.settle(key, batch, self._traced[key], trace)
        try:
            traced = trace()  # Only to be checked: the step then runs eagerly with the sharing found.
        except Exception as why:
            _log.info("A step that runs eagerly cannot be traced", exc_info=True)
            self._sharings.share_nothing(key, f"what runs eagerly cannot be checked ({type(why).__name__})")
        else:
            self._sharings.settle(key, batch, traced, trace)
        return self._eager(key)

    def _eager(self, key: str) -> Traced:
        plan = self._sharings.of(key)
        one = functools.partial(self._one_step, plan, self.engine.collectives, self.engine.meter)
        return Traced(one, self._state(plan), sharing=plan, judged=plan.whole)

    def _trace(self, data_spec: Spec) -> Traced:
        """Traces the step, repeatedly while that creates variables: such a trace can run only once."""
        key = repr(data_spec)
        model_state.build(self.model, data_spec, is_training=self.is_training)
        for _ in range(_TRACES):
            before = self._variables()
            step = self.step(data_spec, self.engine.collectives, self.engine.meter)
            if self._variables() == before:
                break
        if not self._sharings.write_alike(key, step, self._record):
            return self._trace(data_spec)
        self._sharings.report_functions(self._record)
        return self._called(step, data_spec)

    def _called(self, step: Any, data_spec: Spec) -> Traced:
        plan = self._sharings.of(repr(data_spec))
        state, whole = self._state(plan), plan.whole
        traced = Traced(step, state, record=self._record, sharing=plan, judged=whole, calibrated=whole)
        traced.log_values = log_values.of_metrics(step, state.variables)
        traced.undo = Undo(handles_of(self.model, step), data_spec, auditable.unrepeatable_op(step.graph))
        calls = self._calls
        for name, call in (("sure", calls.sure), ("unsure", calls.unsure), ("batch", calls.on_batch)):
            bound = functools.partial(call, traced)
            traced.calls[name] = tf.function(bound, autograph=False, reduce_retracing=True)
        return traced

    def step(self, data_spec: Spec, collectives: Collectives, meter: StepMeter) -> Any:
        """One step, traced for batches like `data_spec` with any number of rows."""
        shares_spec = tf.TensorSpec([self.engine.members], tf.int64)
        spec = while_loop.free_rows(data_spec)
        one = functools.partial(self._one_step, self._sharings.of(repr(spec)), collectives, meter)
        drawing = self._positions[repr(spec)].around(one)
        return tf.function(drawing, autograph=False).get_concrete_function(spec, shares_spec)

    def _variables(self) -> list[int]:
        found = local_state.metric_variables(self.model)
        return [*(id(v) for v in found), *(id(v) for v in model_state.variables(self.model))]

    def _state(self, plan: Sharing) -> LocalState:
        """The state that members add up when they meet: nothing if each computes everything."""
        metrics = [] if plan.whole else local_state.metric_variables(self.model)
        return LocalState(metrics, self.engine.collectives)

    def _one_step(
        self, plan: Sharing, collectives: Collectives, meter: StepMeter, data: Batch, shares: Tensor
    ) -> StepOutputs:
        """One step on a global batch."""
        data = tf.nest.map_structure(steps.without_optional, data)
        rows = steps.rows_of(data)
        meter.data.take([(name == "x", tensor) for name, tensor in agreement.parts(data)])
        if plan.whole:
            return StepOutputs(self._step_function(data), tf.constant(1.0), rows, tf.constant(True))
        begin, end = steps.bounds(rows, shares, self.engine.rank)
        present = end > begin
        weight = tf.cast(end - begin, tf.float32) / tf.cast(rows, tf.float32)
        step = Step(collectives, weight, present, rows, meter, self.engine.wire, begin=begin, end=end)
        step.at_tape, step.own_step, step.sums = self._sharings.at_tape, self._sharings.own_step, plan.sums
        step.gathers, step.residuals = plan.gathers, self._sharings.residuals
        step.sums_alone = auditable.sums_alone(self.engine, self.model)
        step.record.mark_own([begin, end])
        self._record = step.record
        meter.begin_trace()
        # A member without rows computes on the batch's first row; the result does not count.
        own = steps.take_rows(data, tf.where(present, begin, 0), tf.where(present, end, 1))
        with steps.active(step):
            logs = self._step_function(own)
        return StepOutputs(logs, weight, rows, present)

    def _eagerly(
        self, traced: Traced, iterator: Iterator[Batch], limit: int, shares: Tensor, report: Tensor
    ) -> CallOutputs:
        known, before = traced.state.variables, self._calls.before(traced)
        last, done, rows = None, 0, while_loop.no_rows()
        for data in itertools.islice(iterator, int(limit)):
            last = self._calls.step(traced, data, shares)
            done, rows = done + 1, rows + last.rows
            self._sharings.report_functions(self._record)
            self._sharings.report_not_compiled(traced, self._record)
        if last is None:
            raise StopIteration
        # The first step creates variables; a metric starts at zero.
        traced.state = self._state(traced.sharing)
        values = dict(zip(map(id, known), before.values, strict=True))
        before.values = [values.get(id(v), tf.zeros_like(v)) for v in traced.state.variables]
        return self._calls.meet(traced, before, last, tf.constant(done), rows, report)
