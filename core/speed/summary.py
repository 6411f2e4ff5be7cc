"""Counts a run's events for its summary, and measures its steps' speed once they are steady. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite
from statistics import median
from typing import Self

from msgspec import structs

from core.vocabulary import events as ev
from core.vocabulary.events import MirroredEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import Plan
from core.vocabulary.plausible import is_step_time
from core.vocabulary.progress import EpochPart, Progress, Settled, Summary
from core.vocabulary.text import plain

SETTLE_S = 3.0
"""Time after a fit's first report until tracing and the first changes of shares are over."""
LEAST = 5
"""Reports needed for a median; a fit too short for that uses its second half."""
MOST_TOLD = 20
TOLD_LENGTH = 600
"""Characters of a sentence; a peer may say anything."""
MOST = 400
"""Reports kept; of more, every 2ⁿ-th."""


@dataclass(frozen=True, slots=True)
class Settling:
    """Collects reports of the newest fit; or of all fits, since one that was ``measured`` before it began."""

    measured: bool = False
    fit: int | None = None
    seen: int = 0
    stride: int = 1
    reports: tuple[Progress, ...] = ()
    """The chief's."""
    shares: tuple[tuple[DeviceId, int], ...] = ()

    def after(self, device: DeviceId, progress: Progress, *, chief: bool) -> Self:
        """The next value after a member's report."""
        if self.fit is None or (progress.fit > self.fit and not self.measured):
            return replace(self, fit=progress.fit, seen=0, stride=1, reports=(), shares=()).after(
                device, progress, chief=chief
            )
        if progress.fit < self.fit or _may_be_short(progress):
            return self
        known = self
        if progress.share is not None and progress.share >= 0:
            known = replace(known, shares=tuple({**dict(self.shares), device: progress.share}.items()))
        if not chief or progress.step_s is None or not is_step_time(progress.step_s):
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
    """An epoch's last batch often has fewer rows, so its time is not representative."""
    steps = progress.steps_in_epoch
    return steps is not None and steps > 1 and progress.batch + 1 >= steps


def _median(reports: list[Progress], of: Callable[[Progress], float | None]) -> float | None:
    values = [value for report in reports if (value := of(report)) is not None and isfinite(value)]
    return median(values) if values and min(values) >= 0 else None


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted so far. Steps and epochs are the chief's; times are by this node's clock."""

    chief: DeviceId
    """The chief among the present members."""
    pressed_s: float
    plan: Plan | None = None
    planned_s: float = 0.0
    """When the plan was complete, and the trainers were started."""
    first_s: float | None = None
    last_s: float | None = None
    first: Progress | None = None
    last: Progress | None = None
    steps_before: int = 0
    """Steps of the ``fit`` calls before the present one."""
    ended: tuple[int, int] = (-1, -1)
    """Fit and epoch of the last reported end."""
    part: EpochPart | None = None
    """The part of that epoch that was done, where it was broken off."""
    rates: int = 0
    rate_sum: float = 0.0
    logs_whole: bool = False
    """The last logs are those of a complete epoch."""
    settling: Settling = field(default_factory=Settling)
    known: Summary = field(default_factory=Summary)
    """Values that need no final computation. Only complete epochs count, including those before a
    resumption."""

    def knowing(self, **fields: object) -> Self:
        """A copy with these fields of the summary changed."""
        return replace(self, known=structs.replace(self.known, **fields))


def counted(tally: Tally, event: MirroredEvent, now_s: float) -> Tally:
    """``tally`` after ``event``."""
    if isinstance(event, ev.MemberProgressed):
        own = event.device == tally.chief
        tally = replace(tally, settling=tally.settling.after(event.device, event.progress, chief=own))
    match event:
        case ev.RunPlanned(plan=plan):
            # With other members, or ports: earlier measurements belong to another run.
            exchange = "" if plan.solo else plan.exchange
            fresh = replace(tally, settling=Settling(), plan=plan, planned_s=now_s)
            if (resume := plan.resume) is not None:
                fresh = fresh.knowing(
                    epochs=resume.moment.epochs, met_every=resume.met_every, sent_bits=resume.sent_bits
                )
            return fresh.knowing(exchange=exchange, accepted=plan.accept_differences, expectation=None)
        case ev.MemberMeasured():
            # Measurements from here on are compared with this expectation.
            measured = replace(tally, settling=Settling(measured=True))
            return measured.knowing(expectation=event.expectation)
        case ev.MemberProgressed() if event.device == tally.chief:
            return _progressed(tally, event.progress, now_s)
        case ev.MemberProgressed() if tally.first_s is None:
            return replace(tally, first_s=now_s)
        case ev.MemberEndedEpoch(epoch=epoch) if _counts(tally, event):
            part, epochs = None, tally.known.epochs + epoch.whole
            tally = tally.knowing(diverged=epoch.diverged, epochs=epochs)
            if not epoch.whole:
                part = EpochPart(steps=epoch.steps or 0, steps_in_epoch=epoch.steps_in_epoch)
            # Logs of a few steps of an epoch do not compare with those of complete ones.
            if epoch.whole or not tally.logs_whole:
                tally = replace(tally, logs_whole=epoch.whole).knowing(last_logs=dict(epoch.logs))
            return replace(tally, ended=(epoch.fit, epoch.epoch), part=part, last_s=now_s)
        case ev.MemberPhaseChanged() if event.strategy and event.device == tally.chief:
            return tally.knowing(strategy=event.strategy)
        case ev.MemberLeft(device=device):
            # Earlier measurements included the laptop that left.
            left = {**tally.known.left, device: _steps_done(tally)}
            gone = [DeviceId(each) for each in left]
            chief = tally.chief if tally.plan is None else tally.plan.chief_without(gone).device
            return replace(tally, settling=Settling(), chief=chief).knowing(left=left, expectation=None)
        case ev.MemberEnded(device=device, exit=exit):
            weights, audits = tally.known.weights_sha256, tally.known.audits
            if exit.weights_sha256:
                weights = {**weights, device: exit.weights_sha256}
            if device == tally.chief:
                audits = exit.audits or audits
            return tally.knowing(weights_sha256=weights, audits=audits)
        case ev.MemberLogged(lines=lines) if lines.difference and len(tally.known.told) < MOST_TOLD:
            words, told = plain(lines.text, TOLD_LENGTH), tally.known.told
            return tally if words in told else tally.knowing(told=(*told, words))
        case _:
            return tally


def _counts(tally: Tally, event: ev.MemberEndedEpoch) -> bool:
    """Whether to count this report of an epoch's end: the first from any member if all have the same epochs,
    as the chief may be lost before it reports; otherwise the chief's."""
    alike = tally.plan is not None and tally.plan.outlasts_losses
    is_new = (event.epoch.fit, event.epoch.epoch) > tally.ended
    return is_new if alike else event.device == tally.chief


def summary(tally: Tally, now_s: float) -> Summary:
    """The results so far."""
    first_s, last_s = tally.first_s, tally.last_s
    resumed = None if tally.plan is None else tally.plan.resume
    before_s = 0.0 if resumed is None else resumed.took_s
    rate = None
    steps = 0
    if tally.first and tally.last:
        steps, before = _steps_done(tally), tally.first.step + 1
        if tally.last.done is not None and tally.first.done is not None:
            before = tally.first.done
        took = tally.last.at_s - tally.first.at_s
        if took > 0:
            rate = (steps - before) / took
    return structs.replace(
        tally.known,
        first_step_s=None if first_s is None else first_s - tally.pressed_s,
        train_s=None if first_s is None or last_s is None else max(0.0, last_s - first_s),
        total_s=before_s + now_s - tally.pressed_s,
        steps=steps,
        part=_part(tally),
        steps_s=rate,
        samples_s=tally.rate_sum / tally.rates if tally.rates else None,
        settled=tally.settling.settled(),
    )


def _steps_done(tally: Tally) -> int:
    if tally.last is None:
        return 0
    if tally.last.done is not None and tally.first is not None and tally.first.done is not None:
        return tally.last.done
    return tally.steps_before + tally.last.step + 1


def _part(tally: Tally) -> EpochPart | None:
    """How much of the last epoch was done, if it was interrupted. Without a reported end, its last step
    counts."""
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
        known=inexactly(tally.known, progress),
    ).knowing(diverged=progress.diverged)


def inexactly(known: Summary, progress: Progress) -> Summary:
    """With the least exact of how a training's members met and sent gradients so far."""
    return structs.replace(
        known,
        met_every=max(known.met_every, progress.met_every),
        sent_bits=min(filter(None, (known.sent_bits, progress.sent_bits)), default=0),
    )
