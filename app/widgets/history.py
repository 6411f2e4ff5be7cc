"""A laptop's use in the last minutes, with axes. Painted by hand, without pyqtgraph."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy

from app import theme
from app.widgets.canvas import Painted
from app.widgets.labels import set_tooltip

KEPT_S = 600.0
GAP_S = 5.0
"""Readings come once a second; a longer pause leaves a gap in the line."""
LINES = 7
"""Height in lines of text."""
MOST = 1200
"""Maximum readings kept, however fast they come."""
_MINUTES = (10, 5, 0)


class UseHistory(Painted):
    """Percent over time, one line for each name ever reported."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: deque[tuple[float, dict[str, float]]] = deque(maxlen=MOST)
        """Seconds, monotonic, and fractions of the whole, 0 to 1."""
        self.names: list[str] = []
        self._until_s = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def add(self, at_s: float, parts: Mapping[str, float | None]) -> None:
        known = {name: part for name, part in parts.items() if part is not None and part == part}
        self.kept.append((at_s, known))
        while self.kept and at_s - self.kept[0][0] > KEPT_S:
            self.kept.popleft()
        self.names += [name for name in known if name not in self.names]
        self.setAccessibleName(f"The last ten minutes of {', '.join(self.names)}")
        set_tooltip(self, "")
        self.update()

    def show_until(self, now_s: float) -> None:
        """The right edge is now, however old the newest reading is."""
        if now_s - self._until_s >= 1.0:
            self._until_s = now_s
            self.update()

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.averageCharWidth() * 60, metrics.height() * LINES)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().averageCharWidth() * 30, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        metrics = painter.fontMetrics()
        left = metrics.horizontalAdvance("100 %") + 6
        height = metrics.height()
        area = QRectF(left, height * 1.4, self.width() - left - 6, self.height() - height * 2.7)
        if area.width() < 20 or area.height() < 10:
            return
        self._paint_axes(painter, area)
        self._paint_names(painter, area)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number, name in enumerate(self.names):
            self._paint_line(painter, area, name, QColor(_colour(number)))

    def pieces(self, name: str) -> list[list[tuple[float, float]]]:
        """Age in seconds and fraction, in runs without a gap."""
        newest_s = max(self._until_s, self.kept[-1][0] if self.kept else 0.0)
        pieces: list[list[tuple[float, float]]] = []
        before_s: float | None = None
        for at_s, parts in self.kept:
            if name not in parts or newest_s - at_s > KEPT_S:
                continue
            if before_s is None or at_s - before_s > GAP_S:
                pieces.append([])
            pieces[-1].append((newest_s - at_s, parts[name]))
            before_s = at_s
        return pieces

    def _paint_axes(self, painter: QPainter, area: QRectF) -> None:
        shades, metrics = theme.colours(), painter.fontMetrics()
        for part in (0.0, 0.5, 1.0):
            y = area.bottom() - part * area.height()
            painter.setPen(QColor(shades.line))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(QColor(shades.faint))
            words = f"{100 * part:.0f} %"
            x = area.left() - 6 - metrics.horizontalAdvance(words)
            painter.drawText(QPointF(x, y + metrics.ascent() / 2 - 1), words)
        for minutes in _MINUTES:
            x = area.right() - minutes * 60 / KEPT_S * area.width()
            painter.setPen(QColor(shades.line))
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
            painter.setPen(QColor(shades.faint))
            words = f"{minutes} min ago" if minutes else "now"
            width = metrics.horizontalAdvance(words)
            x = min(max(area.left(), x - width / 2), area.right() + 6 - width)
            painter.drawText(QPointF(x, area.bottom() + metrics.height()), words)

    def _paint_names(self, painter: QPainter, area: QRectF) -> None:
        """In a row above, right-aligned."""
        metrics, right = painter.fontMetrics(), area.right()
        for number, name in reversed(list(enumerate(self.names))):
            right -= metrics.horizontalAdvance(name)
            painter.setPen(QColor(theme.colours().faint))
            painter.drawText(QPointF(right, metrics.ascent()), name)
            painter.setPen(QPen(QColor(_colour(number)), 2))
            painter.drawLine(
                QPointF(right - 22, metrics.height() / 2), QPointF(right - 6, metrics.height() / 2)
            )
            right -= 22 + 12

    def _paint_line(self, painter: QPainter, area: QRectF, name: str, colour: QColor) -> None:
        painter.setPen(QPen(colour, 1.75, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        for piece in self.pieces(name):
            line = QPolygonF(
                [
                    QPointF(
                        area.right() - age_s / KEPT_S * area.width(),
                        area.bottom() - min(1.0, max(0.0, part)) * area.height(),
                    )
                    for age_s, part in piece
                ]
            )
            if line.size() == 1:
                painter.drawPoint(line.first())
            else:
                painter.drawPolyline(line)


def _colour(number: int) -> str:
    palette = theme.colours().curves
    return palette[number % len(palette)]
