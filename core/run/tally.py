"""Counts what the summary of a run says, event by event. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from core.run.settling import Settling
from core.vocabulary import events as ev
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.progress import Expectation, Progress, Summary


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
    rates: int = 0
    rate_sum: float = 0.0
    strategy: str = ""
    logs: tuple[tuple[str, float], ...] = ()
    weights: tuple[tuple[str, str], ...] = ()
    outputs: tuple[str, ...] = ()
    expectation: Expectation | None = None
    settling: Settling = field(default_factory=Settling)


def counted(tally: Tally, event: RunEvent, now_s: float) -> Tally:
    """``tally`` after ``event``."""
    if isinstance(event, ev.MemberProgressed):
        own = event.device == tally.chief
        tally = replace(tally, settling=tally.settling.after(event.device, event.progress, chief=own))
    match event:
        case ev.RunPlanned():
            # With other members, or ports: what was measured before is of another run.
            return replace(tally, expectation=None, settling=Settling())
        case ev.MemberMeasured():
            # What settles from here on is what this was expected of.
            return replace(tally, expectation=event.expectation, settling=Settling(measured=True))
        case ev.MemberProgressed() if event.device == tally.chief:
            return _progressed(tally, event.progress, now_s)
        case ev.MemberProgressed() if tally.first_s is None:
            return replace(tally, first_s=now_s)
        case ev.MemberEndedEpoch() if event.device == tally.chief:
            return replace(tally, epochs=tally.epochs + 1, logs=tuple(event.epoch.logs.items()), last_s=now_s)
        case ev.MemberPhaseChanged() if event.strategy and event.device == tally.chief:
            return replace(tally, strategy=event.strategy)
        case ev.MemberEnded() if event.exit.weights_sha256:
            return replace(tally, weights=(*tally.weights, (event.device, event.exit.weights_sha256)))
        case _:
            return tally


def summary(tally: Tally, now_s: float) -> Summary:
    """What came out so far."""
    first_s, last_s = tally.first_s, tally.last_s
    rate = None
    steps = 0
    if tally.first and tally.last:
        steps = tally.steps_before + tally.last.step + 1
        took = tally.last.at_s - tally.first.at_s
        if took > 0:
            rate = (steps - tally.first.step - 1) / took
    return Summary(
        strategy=tally.strategy,
        first_step_s=None if first_s is None else first_s - tally.pressed_s,
        train_s=None if first_s is None or last_s is None else max(0.0, last_s - first_s),
        total_s=now_s - tally.pressed_s,
        epochs=tally.epochs,
        steps=steps,
        steps_s=rate,
        samples_s=tally.rate_sum / tally.rates if tally.rates else None,
        last_logs=dict(tally.logs),
        weights_sha256=dict(tally.weights),
        outputs=tally.outputs,
        expectation=tally.expectation,
        settled=tally.settling.settled(),
    )


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
