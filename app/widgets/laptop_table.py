"""A row for each laptop of a run, with bars for GPU and CPU. Canvas by hand: it changes twice a second."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.models.laptop_rows import LaptopRow, Use
from app.widgets.canvas import Canvas
from app.widgets.card import take_out
from app.widgets.labels import set_tooltip
from core.vocabulary.ids import DeviceId

PAD = 4
DOT = 8
BAR = 6


class Column(NamedTuple):
    """``parts`` of the width. Where there is less room than ``least`` characters for each, those with a
    ``goes`` leave, the smallest first."""

    name: str
    parts: int
    least: int
    goes: int = 0


COLUMNS = (
    Column("Laptop", 24, 16),
    Column("Share", 16, 13, goes=2),
    Column("GPU", 30, 16),
    Column("CPU", 16, 14),
    Column("Network", 13, 11, goes=1),
    Column("Waits", 12, 11, goes=3),
    Column("State", 13, 16),
)


def placed(width: int, character: int) -> dict[str, tuple[int, int]]:
    """Left and width of each column there is room for."""
    columns = list(COLUMNS)
    for _ in COLUMNS:
        if sum(column.least for column in columns) * character <= width:
            break
        leaving = [column for column in columns if column.goes]
        if not leaving:
            break
        columns.remove(min(leaving, key=lambda column: column.goes))
    whole = sum(column.parts for column in columns)
    places, left = {}, 0
    for column in columns:
        right = left + width * column.parts // whole
        places[column.name] = (left, max(0, right - left - 2 * PAD))
        left = right
    return places


class _Line(Canvas):
    """One line of the table, as wide as it is."""

    lines = 1

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.averageCharWidth() * 60, self.lines * metrics.height() + PAD)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().averageCharWidth() * 40, self.sizeHint().height())

    def places(self) -> dict[str, tuple[int, int]]:
        return placed(self.width(), self.fontMetrics().averageCharWidth())

    def write(self, painter: QPainter, left: int, width: int, line: int, words: str, colour: str) -> None:
        metrics = painter.fontMetrics()
        area = QRect(left, line * metrics.height() + PAD // 2, width, metrics.height())
        painter.setPen(QColor(colour))
        shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, width)
        align = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(area, int(align | Qt.TextFlag.TextSingleLine), shown)


class _Head(_Line):
    def paintEvent(self, event: QPaintEvent) -> None:
        painter, shades = QPainter(self), theme.colours()
        for name, (left, width) in self.places().items():
            self.write(painter, left, width, 0, name, shades.faint)
        painter.setPen(QColor(shades.line))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)


class LaptopLine(_Line):
    lines = 2

    def __init__(self, place: int) -> None:
        """``place`` among the run's laptops: by it, its colour in the plots."""
        super().__init__()
        self._place = place
        self.row: LaptopRow | None = None

    def show_row(self, row: LaptopRow) -> None:
        if row != self.row:
            self.row = row
            self.setAccessibleName(row.about)
            set_tooltip(self, row.about)
            self.update()

    def text(self) -> str:
        """As a sentence."""
        return self.row.about if self.row is not None else ""

    def paintEvent(self, event: QPaintEvent) -> None:
        row, shades, places = self.row, theme.colours(), self.places()
        if row is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left, width = places["Laptop"]
        middle = PAD // 2 + painter.fontMetrics().height() / 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.laptop_colour(self._place)))
        painter.drawEllipse(QRectF(left, middle - DOT / 2, DOT, DOT))
        inset = DOT + 2 * PAD
        self.write(painter, left + inset, width - inset, 0, row.name, shades.text)
        self.write(painter, left + inset, width - inset, 1, row.role, shades.faint)
        for name, use in (("GPU", row.gpu), ("CPU", row.cpu)):
            self._paint_use(painter, *places[name], use)
        plain = {
            "Share": _halves(row.share),
            "Network": row.network,
            "Waits": _halves(row.waiting, same_unit=True),
            "State": (row.state, row.detail),
        }
        for name, words in plain.items():
            if name in places:
                for line, each in enumerate(words):
                    colour = shades.bad if name == "State" and row.troubled else shades.text
                    self.write(painter, *places[name], line, each, colour)

    def _paint_use(self, painter: QPainter, left: int, width: int, use: Use) -> None:
        shades = theme.colours()
        self.write(painter, left, width, 1, use.note, shades.faint)
        if use.part is None or use.part != use.part:
            self.write(painter, left, width, 0, use.words, shades.faint)
            return
        words = painter.fontMetrics().averageCharWidth() * 7
        self.write(painter, left, words, 0, use.words, shades.text)
        height = painter.fontMetrics().height()
        bar = QRectF(left + words, PAD / 2 + (height - BAR) / 2, max(0, width - words), BAR)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(shades.raised))
        painter.drawRoundedRect(bar, BAR / 2, BAR / 2)
        bar.setWidth(max(BAR, bar.width() * min(1.0, max(0.0, use.part))))
        painter.setBrush(QColor(theme.laptop_colour(self._place)))
        painter.drawRoundedRect(bar, BAR / 2, BAR / 2)


def _halves(words: str, *, same_unit: bool = False) -> tuple[str, str]:
    """``75 % of each batch`` in two lines; ``same_unit``: of ``4 of 11 ms`` both have it."""
    part, of, whole = words.partition(" of ")
    if not of:
        return words, ""
    return f"{part} {whole.rpartition(' ')[2]}" if same_unit else part, f"of {whole}"


class LaptopTable(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[DeviceId, LaptopLine] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(PAD)
        self._column.addWidget(_Head())

    def show_rows(self, rows: dict[DeviceId, LaptopRow]) -> None:
        if list(rows) != list(self.lines):
            for line in self.lines.values():
                take_out(self._column, line)
            self.lines = {device: LaptopLine(place) for place, device in enumerate(rows)}
            for line in self.lines.values():
                self._column.addWidget(line)
        for device, row in rows.items():
            self.lines[device].show_row(row)
