"""One large number with its name above and a note below. Painted by hand: it changes once a second, and a
changing label lays out the whole page again."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy

from app import theme
from app.models.headline import Figure
from app.widgets.canvas import Painted, write
from app.widgets.labels import set_tooltip

LARGER = 1.9
"""Size relative to ordinary text."""
LEAST_CHARACTERS = 12


class FigureView(Painted):
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
        self.setAccessibleDescription(figure.hint)
        set_tooltip(self, f"{words}. {figure.hint}" if figure.hint else words)
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
        write(painter, QRectF(0, 0, self.width(), name), self.figure.name, shades.faint)
        note = QRectF(0, name + value, self.width(), whole - name - value)
        write(painter, note, self.figure.note, shades.faint)
        painter.setFont(self._large(self.figure.value))
        colour = shades.warning if self.figure.kind else shades.text
        write(painter, QRectF(0, name, self.width(), value), self.figure.value, colour)

    def _heights(self) -> tuple[int, int, int]:
        """Heights of the name, of the value, and in total."""
        line = self.fontMetrics().height()
        value = round(line * LARGER)
        return line, value, 2 * line + value

    def _large(self, value: str) -> QFont:
        """Smaller where the value would be cut off: *1.2× slower* must not read *1.2×*."""
        font, size = QFont(self.font()), self.fontInfo().pixelSize()
        font.setPixelSize(round(size * LARGER))
        font.setWeight(QFont.Weight.DemiBold)
        needs = QFontMetrics(font).horizontalAdvance(value)
        if needs > self.width():
            font.setPixelSize(max(size, int(size * LARGER * self.width() / needs)))
        return font
