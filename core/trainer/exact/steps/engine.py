"""The engine's state in this process: its position in a fit, reports to the observer, and when it stops."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import tensorflow as tf

from core.cluster.left import LeftShares
from core.trainer.exact.interface import Cluster, Observer, StopRequested
from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.keras import model_state
from core.trainer.exact.keras.callback_kinds import WRITERS
from core.trainer.exact.members import agreement
from core.trainer.exact.members import step as steps
from core.trainer.exact.members.collectives import Collectives
from core.trainer.exact.members.step_meter import StepMeter
from core.trainer.exact.resume.fit_progress import FitProgress
from core.trainer.exact.resume.keeper import Keeper
from core.trainer.exact.steps.course import TESTS_FIRST_S, AuditTime, whole_words
from core.trainer.exact.steps.data import SharedEpochIterator
from core.trainer.exact.steps.fit import Fit
from core.trainer.exact.steps.reports import Costs, StepReports
from core.trainer.exact.steps.result import PortionResult
from core.trainer.exact.steps.threads import OneThread
from core.trainer.exact.steps.undo import EagerUndo, Undo
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import check_shares
from core.vocabulary.progress import Expectation

_T = TypeVar("_T")


class Engine:
    """The state and services that the patched Keras uses. One thread at a time."""

    def __init__(self, cluster: Cluster, observer: Observer) -> None:
        self.collectives: Collectives = cluster.collectives
        self.collectives.place = self.place
        self.meter = StepMeter()
        self.wire, self.sync = cluster.wire, cluster.sync
        self.balance = cluster.balance
        self.rank = cluster.rank
        self.members = cluster.members
        self.trained: list[Any] = []
        """Models trained by a shared fit or train_on_batch, in order."""
        self.predictors: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.predicted: weakref.WeakKeyDictionary[Any, tuple[int, float]] = weakref.WeakKeyDictionary()
        """Batches of several rows that members predicted, and seconds that checking them took, by model."""
        self.stopping = False
        self.is_local = False
        """Whether a callback is running that must not wait for other members."""
        self.folders = cluster.folders
        self._names = cluster.names or tuple(f"member {rank}" for rank in range(cluster.members))
        self._drawn: set[str] = set()
        """Calls, by kind and number, in which each member draws x itself."""
        self._observer = observer
        self._fits: list[Fit] = []
        self._one_thread = OneThread()
        self._calls: Counter[str] = Counter()
        """Number of calls by kind, without calls that only the chief made."""
        self._broken_off = ""
        """The last call that ended with an error, for messages."""
        self.said: dict[str, bool] = {}
        self._equal_outside: set[int] = set()
        self._begun: weakref.WeakKeyDictionary[Any, set[bool]] = weakref.WeakKeyDictionary()
        self.whole: weakref.WeakSet[Any] = weakref.WeakSet()
        """Models for which every member computes whole batches."""
        self._unsettled: weakref.WeakSet[Any] = weakref.WeakSet()
        """Models trained batch by batch since their last fit ended."""
        self.renew_audits()
        self.step = 0
        """Steps done in this training, including those before it was resumed."""
        self.epochs = 0
        """Whole epochs, counted likewise."""
        self._reports = StepReports(observer, self.meter, cluster.rank, cluster.members)
        self.share_numbers: tuple[int, ...] = ()
        self.present = self.collectives.present
        """Ranks of the members that the shares are for."""
        self._left = LeftShares()
        self._given: int | None = None
        self.set_shares(cluster.shares)
        self.keeper = Keeper(cluster.checkpointing, self, WRITERS)

    def renew_audits(self) -> None:
        """Call before another training."""
        self.audits, self.test_audits = AuditTime(), AuditTime(first_s=TESTS_FIRST_S)

    def set_shares(self, shares: tuple[int, ...]) -> None:
        """Applies from the next call into TensorFlow on. Every member must call it between the same steps."""
        if shares == self.share_numbers:
            return
        check_shares(shares)
        if len(shares) != self.members:
            raise ValueError(f"{len(shares)} shares for {self.members} members")
        if self.share_numbers:
            self._observer.on_shares(shares)
        self.share_numbers, self.shares_kept = shares, self._left.among(shares)
        self._shares = tf.constant(shares, tf.int64)

    @property
    def shares(self) -> Any:
        """The shares for the next call into TensorFlow, int64 [members]."""
        if self._given is None:
            return self._shares
        whole_on = self._given if self._given in self.present else self.largest
        return tf.one_hot(whole_on, self.members, dtype=tf.int64)

    @property
    def largest(self) -> int:
        """The rank with the largest share."""
        return max(self.present, key=self.share_numbers.__getitem__)

    @contextmanager
    def given_to(self, rank: int | None) -> Iterator[None]:
        """Gives all rows of each batch to member `rank`, for trial steps; None keeps the shares."""
        self._given = rank
        try:
            yield
        finally:
            self._given = None

    def update_members(self) -> bool:
        """Gives others the rows of members that left; returns whether any did. Call it between steps."""
        if self.present == self.collectives.present:
            return False
        self.present = self.collectives.present
        self.set_shares(self._left.leave(self.share_numbers, self.present))
        self.shares_kept = self._left.among(self.share_numbers)
        return True

    # --- where we are

    def place(self) -> str:
        """The script's position, for messages: the same text on all members present."""
        at = " within ".join(fit.place for fit in reversed(self._fits))
        return f"{at or f'its own code, step {self.step}'}{self._broken_off}"

    @property
    def fit(self) -> Fit:
        """The innermost call that this member is in."""
        return self._fits[-1]

    @property
    def innermost(self) -> Fit | None:
        """Like `fit`; None in a loop of ``train_on_batch``."""
        return self._fits[-1] if self._fits else None

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
        """Wraps a call of fit, evaluate or predict, in `in_thread`. Raises StopRequested at its end if a stop
        was agreed on."""
        if kind != "fit" and not self.is_local:
            for under_way in self._fits:
                self.flush(under_way.model)
        self._calls[kind] += not self.is_local
        name = f"{kind} {self._calls[kind]}"
        fit = Fit(model, kind, name, each_batch, epochs, first_epoch, progress=progress)
        self._fits.append(fit)
        try:
            yield fit
            if kind == "fit":
                self.flush(model, whole=True)
                model_state.settle(model, self.collectives, kind)
                self._unsettled.discard(model)
        except StopRequested:
            raise
        except BaseException as error:
            # The script may catch the error, and diverge from the other members.
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
    def in_thread(self, kind: str) -> Iterator[None]:
        """Wraps any call that meets the other members. Raises TandemError during another thread's call.

        If the calls are single batches, some may have met wrongly, so nothing more is shared then.
        """
        try:
            with self._one_thread.calls(kind, lambda: self._fits[-1].name if self._fits else ""):
                yield
        except TandemError as error:
            if error.code == "two-threads" and not self._fits:
                self.collectives.failure = error
            raise

    @contextmanager
    def locally(self) -> Iterator[None]:
        """Wraps a callback that reads or writes this member's own files."""
        self.is_local = True
        try:
            yield
        finally:
            self.is_local = False

    def opened(self, iterator: SharedEpochIterator) -> None:
        """Call when Keras has opened the data of a fit, or of its validation."""
        if self._fits:
            trains = self.fit.kind == "fit" and self.fit.iterator is None
            iterator.pace.each_batch = self.fit.each_batch[0 if trains else 1]
            if self.fit.iterator is None:
                self.fit.iterator = iterator
            if self.fit.progress is not None:
                self.fit.progress.opened(iterator)

    def equalise(self, model: Any) -> None:
        """Gives all members the chief's state, once per call. Call it when every variable exists."""
        equal = self.fit.equal if self._fits else self._equal_outside
        if id(model) in equal or len(self._fits) > 1:
            return
        equal.add(id(model))
        model_state.equalise(model, self.collectives)

    def first_of_call(self, is_training: bool) -> bool:
        """True once for a fit's training, once for its validations, and once for each other call."""
        begun = self.fit.begun
        first = is_training not in begun
        begun.add(is_training)
        return first

    def first_batch(self, model: Any, is_training: bool) -> bool:
        """True once for each model trained or tested batch by batch."""
        begun = self._begun.setdefault(model, set())
        first = is_training not in begun
        begun.add(is_training)
        return first

    def agree_on_data(self, batch: Any) -> bool:
        """Whether members see the same first batch of a call. If not, reports it or raises TandemError."""
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

    @property
    def draws_apart(self) -> bool:
        """Whether each member draws x itself in this call."""
        return self._call in self._drawn

    def compare_data(self, marks: Any) -> None:
        """Compares the data's marks, float64 [2 * groups, members]. Raises TandemError if they differ."""
        drawn = self._call in self._drawn
        met = list(self.collectives.met)
        names = [self._names[rank] for rank in met]
        agreement.assert_same_marks(marks[:, met], names, self.place(), drawn=drawn)

    # --- what happens

    def on_train_began(self, model: Any) -> None:
        """Call after the callbacks' on_train_begin. If one restored a first epoch, the chief's counts."""
        epoch = private.initial_epoch(model)
        first = [-1 if epoch is None else epoch]
        chief = self.collectives.gather_ints(first, "to begin")[0][0]
        private.set_initial_epoch(model, None if chief < 0 else chief)
        fit = self.fit
        resumed = fit.progress is not None and fit.progress.resumed is not None
        if chief >= 0 and not resumed:
            fit.first_epoch = chief
        course = fit.epochs, fit.steps, fit.global_batch, fit.first_epoch
        self._observer.on_fit_began(*course, self.step, fit.monitored)

    def on_epoch_began(self, epoch: int) -> None:
        self.fit.epoch, self.fit.batch = epoch, 0

    def on_epoch_ended(self, epoch: int, logs: Any) -> None:
        fit = self.fit
        whole = not self.stopping if fit.steps is None else fit.batch >= fit.steps
        self.epochs += whole
        numbers = private.numbers(logs)
        if self.stopping:  # A Stop cuts the validation short: its values are incomplete.
            numbers = {name: value for name, value in numbers.items() if not name.startswith("val_")}
        self._observer.on_epoch_ended(epoch, numbers, fit.batch, whole)

    def on_evaluated(self, logs: Any) -> None:
        if isinstance(logs, dict):
            self._observer.on_evaluated(private.numbers(logs))

    def on_measured(self, expectation: Expectation) -> None:
        self._observer.on_measured(expectation)

    def on_first_step(self, model: Any, result: PortionResult, step: int) -> None:
        """Reports the training's `step`-th step before its audit, which takes as long again."""
        fit = self._fits[-1] if self._fits else Fit(model, "batch")
        at = replace(fit, batch=fit.batch + step - self.step if self._fits else 0)
        self._reports.early(model, result, step, at, self.present, self.costs(model))

    def on_portion(self, model: Any, result: PortionResult, is_training: bool) -> None:
        """Call when members have met after `result.done` steps of `model`."""
        if result.stop:
            self.stopping = True
            model.stop_training = model.stop_evaluating = True
        if not is_training:
            return
        self.on_trained(model)
        self.step += result.done
        if self._fits:
            self.fit.batch += result.done
        else:
            self._unsettled.add(model)
        fit = self._fits[-1] if self._fits else Fit(model, "batch")
        self._reports.passed(model, result, self.step, fit, self.present, self.costs(model))

    def costs(self, model: Any) -> Costs | None:
        """The cost of meetings between the present fit's steps; None if members meet in every step."""
        found: Costs | None = getattr(model.train_function, "costs", None)
        return found

    def on_trained(self, model: Any) -> None:
        if not any(known is model for known in self.trained):
            self.trained.append(model)

    def settle(self) -> None:
        """Call when the script has ended on every member: compares models trained batch by batch, too."""
        for model in [model for model in self.trained if model in self._unsettled]:
            self._unsettled.discard(model)
            model_state.settle(model, self.collectives, "train_on_batch")

    def flush(self, model: Any, *, whole: bool = False) -> None:
        """Makes members that meet rarely equal, optimizers included if `whole`. Every member must call it."""
        if flush := getattr(model.train_function, "flush", None):
            flush(whole=whole)

    # --- for checkpoints

    @property
    def steps_in_epoch(self) -> int | None:
        return self.fit.steps if self._fits else None

    def begin_after(self, step: int, epochs: int) -> None:
        self.step, self.epochs = step, epochs
        self.meter.begin_after(step)

    def from_chief(self, data: bytes, read: Callable[[bytes], _T]) -> _T:
        received = self.collectives.bytes_from_chief(data)
        try:
            return read(received)
        except TandemError as error:
            giver = self.collectives.met[0]
            raise self.collectives.unsound(giver, "a checkpoint's contents", error.what) from None

    def prepare(self, model: Any, iterator: Any) -> None:
        model.make_train_function()
        model.train_function.prepare(iterator.dataset.element_spec)

    def asked_to_stop(self) -> bool:
        return self._observer.should_stop()

    def compute_whole(self, model: Any, why: str, *, too_late: bool = False) -> None:
        """Makes every member compute whole batches of this model, from the next trace on."""
        self.whole.add(model)
        words = whole_words(why, too_late=too_late, in_doubt=self.keeper.in_doubt)
        self.say_once(words, difference=too_late)

    def take_back(self, undo: Undo | EagerUndo) -> list[Any]:
        """Undoes a call during which a member left. Returns the batches that it read, to be repeated."""
        if undo.effect:
            self.say_once(
                f"A laptop left during steps, which the others repeated. So {undo.effect} happened twice: "
                "if the result depends on that, it is not one machine's.",
                difference=True,
            )
        return undo.take_back()

    def say_once(self, words: str, *, difference: bool = False) -> None:
        if words not in self.said:
            self.said[words] = difference
            self._observer.on_said(words, difference)
