"""Reports steps to the observer, with measurements of the steps since the last report."""

from __future__ import annotations

from typing import Any, Protocol

from core.trainer.exact.interface import Observer, StepReport
from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.members.step_meter import StepMeter
from core.trainer.exact.steps.fit import Fit
from core.trainer.exact.steps.recent_logs import RecentLogs
from core.trainer.exact.steps.result import PortionResult


class Costs(Protocol):
    """The cost of meetings between steps so far, for one model. ``portion_s``: length of a portion."""

    portion_s: float

    @property
    def met_every(self) -> int:
        """Steps from one meeting to the next."""

    @property
    def meeting_s(self) -> float:
        """Seconds a step, on average."""

    @property
    def meeting_bytes(self) -> int:
        """Bytes that this member sends a step, on average."""

    def rehearse(self, step_s: float) -> tuple[float, int]:
        """Tries a meeting. Returns the seconds and bytes that meetings add to a step of `step_s`."""


class StepReports:
    def __init__(self, observer: Observer, meter: StepMeter, rank: int, members: int) -> None:
        self._observer = observer
        self._meter = meter
        self._rank = rank
        self._recent_logs = RecentLogs()
        self._timed_steps = 0
        self._waited_s = [0.0] * members
        """Seconds by rank, over the timed steps since the last report."""
        self._early: tuple[int, object] | None = None
        """The newest step reported by `early`, and its logs."""

    def early(self, model: Any, result: PortionResult, step: int, fit: Fit, *others: Any) -> None:
        """Reports a step before its portion is done; it may be the portion's only one."""
        self.passed(model, result, step, fit, *others)
        self._early = step, result.logs

    def passed(
        self,
        model: Any,
        result: PortionResult,
        step: int,
        fit: Fit,
        present: tuple[int, ...],
        costs: Costs | None,
    ) -> None:
        """Records `result.done` steps of `model`, `step` in all, and reports them if a report is due.

        ``costs``: None if members meet in every step.
        """
        if self._early is not None and step == self._early[0] and result.logs is self._early[1]:
            return
        if result.timed:
            self._timed_steps += result.done
            for rank, wait_s in zip(result.met, result.wait_s, strict=True):
                self._waited_s[rank] += wait_s * result.done
        if not self._observer.step_due():
            return
        meeting_s = 0.0 if costs is None else costs.meeting_s
        timed = present if self._timed_steps else ()
        waits_s = {rank: self._waited_s[rank] / self._timed_steps + meeting_s for rank in timed}
        self._timed_steps, self._waited_s = 0, [0.0] * len(self._waited_s)
        logs = private.numbers(result.logs)
        step_s = result.step_s + (meeting_s if result.step_s else 0.0)
        wire_bytes = self._meter.wire_bytes(step)
        self._observer.on_step(
            StepReport(
                step=step,
                epoch=fit.epoch,
                batch=fit.batch,
                steps_in_epoch=fit.steps,
                rows=result.mean_rows,
                logs=logs,
                recent=self._recent_logs.since(model, (fit.name, fit.epoch), logs),
                step_s=step_s,
                wait_s=min(waits_s[self._rank], step_s) if waits_s else None,
                grad_norm=self._meter.norm(),
                wire_s=min(*waits_s.values(), step_s) if waits_s else None,
                wire_bytes=wire_bytes if costs is None else costs.meeting_bytes,
                met_every=0 if costs is None else costs.met_every,
                sent_bits=getattr(model.train_function, "sent_bits", 0),
            )
        )
