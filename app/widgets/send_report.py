"""The button that sends a run's report to a paired laptop."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu, QWidget

from app.bridge import Bridge
from app.widgets.buttons import button, escape_mnemonic
from app.widgets.labels import BriefLabel, set_tooltip
from app.words.device_names import names_of
from core.vocabulary.answers import Answer, Refused
from core.vocabulary.commands import SendReport
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.state import State

SEND = "Send report"
_HINT = "The other laptop's user is told that it came, and opens it there."


class SendReportButton(QObject):
    """``button`` goes beside the report's, ``said`` below. The button is hidden where no connected laptop
    would take it."""

    def __init__(self, around: QWidget, bridge: Bridge) -> None:
        super().__init__(around)
        self._bridge = bridge
        self._menu = QMenu(around)
        self.button = button(SEND, lambda: None, name="send-report")
        self.button.setMenu(self._menu)
        set_tooltip(self.button, _HINT)
        self._run: RunId | None = None
        self._offered: dict[DeviceId, str] = {}
        self.button.hide()
        self.said = BriefLabel()

    def show_run(self, run: RunId | None, state: State) -> None:
        """``run``: the one whose report it sends, if it has one."""
        self._run = run
        takers = [device.device for device in state.devices.values() if device.paired and device.linked]
        names = names_of(state, takers)
        self.button.setVisible(run is not None and bool(names))
        if names != self._offered:
            self._offered = names
            self._menu.clear()
            for device, name in names.items():
                action = self._menu.addAction(escape_mnemonic(name))
                action.triggered.connect(partial(self._send, device, name))

    def _send(self, device: DeviceId, name: str, _checked: bool = False) -> None:
        def on_answer(answer: Answer) -> None:
            if isinstance(answer, Refused):
                self.said.tell(str(answer.problem), "bad")
            else:
                self.said.tell(f"Sent to {name}.", "faint")

        if self._run is not None:
            self._bridge.submit(SendReport(run=self._run, device=device), on_answer)
