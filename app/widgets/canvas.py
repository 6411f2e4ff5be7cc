"""Shared base of widgets that paint themselves in the theme's colours and font."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QLabel, QWidget

from app import theme
from app.widgets.icons import drawn

_RESTYLED = (QEvent.Type.PaletteChange, QEvent.Type.FontChange)


class Painted(QWidget):
    """Its size follows the font, and it is repainted when font or colours change."""

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in _RESTYLED:
            self.updateGeometry()
            self.update()


class Illustration(QLabel):
    """A drawing from ``resources/icons`` in the accent colour, three lines of text high."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._drawn: tuple[str, int, float] | None = None
        self._draw()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in _RESTYLED:
            self._draw()
        super().changeEvent(event)

    def _draw(self) -> None:
        wanted = (theme.colours().accent, self.fontMetrics().height() * 3, self.devicePixelRatioF())
        if wanted != self._drawn:
            self._drawn = wanted
            self.setPixmap(drawn(self._name, *wanted))


def write(painter: QPainter, area: QRectF, words: str, colour: str) -> None:
    """One left-aligned line, vertically centred in ``area``; elided with ``…`` if too long."""
    painter.setPen(QColor(colour))
    shown = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, int(area.width()))
    align = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    painter.drawText(area, int(align | Qt.TextFlag.TextSingleLine), shown)


def paint_bar(painter: QPainter, bar: QRectF, part: float, colour: str) -> None:
    """``part`` of a whole, 0 to 1; even the smallest is visible."""
    round_by = bar.height() / 2
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.colours().raised))
    painter.drawRoundedRect(bar, round_by, round_by)
    if part > 0:
        done = QRectF(bar)
        done.setWidth(max(bar.height(), bar.width() * min(1.0, part)))
        painter.setBrush(QColor(colour))
        painter.drawRoundedRect(done, round_by, round_by)
