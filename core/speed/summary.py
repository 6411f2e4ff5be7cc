"""Counts what the summary of a run says, and how fast its steps are once they are steady. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite
from statistics import median
from typing import Self

from core.vocabulary import events as ev
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.plausible import a_step
from core.vocabulary.progress import EpochPart, Expectation, Progress, Settled, Summary
from core.vocabulary.text import plain

SETTLE_S = 3.0
"""After a fit's first report: traces and the first corrections of shares are over."""
LEAST = 5
"""Reports that a median is made of; a fit too short for so many gives its second half."""
MOST_TOLD = 20
TOLD_LENGTH = 600
"""Characters of a sentence; a peer may say anything."""
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


@dataclass(frozen=True, slots=True)
class Tally:
    """Steps and epochs are the chief's; times are on the clock of the one who counts."""

    chief: DeviceId
    pressed_s: float
    first_s: float | None = None
    last_s: float | None = None
    first: Progress | None = None
    last: Progress | None = None
    steps_before: int = 0
    """Steps of the ``fit`` calls before the present one."""
    epochs: int = 0
    """Whole ones; those before it was resumed count."""
    ended: tuple[int, int] = (-1, -1)
    """Fit and epoch whose end was told last."""
    part: EpochPart | None = None
    """Of that epoch, where it was broken off."""
    rates: int = 0
    rate_sum: float = 0.0
    strategy: str = ""
    exchange: str = ""
    logs: tuple[tuple[str, float], ...] = ()
    logs_whole: bool = False
    """They are those of a whole epoch."""
    weights: tuple[tuple[str, str], ...] = ()
    outputs: tuple[str, ...] = ()
    expectation: Expectation | None = None
    settling: Settling = field(default_factory=Settling)
    told: tuple[str, ...] = ()
    """Differences from one machine's result, each once."""
    accepted: bool = False


def counted(tally: Tally, event: RunEvent, now_s: float) -> Tally:
    """``tally`` after ``event``."""
    if isinstance(event, ev.MemberProgressed):
        own = event.device == tally.chief
        tally = replace(tally, settling=tally.settling.after(event.device, event.progress, chief=own))
    match event:
        case ev.RunPlanned(plan=plan):
            # With other members, or ports: what was measured before is of another run.
            exchange = "" if plan.solo else plan.exchange
            before = plan.resume.moment.epochs if plan.resume is not None else 0
            known = replace(tally, exchange=exchange, epochs=before, accepted=plan.accept_differences)
            return replace(known, expectation=None, settling=Settling())
        case ev.MemberMeasured():
            # What settles from here on is what this was expected of.
            return replace(tally, expectation=event.expectation, settling=Settling(measured=True))
        case ev.MemberProgressed() if event.device == tally.chief:
            return _progressed(tally, event.progress, now_s)
        case ev.MemberProgressed() if tally.first_s is None:
            return replace(tally, first_s=now_s)
        case ev.MemberEndedEpoch(epoch=epoch) if event.device == tally.chief:
            part = None
            if not epoch.whole:
                part = EpochPart(steps=epoch.steps or 0, steps_in_epoch=epoch.steps_in_epoch)
            # What a few steps of an epoch came to is no measure beside those that were whole.
            if epoch.whole or not tally.logs_whole:
                tally = replace(tally, logs=tuple(epoch.logs.items()), logs_whole=epoch.whole)
            return replace(
                tally,
                epochs=tally.epochs + epoch.whole,
                ended=(epoch.fit, epoch.epoch),
                part=part,
                last_s=now_s,
            )
        case ev.MemberPhaseChanged() if event.strategy and event.device == tally.chief:
            return replace(tally, strategy=event.strategy)
        case ev.MemberEnded() if event.exit.weights_sha256:
            return replace(tally, weights=(*tally.weights, (event.device, event.exit.weights_sha256)))
        case ev.MemberLogged(lines=lines) if lines.difference and len(tally.told) < MOST_TOLD:
            words = plain(lines.text, TOLD_LENGTH)
            return tally if words in tally.told else replace(tally, told=(*tally.told, words))
        case _:
            return tally


def summary(tally: Tally, now_s: float) -> Summary:
    """What came out so far."""
    first_s, last_s = tally.first_s, tally.last_s
    rate = None
    steps = 0
    if tally.first and tally.last:
        steps, before = tally.steps_before + tally.last.step + 1, tally.first.step + 1
        if tally.last.done is not None and tally.first.done is not None:
            steps, before = tally.last.done, tally.first.done
        took = tally.last.at_s - tally.first.at_s
        if took > 0:
            rate = (steps - before) / took
    return Summary(
        strategy=tally.strategy,
        exchange=tally.exchange,
        first_step_s=None if first_s is None else first_s - tally.pressed_s,
        train_s=None if first_s is None or last_s is None else max(0.0, last_s - first_s),
        total_s=now_s - tally.pressed_s,
        epochs=tally.epochs,
        steps=steps,
        part=_part(tally),
        steps_s=rate,
        samples_s=tally.rate_sum / tally.rates if tally.rates else None,
        last_logs=dict(tally.logs),
        weights_sha256=dict(tally.weights),
        outputs=tally.outputs,
        expectation=tally.expectation,
        settled=tally.settling.settled(),
        told=tally.told,
        accepted=tally.accepted,
    )


def _part(tally: Tally) -> EpochPart | None:
    """An epoch whose end was never told was left where its last step was."""
    last = tally.last
    if last is None or (last.fit, last.epoch) <= tally.ended:
        return tally.part
    return EpochPart(steps=last.batch + 1, steps_in_epoch=last.steps_in_epoch)


def _progressed(tally: Tally, progress: Progress, now_s: float) -> Tally:
    before = tally.steps_before
    if tally.last is not None and progress.fit != tally.last.fit:
        before += tally.last.step + 1
    rated = progress.samples_s is not None
    return replace(
        tally,
        first_s=now_s if tally.first_s is None else tally.first_s,
        last_s=now_s,
        first=tally.first or progress,
        last=progress,
        steps_before=before,
        rates=tally.rates + rated,
        rate_sum=tally.rate_sum + (progress.samples_s or 0.0),
    )
