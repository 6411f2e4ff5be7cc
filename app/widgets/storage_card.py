"""How long files of other laptops' projects and runs stay here; part of the settings."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QSpinBox

from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.inputs import unscrolled
from app.widgets.labels import Label, faint, heading, name_for_readers
from core.vocabulary import units
from core.vocabulary.errors import Problem
from core.vocabulary.settings import Settings, SettingsChange


class StorageCard(Card):
    """``clear_asked``: delete all of it."""

    changed = Signal(object)
    clear_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.days = _number("keep-days", "Days that they are kept", 3650, " days")
        self.gigabytes = _number("keep-gb", "Gigabytes that they may take", 100_000, " GB")
        self.save = button("Save", self._save, name="save-keep")
        name_for_readers(self.save, "Save how long and how much is kept")
        self.clear = button("Clear…", lambda: self._show_question(True), "danger", name="clear")
        self.keep = button("Keep", lambda: self._show_question(False), name="keep-files")
        self.really = button("Really clear", self._clear, "danger", name="really-clear")
        name_for_readers(self.clear, "Clear the files of other laptops")
        self.words = Label("", "faint", wraps=True)
        self._settings: Settings | None = None
        for field in (self.days, self.gigabytes):
            field.valueChanged.connect(self._on_edited)
        self.add(
            heading("Files of other laptops"),
            faint(
                "Projects that other laptops sent for runs, and what those runs left here; of your own runs, "
                "the folder outputs-left. They are removed after so many days without use; beyond this size "
                "the oldest go first. The list of runs stays.",
                wraps=True,
            ),
            row(self.days, self.gigabytes, self.save, 1),
            row(self.words, 1, self.clear, self.keep, self.really),
        )
        self._show_question(False)

    def show_settings(self, settings: Settings, *, again: bool = False) -> None:
        before, self._settings = self._settings, settings
        if again or before is None or _kept(before) != _kept(settings):
            self.days.setValue(settings.keep_days)
            self.gigabytes.setValue(settings.keep_gb)
        self._on_edited()

    def show_cleared(self, freed_bytes: int) -> None:
        self.clear.setEnabled(True)
        self.words.say(f"Freed {units.size(freed_bytes)}.")

    def show_problem(self, problem: Problem) -> None:
        self.clear.setEnabled(True)
        self.words.say(str(problem))

    def _on_edited(self) -> None:
        chosen = (self.days.value(), self.gigabytes.value())
        self.save.setEnabled(self._settings is not None and chosen != _kept(self._settings))

    def _save(self) -> None:
        self.changed.emit(SettingsChange(keep_days=self.days.value(), keep_gb=self.gigabytes.value()))

    def _clear(self) -> None:
        self._show_question(False)
        self.clear.setEnabled(False)
        self.words.say("Clearing…")
        self.clear_asked.emit()

    def _show_question(self, asked: bool) -> None:
        self.clear.setVisible(not asked)
        self.keep.setVisible(asked)
        self.really.setVisible(asked)
        if asked:
            self.keep.setFocus()


def _kept(settings: Settings) -> tuple[int, int]:
    return settings.keep_days, settings.keep_gb


def _number(name: str, words: str, most: int, unit: str) -> QSpinBox:
    field = unscrolled(QSpinBox())
    field.setObjectName(name)
    field.setRange(0, most)
    field.setSuffix(unit)
    name_for_readers(field, words)
    return field
