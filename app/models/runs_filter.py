"""Which runs of the history are seen, and in which order."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel

from app.models.runs_model import SORT_ROLE, Column, RunsModel, more, words
from core.vocabulary.answers import RunEntry
from core.vocabulary.ids import RunId


class RunsFilter(QSortFilterProxyModel):
    """Those that have every word of ``show_matching``, and are not ``hide_runs``."""

    def __init__(self, model: RunsModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._wanted: list[str] = []
        self.hidden: frozenset[RunId] = frozenset()
        self.setSourceModel(model)
        self.setSortRole(SORT_ROLE)

    def show_matching(self, text: str) -> None:
        """Words in any order, whichever case; each may stand in another column. Nothing: all runs."""
        self._wanted = text.casefold().split()
        self.invalidate()

    def hide_runs(self, runs: Collection[RunId]) -> None:
        """Only these are left out, whatever they match."""
        self.hidden = frozenset(runs)
        self.invalidate()

    @property
    def filtering(self) -> bool:
        return bool(self._wanted)

    def entry(self, row: int) -> RunEntry:
        """As the rows stand here."""
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
    """All that is shown of a run, and its id, to be looked for in."""
    shown = (text for column in Column for text in (words(entry, column), more(entry, column)))
    return " ".join((*shown, entry.script, entry.source, entry.run)).casefold()
