"""A row per laptop of a run, with bars for GPU and CPU. Painted by hand: it changes once a second."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app import theme
from app.models.laptop_rows import LaptopRow, Use
from app.widgets.canvas import Painted, paint_bar, write
from app.widgets.card import column, take_out
from app.widgets.labels import set_tooltip
from core.vocabulary.ids import DeviceId

PAD = 4
DOT = 8
BAR = 6


class TableColumn(NamedTuple):
    """``parts`` of the width. If there is less room than ``least`` characters for each, columns with a
    ``goes`` are dropped, smallest first."""

    name: str
    parts: int
    least: int
    goes: int = 0


COLUMNS = (
    TableColumn("Laptop", 45, 16),
    TableColumn("Share", 31, 13, goes=2),
    TableColumn("GPU", 59, 16),
    TableColumn("CPU", 35, 15),
    TableColumn("Network", 26, 11, goes=1),
    TableColumn("Waits", 24, 11, goes=3),
    TableColumn("State", 28, 16),
)


def placed(width: int, character: int) -> dict[str, tuple[int, int]]:
    """Left and width of each column that fits."""
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
    for each in columns:
        right = left + width * each.parts // whole
        places[each.name] = (left, max(0, right - left - 2 * PAD))
        left = right
    return places


class _Line(Painted):
    """One line of the table, at full width."""

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
        high = painter.fontMetrics().height()
        write(painter, QRectF(left, line * high + PAD // 2, width, high), words, colour)


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
        """``place`` among the run's laptops, which sets its colour in the plots."""
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
        """The row as a sentence."""
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
            "State": (row.state, row.detail) if row.detail else _folded(row.state, self, places["State"][1]),
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
        paint_bar(painter, bar, use.part, theme.laptop_colour(self._place))


def _halves(words: str, *, same_unit: bool = False) -> tuple[str, str]:
    """Splits ``75 % of each batch`` into two lines; ``same_unit``: in ``4 of 11 ms`` both get the unit."""
    part, of, whole = words.partition(" of ")
    if not of:
        return words, ""
    return f"{part} {whole.rpartition(' ')[2]}" if same_unit else part, f"of {whole}"


def _folded(words: str, line: QWidget, width: int) -> tuple[str, str]:
    """Folds into two lines if one is too short."""
    metrics, first = line.fontMetrics(), words
    while first and metrics.horizontalAdvance(first) > width:
        first = first.rpartition(" ")[0]
    return (first, words[len(first) :].strip()) if first else (words, "")


class LaptopTable(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[DeviceId, LaptopLine] = {}
        self._column = column(_Head(), spacing=PAD)
        self.setLayout(self._column)

    def show_rows(self, rows: dict[DeviceId, LaptopRow]) -> None:
        if list(rows) != list(self.lines):
            for line in self.lines.values():
                take_out(self._column, line)
            self.lines = {device: LaptopLine(place) for place, device in enumerate(rows)}
            for line in self.lines.values():
                self._column.addWidget(line)
        for device, row in rows.items():
            self.lines[device].show_row(row)
