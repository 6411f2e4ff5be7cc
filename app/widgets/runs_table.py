"""The history's table: two lines per cell, the state as a chip, the loss as a curve, name and note edited
in place. A check box before each run shows whether it is selected; clicking it leaves the other
selections."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QHeaderView,
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app import theme
from app.models.runs_model import CURVE_ROLE, KIND_ROLE, MORE_ROLE, Column
from app.theme import GAP
from app.widgets.canvas import write
from app.widgets.labels import name_for_readers
from core.vocabulary.commands import MOST_NAME, MOST_NOTE

_Index = QModelIndex | QPersistentModelIndex
_PAD = 8
_BOX = 16
_TICK = ((0.25, 0.52), (0.42, 0.7), (0.75, 0.32))
"""Points of the tick, as fractions of its box."""
_WIDEST = {
    Column.STATE: "Preparing",
    Column.LOSS: "a curve so wide",
    Column.BEST: "val_loss, epoch 100",
    Column.SPEED: "88,888 samples/s",
    Column.DURATION: "Duration ↓",
    Column.STARTED: "2026-08-28 08:08",
}
"""Text for which a column is wide enough; text columns share the rest."""
_DISPENSABLE = (Column.SPEED, Column.DURATION, Column.LOSS, Column.STARTED)
"""Columns dropped first if letters are large or the window is small."""
NAMES_LEAST = 20
NOTES_FROM = 36
"""Minimum characters left for names and notes together; with fewer, names get all of it, and notes go into
their tooltips."""


class RunsTable(QTableView):
    """``opened``: Enter or a double click. ``delete_asked``: the Delete key. F2 edits the name or note."""

    opened = Signal()
    delete_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._notes = False
        self.setSortingEnabled(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setItemDelegate(_Cell(self))
        self.verticalHeader().hide()
        head = self.horizontalHeader()
        head.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        head.setHighlightSections(False)
        self.activated.connect(lambda _: self.opened.emit())
        self._fit()

    def show_notes(self, there: bool) -> None:
        """Whether any run has a note."""
        self._notes = there
        self._fit_columns()

    def edit_cell(self, column: Column) -> None:
        """Edits the name or note of the one selected row."""
        self.setColumnHidden(Column.NOTE, self.isColumnHidden(Column.NOTE) and column != Column.NOTE)
        index = self.selectionModel().selectedRows(column)[0]
        self.setCurrentIndex(index)
        self.edit(index)

    def closeEditor(self, editor: QWidget, hint: QAbstractItemDelegate.EndEditHint) -> None:
        super().closeEditor(editor, hint)
        self._fit_columns()

    def setModel(self, model: QAbstractItemModel | None) -> None:
        super().setModel(model)
        for column in (Column.RUN, Column.NOTE):
            self.horizontalHeader().setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        self._fit_columns()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.state() != QAbstractItemView.State.EditingState:
            self._fit_columns()

    def _fit_columns(self) -> None:
        character = self.fontMetrics().averageCharWidth()
        metrics = self.fontMetrics()
        widths = {column: metrics.horizontalAdvance(text) + 3 * _PAD for column, text in _WIDEST.items()}
        for column, width in widths.items():
            self.setColumnWidth(column, width)
        left = (self.viewport().width() - sum(widths.values())) // character
        self.setColumnHidden(Column.NOTE, not self._notes or left < NOTES_FROM)
        for column in _DISPENSABLE:
            self.setColumnHidden(column, left < NAMES_LEAST)
            left += widths[column] // character if left < NAMES_LEAST else 0

    def selectionCommand(
        self, index: _Index, event: QEvent | None = None
    ) -> QItemSelectionModel.SelectionFlag:
        flag = QItemSelectionModel.SelectionFlag
        if isinstance(event, QMouseEvent) and self._is_on_box(event):
            pressed = event.type() != QEvent.Type.MouseButtonRelease
            return flag.Toggle | flag.Rows if pressed else flag.NoUpdate
        return super().selectionCommand(index, event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self._is_on_box(event):
            self.mousePressEvent(event)  # two ticks, not opening a run
        else:
            super().mouseDoubleClickEvent(event)

    def _is_on_box(self, event: QMouseEvent) -> bool:
        left = self.columnViewportPosition(Column.RUN)
        return left <= event.position().x() < left + _BOX + 2 * _PAD

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.delete_asked.emit()
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit()

    def _fit(self) -> None:
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() * 2 + GAP)
        self.horizontalHeader().setMinimumSectionSize(self.fontMetrics().averageCharWidth() * 8)


class _Cell(QStyledItemDelegate):
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        self.initStyleOption(option, index)
        words, option.text = option.text, ""
        if option.state & QStyle.StateFlag.State_Selected:
            option.state &= ~QStyle.StateFlag.State_HasFocus  # its colour shows it
        option.widget.style().drawControl(
            QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget
        )
        shades = theme.colours()
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        ink, faint = (shades.on_accent,) * 2 if chosen else (shades.text, shades.faint)
        more = str(index.data(MORE_ROLE) or "")
        area = QRectF(option.rect).adjusted(_PAD, GAP / 2, -_PAD, -GAP / 2)
        high = option.fontMetrics.height()
        top = area.top() if more else area.center().y() - high / 2
        first = QRectF(area.left(), top, area.width(), high)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(option.font)
        if index.column() == Column.RUN:
            box = QRectF(area.left(), area.center().y() - _BOX / 2, _BOX, _BOX)
            _paint_box(painter, box, chosen)
            first.setLeft(box.right() + _PAD)
            area.setLeft(first.left())
        _paint_curve(painter, area, index.data(CURVE_ROLE), ink if chosen else shades.curves[0])
        if kind := str(index.data(KIND_ROLE) or ""):
            _paint_chip(painter, words, first, getattr(shades, kind), shades.panel)
        else:
            font = QFont(option.font)
            font.setBold(index.column() == Column.RUN)
            painter.setFont(font)
            write(painter, first, words, ink)
            painter.setFont(option.font)
        if more:
            write(painter, QRectF(area.left(), area.bottom() - high, area.width(), high), more, faint)
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        editor = QLineEdit(parent)
        named = index.column() == Column.RUN
        editor.setMaxLength(MOST_NAME if named else MOST_NOTE)
        what = "Name of this run" if named else "Note about this run"
        editor.setPlaceholderText(what)
        name_for_readers(editor, what, "Enter keeps it, Esc leaves it as it was.")
        return editor


def _paint_box(painter: QPainter, box: QRectF, ticked: bool) -> None:
    shades = theme.colours()
    painter.setPen(QPen(QColor(shades.on_accent if ticked else shades.edge), 1))
    painter.setBrush(QColor(shades.on_accent if ticked else shades.panel))
    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
    if ticked:
        painter.setPen(QPen(QColor(shades.accent), 2))
        painter.drawPolyline([box.topLeft() + QPointF(x * _BOX, y * _BOX) for x, y in _TICK])


def _paint_curve(painter: QPainter, area: QRectF, values: Sequence[float], colour: str) -> None:
    """Fills its cell: only the curve's shape matters."""
    if len(values) < 2:
        return
    least, most = min(values), max(values)
    across, up = area.width() / (len(values) - 1), (area.height() - 4) / ((most - least) or 1.0)
    painter.setPen(QPen(QColor(colour), 1.5))
    low = area.bottom() - 2
    points = enumerate(values)
    painter.drawPolyline(
        [QPointF(area.left() + place * across, low - (value - least) * up) for place, value in points]
    )


def _paint_chip(painter: QPainter, words: str, area: QRectF, colour: str, ground: str) -> None:
    """On its own background, so that it is readable in a selected row, too."""
    width = min(area.width(), painter.fontMetrics().horizontalAdvance(words) + 2.0 * _PAD)
    chip = QRectF(area.left(), area.top(), width, area.height()).adjusted(0.5, 0.5, -0.5, -0.5)
    painter.setPen(QPen(QColor(colour), 1))
    painter.setBrush(QColor(ground))
    painter.drawRoundedRect(chip, chip.height() / 2, chip.height() / 2)
    write(painter, chip.adjusted(_PAD - 1, 0, -_PAD / 2, 0), words, colour)
