"""Says what happened and how to mend it; never a traceback."""

from __future__ import annotations

from typing import Literal

from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.theme import GAP
from app.widgets.labels import Label, name_for_readers, set_property
from core.vocabulary.errors import Problem

Level = Literal["bad", "warning", "note"]


class ProblemBox(QFrame):
    """Hidden while there is no problem. ``buttons`` takes what mends it, at the right."""

    def __init__(
        self, problem: Problem | None = None, level: Level = "bad", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.problem: Problem | None = None
        self.setProperty("kind", "problem")
        self.setProperty("level", level)
        self._what = Label("", "heading", wraps=True)
        self._fix = Label("", wraps=True)
        words = QVBoxLayout()
        words.setSpacing(GAP // 3)
        words.addWidget(self._what)
        words.addWidget(self._fix)
        self.buttons = QHBoxLayout(self)
        self.buttons.setContentsMargins(GAP, GAP * 2 // 3, GAP, GAP * 2 // 3)
        self.buttons.setSpacing(GAP)
        self.buttons.addLayout(words, 1)
        self.show_problem(problem, level)

    def show_problem(self, problem: Problem | None, level: Level = "bad") -> None:
        self.problem = problem
        set_property(self, "level", level)
        if problem is not None:
            self._what.say(problem.what)
            self._fix.say(problem.fix)
            self._fix.setVisible(bool(problem.fix))
            name_for_readers(self, problem.what, problem.fix)
        self.setVisible(problem is not None)
