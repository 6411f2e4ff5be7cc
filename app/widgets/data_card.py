"""Where data lies on this laptop that runs of other laptops read; part of the settings."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit

from app.models import data_folders
from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.labels import Label, faint, heading, name_for_readers
from core.vocabulary.errors import TandemError
from core.vocabulary.settings import Settings, SettingsChange
from core.vocabulary.text import capitalised


class DataCard(Card):
    changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._saved: str | None = None
        self.folders = QLineEdit()
        self.folders.setObjectName("data-here")
        self.folders.setPlaceholderText("photos=~/Pictures/photos")
        name_for_readers(self.folders, "Data folders of this laptop", data_folders.HELP_HERE)
        self.save = button("Save", self._save, name="save-data")
        name_for_readers(self.save, "Save the data folders")
        self.words = Label("", "bad", wraps=True)
        self.folders.textEdited.connect(lambda _: self._on_edited())
        self.folders.returnPressed.connect(self._save)
        help_words = f"{capitalised(data_folders.HELP_HERE)}."
        self.add(heading("Data folders"), faint(help_words, wraps=True), row(self.folders, self.save))
        self.add(self.words)
        self.words.hide()

    def show_settings(self, settings: Settings, *, again: bool = False) -> None:
        saved = data_folders.written(settings.data)
        if again or saved != self._saved:
            self.folders.setText(saved)
        self._saved = saved
        self._on_edited()

    def _on_edited(self) -> None:
        self.save.setEnabled(self.folders.text().strip() != self._saved)
        self.words.hide()

    def _save(self) -> None:
        if not self.save.isEnabled():
            return
        try:
            folders = data_folders.read_line(self.folders.text())
        except TandemError as error:
            self.words.say(str(error))
            self.words.show()
        else:
            self.changed.emit(SettingsChange(data=folders))
