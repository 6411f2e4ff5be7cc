"""Notices about a run, above any screen and from the desktop. GUI thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QApplication

from app.system.tray import Tray
from app.widgets.navigation import TRAIN
from app.widgets.notice_bar import NoticeButton
from app.window import Window
from app.words.device_names import name_of
from app.words.run_words import DIVERGED_FIX
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId, ProjectId, RunId, SweepId
from core.vocabulary.phases import Failed, ended, goes_on
from core.vocabulary.plan import Plan
from core.vocabulary.progress import Diverged
from core.vocabulary.state import State
from core.vocabulary.text import plain


class RunNotices:
    """Call ``hear`` with every batch of events; ``seen`` once the run itself is in front, which shows
    everything."""

    def __init__(self, window: Window, tray: Tray, stop: Callable[[], object]) -> None:
        self._window = window
        self._tray = tray
        self._stop = NoticeButton("Stop", stop)
        self._run: RunId | None = None
        self._asked: set[RunId] = set()
        """Runs about which this laptop's user was asked."""
        self._were_here: set[RunId] = set()
        """Runs in which this laptop was."""
        self._going_on: set[RunId] = set()
        """Those that ended only for another to go on at once."""
        self._sweeps: set[tuple[DeviceId, SweepId, ProjectId]] = set()
        """Sweeps whose trials are known here: the first one was asked about or announced. Their ids are their
        starters' own choice."""
        self._diverged: Diverged | None = None

    def on_events(self, events: Sequence[Event], state: State) -> None:
        for event in events:
            match event:
                case ev.ConsentAsked(run=run):
                    self._asked.add(run)
                case ev.RunPlanned(plan=plan) if plan.run != self._run:
                    self._run, self._diverged = plan.run, None
                    self._window.tell(None)
                    if state.me is not None and plan.starter != state.me.device:
                        self._on_begun_elsewhere(plan, state.me.device, state)
                    self._were_here.add(plan.run)
                case ev.MemberProgressed(progress=progress) if progress.diverged is not None:
                    self._on_diverged(progress.diverged, state)
                case ev.RunPhaseChanged(phase=phase) if ended(phase):
                    self._window.tell(None)
                    _badge(0)
                    if goes_on(phase):
                        self._going_on.add(event.run)
                    if isinstance(phase, Failed):
                        self._on_failed(phase.problem, state)

    def seen(self) -> None:
        self._window.tell(None)
        _badge(0)

    def _on_begun_elsewhere(self, plan: Plan, me: DeviceId, state: State) -> None:
        """A run that its user allowed was announced by the question; other runs are announced here."""
        trial = plan.trial
        sweep = None if trial is None else (plan.starter, trial.sweep, plan.project)
        is_known = plan.run in self._asked or sweep in self._sweeps
        if sweep is not None:
            self._sweeps.add(sweep)
        if is_known:
            return
        name, script = name_of(state, plan.starter), plain(plan.script, 60)
        resumed = plan.resume
        if resumed is not None and (resumed.back or resumed.owner or resumed.run in self._going_on):
            # Nothing begins that its user has not seen.
            what, fix = f"{name} goes on with {script}, with this laptop.", "Stop ends it on all laptops."
            own = {member.name for member in plan.members if member.device == me}
            if resumed.run in self._were_here and own & {*resumed.back}:
                what = f"This laptop is back in {name}'s run of {script}."
            self._window.tell(Problem(code="run-goes-on-here", what=what, fix=fix), self._stop)
            return
        what = f"{name} {'started' if resumed is None else 'resumed'} {script} on this laptop."
        ends = "it, and this laptop takes no more trials" if trial is not None else "the run on all laptops"
        fix = f"You were not asked, as you allowed this before. Stop ends {ends}."
        self._window.tell(Problem(code="run-began-here", what=what, fix=fix), self._stop)
        self._tray.tell("Training began here", what)
        _badge(1)
        QApplication.alert(self._window)

    def _on_diverged(self, diverged: Diverged, state: State) -> None:
        """Once per run: the loss may become finite, and diverge again."""
        if self._diverged is not None or state.run is None:
            return
        self._diverged = diverged
        script = plain(state.run.plan.script, 60)
        if self._window.current != TRAIN:
            what = f"{script}: {diverged.words}."
            self._window.tell(Problem(code="run-diverged", what=what, fix=DIVERGED_FIX), self._stop)
        self._tray.tell(diverged.words, script)

    def _on_failed(self, why: Problem, state: State) -> None:
        """On any other screen than Train, this tells the user why the run ended."""
        if self._window.current != TRAIN and state.run is not None:
            what = f"The run of {plain(state.run.plan.script, 60)} failed: {why.what}"
            self._window.tell(Problem(code="run-failed", what=what, fix=why.fix))


def _badge(number: int) -> None:
    """On the program's icon, if the desktop shows badges."""
    app = QApplication.instance()
    if isinstance(app, QApplication):
        app.setBadgeNumber(number)
