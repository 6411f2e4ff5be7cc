"""Shows a problem and its fix; never a traceback."""

from __future__ import annotations

from typing import Literal

from PySide6.QtWidgets import QFrame

from app.theme import GAP
from app.widgets.buttons import COPY_COMMAND, command_in, copy_button, copy_words, escape_mnemonic
from app.widgets.card import column, row
from app.widgets.labels import Label, name_for_readers, set_property
from core.vocabulary.errors import Problem

Level = Literal["bad", "warning", "note"]


class ProblemBox(QFrame):
    """Hidden while there is no problem. ``buttons`` holds the fixes, at the right; a command is offered for
    copying."""

    def __init__(self, problem: Problem | None = None, level: Level = "bad") -> None:
        super().__init__()
        self.problem: Problem | None = None
        self.setProperty("kind", "problem")
        self.setProperty("level", level)
        self._what = Label("", "heading", wraps=True)
        self._fix = Label("", wraps=True)
        words = column(self._what, self._fix, spacing=GAP // 3)
        self.buttons = row(words)
        self.buttons.setContentsMargins(GAP, GAP * 2 // 3, GAP, GAP * 2 // 3)
        self.buttons.setStretchFactor(words, 1)
        self.copy_command = copy_button(self._command, COPY_COMMAND, name="copy-command")
        self.buttons.addWidget(self.copy_command)
        self.setLayout(self.buttons)
        self.show_problem(problem, level)

    def show_problem(self, problem: Problem | None, level: Level = "bad") -> None:
        self.problem = problem
        set_property(self, "level", level)
        if problem is not None:
            self._what.say(problem.what)
            self._fix.say_or_hide(problem.fix)
            name_for_readers(self, problem.what, problem.fix)
            words = copy_words(problem.command_on)
            self.copy_command.setText(escape_mnemonic(words))
            self.copy_command.setAccessibleName(words)
        self.copy_command.setVisible(bool(self._command()))
        if problem is None:
            self.hide()
        elif self.parent() is not None:  # without a parent it would flash as a window
            self.show()

    def _command(self) -> str:
        return command_in(self.problem.fix, self.problem.command) if self.problem is not None else ""
