"""The button that sends a run's report to a paired laptop."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMenu, QWidget

from app.widgets.buttons import button, escape_mnemonic
from app.widgets.labels import BriefLabel, set_tooltip
from app.words.device_names import names_of
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import State

SEND = "Send report"
_HINT = "The other laptop's user is told that it came, and opens it there."


class SendReportButton(QObject):
    """``button`` goes beside the report's, ``said`` below. ``asked(device)``: send it there. The button is
    hidden where no connected laptop would take it."""

    asked = Signal(object)

    def __init__(self, around: QWidget) -> None:
        super().__init__(around)
        self._menu = QMenu(around)
        self.button = button(SEND, lambda: None, name="send-report")
        self.button.setMenu(self._menu)
        set_tooltip(self.button, _HINT)
        self._offered: dict[DeviceId, str] = {}
        self.button.hide()
        self.said = BriefLabel()

    def show_state(self, state: State, *, there: bool) -> None:
        """``there``: whether the run has a report."""
        takers = [device.device for device in state.devices.values() if device.paired and device.linked]
        names = names_of(state, takers)
        self.button.setVisible(there and bool(names))
        if names != self._offered:
            self._offered = names
            self._menu.clear()
            for device, name in names.items():
                action = self._menu.addAction(escape_mnemonic(name))
                action.triggered.connect(partial(self._ask, device))

    def tell(self, device: DeviceId, problem: Problem | None) -> None:
        """What came of it."""
        if problem is not None:
            self.said.tell(f"{problem.what} {problem.fix}", "bad")
        else:
            self.said.tell(f"Sent to {self._offered.get(device, 'the other laptop')}.", "faint")

    def _ask(self, device: DeviceId, _checked: bool = False) -> None:
        self.asked.emit(device)
