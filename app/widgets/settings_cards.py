"""Settings: this laptop's name and the look of the window; what Tandem does in the background."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox

from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.inputs import NAME_BYTES, NameEdit, unscrolled
from app.widgets.labels import faint, heading, name_for_readers
from core.vocabulary.settings import Settings, SettingsChange, Theme
from core.vocabulary.state import Me

THEMES: tuple[tuple[str, Theme], ...] = (
    ("Follow the system", "system"),
    ("Light", "light"),
    ("Dark", "dark"),
)


class ThisLaptopCard(Card):
    """Its name, as the others see it, and the look of the window."""

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
        self.body.addWidget(heading("This laptop"))
        self.body.addWidget(faint("Its name, as the others see it"))
        self.body.addLayout(row(self.name, self.save))
        self.body.addWidget(faint("Theme"))
        self.body.addLayout(row(self.theme, 1))

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
    """What Tandem does while nobody looks: login, tray, a trainer held ready. Starting at login is done by
    the window, not the node: it is asked for by a signal of its own."""

    changed = Signal(object)
    start_at_login_asked = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self._shown: Settings | None = None
        self.login = QCheckBox("Start Tandem when I log in")
        self.login.clicked.connect(self.start_at_login_asked)
        self.tray = QCheckBox("Show an icon and notices in the tray")
        self.tray.clicked.connect(lambda on: self.changed.emit(SettingsChange(tray=on)))
        self.warm = QCheckBox("Keep TensorFlow loaded between runs")
        self.warm.clicked.connect(lambda on: self.changed.emit(SettingsChange(warm_trainer=on)))
        for box, name in ((self.login, "start-at-login"), (self.tray, "tray"), (self.warm, "warm-trainer")):
            box.setObjectName(name)
        self.body.addWidget(heading("In the background"))
        self.body.addWidget(self.login)
        self.body.addWidget(self.tray)
        self.body.addWidget(self.warm)
        self.body.addWidget(
            faint("A run starts at once then. Takes about 400 MB of memory all the time.", wraps=True)
        )

    def show_settings(self, settings: Settings, *, again: bool = False) -> None:
        if settings == self._shown and not again:
            return
        self._shown = settings
        self.login.setChecked(settings.start_at_login)
        self.tray.setChecked(settings.tray)
        self.warm.setChecked(settings.warm_trainer)
