"""A sweep of the history, with all that its card offers while it is under way."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.bridge import Bridge
from app.models.draft import like_trial
from app.views.sweep_card import SweepCard
from app.widgets.buttons import button
from app.widgets.card import column, fill
from app.widgets.folder_box import FolderBox
from app.widgets.page import Page
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.answers import RunDetails
from core.vocabulary.run_folder import REPORT
from core.vocabulary.state import State
from core.vocabulary.sweep import Sweep, Trial
from core.vocabulary.text import plain


class PastSweep(QWidget):
    """``closed``: back to the list. ``run_asked(run)``: show a trial's run. ``draft_asked(draft)``: prepare
    that run."""

    closed = Signal()
    run_asked = Signal(str)
    draft_asked = Signal(object)

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._shown: Sweep | None = None
        self._report = Path()
        self.page = Page("Trials")
        self.back = button("Back to all runs", self.closed.emit, name="back-from-sweep")
        self.report = button("Open report", self._open_report, name="sweep-report")
        self.not_opened = FolderBox()
        fill(self.page.head, self.report, self.back)
        self.card = SweepCard(bridge)
        self.card.hides.hide()
        self.card.run_asked.connect(self.run_asked)
        self.card.best_asked.connect(self._train_best)
        self.page.add(self.not_opened)
        self.page.add(self.card, 1)
        self.setLayout(column(self.page))

    def show_details(self, details: RunDetails) -> None:
        """``details``: of a sweep."""
        assert details.sweep is not None
        self.page.title.say(plain(details.entry.name or details.entry.script, 120))
        self._report = Path(details.entry.folder) / REPORT
        self.not_opened.show_problem(None)
        self._show(details.sweep)
        tab_as_seen(self)
        self.page.verticalScrollBar().setValue(0)

    def hear(self, state: State) -> None:
        """The sweep may go on meanwhile."""
        shown, now = self._shown, state.sweep
        if shown is not None and now is not None and now.sweep == shown.sweep and now is not shown:
            self._show(now)
        self.card.show_takers(state)

    def _show(self, sweep: Sweep) -> None:
        self._shown = sweep
        self.card.show_sweep(sweep)
        self.card.show()
        self.report.setVisible(not sweep.under_way)

    def _open_report(self) -> None:
        self.not_opened.open(self._report, "report")

    def _train_best(self, trial: Trial) -> None:
        assert self._shown is not None
        self.draft_asked.emit(like_trial(self._shown.spec.run, trial, self._bridge.state))
