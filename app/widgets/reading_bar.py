"""One reading as a live bar. Painted by hand."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy

from app import theme
from app.widgets.canvas import Painted, paint_bar, write
from app.widgets.labels import set_tooltip
from core.vocabulary.text import plain

NAME_CHARACTERS = 15
WORDS_CHARACTERS = 24


class ReadingBar(Painted):
    """``show_reading`` takes a fraction of the whole (0 to 1), or None with the reason."""

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
        """``words`` appear beside the bar, or say why there is none. ``alarm``: in the colour of trouble."""
        if part is not None and not math.isfinite(part):
            part = None
        self.part = None if part is None else min(1.0, max(0.0, part))
        self.words = plain(words)
        self._alarm = alarm
        self.setAccessibleName(f"{self._name}: {self.words}")
        set_tooltip(self, f"{self._name}: {self.words}" if self.part is None else "")
        self.update()

    def make_stale(self, stale: bool) -> None:
        """Grey: no new reading for a while."""
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
        shades, area = theme.colours(), QRectF(self.rect())
        unit = self.fontMetrics().averageCharWidth()
        tone = shades.faint if self._stale else shades.bad if self._alarm else shades.accent
        ink = shades.faint if self._stale or self.part is None else shades.text
        name = QRectF(area.left(), area.top(), NAME_CHARACTERS * unit, area.height())
        write(painter, name, self._name, shades.faint)
        rest = area.adjusted(name.width(), 0, 0, 0)
        if self.part is None:
            write(painter, rest, self.words, ink)
            return
        words = QRectF(rest)
        words.setLeft(rest.right() - WORDS_CHARACTERS * unit)
        write(painter, words, self.words, ink)
        rest.setRight(words.left() - unit)
        if rest.width() > 2 * unit:
            thick = max(6.0, rest.height() * 0.36)
            bar = QRectF(rest.left(), rest.center().y() - thick / 2, rest.width(), thick)
            paint_bar(painter, bar, self.part, tone)
