"""The history's table: two lines a cell, the state as a chip, name and note edited in place."""

from __future__ import annotations

from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, QPersistentModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPen, QResizeEvent
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
from app.models.runs_model import KIND_ROLE, MORE_ROLE, Column
from app.theme import GAP
from app.widgets.labels import name_for_readers
from core.vocabulary.commands import MOST_NAME, MOST_NOTE

_Index = QModelIndex | QPersistentModelIndex
_PAD = 8
_WIDEST = {
    Column.STATE: "Recovering",
    Column.BEST: "val_loss, epoch 100",
    Column.SPEED: "88,888 samples/s",
    Column.DURATION: "Duration ↓",
    Column.STARTED: "2026-08-28 08:08",
}
"""What a column is wide enough for; those of words share the rest."""
_DISPENSABLE = (Column.SPEED, Column.DURATION, Column.STARTED)
"""What goes first where letters are large or the window is small."""
NAMES_LEAST = 16
NOTES_FROM = 36
"""Characters that have to be left for names and notes together; else the names have all of it, and the note
stands in their tooltips."""


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
        """Of the one chosen row: its name or its note becomes a field."""
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
            option.state &= ~QStyle.StateFlag.State_HasFocus  # it is seen by its colour
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
        painter.setFont(option.font)
        if kind := str(index.data(KIND_ROLE) or ""):
            _paint_chip(painter, words, first, getattr(shades, kind), shades.panel)
        else:
            _paint_line(painter, words, first, ink, bold=index.column() == Column.RUN)
        if more:
            _paint_line(painter, more, QRectF(area.left(), area.bottom() - high, area.width(), high), faint)
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        editor = QLineEdit(parent)
        named = index.column() == Column.RUN
        editor.setMaxLength(MOST_NAME if named else MOST_NOTE)
        what = "Name of this run" if named else "Note about this run"
        editor.setPlaceholderText(what)
        name_for_readers(editor, what, "Enter keeps it, Esc leaves it as it was.")
        return editor


def _paint_line(painter: QPainter, words: str, area: QRectF, colour: str, *, bold: bool = False) -> None:
    font = painter.font()
    font.setBold(bold)
    painter.setFont(font)
    painter.setPen(QColor(colour))
    shown = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, int(area.width()))
    align = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    painter.drawText(area, int(align | Qt.TextFlag.TextSingleLine), shown)


def _paint_chip(painter: QPainter, words: str, area: QRectF, colour: str, ground: str) -> None:
    """On a ground of its own, so that it can be read in a chosen row, too."""
    width = min(area.width(), painter.fontMetrics().horizontalAdvance(words) + 2.0 * _PAD)
    chip = QRectF(area.left(), area.top(), width, area.height()).adjusted(0.5, 0.5, -0.5, -0.5)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(colour), 1))
    painter.setBrush(QColor(ground))
    painter.drawRoundedRect(chip, chip.height() / 2, chip.height() / 2)
    _paint_line(painter, words, chip.adjusted(_PAD - 1, 0, -_PAD / 2, 0), colour)
