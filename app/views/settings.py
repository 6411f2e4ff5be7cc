"""Settings and help: what the user can choose here, who is paired, what works and what does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout

from app import autostart
from app.bridge import Bridge
from app.device_words import problem_of
from app.views.view import View
from app.widgets.help_card import HelpCard
from app.widgets.kept_card import KeptCard
from app.widgets.network_card import NetworkCard
from app.widgets.page import Page
from app.widgets.paired_card import PairedCard
from app.widgets.problem_box import ProblemBox
from app.widgets.settings_cards import BackgroundCard, ThisLaptopCard
from core.vocabulary.answers import Answer, Findings, KeptList, Saved
from core.vocabulary.commands import (
    ChangeSettings,
    Forget,
    ListKept,
    Mend,
    RemoveKept,
    RunDoctor,
    SaveDiagnostics,
    SetCodePolicy,
)
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId
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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.page)
        self.problem = ProblemBox()
        self.laptop = ThisLaptopCard()
        self.network = NetworkCard()
        self.background = BackgroundCard()
        self.paired = PairedCard()
        self.kept = KeptCard()
        self.help = HelpCard()
        self.page.body.addWidget(self.problem)
        for card in (self.laptop, self.network, self.background, self.paired, self.kept, self.help):
            self.page.body.addWidget(card)
        self.page.body.addStretch(1)
        self.laptop.changed.connect(self._change)
        self.network.changed.connect(self._change)
        self.background.changed.connect(self._change)
        self.background.start_at_login_asked.connect(self._change_start)
        self.paired.forgotten.connect(lambda device: self._ask(Forget(device=device)))
        self.paired.allowed.connect(
            lambda device, yes: self._ask(SetCodePolicy(device=device, policy="always" if yes else "ask"))
        )
        self.kept.asked.connect(lambda device: self._ask_kept(ListKept(device=device)))
        self.kept.removed.connect(
            lambda device, where: self._ask_kept(RemoveKept(device=device, where=where))
        )
        self.help.doctor_asked.connect(self.examine)
        self.help.mend_asked.connect(self._mend)
        self.help.save_asked.connect(self._save)
        self.help.welcome_asked.connect(self.welcome_asked)
        self.setFocusProxy(self.laptop.name)

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        if state.me is None:
            return
        self.laptop.show_settings(state.me)
        self.network.show_settings(state.me)
        self.background.show_settings(state.me.settings)
        self.paired.show_devices(state.devices)
        self.kept.show_devices(state.devices)
        self.help.show_me(state.me)

    def examine(self, deep: bool = False) -> None:
        """Have the doctor look, and bring the findings into view."""
        self.help.show_looking(deep)
        self.page.ensureWidgetVisible(self.help)
        self.bridge.submit(RunDoctor(deep=deep), self._on_findings)

    def _change(self, change: SettingsChange) -> None:
        self._ask(ChangeSettings(change=change))

    def _change_start(self, wanted: bool) -> None:
        try:
            self._set_start(wanted)
        except TandemError as error:
            self._refused(error.problem)
            return
        change = ChangeSettings(change=SettingsChange(start_at_login=wanted))
        self.bridge.submit(change, lambda answer: self._on_start_kept(wanted, answer))

    def _on_start_kept(self, wanted: bool, answer: Answer) -> None:
        problem = problem_of(answer)
        if problem is not None:
            # What the box shows again must hold.
            with suppress(TandemError):
                self._set_start(not wanted)
        self._refused(problem)

    def _ask(self, command: ChangeSettings | Forget | SetCodePolicy) -> None:
        self.bridge.submit(command, lambda answer: self._refused(problem_of(answer)))

    def _ask_kept(self, command: ListKept | RemoveKept) -> None:
        self.bridge.submit(command, lambda answer: self._on_kept(command.device, answer))

    def _on_kept(self, device: DeviceId, answer: Answer) -> None:
        if isinstance(answer, KeptList):
            self.kept.show_kept(answer)
        elif (problem := problem_of(answer)) is not None:
            self.kept.show_problem(device, problem)

    def _refused(self, problem: Problem | None) -> None:
        self.problem.show_problem(problem)
        me = self.bridge.state.me
        if problem is None or me is None:
            return
        self.page.ensureWidgetVisible(self.problem)
        # What was refused did not change: the widgets show again what holds.
        self.background.show_settings(me.settings, again=True)
        self.network.show_settings(me, again=True)
        self.paired.show_devices(self.bridge.state.devices, again=True)

    def _on_findings(self, answer: Answer) -> None:
        if isinstance(answer, Findings):
            self.help.show_findings(answer.findings)
        else:
            self.help.show_problem(problem_of(answer))

    def _mend(self, code: str) -> None:
        self.help.show_looking(False)
        self.bridge.submit(Mend(code=code), self._on_mended)

    def _on_mended(self, answer: Answer) -> None:
        problem = problem_of(answer)
        if problem is None:
            self.examine()
        else:
            self.help.show_problem(problem)

    def _save(self, path: str) -> None:
        self.bridge.submit(SaveDiagnostics(path=path), self._on_saved)

    def _on_saved(self, answer: Answer) -> None:
        if isinstance(answer, Saved):
            self.help.show_saved(answer.path)
        else:
            self.help.show_problem(problem_of(answer))
