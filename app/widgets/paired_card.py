"""The paired devices in the settings: who may run scripts here, and whom to forget."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from app.device_words import state_words
from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.card import Card, column, take_out
from app.widgets.flow import Flow
from app.widgets.labels import ElidedLabel, Label, faint, heading, name_for_readers, set_tooltip
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.state import Device


class PairedCard(Card):
    forgotten = Signal(str)
    allowed = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[DeviceId, _Line] = {}
        self.none = faint("None yet. Pair on the Devices screen.")
        self._list = QVBoxLayout()
        self._list.setSpacing(GAP // 2)
        self.body.addWidget(heading("Paired devices"))
        self.body.addWidget(self.none)
        self.body.addLayout(self._list)

    def show_devices(self, devices: dict[DeviceId, Device], *, again: bool = False) -> None:
        paired = {device: each for device, each in devices.items() if each.paired}
        for gone in self._lines.keys() - paired.keys():
            line = self._lines.pop(gone)
            take_out(self._list, line)
        for device, each in paired.items():
            if device not in self._lines:
                self._lines[device] = _Line(self, device)
                self._list.addWidget(self._lines[device])
                tab_as_seen(self)
            self._lines[device].show_device(each, again=again)
        self.none.setVisible(not paired)


class _Line(QWidget):
    def __init__(self, card: PairedCard, device: DeviceId) -> None:
        super().__init__()
        self._shown: object = None
        self.setObjectName(f"paired-{short(device)}")
        self.name = ElidedLabel("", "")
        self.state = Label("", "faint")
        self.key = faint(short(device))
        set_tooltip(self.key, f"Fingerprint of its key: {device}")
        self.allow = QCheckBox("May run scripts without asking")
        self.allow.clicked.connect(lambda yes: card.allowed.emit(device, yes))
        self.forget = button("Forget", self._ask, "danger", name="forget")
        self.keep = button("Keep", self._keep, name="keep")
        self.really = button("Really forget", lambda: card.forgotten.emit(device), "danger", name="really")
        buttons = (self.forget, self.keep, self.really)
        self.setLayout(column(Flow(self.name, self.state, self.key, self.allow, *buttons, right=self.allow)))
        self._keep()

    def show_device(self, device: Device, *, again: bool) -> None:
        shown = (device.shown_name, device.policy, state_words(device), device.problem)
        if shown == self._shown and not again:
            return
        self._shown = shown
        self.name.say(device.shown_name)
        words, kind = state_words(device)
        self.state.say(words)
        self.state.make(kind)
        set_tooltip(self.state, str(device.problem) if device.problem is not None else "")
        self.allow.setChecked(device.policy == "always")
        name_for_readers(self.allow, f"{device.shown_name} may run scripts without asking")
        name_for_readers(self.forget, f"Forget {device.shown_name}")
        name_for_readers(self.really, f"Really forget {device.shown_name}")
        name_for_readers(self.keep, f"Keep {device.shown_name}")

    def _ask(self) -> None:
        self._show_question(True)
        self.keep.setFocus()

    def _keep(self) -> None:
        self._show_question(False)

    def _show_question(self, asked: bool) -> None:
        self.forget.setVisible(not asked)
        self.keep.setVisible(asked)
        self.really.setVisible(asked)
