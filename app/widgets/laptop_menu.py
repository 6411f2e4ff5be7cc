"""Buttons with a menu of laptops: those that can join the run under way, or get a run's report."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from app.bridge import Bridge
from app.widgets.buttons import button, escape_mnemonic
from app.widgets.labels import BriefLabel, set_tooltip
from app.words.device_names import names_of
from core.run.abilities import why_not
from core.vocabulary.answers import Answer, Refused
from core.vocabulary.commands import AddLaptops, Command, SendReport
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Training
from core.vocabulary.state import Run, State

ADD, SEND = "Add a laptop", "Send report"
_ADD_HINT = "The laptop is asked first. Then the run stops at the end of a step and goes on with it."
_SEND_HINT = "A notice on the other laptop lets its user open it."
_Asks = Callable[[RunId, DeviceId], Command]


class LaptopMenu(QObject):
    """``button`` goes beside others, ``said`` below them. The button is hidden where there is no laptop for
    it."""

    def __init__(
        self, around: QWidget, bridge: Bridge, opens: QPushButton, hint: str, asks: _Asks, asked: str
    ) -> None:
        """``asks``: the command for the chosen laptop; ``asked``: what is said then, with ``{}`` for its
        name."""
        super().__init__(around)
        self._bridge = bridge
        self._asks, self._asked = asks, asked
        self._run: RunId | None = None
        self._offered: dict[DeviceId, str] = {}
        self._menu = QMenu(around)
        self.button = opens
        self.button.setMenu(self._menu)
        set_tooltip(self.button, hint)
        self.button.hide()
        self.said = BriefLabel()

    def offer(self, run: RunId | None, names: dict[DeviceId, str]) -> None:
        """``run``: the one that it is about; None: there is none. ``names``: of the laptops."""
        self._run = run
        self.button.setVisible(run is not None and bool(names))
        if names != self._offered:
            self._offered = names
            self._menu.clear()
            for device, name in names.items():
                action = self._menu.addAction(escape_mnemonic(name))
                action.triggered.connect(partial(self._choose, device, name))

    def _choose(self, device: DeviceId, name: str, _checked: bool = False) -> None:
        def on_answer(answer: Answer) -> None:
            if isinstance(answer, Refused):
                self.said.tell(str(answer.problem), "bad")
            else:
                self.said.tell(self._asked.format(name), "faint")

        if self._run is not None:
            self._bridge.submit(self._asks(self._run, device), on_answer)


class AddLaptop(LaptopMenu):
    """The laptop joins the run under way."""

    def __init__(self, around: QWidget, bridge: Bridge) -> None:
        super().__init__(
            around,
            bridge,
            button(ADD, lambda: None, name="add-laptop"),
            _ADD_HINT,
            lambda run, device: AddLaptops(run=run, devices=(device,)),
            "Asking {}. The run goes on meanwhile.",
        )

    def show_run(self, run: Run, state: State) -> None:
        self.offer(run.plan.run, names_of(state, joinable(run, state)))


class SendReportButton(LaptopMenu):
    """The laptop gets a run's report; connected ones would take it."""

    def __init__(self, around: QWidget, bridge: Bridge) -> None:
        super().__init__(
            around,
            bridge,
            button(SEND, lambda: None, name="send-report"),
            _SEND_HINT,
            lambda run, device: SendReport(run=run, device=device),
            "Sent to {}.",
        )

    def show_run(self, run: RunId | None, state: State) -> None:
        """``run``: the one whose report it sends, if it has one."""
        takers = [device.device for device in state.devices.values() if device.paired and device.linked]
        self.offer(run, names_of(state, takers))


def joinable(run: Run, state: State) -> list[DeviceId]:
    """Laptops that ``AddLaptops`` takes: those outside of a managed run that trains and began here, if
    they are idle or have left it."""
    mine = state.me is not None and run.plan.starter == state.me.device
    if not mine or run.plan.strategy != "managed" or not isinstance(run.phase, Training):
        return []
    present = {device for device, member in run.members.items() if member.left is None}
    return [
        device.device
        for device in state.devices.values()
        if device.device not in present
        and (why_not(device) is None or (device.linked and device.paired and device.device in run.members))
    ]  # it watches
