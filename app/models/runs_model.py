"""The history as a table. Changes are made in place: whoever scrolls or has chosen a run is not disturbed."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.run_words import duration, number, phase_words, started_s
from core.vocabulary.answers import RunEntry
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Failed
from core.vocabulary.text import plain

SORT_ROLE = Qt.ItemDataRole.UserRole + 1
_WORDS = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole)
_ROLES = (*_WORDS, Qt.ItemDataRole.ToolTipRole, SORT_ROLE)
Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class Column(IntEnum):
    STARTED = 0
    SCRIPT = 1
    STATE = 2
    RESULT = 3
    DEVICES = 4
    DURATION = 5


TITLES = ("Started", "Script", "State", "Result", "Laptops", "Duration")


class RunsModel(QAbstractTableModel):
    """``show_runs`` takes the whole list, newest first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[RunEntry] = []

    def entry(self, row: int) -> RunEntry:
        return self._entries[row]

    def show_runs(self, entries: Sequence[RunEntry]) -> None:
        """Removes what is gone, adds what is new, changes what differs."""
        wanted = {entry.run: entry for entry in entries}
        if wanted and not self._entries:
            self.beginInsertRows(QModelIndex(), 0, len(wanted) - 1)
            self._entries = list(wanted.values())
            self.endInsertRows()
            return
        for row in range(len(self._entries) - 1, -1, -1):
            if self._entries[row].run not in wanted:
                self.beginRemoveRows(QModelIndex(), row, row)
                del self._entries[row]
                self.endRemoveRows()
        for row, entry in enumerate(wanted.values()):
            if row < len(self._entries) and self._entries[row].run == entry.run:
                self._change(row, entry)
            elif (old := self._row_of(entry, row)) is not None:
                self.beginMoveRows(QModelIndex(), old, old, QModelIndex(), row)
                self._entries.insert(row, self._entries.pop(old))
                self.endMoveRows()
                self._change(row, entry)
            else:
                self.beginInsertRows(QModelIndex(), row, row)
                self._entries.insert(row, entry)
                self.endInsertRows()

    def rowCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(self._entries)

    def columnCount(self, parent: Index = _NOWHERE) -> int:
        return 0 if parent.isValid() else len(Column)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return TITLES[section] if 0 <= section < len(TITLES) else None
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        # A table asks for colours, fonts and the like of every cell that it paints.
        if role not in _ROLES or not index.isValid() or not 0 <= index.row() < len(self._entries):
            return None
        entry, column = self._entries[index.row()], Column(index.column())
        if role in _WORDS:
            return words(entry, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"<p>{html.escape(_tooltip(entry, column))}</p>"
        if role == SORT_ROLE:
            return _sort_key(entry, column)
        return None

    def _change(self, row: int, entry: RunEntry) -> None:
        if self._entries[row] != entry:
            self._entries[row] = entry
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(Column) - 1))

    def _row_of(self, entry: RunEntry, start: int) -> int | None:
        for row in range(start, len(self._entries)):
            if self._entries[row].run == entry.run:
                return row
        return None


def words(entry: RunEntry, column: Column) -> str:
    match column:
        case Column.STARTED:
            return started(entry)
        case Column.SCRIPT:
            return plain(" ".join((entry.script, *entry.arguments)), 80)
        case Column.STATE:
            return ", ".join(filter(None, (phase_words(entry.phase), goes_on_from(entry))))
        case Column.RESULT:
            return result(entry)
        case Column.DEVICES:
            return plain(", ".join(entry.devices), 80)
        case Column.DURATION:
            return "" if entry.duration_s is None else duration(entry.duration_s)


def when(started_s: float) -> str:
    """In the local time of this laptop, to the minute."""
    try:
        return datetime.fromtimestamp(started_s).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return "unknown"


def started(entry: RunEntry) -> str:
    """The same on every laptop of the run."""
    return when(started_s(entry.run, entry.started_s))


def goes_on_from(entry: RunEntry) -> str:
    """``resumed from 2026-11-21 20:12``: when the run that it resumed was started; or ``""``."""
    return "" if entry.resumed is None else f"resumed from {_started(entry.resumed)}"


def _started(run: RunId) -> str:
    began_s = started_s(run, float("nan"))
    return plain(run, 40) if began_s != began_s else when(began_s)


def result(entry: RunEntry) -> str:
    """The number that people look for: validation before training, loss and one more."""
    logs = entry.summary.last_logs
    chosen: list[str] = [name for name in ("val_loss", "val_accuracy") if name in logs]
    if not chosen:
        chosen = [name for name in logs if name in ("loss", "accuracy")] or list(logs)[:2]
    return ", ".join(f"{plain(name, 20)} {number(logs[name])}" for name in chosen)


def _tooltip(entry: RunEntry, column: Column) -> str:
    if column == Column.STATE and isinstance(entry.phase, Failed):
        return plain(str(entry.phase.problem), 600)
    if column == Column.SCRIPT and entry.source:
        return plain(entry.source, 400)
    return words(entry, column)


def _sort_key(entry: RunEntry, column: Column) -> object:
    match column:
        case Column.STARTED:
            return started_s(entry.run, entry.started_s)
        case Column.DURATION:
            return -1.0 if entry.duration_s is None else entry.duration_s
        case Column.RESULT:
            logs = entry.summary.last_logs
            return float(logs.get("val_loss", logs.get("loss", float("inf"))))
        case _:
            return words(entry, column).casefold()
