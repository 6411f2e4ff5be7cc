"""Which of a folder's scripts is meant: one button each."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout

from app.theme import GAP
from app.widgets.buttons import button
from app.widgets.card import Card, take_out
from app.widgets.labels import Label
from core.vocabulary.answers import ScriptsFound
from core.vocabulary.text import plain

MOST = 12
NAME_LENGTH = 60


class ScriptChoices(Card):
    """``chosen(path)``. Hidden while there is nothing to choose."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Scripts of the folder")
        self.heading = Label("Which script is to be trained?", "heading")
        self.more = Label("", "faint")
        self._choices = QVBoxLayout()
        self._choices.setSpacing(GAP // 2)
        self.body.addWidget(self.heading)
        self.body.addLayout(self._choices)
        self.body.addWidget(self.more)
        self.buttons: list[QPushButton] = []
        self.hide()

    def show_scripts(self, found: ScriptsFound | None) -> None:
        for made in self.buttons:
            take_out(self._choices, made)
        self.buttons = []
        if found is not None:
            for script in found.scripts[:MOST]:
                path = str(Path(found.folder) / script)
                words = plain(script, NAME_LENGTH)
                made = button(words, partial(self.chosen.emit, path), name="script-choice")
                self.buttons.append(made)
                self._choices.addWidget(made, 0, Qt.AlignmentFlag.AlignLeft)
            more = len(found.scripts) - MOST
            self.more.say(f"and {more} more: choose one of those by Choose script…" if more > 0 else "")
            self.more.setVisible(more > 0)
        self.setVisible(found is not None)
