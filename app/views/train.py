"""Train: put a run together, watch it, see what came out."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QApplication, QStackedWidget, QVBoxLayout, QWidget

from app.bridge import Bridge
from app.models.draft import as_then, spec_of
from app.views.train_live import TrainLive
from app.views.train_setup import TrainSetup
from app.views.view import View
from core.vocabulary.answers import RunEntry
from core.vocabulary.events import Event, RunPlanned
from core.vocabulary.ids import RunId
from core.vocabulary.state import State


class TrainView(View):
    """Shows a run as soon as there is one, unless the form for the next one is edited;
    ``choose``, ``choose_example``, ``run_again`` prepare the next."""

    title = "Train"

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self._shown: RunId | None = None
        self.setup = TrainSetup(bridge)
        self.live = TrainLive(bridge)
        self.live.new_asked.connect(self._prepare_another)
        self.live.again_asked.connect(self._again)
        self.setup.live_asked.connect(self.show_live)
        self.setup.refused.connect(self.show_setup)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.setup)
        self.pages.addWidget(self.live)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.pages)
        self.setFocusProxy(self.setup)

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
        """And start it as soon as it can."""
        self.choose_example(name)
        self.setup.start_when_ready()

    def run_again(self, entry: RunEntry) -> None:
        """As that run of the history was, as far as it tells."""
        self.show_setup()
        self.setup.prepare(as_then(entry, self.bridge.state))

    def show_setup(self) -> None:
        self._show_page(self.setup)

    def show_live(self) -> None:
        self._show_page(self.live)
        self.live.refresh(self.bridge.state)

    def _show_page(self, page: QWidget) -> None:
        """With the keyboard, where it was on the page before. By itself Qt would give it to the page's first
        button: that is Stop while a run goes on, and Space would end everybody's run."""
        focused = QApplication.focusWidget()
        before = self.live if page is self.setup else self.setup
        if focused is not None and not before.isAncestorOf(focused):
            focused = None
        if focused is not None:
            focused.clearFocus()
        self.pages.setCurrentWidget(page)
        self.setFocusProxy(page)
        if focused is not None:
            page.setFocus()

    def _prepare_another(self) -> None:
        self.setup.edited = True
        self.show_setup()

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        self.live.show_run(state, events)
        self.setup.show_state(state)
        run = state.run
        if run is None or run.plan.run == self._shown:
            return
        self._shown = run.plan.run
        # A run that was over before this window opened belongs to the history. What somebody is putting
        # together stays in front of whatever begins meanwhile; the form itself says that it has begun.
        began = not run.over or any(isinstance(event, RunPlanned) for event in events)
        if began and not self.setup.edited:
            self.show_live()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.live.refresh(self.bridge.state)

    def _again(self) -> None:
        """At once where the screen still has what the run was made of; else it is put together anew."""
        entry = self.live.entry
        if entry is not None and entry.source and not self._still_has(entry):
            self.run_again(entry)
        elif self.setup.draft.script:
            self.setup.start()
        else:
            self.show_setup()

    def _still_has(self, entry: RunEntry) -> bool:
        if entry.spec is None:
            return entry.source == self.setup.draft.script
        return spec_of(self.setup.draft, self.bridge.state) == entry.spec
