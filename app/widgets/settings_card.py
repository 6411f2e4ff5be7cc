"""A card of the settings screen, declared: each field names the setting that it shows and changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QPushButton, QSpinBox, QWidget

from app.widgets.buttons import button
from app.widgets.card import Card
from app.widgets.inputs import unscrolled
from app.widgets.labels import Label, heading, name_for_readers
from core.vocabulary.errors import TandemError
from core.vocabulary.settings import SettingsChange
from core.vocabulary.state import Me

F = TypeVar("F", bound=QWidget)


class _Binding(NamedTuple):
    """``get``: the field's value as a setting; may raise ``TandemError``."""

    get: Callable[[], Any]
    put: Callable[[Any], object]


class SettingsCard(Card):
    """``changed(change)`` after a user's choice; of fields that have a button, once that is pressed. What is
    being typed stays until its setting changes."""

    changed = Signal(object)

    def __init__(self, title: str) -> None:
        super().__init__()
        self._bound: dict[str, _Binding] = {}
        self._kept: dict[str, Any] = {}
        self._shown: object = None
        self._savers: dict[QPushButton, tuple[str, ...]] = {}
        self.wrong = Label("", "bad", wraps=True)
        """Why a value cannot be saved. A card with values that may be wrong adds it."""
        self.wrong.hide()
        self.add(heading(title))

    def tick(self, setting: str, words: str, name: str) -> QCheckBox:
        """``name``: the object name, by which tests find the field."""
        box = QCheckBox(words)
        box.setObjectName(name)
        box.clicked.connect(lambda: self.choose_now(setting))
        return self.bind(setting, box, box.isChecked, box.setChecked)

    def number(self, setting: str, words: str, most: int, *, name: str, unit: str = "") -> QSpinBox:
        field = unscrolled(QSpinBox())
        field.setObjectName(name)
        field.setRange(0, most)
        field.setSuffix(unit)
        name_for_readers(field, words)
        field.valueChanged.connect(self.show_edited)
        return self.bind(setting, field, field.value, field.setValue)

    def bind(self, setting: str, field: F, get: Callable[[], Any], put: Callable[[Any], object]) -> F:
        """``field`` shows the value that ``put`` takes; ``get`` returns it, or raises ``TandemError``."""
        self._bound[setting] = _Binding(get, put)
        return field

    def saver(self, *settings: str, name: str, words: str) -> QPushButton:
        """The button that saves these settings together. It is enabled while one of them was edited."""
        save = button("Save", lambda: self.save(*settings), name=name)
        name_for_readers(save, words)
        save.setEnabled(False)
        self._savers[save] = settings
        return save

    def save(self, *settings: str) -> None:
        """Nothing if none of them was edited."""
        if any(map(self._is_edited, settings)):
            self.choose_now(*settings)

    def choose_now(self, *settings: str) -> None:
        try:
            change = {setting: self._bound[setting].get() for setting in settings}
        except TandemError as error:
            self.wrong.say_or_hide(str(error))
        else:
            self.changed.emit(SettingsChange(**change))

    def show_me(self, me: Me, *, again: bool = False) -> None:
        """``again``: the last choice was refused, so each field shows what is in force."""
        shown = (me.name, me.settings)
        if shown == self._shown and not again:
            return
        self._shown = shown
        for setting, bound in self._bound.items():
            now = me.name if setting == "name" else getattr(me.settings, setting)
            # A refused name stays, to be corrected.
            if now != self._kept.get(setting) or (again and setting != "name"):
                self._kept[setting] = now
                bound.put(now)
        self.show_edited()

    def show_edited(self) -> None:
        """Call when a field that has a button was edited."""
        self.wrong.hide()
        for save, settings in self._savers.items():
            save.setEnabled(any(map(self._is_edited, settings)))

    def _is_edited(self, setting: str) -> bool:
        try:
            return bool(self._bound[setting].get() != self._kept.get(setting))
        except TandemError:
            return True
