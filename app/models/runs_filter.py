"""Filters and sorts the history."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel

from app.models.runs_model import SORT_ROLE, Column, RunsModel, more, started, words
from core.vocabulary.answers import RunEntry
from core.vocabulary.ids import RunId


class RunsFilter(QSortFilterProxyModel):
    """Shows runs that contain every word of ``show_matching`` and are not in ``hide_runs``."""

    def __init__(self, model: RunsModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._wanted: list[str] = []
        self.hidden: frozenset[RunId] = frozenset()
        self.setSourceModel(model)
        self.setSortRole(SORT_ROLE)

    def show_matching(self, text: str) -> None:
        """Words in any order and case; each may match another column. Empty: all runs."""
        self._wanted = text.casefold().split()
        self.invalidate()

    def hide_runs(self, runs: Collection[RunId]) -> None:
        """Hides exactly these runs, whatever they match."""
        self.hidden = frozenset(runs)
        self.invalidate()

    @property
    def filtering(self) -> bool:
        return bool(self._wanted)

    def entry(self, row: int) -> RunEntry:
        """``row`` in the order of this proxy."""
        return self._model.entry(self.mapToSource(self.index(row, 0)).row())

    def filterAcceptsRow(self, row: int, parent: QModelIndex | QPersistentModelIndex) -> bool:
        entry = self._model.entry(row)
        if entry.run in self.hidden:
            return False
        if not self._wanted:
            return True
        text = haystack(entry)
        return all(word in text for word in self._wanted)


def haystack(entry: RunEntry) -> str:
    """A run's searchable text: all that is shown of it, and its id."""
    shown = (text for column in Column for text in (words(entry, column), more(entry, column)))
    return " ".join((*shown, started(entry), entry.script, entry.source, entry.run)).casefold()
