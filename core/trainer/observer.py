"""Turns training events of the engine or a Keras callback into reports. Main thread; never blocks."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Literal

from msgspec.structs import replace

from core.supervisor.spawn import BACKEND_ASKED
from core.trainer.exact.interface import StepReport
from core.trainer.reporter import Reporter
from core.vocabulary import trainer_messages
from core.vocabulary.bounds import MOST_LOGS, NAME
from core.vocabulary.plan import split_rows
from core.vocabulary.progress import Diverged, EpochEnd, Expectation, NotFinite, Progress, not_finite

STEP_EVERY_S = 0.1
"""Seconds between two reported steps. The only throttle between Keras and a plot: here it saves training from
reading metrics that nobody will see, and keeps the load off pipe, links and history."""
HELPER_EVERY_S = 0.5
"""The same for members that share a batch's rows with a chief: its losses and speeds are theirs too."""
RATE_S = 15.0
"""Least seconds over which the pace is measured."""


class ReportingObserver:
    """The ``Observer`` of ``core.trainer.exact.interface``. Counts ``fit`` calls, epochs and steps from 0."""

    def __init__(
        self,
        reporter: Reporter,
        *,
        shares: tuple[int, ...],
        rank: int,
        ranks: tuple[int, ...] = (),
        stop_asked: Callable[[], bool],
        is_chief: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reporter = reporter
        self.shares = shares
        self.is_chief = is_chief
        self._ranks = ranks or (rank,)
        self._stop_asked = stop_asked
        self._clock = clock
        self._monotonic = monotonic
        self._next_s = -math.inf
        self._held: Progress | None = None
        self._fit = -1
        self._epochs = 1
        self._monitored = ""
        self._steps: int | None = None
        self._first_epoch: int | None = None
        self._base: int | None = None
        self._epoch_began_s = 0.0
        self._last: Progress | None = None
        self._seen: tuple[tuple[int, float], tuple[int, float]] | None = None
        """Step and time of two reports of this fit at least ``RATE_S`` apart, or of the first one twice."""
        self._diverged: Diverged | None = None
        """Set for this fit while its loss is not finite."""
        self._said_diverged: int | None = None
        """The last fit whose divergence was reported."""
        self.fitting = False

    def on_fit_began(
        self,
        epochs: int,
        steps: int | None,
        global_batch: int | None,
        first_epoch: int | None = None,
        done: int | None = None,
        monitored: str = "",
    ) -> None:
        self._fit += 1
        self.fitting = True
        self._report_other_backend()
        self._epochs, self._steps = epochs, steps
        self._first_epoch, self._base, self._monitored = first_epoch, done, monitored
        self._last = self._held = self._diverged = self._seen = None
        self._epoch_began_s = self._clock()
        self._reporter.send(
            trainer_messages.FitBegan(
                fit=self._fit, epochs=epochs, steps_in_epoch=steps, global_batch=global_batch
            )
        )

    def _report_other_backend(self) -> None:
        """Reports that another backend, requested by the script or its environment, is ignored."""
        asked = os.environ.get("KERAS_BACKEND", ""), os.environ.get(BACKEND_ASKED, "")
        other = next((name for name in asked if name and name != "tensorflow"), None)
        if other is not None and self._fit == 0 and (self.is_chief() or not self.shares):
            self.on_said(
                f"KERAS_BACKEND is {other!r}, but Tandem trains on TensorFlow, and so does this run. Numbers "
                f"may differ by rounding from those on {other}; code that needs {other} itself will fail."
            )

    def step_due(self) -> bool:
        return self._monotonic() >= self._next_s

    def on_step(self, report: StepReport) -> None:
        step, epoch, batch = report.step, report.epoch, report.batch
        if self._fit < 0:
            self._fit = 0  # train_on_batch, without any fit.
        if self._first_epoch is None:
            self._first_epoch = epoch
        if self._base is None:
            self._base = step - max(batch, 1)  # A batch outside of any epoch is reported as 0.
        self._steps = report.steps_in_epoch or self._steps
        rate = 1.0 / report.step_s if report.step_s > 0 else None
        in_fit = self._step_in_fit(step, epoch, batch)
        self._watch_loss(report.logs, epoch, in_fit)
        progress = Progress(
            at_s=self._clock(),
            fit=self._fit,
            epoch=epoch,
            epochs=self._epochs if batch else 0,
            step=in_fit,
            batch=max(0, batch - 1),
            steps_in_epoch=self._steps if batch else None,
            logs=self._finite(report.logs),
            recent=None if report.recent is None else self._finite(report.recent),
            not_finite=_not_finite(report.logs if report.recent is None else report.recent),
            steps_s=self._steps_s(step, rate),
            samples_s=report.rows * rate if rate and report.rows else None,
            step_s=report.step_s,
            wait_s=report.wait_s,
            grad_norm=report.grad_norm,
            wire_s=report.wire_s,
            wire_bytes=report.wire_bytes,
            met_every=report.met_every,
            sent_bits=report.sent_bits,
            done=step,
            share=self._share(round(report.rows)),
            diverged=self._diverged,
        )
        self._report(progress)

    def on_epoch_ended(
        self, epoch: int, logs: Mapping[str, float], steps: int | None = None, whole: bool = True
    ) -> None:
        now_s = self._clock()
        if self._first_epoch is None:
            self._first_epoch = epoch
        last = self._last
        done = self._steps if whole or steps is None else steps
        if self._steps and done is not None:
            step = max(0, (epoch - self._first_epoch) * self._steps + done - 1)
        else:
            step = last.step if last is not None else 0
        if last is not None and last.step < step:
            # Not every step is reported, but the counts shown must end where the epoch ended.
            self._report(_at_end(last, now_s, epoch, step, done))
        self._watch_loss(logs, epoch, step)
        end = EpochEnd(
            at_s=now_s,
            fit=self._fit,
            epoch=epoch,
            epochs=self._epochs,
            step=step,
            logs=self._finite(logs),
            seconds=now_s - self._epoch_began_s,
            whole=whole,
            steps=self._steps if steps is None else steps,
            steps_in_epoch=self._steps,
            diverged=self._diverged,
            not_finite=_not_finite(logs),
        )
        self._epoch_began_s = now_s
        self._reporter.send(trainer_messages.EpochEnded(epoch=end))

    def on_evaluated(self, logs: Mapping[str, float]) -> None:
        self._reporter.send(trainer_messages.Evaluated(logs=self._finite(logs)))

    def on_fit_ended(self) -> None:
        self.fitting = False
        if self._held is not None:
            self._send(self._held)

    def on_measured(self, expectation: Expectation) -> None:
        self._reporter.send(trainer_messages.Measured(expectation=expectation))

    def on_shares(self, shares: tuple[int, ...]) -> None:
        self.shares = shares

    def on_said(self, words: str, difference: bool = False) -> None:
        self._reporter.send(trainer_messages.Said(words=words, difference=difference))

    def should_stop(self) -> bool:
        return self._stop_asked()

    def _steps_s(self, step: int, rate: float | None) -> float | None:
        """Steps per second over the last ``RATE_S`` or more; at first ``rate``, this step's own."""
        now_s = self._monotonic()
        before, newer = self._seen or ((step, now_s), (step, now_s))
        if now_s - newer[1] >= RATE_S:
            before, newer = newer, (step, now_s)
        self._seen = before, newer
        if step <= before[0] or now_s <= before[1]:
            return rate
        return (step - before[0]) / (now_s - before[1])

    @property
    def began(self) -> bool:
        """Whether any ``fit`` began."""
        return self._fit >= 0

    def _report(self, progress: Progress) -> None:
        """Sends the report if one is due. Holds it otherwise: the last of a fit is sent when the fit ends."""
        self._last = progress
        if self.step_due():
            self._send(progress)
        else:
            self._held = progress

    def _send(self, progress: Progress) -> None:
        self._held = None
        leads = self.is_chief() or len(self.shares) < 2
        self._next_s = self._monotonic() + (STEP_EVERY_S if leads else HELPER_EVERY_S)
        self._reporter.progress(progress)

    def _watch_loss(self, logs: Mapping[str, float], epoch: int, step: int) -> None:
        loss = logs.get("loss")
        if loss is not None and math.isfinite(loss):
            self._diverged = None
        elif loss is not None and self._diverged is None:
            value: Literal["NaN", "infinite"] = "NaN" if math.isnan(loss) else "infinite"
            self._diverged = Diverged(value=value, epoch=epoch, step=step)

    def _finite(self, logs: Mapping[str, float]) -> dict[str, float]:
        """The finite logs, the monitored metric first. Reports a loss that is not finite, once per fit."""
        loss = logs.get("loss", 0.0)
        reports = self.is_chief() or not self.shares  # members that share rows have the same loss
        if reports and not math.isfinite(loss) and self._said_diverged != self._fit:
            self._said_diverged = self._fit
            self.on_said(
                f"The loss has become {loss}: the training diverges. A smaller learning rate or clipped "
                "gradients (clipnorm) often help."
            )
        by_use = sorted(logs.items(), key=lambda each: each[0].removeprefix("val_") != self._monitored)
        first_logs = islice(by_use, MOST_LOGS)
        return {name[:NAME]: value for name, value in first_logs if math.isfinite(value)}

    def _share(self, rows: int) -> int | None:
        """This laptop's rows; None if they are unknown or not ours to split."""
        if not rows or not self.shares:
            return None
        parts = split_rows(rows, self.shares)
        return sum(parts[rank][1] - parts[rank][0] for rank in self._ranks)

    def _step_in_fit(self, step: int, epoch: int, batch: int) -> int:
        if self._steps and self._first_epoch is not None:
            return max(0, (epoch - self._first_epoch) * self._steps + batch - 1)
        return max(0, step - (self._base or 0) - 1)


def _not_finite(logs: Mapping[str, float]) -> NotFinite:
    return {
        name[:NAME]: not_finite(value)
        for name, value in islice(logs.items(), MOST_LOGS)
        if not math.isfinite(value)
    }


def _at_end(last: Progress, now_s: float, epoch: int, step: int, done: int | None) -> Progress:
    """The last report, moved on to the end of its epoch. ``done``: the epoch's steps."""
    total = None if last.done is None else last.done + step - last.step
    batch = max(0, (done or 1) - 1)
    return replace(
        last, at_s=now_s, epoch=epoch, step=step, batch=batch, recent={}, not_finite={}, done=total
    )
