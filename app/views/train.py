"""Train: compose a run, watch it, see its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QApplication, QStackedWidget, QWidget

from app.bridge import Bridge
from app.models.draft import RunDraft, as_then, like_trial
from app.views.sweep_card import SweepCard
from app.views.train_live import TrainLive
from app.views.train_setup import TrainSetup
from app.views.view import View
from app.widgets.card import column
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.answers import RunEntry
from core.vocabulary.commands import ForeseeRun
from core.vocabulary.events import Event, RunPlanned
from core.vocabulary.ids import RunId
from core.vocabulary.phases import ARGUMENTS_REFUSED, Failed
from core.vocabulary.state import State
from core.vocabulary.sweep import Trial


class TrainView(View):
    """Shows a run as soon as there is one, unless the next run's form is being edited; ``choose``,
    ``choose_example``, ``run_again`` prepare the next. ``devices_asked``: as of ``TrainSetup``.
    ``run_asked(run)``: show a trial's run."""

    title = "Train"
    devices_asked = Signal(object)
    run_asked = Signal(str)

    def __init__(
        self, bridge: Bridge, setup: TrainSetup | None = None, live: TrainLive | None = None
    ) -> None:
        """``setup``, ``live``: made here unless given."""
        super().__init__(bridge)
        self._shown: RunId | None = None
        self.sweep: SweepCard | None = None
        """Made for the first sweep that it can show; on the page in front."""
        self.setup = setup or TrainSetup(bridge)
        self.live = live or TrainLive(bridge)
        self.live.new_asked.connect(self._prepare_another)
        self.live.again_asked.connect(self._again)
        self.live.draft_asked.connect(self.prepare)
        self.setup.live_asked.connect(self.show_live)
        self.setup.refused.connect(self.show_setup)
        self.setup.devices_asked.connect(self.devices_asked)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.setup)
        self.pages.addWidget(self.live)
        self.setLayout(column(self.pages))
        self.setFocusProxy(self.setup)

    @classmethod
    def in_turns(cls, bridge: Bridge) -> Iterator[View | None]:
        setup = TrainSetup(bridge)
        yield None
        live = TrainLive(bridge)
        yield None
        yield cls(bridge, setup, live)

    @property
    def pieces(self) -> Sequence[QWidget]:
        return self.setup, self.live

    def choose(self, path: str) -> None:
        """A script or folder for the next run."""
        self.show_setup()
        self.setup.choose(path)

    def choose_example(self, name: str) -> None:
        """``digits``, ``images``, ``table`` or ``text``."""
        self.show_setup()
        self.setup.drop.take_example(name)

    def train_example(self, name: str) -> None:
        """Also starts it as soon as possible."""
        self.choose_example(name)
        self.setup.start_when_ready()

    def run_again(self, entry: RunEntry) -> None:
        """Like that run of the history, as far as its record goes."""
        self.prepare(as_then(entry, self.bridge.state))
        if isinstance(entry.phase, Failed) and entry.phase.problem.code == ARGUMENTS_REFUSED:
            self.setup.arguments.setFocus()
            self.setup.arguments.selectAll()

    def prepare(self, draft: RunDraft) -> None:
        """Fills the form with it."""
        self.show_setup()
        self.setup.prepare(draft)

    def show_setup(self) -> None:
        self._show_page(self.setup)

    def show_live(self) -> None:
        self._show_page(self.live)
        self.live.refresh(self.bridge.state)
        self.setup.banner.unseen = None
        self._show_way_back(self.bridge.state)

    def _show_way_back(self, state: State) -> None:
        """A form that waits behind a run under way; once that is over, its result has *New run*."""
        self.live.back.setVisible(state.busy and self.setup.edited and bool(self.setup.draft.script))

    def _show_page(self, page: QWidget) -> None:
        """Restores the keyboard focus of the page. By default Qt would focus the page's first button:
        during a run that is Stop, and Space would end everybody's run."""
        focused = QApplication.focusWidget()
        before = self.live if page is self.setup else self.setup
        if focused is not None and not before.isAncestorOf(focused):
            focused = None
        if focused is not None:
            focused.clearFocus()
        self.pages.setCurrentWidget(page)
        self._place_sweep()
        self.setFocusProxy(page)
        if focused is not None:
            page.setFocus()

    def _show_sweep(self, state: State) -> None:
        sweep = state.sweep
        if self.sweep is None and sweep is not None and sweep.phase != "finished":
            self.sweep = SweepCard(self.bridge)
            self.sweep.best_asked.connect(self._train_best)
            self.sweep.run_asked.connect(self.run_asked)
            self._place_sweep()
        if self.sweep is not None:
            self.sweep.show_state(state)

    def _place_sweep(self) -> None:
        if self.sweep is not None:
            shown = not self.sweep.isHidden()
            front = self.live if self.pages.currentWidget() is self.live else self.setup
            front.page.add_first(self.sweep)
            self.sweep.setVisible(shown)  # Qt hides what gets another parent
            tab_as_seen(self.sweep)

    def _train_best(self, trial: Trial) -> None:
        sweep = self.bridge.state.sweep
        assert sweep is not None and self.sweep is not None, "its card is shown"
        self.sweep.dismiss()  # the form is below it
        self.prepare(like_trial(sweep.spec.run, trial, self.bridge.state))
        self.setup.arguments.setFocus()  # it may be trained as long as one likes

    def _prepare_another(self) -> None:
        self.setup.edited = True
        if self.bridge.state.busy:
            self.setup.banner.unseen = self._shown
        self.setup.banner.show_state(self.bridge.state)
        self.show_setup()

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        self._show_sweep(state)
        self.live.show_run(state, events)
        run = state.run
        if run is not None and run.plan.run != self._shown:
            self._shown = run.plan.run
            # A run that was over before this window opened belongs to the history. A form being edited stays
            # in front of any run that begins meanwhile; the form itself announces it, and its result.
            began = not run.over or any(isinstance(event, RunPlanned) for event in events)
            if began and not self.setup.edited:
                self.show_live()
            elif began and self.pages.currentWidget() is self.setup:
                self.setup.banner.unseen = self._shown
        self.setup.show_state(state)
        self._show_way_back(state)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not event.spontaneous():  # chosen, not just uncovered
            self.bridge.submit(ForeseeRun())
        self.live.refresh(self.bridge.state)

    def _again(self, entry: RunEntry | None) -> None:
        if entry is not None:
            self.run_again(entry)
        else:  # its record is not read yet: the form has its draft
            self.show_setup()
