"""One large number with its name above and a note below. Canvas by hand: it changes twice a second, and a
label that changes lays its whole page out anew."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy

from app import theme
from app.models.headline import Figure
from app.widgets.canvas import Canvas
from app.widgets.labels import set_tooltip

LARGER = 1.9
"""Times the size of ordinary text."""
LEAST_CHARACTERS = 12


class FigureView(Canvas):
    def __init__(self) -> None:
        super().__init__()
        self.figure = Figure("", "–")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_figure(self, figure: Figure) -> None:
        if figure == self.figure:
            return
        self.figure = figure
        words = " ".join(filter(None, (figure.name, figure.value, figure.note)))
        self.setAccessibleName(words)
        set_tooltip(self, words)
        self.update()

    def text(self) -> str:
        """The value alone."""
        return self.figure.value

    def sizeHint(self) -> QSize:
        unit = self.fontMetrics().averageCharWidth()
        return QSize(unit * 2 * LEAST_CHARACTERS, self._heights()[2])

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().averageCharWidth() * LEAST_CHARACTERS, self._heights()[2])

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, shades = QPainter(self), theme.colours()
        name, value, whole = self._heights()
        painter.setPen(QColor(shades.faint))
        self._write(painter, QRect(0, 0, self.width(), name), self.figure.name)
        self._write(painter, QRect(0, name + value, self.width(), whole - name - value), self.figure.note)
        painter.setPen(QColor(shades.warning if self.figure.kind else shades.text))
        painter.setFont(self._large())
        self._write(painter, QRect(0, name, self.width(), value), self.figure.value)

    def _heights(self) -> tuple[int, int, int]:
        """Of the name, the value, and of all."""
        line = self.fontMetrics().height()
        value = round(line * LARGER)
        return line, value, 2 * line + value

    def _large(self) -> QFont:
        font = QFont(self.font())
        font.setPixelSize(round(self.fontInfo().pixelSize() * LARGER))
        font.setWeight(QFont.Weight.DemiBold)
        return font

    def _write(self, painter: QPainter, area: QRect, words: str) -> None:
        shown = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, area.width())
        align = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(area, int(align | Qt.TextFlag.TextSingleLine), shown)
