"""How a model's steps are shared, for each kind of data: by rows, unless the trace shows otherwise.

If something is not a mean over rows, and cannot be made one, every member computes it whole: exact, but no
faster. A message names the script line responsible, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from core.project.checkpoint_store import Unaudited
from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras import local_state
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.fewer_bits import Residuals
from core.trainer.exact.members.trace_record import Scalar, Site, TraceRecord, line_of
from core.trainer.exact.steps import auditable, probe
from core.trainer.exact.steps.audited_values import Discrepancy, metric_of
from core.trainer.exact.steps.course import NOT_AUDITED, UNAUDITED_BEFORE, Course, unaudited_before
from core.trainer.exact.steps.engine import Engine
from core.trainer.exact.steps.own_writes import OwnWrite, metrics_in_gradients, own_writes, states
from core.trainer.exact.steps.probe import Verdict
from core.trainer.exact.steps.result import Batch, Sharing, Traced
from core.vocabulary.text import capitalised

_GATHERED_BYTES = 1 << 20
"""Most bytes of predictions and targets to gather: more take as long as a large model's gradients."""
ROWS_DIFFER = "a batch has tensors without an entry a row"


class Sharings:
    """How one model's training or testing steps are shared; the same on every member."""

    def __init__(self, engine: Engine, model: Any, *, is_training: bool) -> None:
        self._engine = engine
        self._model = model
        self._is_training = is_training
        self._known: dict[str, Sharing] = {}
        self._metrics_reported: set[str] = set()
        self.residuals = Residuals()

    @property
    def at_tape(self) -> bool:
        """Whether members reduce gradients where a tape returns them: the script's own step may use them."""
        return self._is_training and self.own_step

    @property
    def own_step(self) -> bool:
        """Whether the script wrote the step."""
        name = "train_step" if self._is_training else "test_step"
        return getattr(type(self._model), name) is not getattr(private.TensorFlowTrainer, name)

    @property
    def _weights(self) -> list[Any]:
        return local_state.values_of(self._model.trainable_variables)

    @property
    def _unaudited_before(self) -> Unaudited:
        fit = self._engine.innermost
        of_this = self._is_training and fit is not None and fit.model is self._model
        return unaudited_before(fit.progress) if of_this and fit is not None else ""

    def of(self, key: str) -> Sharing:
        return self._known.get(key, Sharing())

    def check_model(self, key: str, batch: Batch | None) -> None:
        """Checks, before the step is traced, what the model and the first batch, if any, show."""
        if self._engine.keeper.whole:
            self.share_nothing(key, "an audit found, before the training went back, what needs whole batches")
        elif _batch_is_fixed(self._model):
            self.share_nothing(key, "the model's input has a fixed batch size")
        elif batch is not None and steps.rows_differ(batch):
            self.share_nothing(key, ROWS_DIFFER)
        elif self._model.run_eagerly and self.own_step:
            # Tracing would run the script's code once more, which the code may notice.
            name = "train_step" if self._is_training else "test_step"
            self.share_nothing(key, f"{name} runs eagerly, so its loss cannot be checked beforehand")
        elif self._model.run_eagerly and (own := _own_code(self._model)):
            self.share_nothing(key, f"{own} runs eagerly, so it cannot be checked beforehand")

    def fits(self, key: str, batch: Batch) -> bool:
        """Whether another call's first batch may be shared like earlier ones."""
        return self.of(key).whole or not steps.rows_differ(batch)

    def share_nothing(self, key: str, why: str) -> None:
        self._known[key] = Sharing(whole=True)
        self._engine.compute_whole(
            self._model, why, too_late=bool(self._unaudited_before) or self._engine.keeper.whole_too_late
        )

    def report_functions(self, record: TraceRecord) -> None:
        """Reports functions that draw different random numbers on each member."""
        for name in sorted(record.own_draws):
            how = "With run_eagerly" if name == "run_eagerly" else f"With {name} in a step"
            self._engine.say_once(
                f"{how}, each laptop draws its own random numbers: the result is as good as with another "
                "seed, but not that of one laptop.",
                difference=True,
            )

    def report_not_compiled(self, traced: Traced, record: TraceRecord) -> None:
        """Reports ignored jit_compile, once the step is judged: one on whole batches inlines nothing."""
        for name in () if traced.sharing.whole else sorted(record.not_compiled):
            self._engine.say_once(
                f"jit_compile of {name} is ignored, because Tandem inlines it into the step. The result is "
                "the same."
            )

    def report_sent(self, traced: Traced, record: TraceRecord) -> int:
        """Bits of each number of the step's gradients, if they travel in fewer than they have; else 0."""
        bits = 0 if traced.sharing.whole else record.sent_bits
        if bits:
            name = self._model.name
            self._engine.say_once(
                f"{name}: gradients are sent in {bits} bits. The result is not that of one machine."
            )
        return bits

    def write_alike(self, key: str, step: Any, record: TraceRecord) -> bool:
        """Whether a traced step writes the same on all members; if not, nothing is shared from then on."""
        if self.of(key).whole:
            return True
        local = local_state.metric_variables(self._model)
        writes = own_writes(step, record, [*local, *self._engine.meter.variables, *self.residuals.variables])
        if writes:
            self.share_nothing(key, _words_of_write(self._model, writes[0]))
        elif record.by_length is not None:
            at = _at(line_of(record.by_length.op))
            self.share_nothing(
                key, f"a table is read by places in rows that are as long as the longest one{at}"
            )
        elif read := metrics_in_gradients(step, record.gradients, private.every_metric(self._model)):
            self.share_nothing(key, f"the gradients depend on the metric {read[0]!r}")
        return not self.of(key).whole

    def settle(self, key: str, batch: Batch, traced: Traced, trace: Callable[[], Traced]) -> Traced:
        """The step, retraced if necessary, shared as the losses of `batch`, a call's first one, allow."""
        while not traced.judged and not self._judge(key, traced, batch):
            traced = trace()
        if self._is_training and not traced.sharing.whole and not self._judge_gradients(key, traced, batch):
            traced = trace()
        return traced

    def _judge_gradients(self, key: str, traced: Traced, batch: Batch) -> bool:
        """Whether the gradients allow the step to be shared. They are checked only if audits will not do it.

        They are checked on the first batch; then, with other weights, on part of its entries, and on rows
        from the middle of the data if it is in arrays.
        """
        engine, record, rows = self._engine, traced.record, steps.count_rows(batch)
        if not record.gradients or engine.draws_apart or auditable.is_narrow(engine, self._model):
            return True
        is_unable = bool(auditable.unrepeatable(engine, self._model, traced))
        on_card = bool(tf.config.list_logical_devices("GPU"))
        own = [float(is_unable), float(auditable.fitting_rows(traced, rows)), float(on_card)]
        gathered = engine.collectives.gather_numbers(own, "to decide on audits")
        unable, fitting, cards = zip(*gathered, strict=True)
        if (not any(unable) and max(fitting) >= rows) or fitting[0] < 2:
            return True
        # How many rows fit into a card's memory is unknown; about as many as in a step surely do.
        most = max(2, rows // engine.members) if any(cards) else rows
        first = steps.take_rows(batch, 0, min(int(fitting[0]), most, probe.GRADIENT_ROWS))
        batches = [first, probe.thinned(first), *self._middle(first)]
        verdict = probe.gradients_judged(engine, traced, batches, self._weights, coarse=any(cards))
        if verdict == "whole":
            self.share_nothing(
                key, f"the gradients are of the batch as a whole, not a mean over its rows{_at_loss(record)}"
            )
        elif verdict == "unseen" and any(unable):
            what = "whether the gradients are a mean over the rows of a batch"
            self.share_nothing(key, f"{what} cannot be checked beforehand")
        return not self.of(key).whole

    def _middle(self, batch: Batch) -> list[Batch]:
        """A batch like this from the middle of the model's data, if there is one."""
        fit = self._engine.innermost  # Of another model, if its callback trains this one.
        if fit is None or fit.model is not self._model or fit.iterator is None:
            return []
        middle = fit.iterator.middle(batch)
        is_alike = middle is not None and steps.count_rows(middle) == steps.count_rows(batch)
        return [middle] if is_alike else []

    def _judge(self, key: str, traced: Traced, batch: Batch) -> bool:
        """Whether the losses of `batch`, a call's first one, are what the step assumes.

        If not, records another sharing; the step must be traced and judged again.
        """
        sites: set[Site] = {"loss", "gradient"} if self._is_training else {"metric"}
        half = "16" in self._model.dtype_policy.compute_dtype
        known = traced.sharing
        verdict = probe.judged(self._engine, traced, batch, sites, self._weights, half=half)
        found = self._next(traced.record, known, verdict, steps.count_rows(batch))
        if found.whole:
            self.share_nothing(key, _words_of_loss(traced.record, verdict))
        elif found.gathers and not known.gathers and self._unaudited_before == "shared":
            words = capitalised(_words_of_loss(traced.record, verdict))
            self._engine.say_once(
                f"{words}. {UNAUDITED_BEFORE} {NOT_AUDITED}",
                difference=True,
            )
        elif verdict.unseen is not None:
            self._report_unseen(verdict.unseen)
        elif self._is_training and found == known:
            found = self._judge_metrics(traced, batch, half=half)
        self._known[key] = found
        return found == known

    def _judge_metrics(self, traced: Traced, batch: Batch, *, half: bool) -> Sharing:
        """Records which metrics are sums; reports those of the batch as a whole, whose values will differ."""
        record, known = traced.record, traced.sharing
        unsummed: list[Scalar] = []
        unseen: list[Scalar] = []
        record.scalars += states(traced.step.graph, self._model.metrics)
        if any(scalar.site == "metric" and scalar.name != "loss" for scalar in record.scalars):
            verdict = probe.judged(self._engine, traced, batch, {"metric"}, self._weights, half=half)
            unsummed += [verdict.whole] if verdict.whole is not None else []
            unseen += [verdict.unseen] if verdict.unseen is not None else []
            known = replace(known, sums=known.sums | verdict.sums)
        if any(scalar.site == "state" for scalar in record.scalars):
            verdict = probe.judged(self._engine, traced, batch, {"state"}, self._weights, half=half)
            unsummed += verdict.unsummed
            unseen += [verdict.unseen] if verdict.unseen is not None else []
        for name in dict.fromkeys(scalar.name for scalar in unsummed):
            self._metrics_reported.add(name)
            self._report_metric(
                f"The metric {name!r} is of the batch as a whole, not a sum or a mean over its rows"
            )
        for name in dict.fromkeys(scalar.name for scalar in unseen):
            self._report_metric(
                f"Whether the metric {name!r} is a sum or a mean over rows cannot be checked beforehand"
            )
        return known

    def report_metrics(self, findings: Sequence[Discrepancy]) -> None:
        """Reports an audit's findings, except for metrics reported before."""
        for name in dict.fromkeys(metric_of(finding) for finding in findings):
            if name not in self._metrics_reported:
                self._report_metric(f"The metric {name!r} is not what the rows of a batch add up to")

    def report_findings(
        self, key: str, traced: Traced, findings: Sequence[Discrepancy], step: int, *, again: int
    ) -> int | None:
        """Reports an audit of `step` that found it wrong: nothing is shared from there on.

        ``again``: how many steps before it are repeated. Returns the last step known to be right if later
        steps that are not repeated may be wrong; otherwise None.
        """
        if not self._is_training:
            self._report_test(key, traced.course, findings)
            return None
        which = next(
            ("gradients are" for each in findings if each.kind == "gradients"), f"{findings[0].name} is"
        )
        self._known[key] = Sharing(whole=True)
        self._engine.whole.add(self._model)
        course = traced.course
        right, first = course.steps - again, step - again
        on = (
            f"From step {first} on every laptop computes each batch whole, since an audit found that {which} "
            f"of the batch as a whole there, not a mean over its rows"
            f"{_at_loss(traced.record)}.{course.cost_words}"
        )
        if right > course.confirmed:
            doubtful = right - course.confirmed
            some = (
                f"Steps {course.confirmed_at + 1} to {first - 1} were"
                if doubtful > 1
                else f"Step {first - 1} was"
            )
        elif course.may_have_missed(right):
            some = f"Some of the {right:,} steps before it were"
        elif self._unaudited_before and not course.is_known_since:
            some = UNAUDITED_BEFORE
        else:
            so_far = ", as far as the audits before it can tell" if right > course.certain else ""
            self._engine.say_once(
                f"{on} The result is exact{so_far}, but several laptops are no faster than one."
            )
            return None
        self._engine.say_once(
            f"{on} {some} not audited: the result may differ from that of one laptop.", difference=True
        )
        if right > course.confirmed:
            return course.confirmed_at
        return course.certain_at if course.may_have_missed(right) else None

    def _report_test(self, key: str, course: Course, findings: Sequence[Discrepancy]) -> None:
        """Reports an audit that found a step of a validation or of ``evaluate`` wrong."""
        self._known[key] = Sharing(whole=True)
        names = " and ".join(dict.fromkeys(repr(metric_of(finding)) for finding in findings))
        fit = self._engine.innermost
        of = "test_on_batch" if fit is None else "a validation" if fit.kind == "fit" else fit.kind
        on = (
            f"An audit of {of} found that {names} of {self._model.name} is not what the rows of a batch add "
            "up to: from there on every laptop computes each of its batches whole."
        )
        if course.may_have_missed(course.steps):
            self._engine.say_once(
                f"{on} Earlier values may differ from those of one laptop, and so may what a callback did by "
                "them.",
                difference=True,
            )
        else:
            self._engine.say_once(f"{on} The result is exact.")

    def _report_metric(self, what: str) -> None:
        self._engine.say_once(
            f"{what}: its value may differ from that of one laptop, and so may what a callback does by it. "
            "Nothing else in the training depends on it.",
            difference=True,
        )

    def _report_unseen(self, scalar: Scalar) -> None:
        """Reports a loss that could not be checked for lack of memory, which rules out whole batches, too."""
        self._engine.say_once(
            "A laptop does not have enough memory to check a whole batch before the first step: if the loss"
            f"{_at(line_of(scalar.tensor.op))} is of the batch as a whole, not a mean over its rows, the "
            "result is not that of one laptop. Use a smaller batch size to have this checked.",
            difference=True,
        )

    def _next(self, record: TraceRecord, known: Sharing, verdict: Verdict, rows: int) -> Sharing:
        if verdict.whole is not None:
            sizes = record.loss_row_bytes
            able = bool(sizes) and not verdict.broke
            small = able and all(size is not None and size * rows <= _GATHERED_BYTES for size in sizes)
            return Sharing(gathers=True) if small and not known.gathers else Sharing(whole=True)
        if verdict.unseen is not None and not verdict.no_memory:
            return Sharing(whole=True)
        found = verdict.sums - known.sums
        losses = {place for place in found if record.scalars[place].site != "gradient"}
        if losses:
            return replace(known, sums=known.sums | losses)  # Gradients follow from losses.
        if not found:
            return known
        return replace(known, sums=known.sums | found) if self.at_tape else Sharing(whole=True)


_FUNCTIONS = ("activation", "regularizer")
"""Endings of the names of a layer's functions that run in each step."""


def _own_code(model: Any) -> str:
    """What in a step of Keras' own runs code from the script, or ``""``."""
    for layer in private.layers_of(model):
        functions = [value for name, value in vars(layer).items() if name.endswith(_FUNCTIONS)]
        if type(layer).__name__ == "Lambda" or any(map(_is_own, (layer, *functions))):
            return f"the model {model.name}" if layer is model else f"the layer {layer.name}"
    return "a loss or metric of the script" if any(map(_is_own, private.compiled_with(model))) else ""


def _is_own(part: Any) -> bool:
    """Whether a function, the class of an object, or the function in a wrapper of Keras' is the script's."""
    part = private.function_of(part)
    module = getattr(part, "__module__", None) or type(part).__module__
    return part is not None and not isinstance(part, str) and not module.startswith(("keras.", "tensorflow."))


def _batch_is_fixed(model: Any) -> bool:
    """Whether the batch size is fixed, as in a stateful recurrent layer, which has a state for each row."""
    inputs = [each for each in private.flatten(getattr(model, "inputs", None) or []) if each is not None]
    return any(len(each.shape) > 0 and each.shape[0] is not None for each in inputs)


def _words_of_loss(record: TraceRecord, verdict: Verdict) -> str:
    if verdict.whole is None and verdict.unseen is not None:
        at = _at(line_of(verdict.unseen.tensor.op))
        return f"whether the loss{at} is a mean over the rows of a batch cannot be checked beforehand"
    scalar = verdict.whole or record.scalars[min(verdict.sums)]
    return f"the loss{_at(line_of(scalar.tensor.op))} is of the batch as a whole, not a mean over its rows"


def _at_loss(record: TraceRecord) -> str:
    """The script line of the losses, in brackets; "" if there are several, or none."""
    lines = {line_of(each.tensor.op) for each in record.scalars if each.site == "loss"} - {""}
    return f" (the loss: {lines.pop()})" if len(lines) == 1 else ""


def _words_of_write(model: Any, write: OwnWrite) -> str:
    return f"{_name(model, write.handle)} is written from the rows of a batch by the script{_at(write.line)}"


def _name(model: Any, handle: Any) -> str:
    for variable in model.variables:
        if getattr(getattr(variable, "value", variable), "handle", None) is handle:
            return f"the variable {variable.path}"
    return "a variable of the script's"


def _at(line: str) -> str:
    return f" ({line})" if line else ""
