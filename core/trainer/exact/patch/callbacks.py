"""The callbacks of a shared fit: members agree on decisions, each writes its files, portions are reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras.callback_kinds import WRITERS, each_batch, listed, writes_on
from core.trainer.exact.resume.fit_progress import FitProgress
from core.trainer.exact.steps.engine import Engine
from core.vocabulary.text import listed as listed_names


class WriterCallback(keras.callbacks.Callback):
    """Wraps a callback that writes files, which must not wait for other members: they may not run it, or may
    not have the files that it finds."""

    def __init__(self, engine: Engine, inner: Any) -> None:
        super().__init__()
        self._engine = engine
        self._inner = inner
        for name in dir(keras.callbacks.Callback):
            if name.startswith("on_") or name in ("set_model", "set_params"):
                setattr(self, name, self._locally(getattr(inner, name)))

    def _locally(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def hooked(*args: Any, **kwargs: Any) -> Any:
            with self._engine.locally():
                return hook(*args, **kwargs)

        return hooked


class SharedCallbacks(private.Callbacks):
    """Keras' list of callbacks on one of several members. Runs them on the main thread."""

    def __init__(self, engine: Engine, callbacks: Any, model: Any, **options: Any) -> None:
        own = listed(callbacks)
        self._engine = engine
        self._hears_batches = each_batch(own)[0]
        leads = engine.collectives.is_chief
        here = [each for each in own if leads or writes_on(each, engine.folders)]
        self._elsewhere = [each for each in own if each not in here]
        """Callbacks that only the chief runs, unless it is this member."""
        if not leads:
            options["add_progbar"] = False
        run = [WriterCallback(engine, each) if isinstance(each, WRITERS) else each for each in here]
        super().__init__(run, model=model, **options)
        self.run_in_order()

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        self.set_params({**(self.params or {}), "steps": self._engine.fit.steps})
        super().on_train_begin(logs)
        self._engine.on_train_began(self.model)
        self._progress.train_begun(self.history)

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._engine.on_epoch_began(epoch)
        if not self._progress.epoch_begins(epoch):
            super().on_epoch_begin(epoch, logs)
            return
        self._engine.fit.batch = self._progress.batch
        if self.progress_bar is not None:
            self.progress_bar.on_epoch_begin(epoch, logs)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self._hears_batches:
            keeper = self._engine.keeper
            if self._agree(self._engine.collectives.is_chief and keeper.due_by_clock):
                keeper.make_due()
        self._progress.batch_ended(self._engine.fit.batch, logs)

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        if self._engine.fit.progress is not None:
            self._engine.fit.progress.validation_begins()
        super().on_test_begin(logs)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        if self._elsewhere and self._engine.collectives.is_chief:
            self._take_over(epoch)
        super().on_epoch_end(epoch, logs)
        due = self._agree(self._engine.collectives.is_chief and self._engine.keeper.due_at_epochs_end)
        last = self.model.stop_training or epoch + 1 == self._engine.fit.epochs
        self._engine.on_epoch_ended(epoch, logs)
        self._progress.epoch_ended(epoch, last=last, due=due)

    @property
    def _progress(self) -> FitProgress:
        """Progress of the fit that these callbacks belong to."""
        progress = self._engine.fit.progress
        assert progress is not None
        return progress

    def _take_over(self, epoch: int) -> None:
        """The chief has left: runs what only it ran."""
        taken, self._elsewhere = self._elsewhere, []
        for callback in taken:
            here = WriterCallback(self._engine, callback)
            here.set_params(self.params)
            here.set_model(self.model)
            here.on_train_begin()
            here.on_epoch_begin(epoch)
            self.callbacks.append(here)
        names = listed_names(dict.fromkeys(type(each).__name__ for each in taken))
        self._engine.say_once(
            f"{names}: only the chief runs such callbacks. This laptop does from epoch {epoch + 1} on; what "
            "they wrote before is on the laptop that led until then."
        )

    def _agree(self, flag: bool = False) -> bool:
        """Agrees with all members whether to stop; returns whether any member set `flag`."""
        flags = self._engine.collectives.any(
            [bool(self.model.stop_training), flag], "to decide whether to stop"
        )
        self.model.stop_training = flags[0]
        return flags[1]
