"""Lays out plots: side by side in rows, as many as the width allows; or one alone, at full size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.widgets.card import take_out
from core.report.points import USES

if TYPE_CHECKING:
    from app.charts.plot import Plot

LINES, USE_LINES = 14, 9
"""Row height in lines of text; the second is for rows of laptop use."""
COLUMN_CHARACTERS = 62
MOST_COLUMNS = 3
_AROUND_LINES = 11
"""Lines of text on a page around a plot at full size."""


class Slot(QWidget):
    """A plot's place, empty until it is scrolled into view: ``wanted``."""

    wanted = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.plot: Plot | None = None
        # As high as its row: with a plot's own size hint, rows would grow as they come into view.
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)

    def fill(self, plot: Plot) -> None:
        self.plot = plot
        layout = self.layout()
        assert layout is not None
        layout.addWidget(plot)

    @property
    def in_view(self) -> bool:
        """Doesn't use Qt's visible region, which leaves out areas covered by child widgets."""
        inside: QWidget = self
        seen, around = self.rect(), self.parentWidget()
        while around is not None and seen.isValid():
            seen = seen.translated(inside.pos()) & around.rect()
            inside, around = around, around.parentWidget()
        return self.isVisible() and seen.isValid()

    def hasHeightForWidth(self) -> bool:
        return False  # though a plot's names would have one

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.plot is None:
            self.wanted.emit()


class GridOfPlots(QWidget):
    """``slots`` in display order; ``wanted``: one of them came into view."""

    wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.slots: list[Slot] = []
        self.alone = ""
        """The plot shown at full size."""
        self._columns = 1
        self._resized = QTimer(self, singleShot=True)
        self._resized.timeout.connect(self._fit)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(theme.GAP)
        self._grid.setVerticalSpacing(theme.GAP)

    def show_slots(self, metrics: Sequence[str], uses: Sequence[str]) -> None:
        """``metrics`` in order; ``uses`` follow under the first row of them."""
        known = {slot.name: slot for slot in self.slots}
        for name in known.keys() - {*metrics, *uses}:
            take_out(self._grid, known.pop(name))
        for name in (*metrics, *uses):
            if name not in known:
                known[name] = Slot(name)
                known[name].wanted.connect(self.wanted)
        self._columns = self._fitting(len(metrics))
        names = [*metrics[: self._columns], *uses, *metrics[self._columns :]]
        if self.alone not in names:
            self.alone = ""
        self.slots = [known[name] for name in names]
        self._place()

    def clear(self) -> None:
        self.alone = ""
        self.show_slots((), ())

    def enlarge(self, name: str) -> None:
        """Show that plot alone; ``""``: all of them."""
        self.alone = name
        for slot in self.slots:
            if slot.plot is not None:
                slot.plot.show_enlarged(slot.name == name)
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # In its own turn: Qt is in the middle of laying out.
        self._resized.start(0)

    def _fit(self) -> None:
        metrics = [slot.name for slot in self.slots if slot.name not in USES]
        if self._fitting(len(metrics)) != self._columns:
            self.show_slots(metrics, [slot.name for slot in self.slots if slot.name in USES])

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._place()

    def _fitting(self, metrics: int) -> int:
        room = self.width() // (self.fontMetrics().averageCharWidth() * COLUMN_CHARACTERS)
        return max(1, min(room, MOST_COLUMNS, metrics))

    def _place(self) -> None:
        shown = [slot for slot in self.slots if self.alone in ("", slot.name)]
        columns, line = 1 if self.alone else self._columns, self.fontMetrics().height()
        rows: list[list[Slot]] = [shown[at : at + columns] for at in range(0, len(shown), columns)]
        for row in range(max(self._grid.rowCount(), len(rows))):
            slots = rows[row] if row < len(rows) else []
            small = bool(slots) and all(slot.name in USES for slot in slots)
            lines = 0 if not slots else USE_LINES if small and not self.alone else LINES
            self._grid.setRowMinimumHeight(row, max(lines * line, self._page_height() if self.alone else 0))
            self._grid.setRowStretch(row, lines)
            if row and not slots:
                self._grid.setRowMinimumHeight(row, 0)
            for column, slot in enumerate(slots):
                self._grid.addWidget(slot, row, column)
        for column in range(max(self._grid.columnCount(), columns)):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)
        for slot in self.slots:
            slot.setVisible(slot in shown)

    def _page_height(self) -> int:
        """Height for a plot alone, so that all of it is visible without scrolling."""
        around = self.parentWidget()
        while around is not None and not isinstance(around, QScrollArea):
            around = around.parentWidget()
        return (
            0 if around is None else around.viewport().height() - _AROUND_LINES * self.fontMetrics().height()
        )
