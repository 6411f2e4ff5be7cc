"""The legend: each line's stroke in its colour, and its name as plain text. A click hides or shows a line."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QApplication, QSizePolicy, QWidget

from app import theme
from app.theme import GAP
from app.widgets.flow import Flow
from app.widgets.labels import name_for_readers, set_tooltip
from core.vocabulary.text import plain

MOST_CHARACTERS = 48
"""Maximum width of a name in average characters; a longer one is elided."""
LEAST_CHARACTERS = 8
_STROKE_CHARACTERS = 3
_HINT = "Click to show or hide. Ctrl+click shows only this line."


class Stroke(QWidget):
    """A short piece of a curve's line."""

    def __init__(self, colour: str, dashed: bool) -> None:
        super().__init__()
        self._pen = QPen(QColor(colour), 2, Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().averageCharWidth() * 4, self.fontMetrics().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self._pen)
        middle = self.height() // 2
        painter.drawLine(0, middle, self.width(), middle)


class LegendEntry(QAbstractButton):
    """One line of a plot; checked while visible."""

    def __init__(self, name: str, colour: str, dashed: bool, shown: bool) -> None:
        super().__init__()
        self.name = name
        self._words = plain(name)
        self._colour, self._dashed = colour, dashed
        self.setCheckable(True)
        self.setChecked(shown)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        name_for_readers(self, f"Show {self._words}", _HINT)
        set_tooltip(self, f"{self._words}\n{_HINT}" if self._cut(MOST_CHARACTERS) else _HINT)

    def _cut(self, characters: int) -> bool:
        metrics = self.fontMetrics()
        return metrics.horizontalAdvance(self._words) > metrics.averageCharWidth() * characters

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        one = metrics.averageCharWidth()
        words = min(metrics.horizontalAdvance(self._words), one * MOST_CHARACTERS)
        return QSize(one * (_STROKE_CHARACTERS + 1) + words + 4, metrics.height() + 4)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().averageCharWidth() * LEAST_CHARACTERS, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self.paint(painter)
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme.colours().accent), 1, Qt.PenStyle.DotLine))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def paint(self, painter: QPainter) -> None:
        """Paints onto the screen or into a picture, at (0, 0)."""
        shades, metrics, shown = theme.colours(), self.fontMetrics(), self.isChecked()
        middle, one = self.height() // 2, metrics.averageCharWidth()
        style = Qt.PenStyle.DashLine if self._dashed else Qt.PenStyle.SolidLine
        painter.setPen(QPen(QColor(self._colour if shown else shades.line), 2, style))
        painter.drawLine(2, middle, one * _STROKE_CHARACTERS, middle)
        font = self.font()
        font.setStrikeOut(not shown)
        painter.setFont(font)
        painter.setPen(QColor(shades.text if shown else shades.faint))
        area = self.rect().adjusted(one * (_STROKE_CHARACTERS + 1), 0, -2, 0)
        words = metrics.elidedText(self._words, Qt.TextElideMode.ElideMiddle, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, words)


class Legend(Flow):
    """As many rows as the names need. ``toggled``: a line's name and whether it is visible;
    ``alone_asked``: show only that line."""

    toggled = Signal(str, bool)
    alone_asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.spacing = GAP
        self.entries: list[LegendEntry] = []
        self._shown_lines: list[tuple[str, str, bool]] = []

    @property
    def names(self) -> list[str]:
        return [entry.name for entry in self.entries]

    def show_lines(self, lines: list[tuple[str, str, bool]], hidden: Collection[str] = ()) -> None:
        """``lines``: name, colour, dashed."""
        if lines == self._shown_lines:
            for entry in self.entries:
                entry.setChecked(entry.name not in hidden)
            return
        self._shown_lines = list(lines)
        self.clear()
        self.entries = [LegendEntry(*line, shown=line[0] not in hidden) for line in lines]
        for entry in self.entries:
            entry.clicked.connect(lambda shown, name=entry.name: self._on_clicked(name, shown))
            self.add(entry)

    def paint(self, painter: QPainter) -> None:
        """Paints into a picture, at (0, 0)."""
        for entry in self.entries:
            painter.save()
            painter.translate(QPoint(entry.pos()))
            entry.paint(painter)
            painter.restore()

    def _on_clicked(self, name: str, shown: bool) -> None:
        if QApplication.keyboardModifiers() & Qt.KeyboardModifier.ControlModifier:
            self.alone_asked.emit(name)
        else:
            self.toggled.emit(name, shown)
