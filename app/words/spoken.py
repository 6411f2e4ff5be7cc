"""What a screen reader announces during pairing and training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

from app.words import run_words, wait_words
from app.words.device_names import name_of, names_of
from core.run.problems import left
from core.vocabulary import events as ev
from core.vocabulary import units
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Failed, Finished, Phase, Stopped, Training
from core.vocabulary.plan import Plan
from core.vocabulary.state import Run, State
from core.vocabulary.text import plain

LONGEST = 400
"""Maximum characters of one announcement: nobody listens to more."""
Said = tuple[str, bool]
"""A sentence, and whether it may interrupt the current one."""


def announce(widget: QWidget, words: str, *, urgent: bool = False) -> None:
    """Announce to a screen reader; without one it costs nothing."""
    event = QAccessibleAnnouncementEvent(widget, plain(words, LONGEST))
    levels = QAccessible.AnnouncementPoliteness
    event.setPoliteness(levels.Assertive if urgent else levels.Polite)
    QAccessible.updateAccessibility(event)


class News:
    """``of`` takes each batch of events, in order."""

    def __init__(self) -> None:
        self._run: RunId | None = None
        """The newest announced run: every member reports its start, and again with each new plan."""
        self._waits: tuple[object, ...] = ()
        """The key of the last wait message: waits are reported again every few seconds."""

    def of(self, events: Sequence[Event], state: State) -> list[Said]:
        """``state``: after all of them."""
        said: list[Said] = []
        for event in events:
            said += _of(event, state)
            if isinstance(event, ev.RunPlanned) and event.plan.run != self._run:
                self._run = event.plan.run
                said += _start(event.plan, state)
            if isinstance(event, ev.WaitingChanged) and state.run is not None:
                said += self._waiting(event, state.run, names_of(state, state.run.members))
        return said

    def _waiting(self, event: ev.WaitingChanged, run: Run, names: dict[DeviceId, str]) -> Iterator[Said]:
        gist = wait_words.gist(event)
        if gist != self._waits and event.waits:
            yield from ((line, event.asks) for line in wait_words.lines(run, names)[:1])
        self._waits = gist


def _of(event: Event, state: State) -> Iterator[Said]:
    run = state.run
    match event:
        case ev.PairingCodeShown(name=name, code=code, warning=warning):
            digits = " ".join(code)
            yield f"Pairing with {name}. The digits are {digits}. Does {name} show the same?", True
            if warning is not None:
                yield warning.what, True
        case ev.PairingEnded(device=device, problem=None) if device is not None:
            yield f"Paired with {name_of(state, device)}.", False
        case ev.PairingEnded(problem=problem) if problem is not None:
            yield f"Not paired. {problem.what} {problem.fix}", True
        case ev.ConsentAsked():
            yield _asks(event), True
        case ev.MemberPhaseChanged(device=device, phase="consent") if run is not None:
            if state.me is None or device != state.me.device:
                name = name_of(state, device)
                yield f"Waiting for someone to press Allow on {name}.", False
        case ev.MemberLeft(device=device, problem=why) if run is not None:
            names = names_of(state, run.members)
            yield left(names[device], why, [names[each] for each in run.staying]), False
        case ev.RunPhaseChanged(phase=phase) if run is not None:
            yield from _phase(phase, run)
        case _:
            pass


def _start(plan: Plan, state: State) -> Iterator[Said]:
    if not plan.solo:
        yield f"{name_of(state, plan.starter)} started a run of {plan.script}.", False


def _asks(asked: ev.ConsentAsked) -> str:
    size = units.size(sum(file.size for file in asked.files))
    files = units.number_of(len(asked.files), "file")
    changed = " It differs from what you allowed before." if asked.changed else ""
    more = " It also asks for files on this laptop." if asked.opened else ""
    return f"{asked.name} wants to run {asked.script} on this laptop: {files}, {size}.{changed}{more}"


def _phase(phase: Phase, run: Run) -> Iterator[Said]:
    script = run.plan.script
    match phase:
        case Training():
            yield f"{script} trains.", False
        case Finished():
            yield f"{script} {run_words.outcome_words(phase, run.summary).lower()}.", False
        case Stopped(goes_on=True):
            yield f"{script}: {run_words.phase_words(phase)}.", False
        case Stopped(by=by):
            yield f"{script} was stopped" + (f" on {by}." if by else "."), False
        case Failed(problem=problem):
            yield f"{script} failed. {problem.what} {problem.fix}", True
