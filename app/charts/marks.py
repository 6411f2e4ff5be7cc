"""What lies over the curves: each line's last value, the best epoch, and a crosshair with values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QRegion
from PySide6.QtWidgets import QWidget

from app import theme

if TYPE_CHECKING:
    from app.charts.canvas import Canvas

END_CHARACTERS = 9
"""Room at the right for the last values."""
_PAD = 6
_RING = 4.5


class Mark(NamedTuple):
    """A point as drawn (``y`` a power of ten on a logarithmic scale) and what is said of it."""

    x: float
    y: float
    words: str
    colour: str


class Cursor(NamedTuple):
    """Values at one place: ``head`` says which, and each mark is a curve's point near it."""

    x: float
    head: str
    marks: tuple[Mark, ...]


class Marks(QWidget):
    """Lies over ``canvas`` and lets the mouse through."""

    def __init__(self, canvas: Canvas) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self.ends: tuple[Mark, ...] = ()
        self.best: Mark | None = None
        self.cursor_at: Cursor | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        canvas.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.setGeometry(self._canvas.rect())
        return False

    def show_marks(self, ends: Sequence[Mark], best: Mark | None) -> None:
        if (tuple(ends), best) != (self.ends, self.best):
            self.ends, self.best = tuple(ends), best
            self.update()

    def show_cursor(self, cursor: Cursor | None) -> None:
        """Paints again only what it covers: the curves under it are painted with it."""
        if cursor == self.cursor_at:
            return
        dirty = self._covered()
        self.cursor_at = cursor
        self.update(dirty.united(self._covered()))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = self._canvas.area
        self._paint_ends(painter, area)
        if self.best is not None:
            self._paint_best(painter, area, self.best)
        if self.cursor_at is not None:
            self._paint_cursor(painter, area, self.cursor_at)

    def _paint_ends(self, painter: QPainter, area: QRectF) -> None:
        height = float(painter.fontMetrics().height())
        seen = [mark for mark in self.ends if area.contains(self._place(mark))]
        seen.sort(key=lambda mark: self._place(mark).y())
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
        width = metrics.horizontalAdvance(best.words)
        left = min(max(area.left() + 2, place.x() - width / 2), area.right() - width - 2)
        above = place.y() - _RING - 4
        y = above if above - metrics.ascent() > area.top() else place.y() + _RING + metrics.ascent() + 2
        painter.fillRect(
            QRectF(left - 2, y - metrics.ascent(), width + 4, metrics.height()), QColor(theme.colours().panel)
        )
        painter.setPen(QColor(theme.colours().text))
        painter.drawText(QPointF(left, y), best.words)

    def _paint_cursor(self, painter: QPainter, area: QRectF, cursor: Cursor) -> None:
        shades, x = theme.colours(), self._canvas.pixel(cursor.x, 0.0).x()
        painter.setPen(QPen(QColor(shades.faint), 1, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        for mark in cursor.marks:
            if area.contains(place := self._place(mark)):
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
        for mark in cursor.marks:
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
        height = metrics.height() * (1 + len(cursor.marks)) + _PAD
        x = self._canvas.pixel(cursor.x, 0.0).x()
        left = x + 10 if x < area.center().x() else x - 10 - width
        left = max(0.0, min(left, self.width() - width))
        return QRectF(left, area.top() + 4, width, height)

    def _covered(self) -> QRegion:
        if self.cursor_at is None:
            return QRegion()
        area, x = self._canvas.area, self._canvas.pixel(self.cursor_at.x, 0.0).x()
        covered = QRegion(QRectF(x - 6, area.top() - 6, 12, area.height() + 12).toAlignedRect())
        covered += self._box(self.cursor_at).adjusted(-2, -2, 2, 2).toAlignedRect()
        for mark in self.cursor_at.marks:
            if area.contains(place := self._place(mark)):
                covered += QRectF(place.x() - 6, place.y() - 6, 12, 12).toAlignedRect()
        return covered

    def _place(self, mark: Mark) -> QPointF:
        return self._canvas.pixel(mark.x, mark.y)


def apart(tops: Sequence[float], height: float, bottom: float) -> list[float]:
    """Where lines of text go that should stand at ``tops``, in order, so that none lies over another and the
    last ends at ``bottom`` at the latest."""
    placed: list[float] = []
    for top in tops:
        placed.append(max(top, placed[-1] + height) if placed else top)
    for number in range(len(placed) - 1, -1, -1):
        placed[number] = min(placed[number], bottom - height)
        bottom = placed[number]
    return placed
