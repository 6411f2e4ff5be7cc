"""What a step takes once a fit has settled: medians of what the chief reports, in bounded memory. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from statistics import median
from typing import Self

from core.vocabulary.ids import DeviceId
from core.vocabulary.plausible import a_step
from core.vocabulary.progress import Progress, Settled

SETTLE_S = 3.0
"""After a fit's first report: traces and the first corrections of shares are over."""
LEAST = 5
"""Reports that a median is made of; a fit too short for so many gives its second half."""
MOST = 400
"""Reports that are kept; of more, every 2ⁿ-th."""


@dataclass(frozen=True, slots=True)
class Settling:
    """Of the newest fit; or of all fits since one that was ``measured`` before it began."""

    measured: bool = False
    fit: int | None = None
    seen: int = 0
    stride: int = 1
    reports: tuple[Progress, ...] = ()
    """Of the chief."""
    shares: tuple[tuple[DeviceId, int], ...] = ()

    def after(self, device: DeviceId, progress: Progress, *, chief: bool) -> Self:
        """After a member's report."""
        if self.fit is None or (progress.fit > self.fit and not self.measured):
            return replace(self, fit=progress.fit, seen=0, stride=1, reports=(), shares=()).after(
                device, progress, chief=chief
            )
        if progress.fit < self.fit or _may_be_short(progress):
            return self
        known = self
        if progress.share is not None and progress.share >= 0:
            known = replace(known, shares=tuple({**dict(self.shares), device: progress.share}.items()))
        if not chief or progress.step_s is None or not a_step(progress.step_s):
            return known
        kept, stride = known.reports, known.stride
        if known.seen % stride == 0:
            kept = (*kept, progress)
            if len(kept) > MOST:
                kept, stride = kept[::2], 2 * stride
        return replace(known, seen=known.seen + 1, stride=stride, reports=kept)

    def settled(self) -> Settled | None:
        """None before any step was timed."""
        if not self.reports:
            return None
        begins_s = self.reports[0].at_s + SETTLE_S
        late = [report for report in self.reports if report.at_s >= begins_s]
        if len(late) < LEAST:
            late = list(self.reports[len(self.reports) // 2 :])
        step_s = _median(late, lambda report: report.step_s)
        if step_s is None:
            return None
        wire_bytes = _median(late, lambda report: report.wire_bytes)
        return Settled(
            step_s=step_s,
            samples_s=_median(late, lambda report: report.samples_s),
            wire_s=_median(late, lambda report: report.wire_s),
            wire_bytes=None if wire_bytes is None else round(wire_bytes),
            shares=dict(self.shares),
        )


def _may_be_short(progress: Progress) -> bool:
    """An epoch's last batch often has fewer rows, so that it is no measure."""
    steps = progress.steps_in_epoch
    return steps is not None and steps > 1 and progress.batch + 1 >= steps


def _median(reports: list[Progress], of: Callable[[Progress], float | None]) -> float | None:
    values = [value for report in reports if (value := of(report)) is not None and isfinite(value)]
    return median(values) if values and min(values) >= 0 else None
