"""Runs: the history, newest first; a run's details; two runs over each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QItemSelection, QModelIndex, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStackedWidget, QTableView, QVBoxLayout, QWidget

from app.bridge import Bridge
from app.models.runs_model import SORT_ROLE, Column, RunsModel
from app.theme import GAP
from app.views.past_run import PastRun
from app.views.resume import ask_for_checkpoints, link_changed, resume_run
from app.views.view import View
from app.widgets.buttons import button
from app.widgets.card import row
from app.widgets.folder_box import FolderBox
from app.widgets.labels import Label, name_for_readers
from app.widgets.problem_box import ProblemBox
from core.vocabulary.answers import Answer, Refused, RunDetails, RunEntry, RunList
from core.vocabulary.commands import GetRun, ListRuns, StopRun
from core.vocabulary.events import (
    CheckpointCame,
    CheckpointFound,
    Event,
    FetchEnded,
    LinkDown,
    RunPhaseChanged,
    RunPlanned,
    RunSummarised,
)
from core.vocabulary.ids import RunId
from core.vocabulary.state import State

MOST_COMPARED = 2
_EMPTY = "No run yet. What you train is kept here, with its plots, log and result."
_OF_HISTORY = (RunPlanned, RunPhaseChanged, RunSummarised)
_OF_CHECKPOINTS = (CheckpointFound, CheckpointCame, FetchEnded, LinkDown)


class RunsView(View):
    """``train_asked``: there is no run yet, and the user wants one. ``again_asked(entry)``: that run is to be
    prepared once more. ``resumed``: a past run was resumed. ``live_asked``: the chosen run is under way."""

    title = "Runs"
    resumed = Signal()
    live_asked = Signal()
    again_asked = Signal(object)
    train_asked = Signal()

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self._stale = True
        self._opening: list[RunId] = []
        self._opened: dict[RunId, RunDetails] = {}
        self.model = RunsModel(self)
        self.sorted = QSortFilterProxyModel(self)
        self.sorted.setSourceModel(self.model)
        self.sorted.setSortRole(SORT_ROLE)
        self.past = PastRun()
        self.past.closed.connect(self.show_list)
        self.past.again_asked.connect(self.again_asked)
        self.past.go_on_asked.connect(
            lambda entry: resume_run(bridge, self.past.outcome, entry, self.resumed.emit)
        )
        self.past.outcome.stop_asked.connect(lambda: bridge.submit(StopRun()))
        self.pages = QStackedWidget()
        self.list = self._list()
        self.pages.addWidget(self.list)
        self.pages.addWidget(self.past)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.pages)
        self.setFocusProxy(self.table)
        self._show_buttons()

    def _list(self) -> QWidget:
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(GAP * 2, GAP * 2, GAP * 2, GAP * 2)
        layout.setSpacing(GAP)
        self.problem = ProblemBox(level="warning")
        self.not_opened = FolderBox()
        self.empty = Label(_EMPTY, "faint", wraps=True)
        self.table = _Table()
        self.table.setModel(self.sorted)
        name_for_readers(self.table, "Runs", "Enter opens a run; choose two to compare them.")
        self.table.sortByColumn(Column.STARTED, Qt.SortOrder.DescendingOrder)
        self.table.opened.connect(self._open)
        self.table.selectionModel().selectionChanged.connect(self._on_selection)
        head = self.table.horizontalHeader()
        head.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        head.setStretchLastSection(True)
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        characters = self.fontMetrics().averageCharWidth()
        for column, width in zip(Column, (19, 24, 40, 38, 22, 12), strict=True):
            self.table.setColumnWidth(column, characters * width)
        self.first = button("Train something", self.train_asked.emit, "primary", name="train-first")
        self.first.hide()
        self.open = button("Details", self._open, "primary", name="details")
        self.compare = button("Compare", self._open, name="compare")
        self.again = button("Run again", self._again, name="run-again")
        self.folder = button("Open folder", self._open_folder, name="run-folder")
        layout.addWidget(Label(self.title, "title"))
        layout.addWidget(self.problem)
        layout.addWidget(self.not_opened)
        layout.addWidget(self.empty)
        layout.addLayout(row(self.first, 1))
        layout.addWidget(self.table, 1)
        layout.addLayout(row(self.open, self.compare, self.again, self.folder, 1))
        return page

    @property
    def pieces(self) -> Sequence[QWidget]:
        return self.list, self.past

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        if any(isinstance(event, _OF_HISTORY) for event in events):
            self._stale = True
        if self._stale and state.me is not None and self.isVisible():
            self._ask()
        if self.pages.currentWidget() is self.past and (entry := self.past.entry) is not None:
            if any(isinstance(event, _OF_CHECKPOINTS) for event in events):
                self.past.show_checkpoints(state)
            if link_changed(entry, events):
                ask_for_checkpoints(self.bridge, entry)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale and self.bridge.state.me is not None:
            self._ask()

    def show_list(self) -> None:
        self.pages.setCurrentIndex(0)
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def chosen(self) -> list[RunEntry]:
        """The selected runs, as they stand in the list."""
        rows = sorted({index.row() for index in self.table.selectionModel().selectedRows()})
        return [self.model.entry(self.sorted.mapToSource(self.sorted.index(row, 0)).row()) for row in rows]

    # --- the node ------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        self._stale = False
        self.bridge.submit(ListRuns(), self._on_runs)

    def _on_runs(self, answer: Answer) -> None:
        if isinstance(answer, RunList):
            self.model.show_runs(answer.runs)
            self.problem.show_problem(answer.problem, "warning")
        elif isinstance(answer, Refused):
            self._stale = True  # once it is mended, the next look finds it
            self.problem.show_problem(answer.problem, "bad")
        nothing = not self.model.rowCount() and self.problem.problem is None
        focused = self.first.hasFocus() or self.table.hasFocus()
        self.empty.setVisible(nothing)
        self.first.setVisible(nothing)
        self.table.setVisible(self.model.rowCount() > 0)
        self.setFocusProxy(self.first if nothing else self.table)
        if focused or self.hasFocus():
            self.setFocus()
        self._show_buttons()

    def _on_details(self, run: RunId, answer: Answer) -> None:
        if run not in self._opening:
            return
        if isinstance(answer, Refused):
            self._opening = []
            self.past.show_problem(answer.problem)
            self.pages.setCurrentWidget(self.past)
        elif isinstance(answer, RunDetails):
            self._opened[run] = answer
            if len(self._opened) == len(self._opening):
                self.past.show_runs([self._opened[each] for each in self._opening], self.bridge.state)
                self._opening = []
                self.pages.setCurrentWidget(self.past)
                if self.past.entry is not None:
                    ask_for_checkpoints(self.bridge, self.past.entry)

    # --- the user ------------------------------------------------------------------------------------------

    def _on_selection(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        self._show_buttons()

    def _show_buttons(self) -> None:
        chosen = self.chosen
        self.open.setEnabled(len(chosen) == 1)
        self.compare.setEnabled(len(chosen) == MOST_COMPARED)
        self.again.setEnabled(len(chosen) == 1 and bool(chosen[0].source))
        self.folder.setEnabled(len(chosen) == 1 and bool(chosen[0].folder))
        for each in (self.open, self.compare, self.again, self.folder):
            each.setVisible(self.model.rowCount() > 0)

    def _open(self) -> None:
        chosen = self.chosen[:MOST_COMPARED]
        under_way = self.bridge.state.run
        going_on = under_way.plan.run if under_way is not None and not under_way.over else None
        if [entry.run for entry in chosen] == [going_on]:
            self.live_asked.emit()  # its record is still being written
            return
        self._opening = [entry.run for entry in chosen]
        self._opened = {}
        for entry in chosen:
            self.bridge.submit(GetRun(run=entry.run), partial(self._on_details, entry.run))

    def _again(self) -> None:
        self.again_asked.emit(self.chosen[0])

    def _open_folder(self) -> None:
        self.not_opened.open(Path(self.chosen[0].folder))


class _Table(QTableView):
    """``opened``: Enter or a double click."""

    opened = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setSortingEnabled(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + GAP)
        self.activated.connect(self._on_activated)

    def _on_activated(self, index: QModelIndex) -> None:
        self.opened.emit()
