"""One reading as a live bar. Canvas by hand."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy

from app import theme
from app.widgets.canvas import Canvas
from app.widgets.labels import set_tooltip
from core.vocabulary.text import plain

NAME_CHARACTERS = 15
WORDS_CHARACTERS = 24


class Gauge(Canvas):
    """``show_reading`` takes a part of the whole (0 to 1), or None with the reason."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.words = ""
        self.part: float | None = None
        self._alarm = False
        self._stale = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(name)

    def show_reading(self, part: float | None, words: str, *, alarm: bool = False) -> None:
        """``words`` stand beside the bar, or say why there is none. ``alarm``: in the colour of trouble."""
        if part is not None and not math.isfinite(part):
            part = None
        self.part = None if part is None else min(1.0, max(0.0, part))
        self.words = plain(words)
        self._alarm = alarm
        self.setAccessibleName(f"{self._name}: {self.words}")
        set_tooltip(self, f"{self._name}: {self.words}" if self.part is None else "")
        self.update()

    def make_stale(self, stale: bool) -> None:
        """Grey: nothing has come for a while."""
        if stale != self._stale:
            self._stale = stale
            self.update()

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.averageCharWidth() * 80, metrics.height() + 8)

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.averageCharWidth() * 42, metrics.height() + 8)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        shades, metrics, area = theme.colours(), self.fontMetrics(), QRectF(self.rect())
        unit = metrics.averageCharWidth()
        tone = QColor(shades.faint if self._stale else shades.bad if self._alarm else shades.accent)
        text = QColor(shades.faint if self._stale or self.part is None else shades.text)
        name = QRectF(area.left(), area.top(), NAME_CHARACTERS * unit, area.height())
        painter.setPen(QColor(shades.faint))
        _write(painter, name, self._name)
        rest = area.adjusted(name.width(), 0, 0, 0)
        painter.setPen(text)
        if self.part is None:
            _write(painter, rest, self.words)
            return
        words = QRectF(rest)
        words.setLeft(rest.right() - WORDS_CHARACTERS * unit)
        _write(painter, words, self.words)
        rest.setRight(words.left() - unit)
        if rest.width() > 2 * unit:
            self._paint_bar(painter, rest, tone)

    def _paint_bar(self, painter: QPainter, area: QRectF, tone: QColor) -> None:
        assert self.part is not None
        thick = max(6.0, area.height() * 0.36)
        bar = QRectF(area.left(), area.center().y() - thick / 2, area.width(), thick)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.colours().raised))
        painter.drawRoundedRect(bar, thick / 2, thick / 2)
        if self.part > 0:
            bar.setWidth(max(thick, bar.width() * self.part))
            painter.setBrush(tone)
            painter.drawRoundedRect(bar, thick / 2, thick / 2)


def _write(painter: QPainter, area: QRectF, text: str) -> None:
    shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(area.width()))
    align = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    painter.drawText(area, int(align | Qt.TextFlag.TextSingleLine), shown)
