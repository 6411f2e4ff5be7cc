"""Runs compared in words: best first, then the differences."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QWidget

from app import theme
from app.charts.legend import Stroke
from app.models.run_comparison import Line, compared, labels_of
from app.theme import GAP
from app.widgets.card import column, row, take_out
from app.widgets.labels import ElidedLabel, Label, name_for_readers
from core.vocabulary.answers import RunEntry

LEAST_CHARACTERS = 24
"""Minimum width of a run's column; if not all fit, they scroll sideways and the line names stay."""


class Comparison(QWidget):
    """One column per run, in the colour of its line in the plot."""

    def __init__(self) -> None:
        super().__init__()
        self.verdict = Label("", "heading", wraps=True)
        self.same = Label("", "faint", wraps=True)
        self.cells: list[list[ElidedLabel]] = []
        """The runs' values, by line."""
        self._table: QWidget | None = None
        self._body = column(self.verdict, self.same)
        self.setLayout(self._body)

    def show_runs(self, entries: Sequence[RunEntry]) -> None:
        if self._table is not None:
            take_out(self._body, self._table)
            self._table, self.cells = None, []
        if not entries:
            return
        found = compared(entries)
        self.verdict.say(found.verdict)
        self.verdict.make("heading" if found.better is None else "good-heading")
        self.same.say_or_hide(found.same)
        self._table = self._made(labels_of(entries), found.lines)
        self._body.insertWidget(1, self._table)

    def _made(self, labels: Sequence[str], lines: Sequence[Line]) -> QWidget:
        names, values = QGridLayout(), QGridLayout()
        high = self.fontMetrics().height() + GAP // 2
        for grid in (names, values):
            grid.setContentsMargins(0, 0, 0, 0)
            grid.setHorizontalSpacing(GAP * 2)
            grid.setVerticalSpacing(0)
            for number in range(len(lines) + 1):
                grid.setRowMinimumHeight(number, high)
        names.addWidget(Label(""), 0, 0)
        for place, label in enumerate(labels):
            named = ElidedLabel(label, "heading")
            head = row(Stroke(theme.run_colour(place), False), named, spacing=GAP // 2)
            head.setStretchFactor(named, 1)
            values.addLayout(head, 0, place)
            values.setColumnMinimumWidth(place, self.fontMetrics().averageCharWidth() * LEAST_CHARACTERS)
            values.setColumnStretch(place, 1)
        for number, line in enumerate(lines, start=1):
            names.addWidget(Label(line.name, "faint"), number, 0)
            self.cells.append([])
            for place, value in enumerate(line.values):
                cell = _cell(line, place, value, labels[place])
                self.cells[-1].append(cell)
                values.addWidget(cell, number, place)
        values.setRowStretch(len(lines) + 1, 1)
        values.setColumnStretch(len(labels), max(0, 2 - len(labels)))
        return _beside(names, values)


def _cell(line: Line, place: int, value: str, label: str) -> ElidedLabel:
    won = place in line.best and len(line.best) < len(line.values)
    cell = ElidedLabel(f"{value} · best" if won else value, "good-heading" if won else "")
    name_for_readers(cell, f"{line.name} of {label}: {cell.text() or 'none'}")
    return cell


def _beside(names: QGridLayout, values: QGridLayout) -> QWidget:
    """The names stay in place while the values scroll."""
    inner = QWidget()
    inner.setObjectName("page")
    inner.setLayout(values)
    scroll = QScrollArea()
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setWidgetResizable(True)
    scroll.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setWidget(inner)
    scroll.setFixedHeight(values.minimumSize().height() + scroll.horizontalScrollBar().sizeHint().height())
    name_for_readers(scroll, "Arguments and results of the runs")
    both = row(column(names, 1), scroll, spacing=GAP * 2)
    both.setStretchFactor(scroll, 1)
    table = QWidget()
    table.setLayout(both)
    return table
