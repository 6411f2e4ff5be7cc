"""Settings and help: the user's choices, and what works or does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent

from app.bridge import Bridge
from app.system import autostart
from app.views.view import View
from app.widgets.card import column
from app.widgets.help_card import HelpCard
from app.widgets.page import Page
from app.widgets.problem_box import ProblemBox
from app.widgets.settings_cards import BackgroundCard, DataCard, NetworkCard, ThisLaptopCard
from app.widgets.storage_card import StorageCard
from app.words.device_words import problem_of
from core.vocabulary.answers import Answer
from core.vocabulary.commands import ChangeSettings
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Event
from core.vocabulary.settings import SettingsChange
from core.vocabulary.state import State


class SettingsView(View):
    """``welcome_asked``: the user wants to see the first steps again."""

    title = "Settings and help"
    welcome_asked = Signal()

    def __init__(self, bridge: Bridge, set_start: Callable[[bool], None] = autostart.set_start) -> None:
        super().__init__(bridge)
        self._set_start = set_start
        self.page = Page(self.title)
        self.setLayout(column(self.page))
        self.problem = ProblemBox()
        self.laptop = ThisLaptopCard()
        self.network = NetworkCard()
        self.background = BackgroundCard()
        self.data = DataCard()
        self.storage = StorageCard(bridge)
        self.help = HelpCard(bridge)
        self._cards = (self.laptop, self.network, self.background, self.data, self.storage)
        self.page.add(self.problem, *self._cards, self.help, 1)
        for card in self._cards:
            card.changed.connect(self._change)
        self.help.welcome_asked.connect(self.welcome_asked)
        self.setFocusProxy(self.laptop.name)

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        if state.me is None:
            return
        for card in self._cards:
            card.show_me(state.me)
        self.help.show_me(state.me)

    def examine(self) -> None:
        """Runs the doctor and scrolls to the findings."""
        self.help.examine()
        self.page.ensureWidgetVisible(self.help)

    def _change(self, change: SettingsChange) -> None:
        if change.start_at_login is not None:
            try:
                self._set_start(change.start_at_login)
            except TandemError as error:
                self._refused(error.problem)
                return
        self.bridge.submit(ChangeSettings(change=change), lambda answer: self._on_changed(change, answer))

    def _on_changed(self, change: SettingsChange, answer: Answer) -> None:
        problem = problem_of(answer)
        if problem is not None and change.start_at_login is not None:
            # Undo the change, so that the box shows the real state.
            with suppress(TandemError):
                self._set_start(not change.start_at_login)
        self._refused(problem)
        if change.keep_days is not None:
            self.storage.measure()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.storage.measure()

    def _refused(self, problem: Problem | None) -> None:
        self.problem.show_problem(problem)
        me = self.bridge.state.me
        if problem is None or me is None:
            return
        self.page.ensureWidgetVisible(self.problem)
        # A refused change had no effect: the widgets show the current settings again.
        for card in self._cards:
            card.show_me(me, again=True)
