"""The other laptops in short, a line each with Pair: for the first steps."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.device_words import addresses_words
from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.card import take_out
from app.widgets.labels import ElidedLabel, Label, name_for_readers
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.ids import DeviceId
from core.vocabulary.state import Device, State


class NearbyList(QWidget):
    """``pair_asked(device)``."""

    pair_asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(GAP // 2)
        self._lines: dict[DeviceId, _Line] = {}
        self._looking = Label("Looking for other laptops in this network…", "faint")
        self._layout.addWidget(self._looking)

    def show_state(self, state: State) -> None:
        for gone in self._lines.keys() - state.devices.keys():
            line = self._lines.pop(gone)
            take_out(self._layout, line)
        for device in state.devices.values():
            if device.device not in self._lines:
                line = _Line(self, device.device)
                self._lines[device.device] = line
                self._layout.addWidget(line)
                tab_as_seen(self)
            self._lines[device.device].show_device(device)
        self._looking.setVisible(not self._lines)


class _Line(QWidget):
    def __init__(self, nearby: NearbyList, device: DeviceId) -> None:
        super().__init__()
        self.name = ElidedLabel("", "heading")
        self.where = ElidedLabel("", "faint")
        self.paired = Label("✓ Paired", "good")
        self.pair: QPushButton = button(
            "Pair", lambda: nearby.pair_asked.emit(device), "primary", name="pair"
        )
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(GAP)
        layout.addWidget(self.name)
        layout.addWidget(self.where, 1)
        layout.addWidget(self.paired)
        layout.addWidget(self.pair)

    def show_device(self, device: Device) -> None:
        self.name.say(device.shown_name)
        self.where.say(addresses_words(device.addresses, 1))
        self.paired.setVisible(device.paired)
        self.pair.setVisible(not device.paired)
        name_for_readers(self.pair, f"Pair with {device.shown_name}")
