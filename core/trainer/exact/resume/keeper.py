"""Decides which of a script's fits are skipped, resumed or trained, and when a checkpoint is due. Main
thread.

All members decide the same. A resumed script runs from its top, and its fits are counted: one that had ended
is not trained again, but gets its results from the checkpoint (variables, history, callbacks' values, random
states); the one that was under way resumes at its batch; later ones are trained as usual.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from core.project import checkpoint_store
from core.project.checkpoint_store import Checkpoint, Exactness
from core.speed.summary import MOST_TOLD, TOLD_LENGTH
from core.trainer.exact.interface import Checkpointing
from core.trainer.exact.resume import callback_state, plain, writer
from core.trainer.exact.resume.fit_progress import FitProgress, Host
from core.trainer.exact.resume.writer import NOW, Writer
from core.vocabulary import wire
from core.vocabulary.errors import TandemError
from core.vocabulary.plan import Moment
from core.vocabulary.progress import Audits
from core.vocabulary.text import plain as one_line

FIRST_S = 10.0
"""Seconds of training before the first checkpoint, and least seconds between two."""
MOST_S = 600.0
COST = 0.01
"""Largest share of a training's time spent on checkpoints; exceeded if one takes over ``COST * MOST_S``, as
they are at most ``MOST_S`` apart."""
FIRST_CHECK, MOST_PORTIONS = 2, 1 << 20
"""Portions of steps after which the chief first checks its clock, and the most until it checks again."""
_EXACTNESS = msgspec.json.Decoder(Exactness)
"""Made now: once a script runs, the names in its types cannot be looked up."""


class Keeper:
    """The checkpoints of this process. With `order` None it writes none and costs nothing."""

    def __init__(self, order: Checkpointing | None, host: Host, writers: tuple[type, ...] = ()) -> None:
        self.host = host
        self.writers = writers
        """Callbacks that only the chief may run: the chief's values count."""
        self.enabled = order is not None
        self._goes_back = order is not None and order.goes_back
        self._by_cost = order is not None and order.every_s is None
        self.every_s = FIRST_S if order is None or order.every_s is None else order.every_s
        """Seconds between two checkpoints within an epoch."""
        self._captured_s = 0.0
        self._resumed = _opened(order.resume) if order is not None and order.resume else None
        self._writer = None
        if order is not None:
            self._writer = Writer(order.folder, host.say_once, self._resumed, order.on_kept)
        self._under_way = writer.read(self._resumed, NOW) if self._resumed is not None else None
        self._trained: Any = None
        """The model of the fit under way at the checkpoint, or of the last one before it."""
        self.sure_step: int | None = None
        """The last step that an audit confirmed."""
        self._fits = 0
        self._fit: FitProgress | None = None
        self._passed_s = 0.0
        self._kept_s = time.monotonic()
        self._portions, self._check_at = 0, FIRST_CHECK
        """Portions since the last checkpoint, and after how many of them the chief next checks its clock."""
        self._first_s = 0.0
        """When the first of these portions was done, by this member's clock."""
        self._ended: Moment | None = None
        """The moment after the last fit that ended, until a checkpoint contains it."""
        self._before = Exactness() if self._resumed is None else self._resumed.head.exactness
        self._kept_exactness = self._before
        """The chief's, at the last moment that may be kept."""
        for words in self._before.told:
            host.say_once(one_line(words, TOLD_LENGTH), difference=True)

    def begin(self, model: Any, callbacks: Sequence[Any]) -> FitProgress:
        """Begins a call of fit. Checkpoints leave out a fit inside another, such as in a callback."""
        if not self.enabled or (self._fit is not None and self._fit.under_way):
            return FitProgress(self, model, tuple(callbacks), -1)
        progress = self._fit = FitProgress(self, model, tuple(callbacks), self._fits)
        self._fits += 1
        if self._resumed is not None:
            last = self._resumed.head.moment.fit
            if progress.number < last:
                # None if it ended with an error that the script caught: it runs, and fails, again.
                assert self._writer is not None
                progress.outcome = self._writer.outcome(progress.number)
            elif progress.number == last:
                progress.resumed, self._under_way = self._under_way, None
            if progress.number == last - 1 or progress.resumed is not None:
                self._trained = model
            if model is self._trained:
                progress.unaudited = self._before.unaudited
        return progress

    def logs_before(self, model: Any) -> dict[str, float]:
        """The checkpoint's logs, for an epoch that resumes with no batch left."""
        fit = self._fit
        return fit.logs_before if fit is not None and fit.under_way and fit.model is model else {}

    # --- when

    def passed(self, seconds: float) -> None:
        """Records a portion of steps that took `seconds`; the same number on every member.

        Callbacks and data take time as well, which differs between members: the chief's clock counts.
        """
        self._passed_s += seconds
        self._portions += 1
        if self._portions == 1:
            self._first_s = time.monotonic()
        if self.enabled and self._by_cost and self._portions >= self._check_at:
            self._check_clock()

    def _check_clock(self) -> None:
        """The chief announces after how many portions it checks its clock again; 0: a checkpoint is due.

        At most as many as there were so far: a slow callback may run now and then.
        """
        lasted_s = time.monotonic() - self._first_s
        left_s = self.every_s - lasted_s
        half = left_s * self._portions / max(lasted_s, 1e-6) / 2
        own = 0 if left_s <= 0 else int(min(MOST_PORTIONS, self._portions, max(1, half)))
        chief_portions = self.host.from_chief(struct.pack(">I", own), _portions)
        self._check_at = self._portions + max(1, chief_portions)
        if chief_portions == 0:
            self.make_due()

    @property
    def due_by_clock(self) -> bool:
        """Whether one is due by this member's clock, regardless of steps. The chief's clock counts."""
        is_late = self._portions > 0 and time.monotonic() - self._first_s >= self.every_s
        return self.enabled and self._by_cost and is_late

    def make_due(self) -> None:
        """Makes a checkpoint due; call it on every member."""
        self._passed_s = max(self._passed_s, self.every_s)

    @property
    def due(self) -> bool:
        """Whether a checkpoint is due; true on every member at the same portion."""
        return self.enabled and self._passed_s >= self.every_s

    @property
    def due_at_epochs_end(self) -> bool:
        """Whether one is due at an epoch's end, by this member's clock. The chief's clock counts."""
        return self.enabled and time.monotonic() - self._kept_s >= self._pause_s

    @property
    def _pause_s(self) -> float:
        """Least seconds between a checkpoint and the one at an epoch's end."""
        return self.every_s if self._by_cost else min(FIRST_S, self.every_s / 2)

    # --- what

    def capture(self, model: Any) -> list[Any]:
        """Copies of all the model's variables' values. Training waits meanwhile."""
        began_s = time.monotonic()
        self.host.flush(model, whole=True)
        values = writer.capture(model)
        self._captured_s = time.monotonic() - began_s
        return list(values)

    def write(self, moment: Moment, now: Any | None, *, wait: bool = False) -> None:
        """Writes a checkpoint. ``now``: the current fit; None between fits. ``wait``: until it is written."""
        assert self._writer is not None
        if now is not None:
            now = {**now, "random": {**now["random"], "now": self._with_chiefs(now["random"]["now"])}}
            self._keep_exactness()
        if self._by_cost and not wait:
            cost_s = self._captured_s + self._writer.cost_s
            own_s = min(MOST_S, max(FIRST_S, cost_s / COST))
            self.every_s = self.host.from_chief(struct.pack(">d", own_s), _seconds)
        # Even if this writer is busy: others' may not be, and all members must count alike.
        self._passed_s, self._kept_s = 0.0, time.monotonic()
        self._portions, self._check_at = 0, FIRST_CHECK
        if (
            self._writer.write(
                moment,
                self.host.shares_kept,
                now,
                wait=wait,
                exactness=self._kept_exactness,
                sure_step=self.sure_step,
            )
            or wait
        ):
            self._ended = None  # With ``wait``, there is no time for another attempt.

    def ended(self, progress: FitProgress, history: Any) -> None:
        """Call when a fit has ended: later checkpoints contain its results."""
        if self._writer is None or not progress.kept or self.host.stopping:
            return
        # The chief's clock decides: otherwise members would count from different moments.
        due = self.host.from_chief(b"due" if self.due_at_epochs_end else b"", b"due".__eq__)
        tree = {
            "model": self.capture(progress.model),
            "history": callback_state.capture(history, self.host.say_once),
            "callbacks": self.callbacks(progress.callbacks),
            "random": self._with_chiefs(progress.random_now()),
            "step": self.host.step,
            "epochs": self.host.epochs,
        }
        self._keep_exactness()
        self._writer.add_finished(progress.number, tree)
        self._ended = Moment(fit=progress.number + 1, step=self.host.step, epochs=self.host.epochs)
        if due:
            self.write(self._ended, None)

    @property
    def whole(self) -> bool:
        """Whether the checkpoint that this training resumes from asks for whole batches."""
        return self._resumed is not None and self._resumed.head.whole

    def moments_until(self, step: int) -> list[Moment]:
        """Moments of this member's checkpoints of at most `step` steps, to which the training may go back,
        the newest first. Empty outside a fit that checkpoints contain.
        """
        if (
            self._writer is None
            or not self._goes_back
            or self._fit is None
            or not (self._fit.under_way and self._fit.kept)
        ):
            return []
        return [moment for moment in self._writer.moments() if moment.step <= step]

    @property
    def whole_too_late(self) -> bool:
        """Whether steps before that checkpoint were not audited, and may have had what asks for it."""
        return self.whole and bool(self._before.unaudited)

    @property
    def in_doubt(self) -> bool:
        """Whether the result may differ because of what happened before the training was resumed."""
        return bool(self._before.told)

    def go_back(self, moment: Moment) -> None:
        """Marks this moment's checkpoint to be resumed from, with whole batches. Raises ``OSError``."""
        assert self._writer is not None
        self._ended = None
        self._writer.go_back(moment)

    def stopped(self) -> None:
        """Call after a Stop: writes a checkpoint if a fit has ended that none contains."""
        if self._ended is not None:
            self.write(self._ended, None, wait=True)

    def end(self) -> None:
        """Call when the training has ended: writes nothing more."""
        if self._writer is not None:
            self._writer.end()

    @property
    def exactness(self) -> Exactness:
        """What is known of the training's result, over all its runs."""
        told = [one_line(words, TOLD_LENGTH) for words, differs in self.host.said.items() if differs]
        audits, fit = _sum(self._before.audits, self.host.audits.counts), self._fit
        steps = None if fit is None else fit.model.train_function
        unaudited = "" if fit is None else fit.unaudited or getattr(steps, "unaudited", "")
        met = getattr(getattr(steps, "costs", None), "met_every", 0)
        bits = self._kept_exactness.sent_bits, getattr(steps, "sent_bits", 0)
        return Exactness(
            told=tuple(told[:MOST_TOLD]),
            audits=audits,
            unaudited=unaudited,
            met_every=max(self._kept_exactness.met_every, met),
            sent_bits=min(filter(None, bits), default=0),
        )

    def _keep_exactness(self) -> None:
        self._kept_exactness = self.host.from_chief(wire.to_json(self.exactness), _exactness)

    def _with_chiefs(self, random: dict[str, Any]) -> dict[str, Any]:
        """``random``, with the chief's states of the script's own generators: unseeded ones differ."""
        return {**random, "own": self.host.from_chief(plain.pack(random["own"]), _generators)}

    def callbacks(self, callbacks: Sequence[Any]) -> list[Any]:
        """The callbacks' plain values; the chief's for callbacks that only the chief may run."""
        states = [callback_state.capture(each, self.host.say_once) for each in callbacks]
        places = [place for place, each in enumerate(callbacks) if isinstance(each, self.writers)]
        if places:
            chiefs = self.host.from_chief(
                plain.pack([states[place] for place in places]), lambda data: _states(data, len(places))
            )
            for place, state in zip(places, chiefs, strict=True):
                states[place] = state
        return states


def _seconds(data: bytes) -> float:
    """Seconds between two checkpoints. Raises TandemError."""
    if len(data) == 8 and FIRST_S <= (seconds := float(struct.unpack(">d", data)[0])) <= MOST_S:
        return seconds
    raise plain.broken("not the seconds between two checkpoints")


def _portions(data: bytes) -> int:
    """A number of portions. Raises TandemError."""
    if len(data) == 4 and (portions := int.from_bytes(data, "big")) <= MOST_PORTIONS:
        return portions
    raise plain.broken("not a number of portions")


def _sum(before: Audits | None, own: Audits | None) -> Audits | None:
    if before is None or own is None:
        return own or before
    return Audits(
        steps=before.steps + own.steps, audited=before.audited + own.audited, why=before.why or own.why
    )


def _exactness(data: bytes) -> Exactness:
    """Raises TandemError."""
    try:
        return _EXACTNESS.decode(data)
    except msgspec.DecodeError:
        raise plain.broken("not what is known of a training's result") from None


def _generators(data: bytes) -> Any:
    """States of the script's own generators. Raises TandemError."""
    match plain.unpack(data):
        case dict() as states:
            return states
    raise plain.broken("not the states of random generators")


def _states(data: bytes, count: int) -> list[Any]:
    """States of `count` callbacks, as ``callback_state.capture`` returns them. Raises TandemError."""
    match plain.unpack(data):
        case list() as states if len(states) == count and all(map(callback_state.is_state, states)):
            return states
    raise plain.broken("not the callbacks' values")


def _opened(folder: Path) -> Checkpoint:
    found = checkpoint_store.at(folder)
    if found is None or not checkpoint_store.intact(found):
        raise _broken(str(folder))
    return found


def _broken(folder: str) -> TandemError:
    return TandemError(
        code="checkpoint-broken",
        what=f"There is no complete checkpoint in {folder}.",
        fix="Resume again, or start the training again.",
    )
