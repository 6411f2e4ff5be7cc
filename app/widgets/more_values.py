"""Asks for more values to try in a sweep that is under way or over."""

from __future__ import annotations

import shlex

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from app.models.draft import more_sets
from app.widgets.buttons import button
from app.widgets.card import column, row
from app.widgets.labels import Label, name_for_readers
from core.vocabulary import units
from core.vocabulary.errors import Problem
from core.vocabulary.sweep import Sweep

_ALL_THERE = "All of these are trials already. Change a value, or separate several by commas: --lr 0.1,0.01."


class MoreValues(QWidget):
    """Hidden until ``begin``. ``asked(sets)``: the user wants these sets of arguments, too. ``closed``: it is
    hidden again."""

    asked = Signal(object)
    closed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._sweep: Sweep | None = None
        self.arguments = QLineEdit()
        self.arguments.setObjectName("more-values")
        name_for_readers(self.arguments, "Arguments with more values")
        self.arguments.textChanged.connect(lambda _: self._show())
        self.add = button("Add", self._ask, "primary", name="add-more")
        self.arguments.returnPressed.connect(self.add.click)
        self.cancel = button("Cancel", self._close, name="cancel-more")
        self.words = Label("", "faint", wraps=True)
        label = Label("Arguments", "faint")
        label.setBuddy(self.arguments)
        line = row(label, self.arguments, self.cancel, self.add)
        line.setStretchFactor(self.arguments, 1)
        self.setLayout(column(line, self.words))
        self.hide()

    def show_sweep(self, sweep: Sweep) -> None:
        if self._sweep is None or sweep.sweep != self._sweep.sweep:
            self._close()
        self._sweep = sweep
        self._show()

    def begin(self) -> None:
        """Starts from the arguments of the first trial."""
        if self._sweep is not None and self.isHidden():
            self.arguments.setText(shlex.join(self._sweep.spec.argument_sets[0]))
        self.show()
        self.arguments.setFocus()

    def _show(self) -> None:
        if self._sweep is None:
            return
        sets = more_sets(self.arguments.text(), self._sweep)
        self.add.setEnabled(not isinstance(sets, Problem) and bool(sets))
        if isinstance(sets, Problem):
            self.words.say(f"{sets.what} {sets.fix}")
        elif not sets:
            self.words.say(_ALL_THERE)
        else:
            trials = units.number_of(len(sets) * self._sweep.spec.repeat, "more trial")
            asks = " Other laptops' users are asked again." if self._sweep.spec.run.devices else ""
            self.words.say(f"{trials}.{asks}")

    def _ask(self) -> None:
        if self._sweep is not None:
            sets = more_sets(self.arguments.text(), self._sweep)
            self._close()
            self.asked.emit(sets)

    def _close(self) -> None:
        self.hide()
        self.closed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._close()
        else:
            super().keyPressEvent(event)
