"""Settings of what Tandem does while nobody looks: login, tray, a trainer kept ready."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox

from app.widgets.card import Card
from app.widgets.labels import faint, heading
from core.vocabulary.settings import Settings, SettingsChange


class BackgroundCard(Card):
    """Starting at login is done by the window, not the node: it is asked for by a signal of its own."""

    changed = Signal(object)
    start_at_login_asked = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self._shown: Settings | None = None
        self.login = QCheckBox("Start Tandem when I log in")
        self.login.clicked.connect(self.start_at_login_asked)
        self.tray = QCheckBox("Show an icon and notices where the desktop has a tray")
        self.tray.clicked.connect(lambda on: self.changed.emit(SettingsChange(tray=on)))
        self.warm = QCheckBox("Keep TensorFlow loaded, so that a run starts at once")
        self.warm.clicked.connect(lambda on: self.changed.emit(SettingsChange(warm_trainer=on)))
        for box, name in ((self.login, "start-at-login"), (self.tray, "tray"), (self.warm, "warm-trainer")):
            box.setObjectName(name)
        self.body.addWidget(heading("In the background"))
        self.body.addWidget(self.login)
        self.body.addWidget(self.tray)
        self.body.addWidget(self.warm)
        self.body.addWidget(faint("Takes about 400 MB of memory all the time.", wraps=True))

    def show_settings(self, settings: Settings, *, again: bool = False) -> None:
        if settings == self._shown and not again:
            return
        self._shown = settings
        self.login.setChecked(settings.start_at_login)
        self.tray.setChecked(settings.tray)
        self.warm.setChecked(settings.warm_trainer)
