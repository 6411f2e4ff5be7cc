"""An observer that keeps what a benchmark needs. Main thread of a member, like all observers."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from bench.result import median
from core.trainer.exact.interface import StepReport
from core.vocabulary.progress import Expectation


class Heard:
    """Values of the newest ``fit``; for expectation and shares, the newest of all."""

    def __init__(self) -> None:
        self.expectation: Expectation | None = None
        self.shares: tuple[int, ...] = ()
        self.first_at_s: float | None = None
        """When the first step of all was reported, in seconds of the system's clock."""
        self.losses: list[tuple[float, float]] = []
        """Of each reported step: seconds since the first one, and the loss since the last report."""
        self._batch: int | None = None
        self._steps_s: list[float] = []

    @property
    def step_s(self) -> float | None:
        """The median of the later half: traces, calibration and the first corrections are over."""
        late = self._steps_s[len(self._steps_s) // 2 :]
        return median(late) if late else None

    def on_fit_began(
        self,
        epochs: int,
        steps: int | None,
        global_batch: int | None,
        first_epoch: int = 0,
        done: int = 0,
        monitored: str = "",
    ) -> None:
        self._batch, self._steps_s, self.losses = global_batch, [], []

    def step_due(self) -> bool:
        return True

    def on_step(self, report: StepReport) -> None:
        self.first_at_s = self.first_at_s or time.time()
        loss = (report.recent or report.logs).get("loss", math.nan)
        self.losses.append((time.time() - self.first_at_s, loss))
        if report.step_s > 0 and report.rows == self._batch:
            self._steps_s.append(report.step_s)

    def on_measured(self, expectation: Expectation) -> None:
        self.expectation = expectation

    def on_shares(self, shares: tuple[int, ...]) -> None:
        self.shares = shares

    def on_epoch_ended(self, epoch: int, logs: Mapping[str, float], steps: int, whole: bool) -> None: ...

    def on_evaluated(self, logs: Mapping[str, float]) -> None: ...

    def on_fit_ended(self) -> None: ...

    def on_said(self, words: str, difference: bool = False) -> None: ...

    def should_stop(self) -> bool:
        return False
