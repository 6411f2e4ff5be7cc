"""Settings: name and look of this laptop, its network, its data, and Tandem's background behaviour."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtNetwork import QNetworkInterface
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit

from app.models import data_folders
from app.widgets.card import ByKey, column, row
from app.widgets.inputs import NAME_BYTES, NameEdit, unscrolled
from app.widgets.labels import Label, faint, name_for_readers, set_tooltip
from app.widgets.settings_card import SettingsCard
from app.widgets.tab_order import tab_as_seen
from core.vocabulary.settings import Theme
from core.vocabulary.state import Me
from core.vocabulary.text import capitalised, plain

THEMES: dict[Theme, str] = {"system": "Follow the system", "light": "Light", "dark": "Dark"}


class ThisLaptopCard(SettingsCard):
    """Its name, as others see it, and the look of the window."""

    def __init__(self) -> None:
        super().__init__("This laptop")
        self.name = NameEdit(NAME_BYTES)
        self.bind("name", self.name, lambda: self.name.text().strip(), self.name.setText)
        self.name.setObjectName("name")
        self.name.textEdited.connect(self.show_edited)
        self.name.returnPressed.connect(lambda: self.save("name"))
        name_for_readers(self.name, "This laptop's name")
        self.save_name = self.saver("name", name="save-name", words="Save the name")
        self.save_name.setProperty("kind", "primary")
        self.theme = unscrolled(QComboBox())
        self.theme.setObjectName("theme")
        name_for_readers(self.theme, "Theme")
        self.theme.addItems(list(THEMES.values()))
        self.theme.activated.connect(lambda: self.choose_now("theme"))
        themes = list(THEMES)
        self.bind(
            "theme",
            self.theme,
            lambda: themes[self.theme.currentIndex()],
            lambda theme: self.theme.setCurrentIndex(themes.index(theme)),
        )
        self.add(faint("Its name, as the others see it"), row(self.name, self.save_name))
        self.add(faint("Theme"), row(self.theme, 1))


class BackgroundCard(SettingsCard):
    """Background behaviour: login, tray, sleep, a trainer held ready."""

    def __init__(self) -> None:
        super().__init__("In the background")
        self.login = self.tick("start_at_login", "Start Tandem when I log in", "start-at-login")
        self.tray = self.tick("tray", "Show an icon and notices in the tray", "tray")
        self.awake = self.tick("stay_awake", "Keep this laptop awake while it trains", "stay-awake")
        self.battery = self.number(
            "leave_below_pct", "Leave a run when the battery is below", 95, name="leave-below", unit=" %"
        )
        self.battery.setAccessibleDescription("Zero percent means never")
        self.battery.setSpecialValueText("never")
        self.battery.setKeyboardTracking(False)
        self.battery.valueChanged.connect(lambda: self.save("leave_below_pct"))
        self.go_on = self.tick("go_on", "Go on with my runs after a restart or a crash", "go-on")
        self.foresee = self.tick("foresee", "Load TensorFlow ahead of a run", "foresee")
        self.warm = self.tick("warm_trainer", "Keep TensorFlow loaded between runs", "warm-trainer")
        self.add(
            *(self.login, self.tray, self.awake),
            faint(
                "With the lid closed it still sleeps. The others go on, and it comes back by itself.",
                wraps=True,
            ),
            row(Label("Leave a run when the battery is below"), self.battery, 1),
            *(self.go_on, self.foresee, self.warm),
            faint("A run then starts at once. Takes about 400 MB of memory meanwhile.", wraps=True),
        )


Interfaces = Callable[[], dict[str, str]]


def interfaces() -> dict[str, str]:
    """The laptop's present interfaces by name, each with its addresses in words; no loopback: nobody else
    is there."""
    return {
        each.name(): ", ".join(entry.ip().toString() for entry in each.addressEntries()[:2])
        for each in QNetworkInterface.allInterfaces()
        if not each.flags() & QNetworkInterface.InterfaceFlag.IsLoopBack
    }


class NetworkCard(SettingsCard):
    def __init__(self, present: Interfaces = interfaces) -> None:
        super().__init__("Network")
        self._present = present
        self._seen: object = None
        self.discovery = self.tick("discovery", "Find other laptops, and let them find this one", "discovery")
        boxes = column()
        self.boxes = ByKey(boxes, self._box)
        self.bind("interfaces", self, self._chosen, lambda _: None)
        self.port = self.number("port", "Port", 65_535, name="port")
        self.port.setAccessibleDescription("Zero takes any free one")
        self.port.setSpecialValueText("any free one")
        self.port.setGroupSeparatorShown(False)
        self.save_port = self.saver("port", name="save-port", words="Save the port")
        self.add(
            self.discovery,
            faint("Interfaces to use. With none chosen, every sensible one is used.", wraps=True),
            boxes,
            faint("Port for pairing and for the links, used from the next start on", wraps=True),
            row(self.port, self.save_port, 1),
        )

    def show_me(self, me: Me, *, again: bool = False) -> None:
        """Interfaces are looked up when something changed, not with every reading."""
        super().show_me(me, again=again)
        seen = (me.settings, me.addresses)
        if seen != self._seen or again:
            self._seen = seen
            self._show_interfaces(me.settings.interfaces)

    def _show_interfaces(self, chosen: tuple[str, ...]) -> None:
        present = self._present()
        self.boxes.keep(dict.fromkeys((*present, *chosen)))
        for name, box in self.boxes.items():
            words = plain(f"{name}  {present.get(name) or 'no address at the moment'}").replace("&", "&&")
            box.setText(words)
            set_tooltip(box, words)
            box.setChecked(name in chosen)
        tab_as_seen(self)

    def _box(self, name: str) -> QCheckBox:
        box = QCheckBox()
        box.setObjectName(f"interface-{name}")
        box.clicked.connect(lambda: self.choose_now("interfaces"))
        return box

    def _chosen(self) -> tuple[str, ...]:
        return tuple(name for name, box in self.boxes.items() if box.isChecked())


class DataCard(SettingsCard):
    """Where data lies on this laptop that runs of other laptops read."""

    def __init__(self) -> None:
        super().__init__("Data folders")
        self.folders = QLineEdit()
        self.bind(
            "data",
            self.folders,
            lambda: data_folders.read_line(self.folders.text()),
            lambda folders: self.folders.setText(data_folders.written(folders)),
        )
        self.folders.setObjectName("data-here")
        self.folders.setPlaceholderText("photos=~/Pictures/photos")
        self.folders.textEdited.connect(self.show_edited)
        self.folders.returnPressed.connect(lambda: self.save("data"))
        name_for_readers(self.folders, "Data folders of this laptop", data_folders.HELP_HERE)
        self.save_folders = self.saver("data", name="save-data", words="Save the data folders")
        about = faint(f"{capitalised(data_folders.HELP_HERE)}.", wraps=True)
        self.add(about, row(self.folders, self.save_folders), self.wrong)
