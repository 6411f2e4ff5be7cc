"""One member alone: Keras' own fit, with callbacks that report, stop and write checkpoints. Any strategy."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import keras

from core.trainer.exact.interface import Checkpointing, Observer, StepReport, StopRequested
from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras.callback_kinds import listed, monitored
from core.trainer.exact.resume.fit_progress import FitProgress
from core.trainer.exact.resume.keeper import Keeper
from core.trainer.exact.resume.position import Positioned
from core.trainer.exact.steps.course import AuditTime
from core.trainer.exact.steps.recent_logs import RecentLogs

_T = TypeVar("_T")


class OneMember:
    """The training of one member alone, and its checkpoints."""

    def __init__(self, observer: Observer, checkpointing: Checkpointing | None) -> None:
        self.observer = observer
        self.trained: list[Any] = []
        self.step = 0
        self.epochs = 0
        self.stopping = False
        self.shares_kept = (1,)
        self.audits = AuditTime()
        self.steps_in_epoch: int | None = None
        self.opened: FitProgress | None = None
        """The fit to notify when Keras opens data."""
        self.said: dict[str, bool] = {}
        self.keeper = Keeper(checkpointing, self)

    def begin_after(self, step: int, epochs: int) -> None:
        self.step, self.epochs = step, epochs

    def from_chief(self, data: bytes, read: Callable[[bytes], _T]) -> _T:
        return read(data)

    def prepare(self, model: Any, iterator: Any) -> None:
        private.build(model, iterator.dataset.element_spec)

    def say_once(self, words: str, *, difference: bool = False) -> None:
        if words not in self.said:
            self.said[words] = difference
            self.observer.on_said(words, difference)

    def flush(self, model: Any, *, whole: bool = False) -> None:
        pass

    def began(self, model: Any) -> None:
        if not any(known is model for known in self.trained):
            self.trained.append(model)


class ReportingCallback(keras.callbacks.Callback):
    """Reports to the observer on the main thread, even batches whose end Keras signalled on another."""

    async_safe = True

    def __init__(
        self, host: OneMember, progress: FitProgress, global_batch: int | None, first_epoch: int
    ) -> None:
        super().__init__()
        self._first_epoch = first_epoch
        self._host = host
        self._progress = progress
        self._global_batch = global_batch
        self._epoch = 0
        self._last: tuple[int, Mapping[str, Any]] | None = None
        self._batches_reported = 0
        self._recent_logs = RecentLogs()
        self._since_s = time.perf_counter()
        """When the steps that are not reported yet began."""
        self._is_paused = True
        """The time until the next step begins counts for no step."""

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        restored = private.initial_epoch(self.model)
        if restored is not None and self._progress.resumed is None:
            self._first_epoch = restored
        self._host.steps_in_epoch = self.params["steps"]
        self._host.observer.on_fit_began(
            self.params["epochs"],
            self.params["steps"],
            self._global_batch,
            self._first_epoch,
            self._host.step,
            monitored(self._progress.callbacks),
        )

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._epoch, self._last, self._batches_reported = epoch, None, 0
        self._is_paused = True

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        if self._is_paused:
            self._is_paused, self._since_s = False, time.perf_counter()
        if self._last is not None and self._host.observer.step_due():
            self.catch_up()
        if self._host.observer.should_stop():
            self._host.stopping = True
            self.model.stop_training = True

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._last = (self._progress.done_with(batch), logs or {})

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        done, planned = self._batches_reported, self.params.get("steps")
        whole = not self._host.stopping if planned is None else done >= planned
        self._host.epochs += whole
        self._host.observer.on_epoch_ended(epoch, private.numbers(logs), done, whole)

    def count_from(self, batch: int) -> None:
        """Leaves out this epoch's steps up to `batch`, which the previous run reported."""
        self._batches_reported = batch

    def pause(self) -> None:
        """Stops the clock until the next step, as for a checkpoint, an epoch's end, or opening data."""
        self._is_paused = True

    def catch_up(self) -> None:
        """Reports every step that is done."""
        if self._last is None:
            return
        batch, logs = self._last
        done = batch - self._batches_reported
        if done <= 0:
            return
        self._host.step += done
        numbers = private.numbers(logs)  # On a GPU, a step is done once its output can be read.
        now = time.perf_counter()
        step_s = (now - self._since_s) / done
        self._batches_reported, self._since_s = batch, now
        self._host.observer.on_step(
            StepReport(
                step=self._host.step,
                epoch=self._epoch,
                batch=batch,
                steps_in_epoch=self.params.get("steps"),
                rows=self._progress.mean_rows(self._global_batch or 0, done, batch),
                logs=numbers,
                recent=self._recent_logs.since(self.model, self._epoch, numbers),
                step_s=step_s,
            )
        )


class OneMemberCallbacks(private.Callbacks):
    """Keras' list of callbacks, which run as in Keras. Reports the fit's position to its checkpoints."""

    def __init__(
        self, progress: FitProgress, report: ReportingCallback, callbacks: list[Any], **options: Any
    ) -> None:
        super().__init__([*callbacks, report], **options)
        self._progress = progress
        self._report = report
        self._batch_s = time.perf_counter()

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        self.set_params({**(self.params or {}), "steps": self._progress.batches_in_epoch})
        super().on_train_begin(logs)
        self._progress.train_begun(self.history)

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._batch_s = time.perf_counter()
        if not self._progress.epoch_begins(epoch):
            super().on_epoch_begin(epoch, logs)
            return
        for callback in (self.progress_bar, self._report):
            if callback is not None:
                callback.on_epoch_begin(epoch, logs)
        self._report.count_from(self._progress.batch)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        super().on_train_batch_end(batch, logs)
        keeper, now = self._progress.keeper, time.perf_counter()
        keeper.passed(now - self._batch_s)
        self._batch_s = now
        done = self._progress.done_with(batch)
        pauses = keeper.due or keeper.host.stopping or done == self._progress.batches_in_epoch
        if pauses:
            self._catch_up()
        self._progress.batch_ended(done, logs)
        if pauses:
            self._report.pause()

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        if self._progress.under_way:
            self._catch_up()
            self._progress.validation_begins()
        super().on_test_begin(logs)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._catch_up()
        super().on_epoch_end(epoch, logs)
        last = self.model.stop_training or epoch + 1 == self.params["epochs"]
        self._progress.epoch_ended(epoch, last=last, due=self._progress.keeper.due_at_epochs_end)

    def _catch_up(self) -> None:
        self.wait_handled()
        self._report.catch_up()


def install(observer: Observer, checkpointing: Checkpointing | None = None) -> OneMember:
    """Makes Keras' fit and evaluate report to the observer and write checkpoints; nothing else changes."""
    host = OneMember(observer, checkpointing)

    class OpenedIterator(Positioned):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if host.opened is not None:
                host.opened.opened(self)

    def fit(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(original).bind(model, *args, **kwargs)
        bound.apply_defaults()
        call = bound.arguments
        users = listed(call["callbacks"])
        outer, host.opened = host.opened, host.keeper.begin(model, users)
        progress = host.opened
        call["callbacks"] = OneMemberCallbacks(
            progress,
            ReportingCallback(host, progress, _batch_size(call), call["initial_epoch"]),
            users if progress.outcome is None else [],
            model=model,
            add_history=True,
            add_progbar=call["verbose"] != 0,
            verbose=call["verbose"],
            epochs=call["epochs"],
            steps=None,
        )
        host.began(model)
        try:
            progress.began()
            progress.change(call)
            history = original(*bound.args, **bound.kwargs)
            progress.ended(history)
        finally:
            progress.over()
            host.opened = outer
        observer.on_fit_ended()
        if host.stopping:
            raise StopRequested
        return history

    def evaluate(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(original).bind(model, *args, **kwargs)
        bound.apply_defaults()
        if isinstance(bound.arguments["callbacks"], private.CallbackList):
            return original(model, *args, **kwargs)  # the validation inside a fit
        as_dict, bound.arguments["return_dict"] = bound.arguments["return_dict"], True
        logs = original(*bound.args, **bound.kwargs)
        observer.on_evaluated(private.numbers(logs))
        return logs if as_dict else private.metrics_in_order(model, logs)

    def train_on_batch(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        host.began(model)
        if observer.should_stop():
            raise StopRequested
        return original(model, *args, **kwargs)

    private.tf_trainer.TFEpochIterator = OpenedIterator
    private.replace(
        *private.EPOCH_LOGS,
        lambda original, model, logs: original(model, logs or host.keeper.logs_before(model)),
    )
    private.replace(private.TensorFlowTrainer, "fit", fit)
    private.replace(private.TensorFlowTrainer, "evaluate", evaluate)
    private.replace(private.TensorFlowTrainer, "train_on_batch", train_on_batch)
    return host


def _batch_size(arguments: Mapping[str, Any]) -> int | None:
    if arguments.get("batch_size"):
        return int(arguments["batch_size"])
    x = arguments.get("x")
    spec = getattr(x, "element_spec", None)
    if spec is not None:
        shape = private.flatten(spec)[0].shape
        return int(shape[0]) if shape.rank and shape[0] else None
    return 32 if hasattr(x, "shape") else None
