"""What lies over the curves: each line's last value, the best epoch, and a crosshair with values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen, QRegion
from PySide6.QtWidgets import QWidget

from app import theme

if TYPE_CHECKING:
    from app.charts.canvas import Canvas

WIDEST_END = "-8.88e-08"
"""There is room at the right for the last values."""
_PAD = 6
_RING = 4.5


def end_room(metrics: QFontMetrics) -> int:
    """Pixels at the right of a plot."""
    return _PAD + metrics.horizontalAdvance(WIDEST_END)


class Mark(NamedTuple):
    """A point as drawn (``y`` a power of ten on a logarithmic scale) and what is said of it."""

    x: float
    y: float
    words: str
    colour: str


class TurnMark(NamedTuple):
    """A place on the run's axis and what happened there to one of its laptops."""

    x: float
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
        self.turns: tuple[TurnMark, ...] = ()
        self.says_turns = True
        """In words; else lines alone, under a plot that says them."""
        self.covers: Callable[[QRectF], bool] = lambda area: False
        """Whether a curve runs through a part of the plot, in pixels: words keep out of its way."""
        self._said: list[QRectF] = []
        """Where words stand in the plot at present."""
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

    def show_turns(self, turns: Sequence[TurnMark]) -> None:
        if tuple(turns) != self.turns:
            self.turns = tuple(turns)
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
        self._said = []
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
        wanted = [self._place(mark).y() - height / 2 for mark in seen]
        for mark, top in zip(seen, apart(wanted, height, area.bottom() + height / 2), strict=True):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(mark.colour))
            painter.drawEllipse(self._place(mark), 3, 3)
            painter.setPen(QColor(mark.colour))
            painter.drawText(QPointF(area.right() + _PAD, top + painter.fontMetrics().ascent()), mark.words)

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
        where = self._free(inside) or (inside or places)[0]
        self._say(painter, best.words, where, theme.colours().text)

    def _free(self, places: Sequence[QRectF]) -> QRectF | None:
        """The first one where words hide neither a curve nor other words."""
        for place in places:
            if not any(place.intersects(other) for other in self._said) and not self.covers(place):
                return place
        return None

    def _say(self, painter: QPainter, words: str, where: QRectF, colour: str) -> None:
        self._said.append(where.adjusted(-_PAD, 0, _PAD, 0))
        painter.fillRect(where.adjusted(-2, 0, 2, 0), QColor(theme.colours().panel))
        painter.setPen(QColor(colour))
        painter.drawText(QPointF(where.left(), where.top() + painter.fontMetrics().ascent()), words)

    def _paint_turns(self, painter: QPainter, area: QRectF) -> None:
        """Lines from top to bottom, with words beside each where they have room."""
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
