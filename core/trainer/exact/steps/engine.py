"""The engine's state in this process: where it is in a fit, what it tells the observer, when it stops."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from core.trainer.exact.interface import Cluster, Observer, StepReport, StopRequested
from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras import model_state
from core.trainer.exact.keras.callback_kinds import WRITERS
from core.trainer.exact.members import agreement
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.collectives import Collectives
from core.trainer.exact.members.gauge import Gauge
from core.trainer.exact.resume.fit_progress import FitProgress
from core.trainer.exact.resume.keeper import Keeper
from core.trainer.exact.steps.data import SharedEpochIterator
from core.trainer.exact.steps.result import PortionResult
from core.vocabulary.plan import check_shares
from core.vocabulary.progress import Expectation


@dataclass(slots=True)
class Fit:
    """One call of fit, evaluate or predict that this member is in."""

    model: Any
    kind: str
    name: str = ""
    """The kind, and how many of it the script has begun: ``fit 2``."""
    each_batch: tuple[bool, bool] = (False, False)
    """Whether callbacks hear of every batch of training; of testing or predicting."""
    epochs: int = 1
    first_epoch: int = 0
    epoch: int = 0
    batch: int = 0
    iterator: SharedEpochIterator | None = None
    equal: set[int] = field(default_factory=set)
    begun: set[bool] = field(default_factory=set)
    """Whether it is training whose first batch was looked at."""
    progress: FitProgress | None = None
    """Of a fit: what checkpoints know of it."""

    @property
    def steps(self) -> int | None:
        return None if self.iterator is None else self.iterator.num_batches

    @property
    def place(self) -> str:
        if self.kind != "fit":
            return self.name
        return f"{self.name}, epoch {self.epoch + 1}, from batch {self.batch + 1} on"

    @property
    def data(self) -> str:
        """On what, in words: how many batches of what."""
        assert self.iterator is not None
        leaves = tf.nest.flatten(self.iterator.dataset.element_spec)
        shapes = [
            f"{leaf.dtype.name} {leaf.shape[1:].as_list()}" for leaf in leaves if getattr(leaf, "shape", None)
        ]
        of_rows = "" if self.global_batch is None else f" of {self.global_batch} rows"
        return f"{self.steps or 'some'} batches{of_rows} ({', '.join(shapes[:4])}), epochs: {self.epochs}"

    @property
    def global_batch(self) -> int | None:
        size = getattr(self.iterator.data_adapter, "batch_size", None) if self.iterator else None
        return None if size is None else int(size)


class Engine:
    """What the patched Keras asks and tells. Main thread only."""

    def __init__(self, cluster: Cluster, observer: Observer) -> None:
        self.collectives = cluster.collectives or Collectives(cluster.strategy, cluster.rank, cluster.members)
        self.collectives.place = self.place
        self.gauge = Gauge()
        self.wire = cluster.wire
        self.balance = cluster.balance
        self.rank = cluster.rank
        self.members = cluster.members
        self.trained: list[Any] = []
        """Models that a fit or train_on_batch was shared for, in order."""
        self.predictors: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.predicted: weakref.WeakSet[Any] = weakref.WeakSet()
        """Models whose predictions were looked at."""
        self.stopping = False
        self.alone = False
        """A callback runs that must not wait for other members."""
        self.folders = cluster.folders
        self._names = cluster.names or tuple(f"member {rank}" for rank in range(cluster.members))
        self._drawn: set[str] = set()
        """Calls, by their kind and number, of whose data each member draws x itself."""
        self._observer = observer
        self._fits: list[Fit] = []
        self._calls: Counter[str] = Counter()
        """Calls by their kind, those of the chief alone left out."""
        self._broken_off = ""
        """The last of them that an error ended, in words."""
        self.said: set[str] = set()
        self._equal_outside: set[int] = set()
        self._begun: weakref.WeakKeyDictionary[Any, set[bool]] = weakref.WeakKeyDictionary()
        self.whole: weakref.WeakSet[Any] = weakref.WeakSet()
        """Models of which every member computes whole batches."""
        self._unsettled: weakref.WeakSet[Any] = weakref.WeakSet()
        """Models trained batch by batch since their last fit ended."""
        self.step = 0
        """Steps done in this training; those before it was resumed count."""
        self.epochs = 0
        """Whole epochs, likewise."""
        self._timed_steps = 0
        self._waited_s = [0.0] * cluster.members
        """By rank, in the timed steps since the last report."""
        self.share_numbers: tuple[int, ...] = ()
        self.set_shares(cluster.shares)
        self.keeper = Keeper(cluster.checkpointing, self, WRITERS)

    def set_shares(self, shares: tuple[int, ...]) -> None:
        """From the next call into TensorFlow on. Every member must call it between the same steps."""
        if shares == self.share_numbers:
            return
        check_shares(shares)
        if len(shares) != self.members:
            raise ValueError(f"{len(shares)} shares for {self.members} members")
        if self.share_numbers:
            self._observer.on_shares(shares)
        self.share_numbers = shares
        self.shares = tf.constant(shares, tf.int64)

    # --- where we are

    def place(self) -> str:
        """Where the script is, for words: the same ones on all members that are there."""
        at = " within ".join(fit.place for fit in reversed(self._fits))
        return f"{at or f'its own code, step {self.step}'}{self._broken_off}"

    @property
    def fit(self) -> Fit:
        """The innermost call that this member is in."""
        return self._fits[-1]

    @property
    def fitting(self) -> bool:
        """Whether the innermost call is a fit."""
        return bool(self._fits) and self.fit.kind == "fit"

    @contextmanager
    def inside(
        self,
        model: Any,
        kind: str,
        each_batch: tuple[bool, bool],
        epochs: int = 1,
        progress: FitProgress | None = None,
        first_epoch: int = 0,
    ) -> Iterator[Fit]:
        """A call of fit, evaluate or predict. A stop agreed on in it leaves as StopRequested."""
        self._calls[kind] += not self.alone
        name = f"{kind} {self._calls[kind]}"
        fit = Fit(model, kind, name, each_batch, epochs, first_epoch, progress=progress)
        self._fits.append(fit)
        try:
            yield fit
            if kind == "fit":
                model_state.settle(model, self.collectives, kind)
                self._unsettled.discard(model)
        except StopRequested:
            raise
        except BaseException as error:
            # The script may catch it, and come to another place than the other members.
            self._broken_off = f", after {fit.name} ended by {type(error).__name__}"
            raise
        finally:
            self._fits.pop()
            if progress is not None:
                progress.over()
        if kind == "fit":
            self._observer.on_fit_ended()
        if self.stopping and not self._fits:
            raise StopRequested

    @contextmanager
    def by_itself(self) -> Iterator[None]:
        """For a callback that reads or writes this member's own files."""
        self.alone = True
        try:
            yield
        finally:
            self.alone = False

    def opened(self, iterator: SharedEpochIterator) -> None:
        """Keras opened the data of a fit, or of the validation in one."""
        if self._fits:
            trains = self.fit.kind == "fit" and self.fit.iterator is None
            iterator.pace.each_batch = self.fit.each_batch[0 if trains else 1]
            if self.fit.iterator is None:
                self.fit.iterator = iterator
            if self.fit.progress is not None:
                self.fit.progress.opened(iterator)

    def equalise(self, model: Any) -> None:
        """Once a call, when every variable exists: members start from the chief's state."""
        equal = self.fit.equal if self._fits else self._equal_outside
        if id(model) in equal or len(self._fits) > 1:
            return
        equal.add(id(model))
        model_state.equalise(model, self.collectives)

    def first_of_call(self, is_training: bool) -> bool:
        """Once for the training of a fit, once for its validations, once for each other call."""
        begun = self.fit.begun
        first = is_training not in begun
        begun.add(is_training)
        return first

    def first_batch(self, model: Any, is_training: bool) -> bool:
        """Once for each model that is trained or tested batch by batch."""
        begun = self._begun.setdefault(model, set())
        first = is_training not in begun
        begun.add(is_training)
        return first

    def agree_on_data(self, batch: Any) -> bool:
        """Whether members see the same first batch of a call. If not it is told, or raised as TandemError."""
        call = self.fit.kind if self._fits else "the loop"
        of = f" of {self.fit.data}" if self._fits and self.fit.iterator else ""
        what = f"the first batch, of {int(steps.rows_of(batch))} rows{of}"
        if words := agreement.agree_on_data(self.collectives, batch, call, what):
            self.say_once(words, difference=True)
            self._drawn.add(self._call)
        return words is None

    @property
    def _call(self) -> str:
        return self.fit.name if self._fits else ""

    def compare_data(self, marks: Any) -> None:
        """Of the steps that are done, float64 [2 * groups, members]. Raises TandemError where they differ."""
        drawn = self._call in self._drawn
        agreement.assert_same_marks(marks, self._names, self.place(), drawn=drawn)

    # --- what happens

    def on_train_began(self, model: Any) -> None:
        """After the callbacks' on_train_begin: a restored first epoch is the chief's."""
        epoch = private.initial_epoch(model)
        first = [-1 if epoch is None else epoch]
        chief = self.collectives.gather_words(first, "to begin")[0][0]
        private.set_initial_epoch(model, None if chief < 0 else chief)
        fit = self.fit
        resumed = fit.progress is not None and fit.progress.resumed is not None
        if chief >= 0 and not resumed:
            fit.first_epoch = chief
        self._observer.on_fit_began(fit.epochs, fit.steps, fit.global_batch, fit.first_epoch, self.step)

    def on_epoch_began(self, epoch: int) -> None:
        self.fit.epoch, self.fit.batch = epoch, 0

    def on_epoch_ended(self, epoch: int, logs: Any) -> None:
        fit = self.fit
        whole = not self.stopping if fit.steps is None else fit.batch >= fit.steps
        self.epochs += whole
        self._observer.on_epoch_ended(epoch, private.numbers(logs), fit.batch, whole)

    def on_evaluated(self, logs: Any) -> None:
        if isinstance(logs, dict):
            self._observer.on_evaluated(private.numbers(logs))

    def on_measured(self, expectation: Expectation) -> None:
        self._observer.on_measured(expectation)

    def on_portion(self, model: Any, result: PortionResult, is_training: bool) -> None:
        """Members met after `result.done` steps of `model`."""
        if result.stop:
            self.stopping = True
            model.stop_training = model.stop_evaluating = True
        if not is_training:
            return
        self.on_trained(model)
        self.step += result.done
        if result.timed:
            self._timed_steps += result.done
            for rank, wait_s in enumerate(result.wait_s):
                self._waited_s[rank] += wait_s * result.done
        if self._fits:
            self.fit.batch += result.done
        else:
            self._unsettled.add(model)
        if self._observer.step_due():
            fit = self._fits[-1] if self._fits else Fit(model, "batch")
            waits_s = [waited_s / self._timed_steps for waited_s in self._waited_s if self._timed_steps]
            self._timed_steps, self._waited_s = 0, [0.0] * self.members
            self._observer.on_step(
                StepReport(
                    step=self.step,
                    epoch=fit.epoch,
                    batch=fit.batch,
                    steps_in_epoch=fit.steps,
                    rows=result.rows,
                    logs=private.numbers(result.logs),
                    step_s=result.step_s,
                    wait_s=min(waits_s[self.rank], result.step_s) if waits_s else None,
                    grad_norm=self.gauge.norm(),
                    wire_s=min(*waits_s, result.step_s) if waits_s else None,
                    wire_bytes=self.gauge.wire_bytes(self.step),
                )
            )

    def on_trained(self, model: Any) -> None:
        if not any(known is model for known in self.trained):
            self.trained.append(model)

    def settle(self) -> None:
        """The script has ended on every member: what it trained batch by batch is compared, too."""
        for model in [model for model in self.trained if model in self._unsettled]:
            self._unsettled.discard(model)
            model_state.settle(model, self.collectives, "train_on_batch")

    # --- what checkpoints ask

    def begin_after(self, step: int, epochs: int) -> None:
        self.step, self.epochs = step, epochs
        self.gauge.begin_after(step)

    def from_chief(self, data: bytes) -> bytes:
        return self.collectives.from_chief(data)

    def prepare(self, model: Any, iterator: Any) -> None:
        model.make_train_function()
        model.train_function.prepare(iterator.dataset.element_spec)

    def asked_to_stop(self) -> bool:
        return self._observer.should_stop()

    def compute_whole(self, model: Any, why: str) -> None:
        """From the next trace on, every member computes whole batches of this model."""
        self.whole.add(model)
        self.say_once(
            f"Every laptop computes each batch whole, since {why}. The result is exact, but several laptops "
            "are no faster than one."
        )

    def say_once(self, words: str, *, difference: bool = False) -> None:
        if words not in self.said:
            self.said.add(words)
            self._observer.on_said(words, difference)
