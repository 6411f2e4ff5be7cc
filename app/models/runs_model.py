"""The history as a table. Changed in place, so that scrolling and selection are kept."""

from __future__ import annotations

import html
import time
from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from math import isfinite
from pathlib import PurePath

from msgspec.structs import replace
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.words.run_words import PHASES, number
from app.words.sweep_words import trials_words
from core.history.best import better, deciding
from core.speed.sentences import chosen_words, inexact_words, speed_up, times
from core.vocabulary import units
from core.vocabulary.answers import RunEntry
from core.vocabulary.ids import started_s
from core.vocabulary.phases import Failed, Finished, Phase, Stopped
from core.vocabulary.text import capitalised, plain

SORT_ROLE = Qt.ItemDataRole.UserRole + 1
MORE_ROLE = Qt.ItemDataRole.UserRole + 2
"""A cell's second line."""
KIND_ROLE = Qt.ItemDataRole.UserRole + 3
"""A chip cell's colour, by name in the theme."""
CURVE_ROLE = Qt.ItemDataRole.UserRole + 4
"""A small plot's values, in order."""
_ROLES = (
    Qt.ItemDataRole.DisplayRole,
    Qt.ItemDataRole.EditRole,
    Qt.ItemDataRole.AccessibleTextRole,
    Qt.ItemDataRole.ToolTipRole,
    SORT_ROLE,
    MORE_ROLE,
    KIND_ROLE,
    CURVE_ROLE,
)
Index = QModelIndex | QPersistentModelIndex
_NOWHERE = QModelIndex()


class Column(IntEnum):
    RUN = 0
    STATE = 1
    LOSS = 2
    BEST = 3
    SPEED = 4
    DURATION = 5
    STARTED = 6
    NOTE = 7


TITLES = ("Run", "State", "Loss", "Best", "Speed", "Duration", "Started", "Note")
EDITABLE = (Column.RUN, Column.NOTE)


class RunsModel(QAbstractTableModel):
    """``show_runs`` takes the whole list, newest first. ``labelled(run, name, note)``: the user wrote one
    of the two; the other is None."""

    labelled = Signal(str, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[RunEntry] = []

    def entry(self, row: int) -> RunEntry:
        return self._entries[row]

    def show_runs(self, entries: Sequence[RunEntry]) -> None:
        """Removes deleted runs, adds new ones, updates changed ones."""
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
        # A table asks for colours, fonts and the like of every cell it paints.
        if role not in _ROLES or not index.isValid() or not 0 <= index.row() < len(self._entries):
            return None
        entry, column = self._entries[index.row()], Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return words(entry, column)
        if role == MORE_ROLE:
            return more(entry, column)
        if role == KIND_ROLE:
            return kind(entry) if column == Column.STATE else ""
        if role == CURVE_ROLE:
            return entry.losses if column == Column.LOSS else ()
        if role == Qt.ItemDataRole.EditRole:
            return entry.note if column == Column.NOTE else entry.name
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return _whole(entry, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"<p>{html.escape(_tooltip(entry, column))}</p>"
        if role == SORT_ROLE:
            return _sort_key(entry, column)
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        editable = index.isValid() and Column(index.column()) in EDITABLE
        return flags | Qt.ItemFlag.ItemIsEditable if editable else flags

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Shown immediately; the receiver of ``labelled`` saves it, and shows the list again if that
        fails."""
        if role != Qt.ItemDataRole.EditRole or not isinstance(value, str):
            return False
        entry, text = self._entries[index.row()], " ".join(value.split())
        named = Column(index.column()) == Column.RUN
        if text == (entry.name if named else entry.note):
            return False
        self._change(index.row(), replace(entry, name=text) if named else replace(entry, note=text))
        self.labelled.emit(entry.run, text if named else None, None if named else text)
        return True

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
    """A cell's main text."""
    match column:
        case Column.RUN:
            return called(entry)
        case Column.STATE:
            return state(entry.phase)
        case Column.LOSS:
            return ""  # it is drawn
        case Column.BEST:
            return best(entry)[0]
        case Column.SPEED:
            rate = entry.summary.speed_samples_s
            return "" if rate is None else units.samples(rate)
        case Column.DURATION:
            return "" if entry.duration_s is None else units.clock(entry.duration_s)
        case Column.STARTED:
            return lately(started_s(entry.run, entry.started_s), time.time())
        case Column.NOTE:
            return plain(entry.note, 400)


def more(entry: RunEntry, column: Column) -> str:
    """The fainter second line."""
    match column:
        case Column.RUN:
            script = (entry.script,) if entry.name else ()
            given = plain(" ".join((*script, *entry.arguments)), 200)
            chosen = f"the best: {given}" if given else ""
            return ", ".join(filter(None, (trials_words(entry), chosen))) if entry.trials else given
        case Column.STATE:
            return _state_more(entry)
        case Column.BEST:
            return best(entry)[1]
        case Column.SPEED:
            return gain_words(speed_up(entry.summary))
        case Column.STARTED:
            return plain(", ".join(entry.devices), 80)
    return ""


def called(entry: RunEntry) -> str:
    """The user's name for it, else the script's, with its folder if that adds information:
    ``mnist/train.py``."""
    folder = PurePath(entry.source).parent.name
    said = folder and folder != PurePath(entry.script).stem
    return plain(entry.name or (f"{folder}/{entry.script}" if said else entry.script), 120)


def state(phase: Phase) -> str:
    """One word: ``Finished``, ``Training``."""
    return capitalised(PHASES[type(phase)].partition(" ")[0])


def kind(entry: RunEntry) -> str:
    """The colour name of a state."""
    summary = entry.summary
    if isinstance(entry.phase, Finished) and (summary.differs or summary.diverged is not None):
        return "warning"
    return {Finished: "good", Failed: "bad", Stopped: "faint"}.get(type(entry.phase), "accent")


def _state_more(entry: RunEntry) -> str:
    by = f"on {plain(entry.phase.by, 40)}" if isinstance(entry.phase, Stopped) and entry.phase.by else ""
    differs = "not as on one machine" if isinstance(entry.phase, Finished) and entry.summary.differs else ""
    inexact = chosen_words(entry.summary) if differs else inexact_words(entry.summary)
    return ", ".join(filter(None, (by, diverged_words(entry), differs, inexact, goes_on_from(entry))))


def diverged_words(entry: RunEntry) -> str:
    return entry.summary.diverged.words if entry.summary.diverged is not None else ""


def best(entry: RunEntry) -> tuple[str, str]:
    """The number by which one would choose among runs, and its meaning: ``0.1023``, ``val_loss, epoch 6``.
    For a run without a finished epoch, or of an earlier Tandem, the last value."""
    metric = deciding(entry.best)
    if metric:
        found = entry.best[metric]
        return number(found.value), f"{plain(metric, 40)}, epoch {found.epoch + 1:,}"
    logs = entry.summary.last_logs
    metric = deciding(logs) or next(iter(logs), "")
    return (number(logs[metric]), f"{plain(metric, 40)}, at the end") if metric else ("", "")


def gain_words(gain: float | None) -> str:
    """Compared with the fastest of its laptops alone: ``1.2× one laptop``, ``5.0× slower``."""
    if gain is None:
        return ""
    return f"{times(gain)}× one laptop" if gain >= 0.95 or gain <= 0 else f"{times(1 / gain)}× slower"


def lately(at_s: float, now_s: float) -> str:
    """A spoken date: ``today 14:03``, ``yesterday 20:12``, ``Fri 20:12``, ``21 Nov 20:12``; in full for
    other years."""
    try:
        then, now = datetime.fromtimestamp(at_s), datetime.fromtimestamp(now_s)
    except (OverflowError, ValueError, OSError):
        return units.moment(at_s)
    days = (now.date() - then.date()).days
    if 0 <= days < 7:
        day = ("today", "yesterday")[days] if days < 2 else f"{then:%a}"
    elif then.year == now.year:
        day = f"{then.day} {then:%b}"
    else:
        return units.moment(at_s)
    return f"{day} {then:%H:%M}"


def started(entry: RunEntry) -> str:
    """The same on every laptop of the run."""
    return units.moment(started_s(entry.run, entry.started_s))


def goes_on_from(entry: RunEntry) -> str:
    """``resumed from 2026-11-21 20:12``: the start of the run that it resumed; or ``""``."""
    if entry.resumed is None:
        return ""
    began_s = started_s(entry.resumed, float("nan"))
    return f"resumed from {plain(entry.resumed, 40) if began_s != began_s else units.moment(began_s)}"


def deleted_words(entries: Sequence[RunEntry], after_s: float) -> str:
    """``after_s``: how long that can be undone."""
    first, one = entries[0], len(entries) == 1
    which = f"“{called(first)}” of {started(first)}" if one else f"{len(entries)} runs"
    trials = f", with {units.number_of(first.trials, 'trial')}," if one and first.trials else ""
    whose = "its" if one and not trials else "their"
    return (
        f"{which}{trials} deleted. In {units.duration(after_s)} {whose} log, model and checkpoints in "
        "Tandem's folder are gone for good."
    )


def _tooltip(entry: RunEntry, column: Column) -> str:
    if column == Column.STATE and isinstance(entry.phase, Failed):
        return plain(str(entry.phase.problem), 600)
    if column == Column.RUN and entry.source:
        script = plain(" ".join((entry.source, *entry.arguments)), 600)
        return f"{script}\n{plain(entry.note, 1_000)}" if entry.note else script
    if column == Column.NOTE:
        return plain(entry.note, 2_000)
    if column == Column.STARTED:
        return f"{started(entry)}, {more(entry, column)}"
    return _whole(entry, column)


def _whole(entry: RunEntry, column: Column) -> str:
    if column == Column.LOSS and entry.losses:
        lost = entry.summary.diverged
        last = number(entry.losses[-1]) if lost is None else lost.value
        return f"Loss from {number(entry.losses[0])} to {last}"
    return ", ".join(filter(None, (words(entry, column), more(entry, column))))


def _sort_key(entry: RunEntry, column: Column) -> object:
    match column:
        case Column.STARTED:
            return started_s(entry.run, entry.started_s)
        case Column.DURATION:
            return -1.0 if entry.duration_s is None else entry.duration_s
        case Column.SPEED:
            rate = entry.summary.speed_samples_s
            return -1.0 if rate is None else float(rate)
        case Column.LOSS:
            return entry.losses[-1] if entry.losses and not diverged_words(entry) else float("inf")
        case Column.BEST:
            return _best_key(entry)
        case Column.RUN:
            return f"{called(entry)} {more(entry, column)}".casefold()
        case _:
            return words(entry, column).casefold()


def _best_key(entry: RunEntry) -> float:
    """Smaller is better; a run whose loss became NaN comes last."""
    logs = {name: one.value for name, one in entry.best.items()} or entry.summary.last_logs
    metric = deciding(logs)
    value = logs.get(metric, float("inf"))
    if not isfinite(value) or diverged_words(entry):
        return float("inf")
    return -float(value) if better(metric) == "higher" else float(value)
