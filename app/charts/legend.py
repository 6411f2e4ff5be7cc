"""Which line is which: a stroke in its colour, and its name as plain text."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.theme import GAP
from app.widgets.labels import ElidedLabel

MOST = 8
LEAST_CHARACTERS = 8


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


class Legend(QWidget):
    """One row; names that have no room are elided. ``at_right``: it stands at the end of its row."""

    def __init__(self, *, at_right: bool = False) -> None:
        super().__init__()
        self._at_right = at_right
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(GAP // 2)
        self.names: list[str] = []
        # However many laptops and however large the letters: it never widens the window.
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * LEAST_CHARACTERS)

    def show_lines(self, lines: list[tuple[str, str, bool]]) -> None:
        """``lines``: name, colour, dashed."""
        while (item := self._row.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        self.names = [name for name, _, _ in lines]
        if self._at_right:
            self._row.addStretch(1)
        for name, colour, dashed in lines[:MOST]:
            self._row.addWidget(Stroke(colour, dashed))
            self._row.addWidget(ElidedLabel(name, "faint"))
            self._row.addSpacing(GAP // 2)
        if len(lines) > MOST:
            self._row.addWidget(ElidedLabel(f"and {len(lines) - MOST} more", "faint"))
        if not self._at_right:
            self._row.addStretch(1)
