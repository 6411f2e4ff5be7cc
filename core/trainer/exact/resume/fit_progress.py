"""One call of fit: its position, its part of a checkpoint, and how it resumes. Main thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from core.project.checkpoint_store import Unaudited
from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.resume import callback_state, own_generators, randomness, trees, writer
from core.trainer.exact.resume.position import Positioned
from core.vocabulary.plan import Moment
from core.vocabulary.progress import Audits

_T = TypeVar("_T")


class AuditCounts(Protocol):
    """Counts the audits of this process."""

    @property
    def counts(self) -> Audits | None:
        """None if members shared no step."""


class Host(Protocol):
    """The trainer: the engine, or Keras alone."""

    step: int
    """Steps done in this training."""
    epochs: int
    """Whole epochs done in this training."""
    said: dict[str, bool]
    """What it has told the user, and whether that is a way in which the result may differ."""

    @property
    def audits(self) -> AuditCounts: ...

    @property
    def shares_kept(self) -> tuple[int, ...]:
        """The shares that a checkpoint keeps."""

    @property
    def steps_in_epoch(self) -> int | None: ...

    @property
    def stopping(self) -> bool: ...

    def begin_after(self, step: int, epochs: int) -> None:
        """Continues the counts of the resumed run, which had done `step` steps and `epochs` whole epochs."""

    def from_chief(self, data: bytes, read: Callable[[bytes], _T]) -> _T:
        """``read(data)`` with the chief's bytes, on each member. It raises TandemError for malformed ones."""

    def prepare(self, model: Any, iterator: Any) -> None:
        """Creates every variable that a fit needs."""

    def say_once(self, words: str, *, difference: bool = False) -> None: ...

    def flush(self, model: Any, *, whole: bool = False) -> None:
        """Makes members that meet rarely equal. Every member must call it."""


class Checkpoints(Protocol):
    """The part of this process' checkpoint keeper that a fit needs."""

    @property
    def host(self) -> Host: ...

    @property
    def due(self) -> bool:
        """Whether a checkpoint is due; true on every member at the same portion."""

    @property
    def due_at_epochs_end(self) -> bool:
        """Whether one is due at an epoch's end, by this member's clock. The chief's clock counts."""

    def passed(self, seconds: float) -> None:
        """Records `seconds` of training; the same number on every member."""

    def capture(self, model: Any) -> list[Any]:
        """Copies of all the model's variables' values."""

    def write(self, moment: Moment, now: Any | None, *, wait: bool = False) -> None: ...

    def ended(self, fit: FitProgress, history: Any) -> None:
        """Call when a fit has ended: later checkpoints contain its results."""

    def callbacks(self, callbacks: Sequence[Any]) -> list[Any]:
        """The callbacks' plain values; the chief's for callbacks that only the chief may run."""


@dataclass(eq=False)
class FitProgress:
    """The position of a fit, and how it resumes. With `number` -1, no checkpoint contains it."""

    keeper: Checkpoints
    model: Any
    callbacks: tuple[Any, ...]
    """The user's own callbacks, in their order."""
    number: int
    outcome: Any | None = None
    """The fit's result in the resumed run, if it ended there: it need not train again."""
    resumed: Any | None = None
    """The checkpoint's state of this fit, if it was under way there; None once resumed."""
    under_way: bool = False
    batch: int = 0
    """Batches done in the current epoch."""
    logs: Any = None
    logs_before: dict[str, float] = field(default_factory=dict)
    """The checkpoint's logs, until there are newer ones."""
    unaudited: Unaudited = ""
    """How unaudited steps of the model were shared before this fit was resumed."""
    _epoch: int = 0
    _history: Any = None
    _iterator: Positioned | None = None
    _validations: int = 0
    """Validations done, including the previous run's."""
    _validations_unread: int = 0
    """Validations of the previous run, until their data has been read again."""
    _generators_set: frozenset[str] = frozenset()
    """Names of the script's own generators that were set from the checkpoint."""
    _random: dict[str, Any] = field(default_factory=dict)
    """The random states when the fit began."""
    _data: tuple[Any, ...] = ()
    """The script's data for training and for validation."""
    _before_validation: tuple[Moment, Any] | None = None
    _kept_at_stop: bool = False

    @property
    def batches_in_epoch(self) -> int | None:
        return None if self._iterator is None else self._iterator.num_batches

    def done_with(self, batch: int) -> int:
        """Batches done when Keras signals the end of `batch`: it counts an epoch's last call as whole."""
        most = self.batches_in_epoch
        return batch + 1 if most is None else min(batch + 1, most)

    def mean_rows(self, size: int, done: int, batch: int) -> float:
        """Mean rows of the last `done` of an epoch's first `batch` batches. All but the last have `size`."""
        data = self._iterator
        last = data.last_rows if size and data is not None and batch == data.known_batches else None
        return size if last is None else size - (size - last) / done

    @property
    def kept(self) -> bool:
        """Whether checkpoints contain this fit."""
        return self.number >= 0

    def change(self, call: dict[str, Any]) -> None:
        """Changes Keras' arguments, if the fit resumes, to begin at another epoch, or not to train at all.

        Raises TandemError if the checkpoint is malformed.
        """
        self._data = (call.get("x"), call.get("validation_data"))
        if self.outcome is not None:
            trees.check(self.outcome, trees.Outcome)
            call["epochs"] = 0
        elif self.resumed is not None:
            trees.check(self.resumed, trees.UnderWay)
            call["initial_epoch"] = self.resumed["epoch"]

    # --- called by the fit

    def began(self) -> None:
        """Call before the fit does anything."""
        self.under_way = True
        if not self.kept or self.outcome is not None:
            return
        if self.resumed is not None:
            randomness.restore(self.resumed["random"]["fit"])
            callback_state.before_train_begin(
                self.callbacks, self.resumed["epoch"], self.resumed["callbacks"]
            )
        else:
            callback_state.note_logs(self.callbacks)
        self._random = randomness.capture()

    def over(self) -> None:
        """Call when the fit has ended, successfully or not."""
        self.under_way = False

    def ended(self, history: Any) -> None:
        """Call when the fit has run to its end."""
        if self.outcome is None:
            self.keeper.ended(self, history)
            return
        self._prepared(self.outcome["model"])
        writer.restore(self.model, self.outcome["model"])
        self._restore_callbacks(self.outcome, history)
        self.keeper.host.begin_after(self.outcome["step"], self.outcome.get("epochs", 0))
        randomness.restore(self.outcome["random"])
        self._restore_own(self.outcome["random"], {}, ())

    def opened(self, iterator: Positioned) -> None:
        """Call when Keras has opened data; the first is the training's."""
        if self._iterator is None:
            self._iterator = iterator

    def train_begun(self, history: Any) -> None:
        """Call after the callbacks' on_train_begin."""
        self._history = history
        if self.resumed is not None:
            # Overrides a state that one of Keras' callbacks restored.
            private.set_initial_epoch(self.model, None)
            if not self.resumed["batch"]:
                self._resume()

    def epoch_begins(self, epoch: int) -> bool:
        """Call when an epoch begins. Returns whether the fit resumes in the middle of it, so that callbacks
        have already seen its beginning."""
        self._epoch, self.batch, self.logs = epoch, 0, None
        if self.resumed is None:
            return False
        self._resume()
        return True

    def batch_ended(self, batch: int, logs: Any) -> None:
        """Call after the callbacks. `batch`: how many of this epoch are done."""
        self.batch, self.logs, self.logs_before = batch, logs, {}
        if not self.kept:
            return
        if self.keeper.host.stopping:
            self._kept_at_stop = True
            self.keeper.write(self._moment(), self._tree(self.keeper.capture(self.model)), wait=True)
        elif self.keeper.due and not self.model.stop_training:
            self.keeper.write(self._moment(), self._tree(self.keeper.capture(self.model)))

    def validation_begins(self) -> None:
        """Call before a validation's callbacks. Holds the state for a checkpoint, in case of a Stop inside.

        Variables are referenced, not copied: a validation changes few of them, and few Stops come there.
        """
        iterator = private.validation_iterator(self.model)
        if self._validations_unread and iterator is not None:
            generators = randomness.Generators()
            iterator.read_again(self._validations_unread)
            # Other generators that moved draw the data: reading has brought them to their position.
            generators.restore(self._generators_set)
            self._validations_unread = 0
        self.logs_before = {}
        if self.kept:
            self._before_validation = self._moment(), self._tree(writer.held(self.model))
        self._validations += 1

    def epoch_ended(self, epoch: int, *, last: bool, due: bool) -> None:
        """Call after the callbacks. `last`: the fit ends. `due`: all members agreed on a checkpoint."""
        before, self._before_validation, self.logs_before = self._before_validation, None, {}
        if not self.kept:
            return
        if self.keeper.host.stopping:
            if not self._kept_at_stop and before is not None:
                moment, tree = before
                self.keeper.write(moment, {**tree, "model": writer.arrays(tree["model"])}, wait=True)
        elif due and not last:
            self._epoch, self.batch, self.logs = epoch + 1, 0, None
            self.keeper.write(self._moment(), self._tree(self.keeper.capture(self.model)))

    # --- checkpoint and resume

    def _moment(self) -> Moment:
        host = self.keeper.host
        return Moment(
            step=host.step,
            fit=self.number,
            epoch=self._epoch,
            batch=self.batch,
            epochs=host.epochs,
            steps_in_epoch=host.steps_in_epoch,
        )

    def _tree(self, model: list[Any]) -> dict[str, Any]:
        """The state of this fit, for a checkpoint. ``model``: the values of the model's variables."""
        data = self._iterator
        assert data is not None
        return {
            "epoch": self._epoch,
            "batch": self.batch,
            "step": self.keeper.host.step,
            "epochs": self.keeper.host.epochs,
            "passes": data.passes - (1 if self.batch else 0),
            "validations": self._validations,
            "logs": private.numbers(self.logs),
            "model": model,
            "history": callback_state.capture(self._history, self.keeper.host.say_once),
            "callbacks": self.keeper.callbacks(self.callbacks),
            "random": {"fit": self._random, "epoch": data.pass_random, "now": self.random_now()},
        }

    def random_now(self) -> dict[str, Any]:
        """All random states, including those of the script's own generators."""
        return {**randomness.capture(), "own": own_generators.states(self.callbacks)}

    def _restore_own(self, random: dict[str, Any], before: dict[str, Any], data: Sequence[Any]) -> None:
        """Restores the script's own generators. ``before``: their states before `data` was read again."""
        say = functools.partial(self.keeper.host.say_once, difference=True)
        own = random.get("own", {})
        self._generators_set = own_generators.restore(own, before, data, self.callbacks, say)

    def _resume(self) -> None:
        tree, self.resumed = self.resumed, None
        assert tree is not None and self._iterator is not None
        host = self.keeper.host
        self._prepared(tree["model"])
        before = own_generators.states(self.callbacks)
        if passes := tree["passes"]:
            many = "1 epoch" if passes == 1 else f"{passes} epochs"
            host.say_once(f"Reading {many} of data again, to reach the checkpoint.")
        self._iterator.go_to(tree["passes"], tree["batch"], tree["random"]["epoch"])
        writer.restore(self.model, tree["model"])
        self._restore_callbacks(tree, self._history)
        self._epoch, self.batch = tree["epoch"], tree["batch"]
        self.logs = self.logs_before = tree["logs"]
        self._validations = self._validations_unread = tree["validations"]
        host.begin_after(tree["step"], tree.get("epochs", 0))
        randomness.restore(tree["random"]["now"])
        self._restore_own(tree["random"]["now"], before, self._data)
        host.say_once(
            f"Resuming fit {self.number + 1} in epoch {self._epoch + 1}, "
            f"after {self.batch} batches of it and {host.step} steps in all."
        )

    def _prepared(self, values: list[Any]) -> None:
        if not writer.fits(self.model, values):
            self.keeper.host.prepare(self.model, self._iterator)

    def _restore_callbacks(self, tree: Any, history: Any) -> None:
        for callback, kept in zip(self.callbacks, tree["callbacks"], strict=False):
            callback_state.restore(callback, kept, self.keeper.host.say_once)
        callback_state.restore(history, tree["history"], self.keeper.host.say_once)
