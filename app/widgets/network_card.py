"""Settings of the network: being found, which interfaces, which port."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtNetwork import QNetworkInterface
from PySide6.QtWidgets import QCheckBox, QSpinBox, QVBoxLayout

from app.widgets.buttons import button
from app.widgets.card import Card, row, take_out
from app.widgets.inputs import unscrolled
from app.widgets.labels import faint, heading, name_for_readers, set_tooltip
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.settings import Settings, SettingsChange
from core.vocabulary.state import Me
from core.vocabulary.text import plain

Interfaces = Callable[[], dict[str, str]]


def interfaces() -> dict[str, str]:
    """What the laptop has at the moment, by name, each with its addresses in words; no loopback: nobody else
    is there."""
    return {
        each.name(): ", ".join(entry.ip().toString() for entry in each.addressEntries()[:2])
        for each in QNetworkInterface.allInterfaces()
        if not each.flags() & QNetworkInterface.InterfaceFlag.IsLoopBack
    }


class NetworkCard(Card):
    changed = Signal(object)

    def __init__(self, present: Interfaces = interfaces) -> None:
        super().__init__()
        self._present = present
        self._shown: tuple[Settings, tuple[str, ...]] | None = None
        self.boxes: dict[str, QCheckBox] = {}
        self.discovery = QCheckBox("Find other laptops, and let them find this one")
        self.discovery.setObjectName("discovery")
        self.discovery.clicked.connect(lambda on: self.changed.emit(SettingsChange(discovery=on)))
        self._list = QVBoxLayout()
        self.port = unscrolled(QSpinBox())
        self.port.setObjectName("port")
        self.port.setRange(0, 65_535)
        self.port.setSpecialValueText("any free one")
        self.port.setGroupSeparatorShown(False)
        self.port.valueChanged.connect(self._on_edited)
        name_for_readers(self.port, "Port", "Zero takes any free one")
        self.save = button("Save", self._save_port, name="save-port")
        name_for_readers(self.save, "Save the port")
        self.body.addWidget(heading("Network"))
        self.body.addWidget(self.discovery)
        self.body.addWidget(
            faint("Interfaces to use. With none chosen, every sensible one is used.", wraps=True)
        )
        self.body.addLayout(self._list)
        self.body.addWidget(
            faint("Port for pairing and for the links, used from the next start on", wraps=True)
        )
        self.body.addLayout(row(self.port, self.save, 1))

    def show_settings(self, me: Me, *, again: bool = False) -> None:
        """Interfaces are looked up when something changed, not with every reading."""
        shown = (me.settings, me.addresses)
        if shown == self._shown and not again:
            return
        before, self._shown = self._shown, shown
        self.discovery.setChecked(me.settings.discovery)
        if before is None or before[0].port != me.settings.port or again:
            self.port.setValue(me.settings.port)
        self._on_edited()
        self._show_interfaces(me.settings)

    def _show_interfaces(self, settings: Settings) -> None:
        present = self._present()
        names = [*present, *(name for name in settings.interfaces if name not in present)]
        for gone in self.boxes.keys() - set(names):
            box = self.boxes.pop(gone)
            take_out(self._list, box)
        for name in names:
            if name not in self.boxes:
                self.boxes[name] = box = QCheckBox()
                box.setObjectName(f"interface-{name}")
                box.clicked.connect(self._choose)
                self._list.addWidget(box)
            box = self.boxes[name]
            words = plain(f"{name}  {present.get(name) or 'no address at the moment'}").replace("&", "&&")
            box.setText(words)
            set_tooltip(box, words)
            box.setChecked(name in settings.interfaces)
        tab_as_seen(self)

    def _choose(self) -> None:
        chosen = tuple(name for name, box in self.boxes.items() if box.isChecked())
        self.changed.emit(SettingsChange(interfaces=chosen))

    def _on_edited(self) -> None:
        self.save.setEnabled(self._shown is not None and self.port.value() != self._shown[0].port)

    def _save_port(self) -> None:
        self.changed.emit(SettingsChange(port=self.port.value()))
