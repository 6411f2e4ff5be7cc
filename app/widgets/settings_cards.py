"""Settings: name and look of this laptop, its network, and Tandem's background behaviour."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtNetwork import QNetworkInterface
from PySide6.QtWidgets import QCheckBox, QComboBox, QSpinBox

from app.widgets.buttons import button
from app.widgets.card import ByKey, Card, column, row
from app.widgets.inputs import NAME_BYTES, NameEdit, unscrolled
from app.widgets.labels import Label, faint, heading, name_for_readers, set_tooltip
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.settings import Settings, SettingsChange, Theme
from core.vocabulary.state import Me
from core.vocabulary.text import plain

THEMES: tuple[tuple[str, Theme], ...] = (
    ("Follow the system", "system"),
    ("Light", "light"),
    ("Dark", "dark"),
)


class ThisLaptopCard(Card):
    """Its name, as others see it, and the look of the window."""

    changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._named = ""
        self.name = NameEdit(NAME_BYTES)
        self.name.setObjectName("name")
        self.name.textEdited.connect(self._on_edited)
        self.name.returnPressed.connect(self._save)
        name_for_readers(self.name, "This laptop's name")
        self.save = button("Save", self._save, "primary", name="save-name")
        name_for_readers(self.save, "Save the name")
        self.theme = unscrolled(QComboBox())
        self.theme.setObjectName("theme")
        name_for_readers(self.theme, "Theme")
        for words, value in THEMES:
            self.theme.addItem(words, value)
        self.theme.activated.connect(lambda index: self.changed.emit(SettingsChange(theme=THEMES[index][1])))
        named = row(self.name, self.save)
        self.add(heading("This laptop"), faint("Its name, as the others see it"), named)
        self.add(faint("Theme"), row(self.theme, 1))

    def show_settings(self, me: Me) -> None:
        if self.name.text() == self._named != me.name:
            self.name.setText(me.name)
        self._named = me.name
        self._on_edited()
        index = [value for _, value in THEMES].index(me.settings.theme)
        if index != self.theme.currentIndex():
            self.theme.setCurrentIndex(index)

    def _on_edited(self) -> None:
        self.save.setEnabled(self.name.text().strip() != self._named)

    def _save(self) -> None:
        if self.save.isEnabled():
            self.changed.emit(SettingsChange(name=self.name.text().strip()))


class BackgroundCard(Card):
    """Background behaviour: login, tray, sleep, a trainer held ready. The window, not the node, sets up
    starting at login, so that has its own signal."""

    changed = Signal(object)
    start_at_login_asked = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self._shown: Settings | None = None
        self.login = QCheckBox("Start Tandem when I log in")
        self.login.clicked.connect(self.start_at_login_asked)
        self.tray = QCheckBox("Show an icon and notices in the tray")
        self.tray.clicked.connect(lambda on: self.changed.emit(SettingsChange(tray=on)))
        self.foresee = QCheckBox("Load TensorFlow ahead of a run")
        self.foresee.clicked.connect(lambda on: self.changed.emit(SettingsChange(foresee=on)))
        self.warm = QCheckBox("Keep TensorFlow loaded between runs")
        self.warm.clicked.connect(lambda on: self.changed.emit(SettingsChange(warm_trainer=on)))
        self.awake = QCheckBox("Keep this laptop awake while it trains")
        self.awake.clicked.connect(lambda on: self.changed.emit(SettingsChange(stay_awake=on)))
        self.go_on = QCheckBox("Go on with my runs after a crash or a power cut")
        self.go_on.clicked.connect(lambda on: self.changed.emit(SettingsChange(go_on=on)))
        self.battery = unscrolled(QSpinBox())
        self.battery.setRange(0, 95)
        self.battery.setSuffix(" %")
        self.battery.setSpecialValueText("never")
        self.battery.setKeyboardTracking(False)
        self.battery.valueChanged.connect(self._on_battery)
        self.battery.setObjectName("leave-below")
        name_for_readers(self.battery, "Leave a run when the battery is below", "Zero percent means never")
        names = {
            self.login: "start-at-login",
            self.tray: "tray",
            self.awake: "stay-awake",
            self.go_on: "go-on",
            self.foresee: "foresee",
            self.warm: "warm-trainer",
        }
        for box, name in names.items():
            box.setObjectName(name)
        self.add(
            *(heading("In the background"), self.login, self.tray, self.awake),
            faint(
                "With the lid closed it still sleeps. The others go on, and it comes back by itself.",
                wraps=True,
            ),
            row(Label("Leave a run when the battery is below"), self.battery, 1),
            *(self.go_on, self.foresee, self.warm),
            faint("A run then starts at once. Takes about 400 MB of memory meanwhile.", wraps=True),
        )

    def show_settings(self, settings: Settings, *, again: bool = False) -> None:
        if settings == self._shown and not again:
            return
        self._shown = settings
        self.login.setChecked(settings.start_at_login)
        self.tray.setChecked(settings.tray)
        self.awake.setChecked(settings.stay_awake)
        self.battery.setValue(settings.leave_below_pct)
        self.go_on.setChecked(settings.go_on)
        self.foresee.setChecked(settings.foresee)
        self.warm.setChecked(settings.warm_trainer)

    def _on_battery(self, below_pct: int) -> None:
        if self._shown is not None and below_pct != self._shown.leave_below_pct:
            self.changed.emit(SettingsChange(leave_below_pct=below_pct))


Interfaces = Callable[[], dict[str, str]]


def interfaces() -> dict[str, str]:
    """The laptop's present interfaces by name, each with its addresses in words; no loopback: nobody else
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
        self.discovery = QCheckBox("Find other laptops, and let them find this one")
        self.discovery.setObjectName("discovery")
        self.discovery.clicked.connect(lambda on: self.changed.emit(SettingsChange(discovery=on)))
        boxes = column()
        self.boxes = ByKey(boxes, self._box)
        self.port = unscrolled(QSpinBox())
        self.port.setObjectName("port")
        self.port.setRange(0, 65_535)
        self.port.setSpecialValueText("any free one")
        self.port.setGroupSeparatorShown(False)
        self.port.valueChanged.connect(self._on_edited)
        name_for_readers(self.port, "Port", "Zero takes any free one")
        self.save = button("Save", self._save_port, name="save-port")
        name_for_readers(self.save, "Save the port")
        self.add(
            *(heading("Network"), self.discovery),
            faint("Interfaces to use. With none chosen, every sensible one is used.", wraps=True),
            boxes,
            faint("Port for pairing and for the links, used from the next start on", wraps=True),
            row(self.port, self.save, 1),
        )

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
        self.boxes.keep(dict.fromkeys((*present, *settings.interfaces)))
        for name, box in self.boxes.items():
            words = plain(f"{name}  {present.get(name) or 'no address at the moment'}").replace("&", "&&")
            box.setText(words)
            set_tooltip(box, words)
            box.setChecked(name in settings.interfaces)
        tab_as_seen(self)

    def _box(self, name: str) -> QCheckBox:
        box = QCheckBox()
        box.setObjectName(f"interface-{name}")
        box.clicked.connect(self._choose)
        return box

    def _choose(self) -> None:
        chosen = tuple(name for name, box in self.boxes.items() if box.isChecked())
        self.changed.emit(SettingsChange(interfaces=chosen))

    def _on_edited(self) -> None:
        self.save.setEnabled(self._shown is not None and self.port.value() != self._shown[0].port)

    def _save_port(self) -> None:
        self.changed.emit(SettingsChange(port=self.port.value()))
