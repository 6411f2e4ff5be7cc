"""One member alone: Keras' own fit, with a callback that reports and stops. Any strategy, or none."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from typing import Any

import keras

from core.trainer.exact import keras_private as private
from core.trainer.exact.seam import Observer, StopRequested

REPORT_EVERY_S = 0.1


class Solo:
    """What one member alone has trained."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.trained: list[Any] = []
        self.step = 0
        self.stopping = False

    def began(self, model: Any) -> None:
        if not any(known is model for known in self.trained):
            self.trained.append(model)


class Report(keras.callbacks.Callback):
    """Tells the observer. Batches' ends may be heard on Keras' own thread; all telling is on the main one."""

    async_safe = True

    def __init__(self, alone: Solo, global_batch: int | None) -> None:
        super().__init__()
        self._alone = alone
        self._global_batch = global_batch
        self._epoch = 0
        self._last: tuple[int, Mapping[str, Any]] | None = None
        self._batches_told = 0
        self._told_s = time.perf_counter()

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        self._alone.observer.on_fit_began(self.params["epochs"], self.params["steps"], self._global_batch)

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._epoch, self._last, self._batches_told = epoch, None, 0

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        now = time.perf_counter()
        if self._last is not None and now - self._told_s >= REPORT_EVERY_S:
            self._tell(now)
        if self._alone.observer.should_stop():
            self._alone.stopping = True
            self.model.stop_training = True

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._last = (batch + 1, logs or {})

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        if self._last is not None and self._last[0] > self._batches_told:
            self._tell(time.perf_counter())
        self._alone.observer.on_epoch_ended(epoch, _numbers(logs))

    def _tell(self, now: float) -> None:
        assert self._last is not None
        batch, logs = self._last
        done = batch - self._batches_told
        if done <= 0:
            return
        self._alone.step += done
        step_s = (now - self._told_s) / done
        self._batches_told, self._told_s = batch, now
        steps, rows = self.params.get("steps"), self._global_batch or 0
        self._alone.observer.on_step(
            self._alone.step, self._epoch, batch, steps, rows, _numbers(logs), step_s, None
        )


def install(observer: Observer) -> Solo:
    """Has Keras' fit and evaluate report to the observer, and nothing else changed."""
    alone = Solo(observer)

    def fit(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(original).bind(model, *args, **kwargs)
        given = bound.arguments.get("callbacks")
        report = Report(alone, _batch_size(bound.arguments))
        if isinstance(given, private.CallbackList):
            given.callbacks.append(report)
            report.set_model(model)
            report.set_params(given.params)
        else:
            bound.arguments["callbacks"] = [*(private.flatten(given) if given else []), report]
        alone.began(model)
        history = original(*bound.args, **bound.kwargs)
        observer.on_fit_ended()
        if alone.stopping:
            raise StopRequested
        return history

    def evaluate(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(original).bind(model, *args, **kwargs)
        bound.apply_defaults()
        if isinstance(bound.arguments["callbacks"], private.CallbackList):
            return original(model, *args, **kwargs)  # the validation inside a fit
        as_dict, bound.arguments["return_dict"] = bound.arguments["return_dict"], True
        logs = original(*bound.args, **bound.kwargs)
        observer.on_evaluated(_numbers(logs))
        return logs if as_dict else model._flatten_metrics_in_order(logs)

    def train_on_batch(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        alone.began(model)
        if observer.should_stop():
            raise StopRequested
        return original(model, *args, **kwargs)

    private.replace(private.TensorFlowTrainer, "fit", fit)
    private.replace(private.TensorFlowTrainer, "evaluate", evaluate)
    private.replace(private.TensorFlowTrainer, "train_on_batch", train_on_batch)
    return alone


def _batch_size(arguments: Mapping[str, Any]) -> int | None:
    if arguments.get("batch_size"):
        return int(arguments["batch_size"])
    x = arguments.get("x")
    spec = getattr(x, "element_spec", None)
    if spec is not None:
        shape = private.flatten(spec)[0].shape
        return int(shape[0]) if shape.rank and shape[0] else None
    return 32 if hasattr(x, "shape") else None


def _numbers(logs: Mapping[str, Any] | None) -> dict[str, float]:
    return {name: float(value) for name, value in private.pythonify_logs(dict(logs or {})).items()}
