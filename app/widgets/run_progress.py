"""A run at a glance: large numbers, startup, a row per laptop, and what limits its speed. Above a form: that
there is a run."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QProgressBar, QWidget

from app.models import headline, laptop_rows, preflight
from app.models.paces import Paces
from app.models.startup import Startup, awaited, starting_up, to_allow
from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.card import Card, column, row
from app.widgets.figure import FigureView
from app.widgets.flow import Flow
from app.widgets.fold import Fold
from app.widgets.labels import ElidedLabel, Label, name_for_readers, set_tooltip
from app.widgets.laptop_table import LaptopLine, LaptopTable
from app.widgets.problem_box import ProblemBox
from app.widgets.stepper import Stepper
from app.words import run_words, wait_words
from app.words.advice_words import WINDOW, advice_words
from core.speed.sentences import expected
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Stopping, Training
from core.vocabulary.state import Run, State
from core.vocabulary.text import capitalised, listed

PARTS = 1000
TICK_MS = 1000
RARELY = "Stop and restart with rare meetings"
_RARELY_HINT = (
    "Stops this run after the current step and keeps what the script has saved. A new run starts from the "
    "beginning; its result is not that of one machine."
)
BACK_S = 15.0
"""How long the return of a laptop is shown."""


class RunProgress(Card):
    """Call ``hear`` for each change, visible or not, and ``show_run`` when visible: cheap while the words
    stay."""

    keep_waiting_asked = Signal()
    rarely_asked = Signal()

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds, monotonic."""
        super().__init__()
        self.setAccessibleName("Progress")
        self._clock = clock
        self._startup = Startup(clock)
        self._away: dict[DeviceId, float] = {}
        self._back: dict[DeviceId, tuple[float, float]] = {}
        """When each laptop returned, and after how many seconds."""
        self._run: Run | None = None
        self._paces = Paces()
        self.state = Label("", "heading")
        self.step = ElidedLabel("", "faint", steady=True)
        self.figures = [FigureView() for _ in range(4)]
        self._figures = Flow(*self.figures, equal=True)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, PARTS)
        self.bar.setFixedHeight(max(8, self.fontMetrics().height() // 2))
        name_for_readers(self.bar, "Progress")
        self.allow = Label("", "title", wraps=True)
        self.stepper = Stepper()
        self.awaited = Label("", wraps=True)
        self.table = LaptopTable()
        self.lid = Label("", "faint", wraps=True)
        self.held = Label("", "warning", wraps=True)
        self.keep_waiting = button(
            "Keep waiting", self.keep_waiting_asked.emit, "primary", name="keep-waiting"
        )
        self.held.hide()
        self.keep_waiting.hide()
        self.why = Fold("Why?", name="why")
        self.expected = Label("", wraps=True)
        self.advice = Label("", "warning", wraps=True)
        self.rarely = button(RARELY, self.rarely_asked.emit, name="train-rarely")
        set_tooltip(self.rarely, _RARELY_HINT)
        self.rarely.hide()
        self.waiting = Label("", "warning", wraps=True)
        for piece in (self.expected, self.advice, self.rarely, self.waiting):
            self.why.body.addWidget(piece)
        self.why.body.setAlignment(self.rarely, Qt.AlignmentFlag.AlignLeft)
        self.add(
            row(self.state, self.step, 1, self.why.head),
            *(self.why, self.held, self.keep_waiting, self._figures, self.bar),
            *(self.allow, self.stepper, self.awaited, self.table, self.lid),
        )
        self._show_whether_why(False)
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._show_steps)

    @property
    def members(self) -> dict[DeviceId, LaptopLine]:
        return self.table.lines

    def hear(self, run: Run) -> None:
        """Also while nobody looks: it times the startup."""
        self._startup.hear(run)
        self._note_who_is_back(run)
        self._paces.hear(run)

    def _note_who_is_back(self, run: Run) -> None:
        now_s, away = self._clock(), laptop_rows.away(run)
        for device in self._away.keys() - away.keys():
            self._back[device] = now_s, self._away[device]
        self._back = {
            device: (at_s, lasted_s)
            for device, (at_s, lasted_s) in self._back.items()
            if now_s - at_s < BACK_S and device not in away
        }
        self._away = away

    def show_run(self, run: Run, state: State, names: dict[DeviceId, str], waiting: str) -> None:
        """``waiting``: who waits for whom, if anybody does."""
        if self._run is not None and self._run.plan.run != run.plan.run:
            self._show_whether_why(False)
            self.why.head.setChecked(False)
        self._run = run
        self.hear(run)
        words = run_words.run_phase_words(run)
        self.state.say(capitalised(words) + ("" if isinstance(run.phase, Training) else "…"))
        progress = run.members[run.chief.device].progress
        moving = progress is not None and isinstance(run.phase, Training | Stopping)
        part = run_words.fraction(progress) if moving and progress is not None else _received(run)
        # With no known end there is no bar: an animated one takes time from the training.
        self.bar.setVisible(part is not None)
        self._show_part(round(PARTS * (part or 0.0)))
        me = state.me.device if state.me is not None else None
        figures = headline.figures(run, me, self._paces.recent)
        for view, figure in zip(self.figures, figures, strict=True):
            view.show_figure(figure)
        if progress is not None:
            step, rate = run_words.step_words(progress), run_words.rate_words(progress)
            said = headline.stands(run) or rate.startswith(f"{figures[-1].value} ")
            self.step.say(" · ".join(filter(None, (capitalised(step), "" if said else rate))))
        self.step.setVisible(progress is not None)
        self._figures.setVisible(progress is not None)
        self._show_startup(run, names, me)
        self.lid.say_or_hide(wait_words.if_lid_closes(run, state, names))
        back = {device: lasted_s for device, (_, lasted_s) in self._back.items()}
        self.table.show_rows(laptop_rows.rows(run, state, names, back))
        waiting_for = [*run_words.left_words(run, names), *wait_words.lines(run, names)]
        if joining := run_words.joining_words(state):
            waiting_for.append(joining)
        if progress is not None and progress.diverged is not None:
            waiting_for.insert(0, f"{progress.diverged.words}. {run_words.DIVERGED_FIX}")
        self.held.say_or_hide("\n".join(waiting_for))
        asks = run.waiting is not None and run.waiting.asks
        self.keep_waiting.setVisible(asks)
        self._show_why(run, names, waiting, me)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._keep_ticking()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._tick.stop()

    def _show_startup(self, run: Run, names: dict[DeviceId, str], me: DeviceId | None) -> None:
        starting = starting_up(run)
        asked = [names[device] for device in to_allow(run) if device != me] if starting else []
        self.allow.say_or_hide(f"Press Allow on {listed(asked)}" if asked else "")
        self.awaited.say_or_hide(f"Waiting for {awaited(run, names)}" if starting and not asked else "")
        self.stepper.setVisible(starting)
        self._show_steps()
        self._keep_ticking()

    def _show_steps(self) -> None:
        if self._run is not None:
            self.stepper.show_steps(self._startup.steps(self._run))

    def _keep_ticking(self) -> None:
        ticks = self._run is not None and starting_up(self._run) and self.isVisible()
        if ticks and not self._tick.isActive():
            self._tick.start()
        elif not ticks:
            self._tick.stop()

    def _show_why(self, run: Run, names: dict[DeviceId, str], waiting: str, me: DeviceId | None) -> None:
        said = expected(run.expectation, run.plan, names)
        gains = said.advice is not None and said.advice.rarely is not None and said.advice.rarely > 1
        self.rarely.setVisible(gains and run.plan.starter == me and isinstance(run.phase, Training))
        for label, words in (
            (self.expected, said.what),
            (self.advice, advice_words(said.advice, WINDOW)),
            (self.waiting, waiting),
        ):
            label.say_or_hide(words)
        # Appears with the first step, and stays.
        self._show_whether_why(bool(said) or bool(waiting) or not self.why.isHidden())

    def _show_whether_why(self, there: bool) -> None:
        self.why.setVisible(there)
        self.why.head.setVisible(there)  # its head is laid out in the first line

    def _show_part(self, value: int) -> None:
        if value != self.bar.value():
            # By default a bar is painted immediately, apart from the words that change with it.
            self.bar.setUpdatesEnabled(False)
            self.bar.setValue(value)
            self.bar.setUpdatesEnabled(True)


class RunBanner(QWidget):
    """Above the form: the run that goes on meanwhile, or has ended unseen, with a button that leads to it.

    Hidden while there is neither. ``unseen``: the run that began while the form was in front, until its page
    is shown.
    """

    def __init__(self, on_show: Callable[[], object]) -> None:
        super().__init__()
        self.unseen: RunId | None = None
        self.box = ProblemBox(level="note")
        self.button = button("Show", on_show, name="show-live")
        self.box.buttons.addWidget(self.button)
        layout = column(self.box)
        layout.setContentsMargins(GAP * 2, GAP, GAP * 2, 0)
        self.setLayout(layout)
        self.hide()

    def show_state(self, state: State) -> None:
        told = preflight.under_way(state, self.unseen)
        if told != self.box.problem:
            self.box.show_problem(told, "note")
            name_for_readers(self.button, "Show that run", told.what if told is not None else "")
            self.button.setVisible(
                state.run is not None and (state.busy or state.run.plan.run == self.unseen)
            )
            self.setVisible(told is not None)


def _received(run: Run) -> float | None:
    """The fraction of the project's files that the members have, while they receive them."""
    coming = [member for member in run.members.values() if member.phase == "receiving" and member.total]
    total = sum(member.total for member in coming)
    return sum(member.done for member in coming) / total if total else None
