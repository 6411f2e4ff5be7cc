"""A sweep of the history, with all that its card offers while it is under way."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.bridge import Bridge
from app.models.draft import like_trial
from app.views.sweep_card import SweepCard
from app.widgets.buttons import button
from app.widgets.card import column, fill
from app.widgets.labels import name_for_readers
from app.widgets.page import Page
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.answers import RunDetails
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
        self.page = Page("Trials")
        self.back = button("Back to all runs", self.closed.emit, name="back-from-sweep")
        fill(self.page.head, self.back)
        self.card = SweepCard(bridge)
        self.card.hides.hide()
        name_for_readers(self.card.table, "Trials", "Enter opens a trial.")
        self.card.run_asked.connect(self.run_asked)
        self.card.best_asked.connect(self._train_best)
        self.page.add(self.card, 1)
        self.setLayout(column(self.page))

    def show_details(self, details: RunDetails) -> None:
        """``details``: of a sweep."""
        assert details.sweep is not None
        self.page.title.say(plain(details.entry.name or details.entry.script, 120))
        self._show(details.sweep)
        tab_as_seen(self)
        self.page.verticalScrollBar().setValue(0)

    def hear(self, state: State) -> None:
        """The sweep may go on meanwhile."""
        shown, now = self._shown, state.sweep
        if shown is not None and now is not None and now.sweep == shown.sweep and now is not shown:
            self._show(now)

    def _show(self, sweep: Sweep) -> None:
        self._shown = sweep
        self.card.show_sweep(sweep)
        self.card.show()

    def _train_best(self, trial: Trial) -> None:
        assert self._shown is not None
        self.draft_asked.emit(like_trial(self._shown.spec.run, trial, self._bridge.state))
