"""The page of a run: its frame, result and plots. The live and the past page add what only they show."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.bridge import Bridge
from app.charts.panel import ChartPanel
from app.views.resume import ask_for_checkpoints, link_changed
from app.widgets.card import Card, column
from app.widgets.outcome_card import OutcomeCard
from app.widgets.page import Page
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.events import Event
from core.vocabulary.state import State


class RunPage(QWidget):
    """``again_asked(entry)``: fill the form with that run again; None while its record is not read.
    ``draft_asked(draft)``: fill it with what the result advises."""

    again_asked = Signal(object)
    draft_asked = Signal(object)

    def __init__(self, bridge: Bridge, charts: ChartPanel) -> None:
        super().__init__()
        self._bridge = bridge
        self.record: RunDetails | None = None
        """The record of the one run shown: of a live one, once it is over and read."""
        self.page = Page("Run")
        self.setLayout(column(self.page))
        self.outcome = OutcomeCard(bridge)
        self.outcome.again_asked.connect(lambda: self.again_asked.emit(self.entry))
        self.outcome.draft_asked.connect(self.draft_asked)
        self.charts = charts
        self.charts.bar.keep_in(bridge)
        self.plots = Card()
        self.plots.body.addWidget(self.charts, 1)
        self.plots.setMinimumHeight(self.fontMetrics().height() * 24)

    @property
    def entry(self) -> RunEntry | None:
        """Its entry in the history."""
        return self.record.entry if self.record is not None else None

    def begin(self, record: RunDetails | None, state: State) -> None:
        """Another run is shown from now on."""
        self.record = record
        self.outcome.show_start(None, starting=False)
        if state.me is not None:
            self.charts.bar.show_smoothing(state.me.settings.smoothing)

    def look_for_checkpoints(self) -> None:
        """Other laptops may have newer ones than this one: they go into the state."""
        if self.entry is not None:
            ask_for_checkpoints(self._bridge, self.entry)

    def hear_links(self, events: Sequence[Event]) -> None:
        """A laptop that is back may have a checkpoint, and one that is gone has none to send."""
        if self.entry is not None and link_changed(self.entry, events):
            self.look_for_checkpoints()
