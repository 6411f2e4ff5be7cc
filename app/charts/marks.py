"""Overlay on the curves: each line's last value, the best epoch, and a crosshair with values."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QRegion
from PySide6.QtWidgets import QWidget

from app import theme

if TYPE_CHECKING:
    from app.charts.canvas import Canvas

END_CHARACTERS = 9
"""Room at the right for the last values, in characters."""
_PAD = 6
_RING = 4.5
_BAD = 3.0
"""Half the size of a mark for a non-finite value, in pixels."""


class Mark(NamedTuple):
    """A point as drawn (``y`` a power of ten on a logarithmic scale) and its label."""

    x: float
    y: float
    words: str
    colour: str


class TurnMark(NamedTuple):
    """A place on the run's axis and what happened there to one of its laptops."""

    x: float
    words: str
    colour: str


class BadMark(NamedTuple):
    """A non-finite value and its place."""

    x: float
    value: float
    colour: str


class Cursor(NamedTuple):
    """Values at one place: ``head`` names the place, and each mark is a curve's point near it."""

    x: float
    head: str
    marks: tuple[Mark, ...]


class Marks(QWidget):
    """Covers ``canvas`` and lets the mouse through."""

    def __init__(self, canvas: Canvas) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self.ends: tuple[Mark, ...] = ()
        self.best: Mark | None = None
        self.turns: tuple[TurnMark, ...] = ()
        self.bad: tuple[BadMark, ...] = ()
        self.says_turns = True
        """True draws words; False draws lines only, under a plot that has the words."""
        self.covers: Callable[[Sequence[QRectF]], Sequence[bool]] = lambda places: [False] * len(places)
        """Whether a curve runs through each of some areas of the plot, in pixels, one below the other: words
        avoid it."""
        self._said: list[QRectF] = []
        """Areas in the plot that now hold words."""
        self.cursor_at: Cursor | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        canvas.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self._canvas.rect())
        return False

    def show_marks(self, ends: Sequence[Mark], best: Mark | None, bad: Sequence[BadMark] = ()) -> None:
        if (tuple(ends), best, tuple(bad)) != (self.ends, self.best, self.bad):
            self.ends, self.best, self.bad = tuple(ends), best, tuple(bad)
            self.update()

    def show_turns(self, turns: Sequence[TurnMark]) -> None:
        if tuple(turns) != self.turns:
            self.turns = tuple(turns)
            self.update()

    def show_cursor(self, cursor: Cursor | None) -> None:
        """Repaints only what it covers: the curves underneath are repainted with it."""
        if cursor == self.cursor_at:
            return
        dirty = self._covered()
        self.cursor_at = cursor
        self.update(dirty.united(self._covered()))

    def paintEvent(self, event: QPaintEvent) -> None:
        began_s = time.thread_time()
        self.paint(QPainter(self))
        self._canvas.paint_s += time.thread_time() - began_s

    def paint(self, painter: QPainter) -> None:
        """Paints onto the screen or into a picture, at (0, 0)."""
        painter.setFont(self.font())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = self._canvas.area
        self._said = []
        self._paint_bad(painter, area)
        self._paint_turns(painter, area)
        self._paint_ends(painter, area)
        if self.best is not None:
            self._paint_best(painter, area, self.best)
        if self.cursor_at is not None:
            self._paint_cursor(painter, area, self.cursor_at)

    def _paint_ends(self, painter: QPainter, area: QRectF) -> None:
        height = float(painter.fontMetrics().height())
        seen = [mark for mark in self.ends if area.contains(self._place(mark))]
        seen.sort(key=lambda mark: self._place(mark).y())
        del seen[int(area.height() / height) :]  # more would overlap
        wanted = [self._place(mark).y() - height / 2 for mark in seen]
        for mark, top in zip(seen, apart(wanted, height, area.bottom() + height / 2), strict=True):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(mark.colour))
            painter.drawEllipse(self._place(mark), 3, 3)
            painter.setPen(QColor(mark.colour))
            painter.drawText(QPointF(area.right() + 6, top + painter.fontMetrics().ascent()), mark.words)

    def _paint_best(self, painter: QPainter, area: QRectF, best: Mark) -> None:
        place = self._place(best)
        if not area.adjusted(-1, -1, 1, 1).contains(place):
            return
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(best.colour), 2))
        painter.drawEllipse(place, _RING, _RING)
        metrics = painter.fontMetrics()
        width, high = metrics.horizontalAdvance(best.words), metrics.height()
        left = min(max(area.left() + 2, place.x() - width / 2), area.right() - width - 2)
        tops = [place.y() - away - high for away in range(6, int(area.height()), high // 2)]
        tops += [place.y() + away for away in range(6, int(area.height()), high // 2)]
        tops.sort(key=lambda top: abs(top + high / 2 - place.y()))
        places = [QRectF(left, top, width, high) for top in tops]
        inside = [each for each in places if area.top() <= each.top() and each.bottom() <= area.bottom()]
        if (where := self._free(inside)) is not None:
            self._say(painter, best.words, where, theme.colours().text)

    def _paint_bad(self, painter: QPainter, area: QRectF) -> None:
        """A cross at the lower edge marks a NaN, an arrow at the edge an infinity."""
        pixels: set[tuple[int, str]] = set()
        for mark in self.bad:
            x = self._canvas.pixel(mark.x, 0.0).x()
            kind = "nan" if mark.value != mark.value else "up" if mark.value > 0 else "down"
            if not area.left() - 1 <= x <= area.right() + 1 or (round(x / _BAD), kind) in pixels:
                continue
            pixels.add((round(x / _BAD), kind))
            painter.setPen(QPen(QColor(mark.colour), 2))
            y = area.top() + _BAD + 1 if kind == "up" else area.bottom() - _BAD - 1
            out = -_BAD if kind == "up" else _BAD
            self._said.append(QRectF(x - 2 * _BAD, y - 2 * _BAD, 4 * _BAD, 4 * _BAD))
            if kind == "nan":
                painter.drawLine(QPointF(x - _BAD, y - _BAD), QPointF(x + _BAD, y + _BAD))
                painter.drawLine(QPointF(x - _BAD, y + _BAD), QPointF(x + _BAD, y - _BAD))
            else:
                painter.setBrush(QColor(mark.colour))
                painter.drawPolygon(
                    [QPointF(x, y + out), QPointF(x - _BAD, y - out / 2), QPointF(x + _BAD, y - out / 2)]
                )

    def _free(self, places: Sequence[QRectF]) -> QRectF | None:
        """The first place where words hide neither a curve nor other words."""
        clear = [place for place in places if not any(place.intersects(other) for other in self._said)]
        for place, covered in zip(clear, self.covers(clear), strict=True):
            if not covered:
                return place
        return None

    def _say(self, painter: QPainter, words: str, where: QRectF, colour: str) -> None:
        self._said.append(where.adjusted(-_PAD, 0, _PAD, 0))
        painter.fillRect(where.adjusted(-2, 0, 2, 0), QColor(theme.colours().panel))
        painter.setPen(QColor(colour))
        painter.drawText(QPointF(where.left(), where.top() + painter.fontMetrics().ascent()), words)

    def _paint_turns(self, painter: QPainter, area: QRectF) -> None:
        """Vertical lines from top to bottom, with words beside each if they fit."""
        metrics = painter.fontMetrics()
        high, rows = metrics.height(), int(area.height()) // max(1, metrics.height())
        for turn in sorted(self.turns):
            x = self._canvas.pixel(turn.x, 0.0).x()
            if not area.left() - 1 <= x <= area.right() + 1:
                continue
            painter.setPen(QPen(QColor(turn.colour), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            width = metrics.horizontalAdvance(turn.words)
            left = min(x + 4, area.right() - width)
            places = [QRectF(left, area.top() + row * high, width, high) for row in range(rows)]
            where = self._free(places) if self.says_turns else None
            if where is not None:
                self._say(painter, turn.words, where, turn.colour)

    def _paint_cursor(self, painter: QPainter, area: QRectF, cursor: Cursor) -> None:
        shades, x = theme.colours(), self._canvas.pixel(cursor.x, 0.0).x()
        painter.setPen(QPen(QColor(shades.faint), 1, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        for mark in cursor.marks:
            if isfinite(mark.y) and area.contains(place := self._place(mark)):
                painter.setPen(QPen(QColor(shades.panel), 1))
                painter.setBrush(QColor(mark.colour))
                painter.drawEllipse(place, 4, 4)
        box, metrics = self._box(cursor), painter.fontMetrics()
        painter.setPen(QColor(shades.line))
        painter.setBrush(QColor(shades.raised))
        painter.drawRoundedRect(box, 4, 4)
        y = box.top() + _PAD / 2 + metrics.ascent()
        painter.setPen(QColor(shades.faint))
        painter.drawText(QPointF(box.left() + _PAD, y), cursor.head)
        for mark in self._listed(cursor):
            y += metrics.height()
            swatch = QRectF(box.left() + _PAD, y - metrics.ascent() / 2 - 1, 8, 3)
            painter.fillRect(swatch, QColor(mark.colour))
            painter.setPen(QColor(shades.text))
            painter.drawText(QPointF(swatch.right() + _PAD, y), mark.words)

    def _box(self, cursor: Cursor) -> QRectF:
        """Beside the line, on the side with more room."""
        metrics, area = self.fontMetrics(), self._canvas.area
        words = (metrics.horizontalAdvance(mark.words) + 8 + _PAD for mark in cursor.marks)
        width = max((metrics.horizontalAdvance(cursor.head), *words)) + 2 * _PAD
        height = metrics.height() * (1 + len(self._listed(cursor))) + _PAD
        x = self._canvas.pixel(cursor.x, 0.0).x()
        left = x + 10 if x < area.center().x() else x - 10 - width
        left = max(0.0, min(left, self.width() - width))
        return QRectF(left, area.top() + 4, width, height)

    def _listed(self, cursor: Cursor) -> Sequence[Mark]:
        """As many as fit beside the line."""
        room = int((self.height() - self._canvas.area.top()) / self.fontMetrics().height()) - 2
        if len(cursor.marks) <= room:
            return cursor.marks
        left = len(cursor.marks) - max(0, room - 1)
        more = Mark(cursor.x, float("nan"), f"and {left} more", theme.colours().faint)
        return (*cursor.marks[: max(0, room - 1)], more)

    def _covered(self) -> QRegion:
        if self.cursor_at is None:
            return QRegion()
        area, x = self._canvas.area, self._canvas.pixel(self.cursor_at.x, 0.0).x()
        covered = QRegion(QRectF(x - 6, area.top() - 6, 12, area.height() + 12).toAlignedRect())
        covered += self._box(self.cursor_at).adjusted(-2, -2, 2, 2).toAlignedRect()
        for mark in self.cursor_at.marks:
            if isfinite(mark.y) and area.contains(place := self._place(mark)):
                covered += QRectF(place.x() - 6, place.y() - 6, 12, 12).toAlignedRect()
        return covered

    def _place(self, mark: Mark) -> QPointF:
        return self._canvas.pixel(mark.x, mark.y)


def apart(tops: Sequence[float], height: float, bottom: float) -> list[float]:
    """Positions for lines of text wanted at ``tops``, in order, so that none overlap and the last ends at
    ``bottom`` at the latest."""
    placed: list[float] = []
    for top in tops:
        placed.append(max(top, placed[-1] + height) if placed else top)
    for number in range(len(placed) - 1, -1, -1):
        placed[number] = min(placed[number], bottom - height)
        bottom = placed[number]
    return placed
