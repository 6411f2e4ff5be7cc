"""Runs: the history to filter, sort, name and delete; a run's details; overlaid runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QCheckBox, QLineEdit, QMenu, QPushButton, QStackedWidget, QWidget

from app import theme
from app.bridge import Bridge
from app.models.runs_filter import RunsFilter
from app.models.runs_model import Column, RunsModel, deleted_words
from app.theme import GAP
from app.views.past_run import PastRun
from app.views.past_sweep import PastSweep
from app.views.view import View
from app.widgets.buttons import button
from app.widgets.canvas import Illustration
from app.widgets.card import column, row
from app.widgets.flow import Flow
from app.widgets.folder_box import FolderBox
from app.widgets.labels import Label, name_for_readers, set_kind, set_tooltip
from app.widgets.laptop_menu import SendReportButton
from app.widgets.problem_box import Level, ProblemBox
from app.widgets.received_reports import ReceivedReports
from app.widgets.runs_table import RunsTable
from app.widgets.undo_bar import UndoBar
from app.words.sweep_words import lines_of
from core.vocabulary.answers import Answer, Refused, RunDetails, RunEntry, RunList
from core.vocabulary.commands import DeleteRun, GetRun, LabelRun, ListRuns
from core.vocabulary.errors import REPORT_CAME, Problem
from core.vocabulary.events import (
    Event,
    HistoryChanged,
    NoticeRaised,
    RunPhaseChanged,
    RunPlanned,
    RunSummarised,
    SweepChanged,
)
from core.vocabulary.ids import RunId
from core.vocabulary.run_folder import REPORT
from core.vocabulary.state import State

_EMPTY = "No run yet. What you train is kept here, with its plots, log and result."
_COMPARE = "Draws the ticked runs over each other: tick two or more."
_NO_MATCH = "No run matches the filter."
_OF_HISTORY = (RunPlanned, RunPhaseChanged, RunSummarised, HistoryChanged, SweepChanged)


class RunsView(View):
    """``train_asked``: there is no run yet, and the user wants one. ``again_asked(entry)``: prepare that
    run again. ``draft_asked(draft)``: prepare that one. ``resumed``: a past run was resumed. ``live_asked``:
    the chosen run is under way."""

    title = "Runs"
    resumed = Signal()
    live_asked = Signal()
    again_asked = Signal(object)
    draft_asked = Signal(object)
    train_asked = Signal()

    def __init__(self, bridge: Bridge, past: PastRun | None = None) -> None:
        """``past``: made here unless given."""
        super().__init__(bridge)
        self._stale = True
        self._refused: Problem | None = None
        """Why the last change failed."""
        self._opening: list[RunId] = []
        self._opened: dict[RunId, RunDetails] = {}
        self.model = RunsModel(self)
        self.model.labelled.connect(self._label)
        self.sorted = RunsFilter(self.model, self)
        self.past = past or PastRun(bridge)
        self.past.closed.connect(self.show_list)
        self.past.again_asked.connect(self.again_asked)
        self.past.draft_asked.connect(self.draft_asked)
        self.past.labelled.connect(self._label)
        self.past.outcome.resumed.connect(self.resumed)
        self.swept: PastSweep | None = None
        """Made for the first sweep that is opened."""
        self.pages = QStackedWidget()
        self.list = self._list()
        self.pages.addWidget(self.list)
        self.pages.addWidget(self.past)
        self.setLayout(column(self.pages))
        self.setFocusProxy(self.table)
        self._show_buttons()

    @classmethod
    def in_turns(cls, bridge: Bridge) -> Iterator[View | None]:
        past = PastRun(bridge)
        yield None
        yield cls(bridge, past)

    def _list(self) -> QWidget:
        page = QWidget()
        self.problem = ProblemBox(level="warning")
        self.not_opened = FolderBox()
        self.empty = Label(_EMPTY, "faint", wraps=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter by name, argument, laptop …")
        self.filter.setClearButtonEnabled(True)
        name_for_readers(self.filter, "Filter runs", "Every word has to be found in a run.")
        self.filter.textChanged.connect(self._filter)
        self.trials = QCheckBox("Show trials")
        name_for_readers(self.trials, "Show trials")
        self.trials.hide()
        self.trials.toggled.connect(lambda _: self._ask())
        self.count = Label("", "faint")
        self.table = self._table()
        self.undo = UndoBar()
        self._going: list[RunEntry] = []
        """Deleted runs that can still be restored."""
        QShortcut(QKeySequence.StandardKey.Find, page, self.filter.setFocus)
        QShortcut(QKeySequence.StandardKey.Undo, page, self.undo.take_back)
        self.first = button("Train something", self.train_asked.emit, "primary", name="train-first")
        self.first.hide()
        self.open = button("Details", self._open, "primary", name="details")
        self.compare = button("Compare", self._open, name="compare")
        set_tooltip(self.compare, _COMPARE)
        self.again = button("Run again", self._again, name="run-again")
        self.rename = button("Rename", lambda: self.table.edit_cell(Column.RUN), name="rename-run")
        self.report = button("Open report", self._open_report, name="run-report")
        self.send = SendReportButton(self, self.bridge)
        self.folder = button("Open folder", self._open_folder, name="run-folder")
        self.delete = button("Delete", self._delete, "danger", name="delete-run")
        self.received = ReceivedReports(self.bridge)
        self.received.open_asked.connect(lambda path: self.not_opened.open(path, "report"))
        head = row(Label(self.title, "title"), 1, self.trials, self.count, self.filter)
        head.setStretch(4, 20)
        self.filter.setMaximumWidth(self.fontMetrics().averageCharWidth() * 46)
        self.instead = QWidget()  # centred in the table's place
        self.instead.setLayout(
            column(
                1, row(1, Illustration("screens/runs"), 1), self.empty, row(1, self.first, 1), 2, spacing=GAP
            )
        )
        buttons = Flow(*self._buttons[:-1], self.send.button, self.folder)
        foot = row(column(buttons, self.send.said), self.delete)
        foot.setStretch(0, 1)
        foot.setAlignment(self.delete, Qt.AlignmentFlag.AlignTop)
        layout = column(
            *(head, self.problem, self.not_opened, self.table, self.instead, self.undo, foot, self.received),
            spacing=GAP,
        )
        layout.setContentsMargins(GAP * 2, GAP * 2, GAP * 2, GAP * 2)
        for piece in (self.table, self.instead):
            layout.setStretchFactor(piece, 1)
        page.setLayout(layout)
        return page

    def _table(self) -> RunsTable:
        table = RunsTable()
        table.setModel(self.sorted)
        name_for_readers(
            table,
            "Runs",
            "Enter opens a run, F2 renames it, Delete deletes it; choose several to compare them.",
        )
        table.sortByColumn(Column.STARTED, Qt.SortOrder.DescendingOrder)
        table.opened.connect(self._open)
        table.delete_asked.connect(self._delete)
        table.selectionModel().selectionChanged.connect(lambda *_: self._show_buttons())
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        table.customContextMenuRequested.connect(self._show_menu)
        return table

    @property
    def _buttons(self) -> tuple[QPushButton, ...]:
        return self.open, self.compare, self.again, self.rename, self.report, self.folder

    @property
    def pieces(self) -> Sequence[QWidget]:
        return self.list, self.past

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        if any(isinstance(event, _OF_HISTORY) or _is_report(event) for event in events):
            self._stale = True
        if self._stale and state.me is not None and self.isVisible():
            self._ask()
        self._show_send()
        if self.pages.currentWidget() is self.past:
            self.past.hear(state, events)
        elif self.swept is not None and self.pages.currentWidget() is self.swept:
            self.swept.hear(state)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.bridge.state.me is not None:  # the settings may have cleared reports
            self._ask()

    def show_list(self) -> None:
        self.pages.setCurrentIndex(0)
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def chosen(self) -> list[RunEntry]:
        """The selected runs, in list order."""
        rows = sorted({index.row() for index in self.table.selectionModel().selectedRows()})
        return [self.sorted.entry(row) for row in rows]

    # --- the node ------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        self._stale = False
        self.bridge.submit(ListRuns(), self._on_runs)

    def _on_runs(self, answer: Answer) -> None:
        if isinstance(answer, RunList):
            entries = lines_of(answer, trials=self.trials.isChecked())
            self.model.show_runs(entries)
            self.sorted.hide_runs(self.sorted.hidden & {entry.run for entry in entries})
            self.table.show_notes(any(entry.note for entry in entries))
            self.trials.setVisible(bool(answer.sweeps))
            self.received.show_reports(answer.reports)
            level: Level = "warning" if self._refused is None else "bad"
            self.problem.show_problem(self._refused or answer.problem, level)
        elif isinstance(answer, Refused):
            self._stale = True  # after a fix, the next look finds it
            self.problem.show_problem(answer.problem, "bad")
        self._show_what_there_is()

    def _show_what_there_is(self) -> None:
        there, seen = self.model.rowCount() - len(self.sorted.hidden), self.sorted.rowCount()
        nothing = there <= 0 and self.problem.problem is None and not self.undo.pending
        focused = self.first.hasFocus() or self.table.hasFocus()
        self.empty.say(_EMPTY if nothing else _NO_MATCH)
        self.empty.setVisible(nothing or (there > 0 and not seen))
        self.first.setVisible(nothing)
        self.table.setVisible(seen > 0)
        self.instead.setVisible(not seen)
        self.filter.setVisible(there > 1 or self.sorted.filtering)
        self.count.setVisible(self.sorted.filtering)
        self.count.say(f"{seen:,} of {there:,}")
        self.setFocusProxy(self.first if nothing else self.table if seen else self.filter)
        if focused or self.hasFocus():
            self.setFocus()
        self._show_buttons()

    def _on_details(self, run: RunId, answer: Answer) -> None:
        if run not in self._opening:
            return
        if isinstance(answer, Refused):
            self._opening = []
            self.past.show_problem(answer.problem)
            self._show_past()
        elif isinstance(answer, RunDetails) and answer.sweep is not None:
            self._opening = []
            self._show_sweep(answer)
        elif isinstance(answer, RunDetails):
            self._opened[run] = answer
            if len(self._opened) == len(self._opening):
                self.past.show_runs([self._opened[each] for each in self._opening], self.bridge.state)
                self._opening, self._opened = [], {}  # a long run takes megabytes
                self._show_past()
                self.past.look_for_checkpoints()

    def _show_past(self) -> None:
        self.pages.setCurrentWidget(self.past)
        self.past.back.setFocus()

    def _show_sweep(self, details: RunDetails) -> None:
        if self.swept is None:
            self.swept = PastSweep(self.bridge)
            self.swept.closed.connect(self.show_list)
            self.swept.draft_asked.connect(self.draft_asked)
            self.swept.run_asked.connect(lambda run: self.open_all([run]))
            theme.wear(self.swept)
            self.pages.addWidget(self.swept)
        self.swept.show_details(details)
        self.pages.setCurrentWidget(self.swept)
        self.swept.back.setFocus()

    def _on_changed(self, answer: Answer) -> None:
        """A name, a note or a deletion was refused: the stored state is shown again."""
        if isinstance(answer, Refused):
            self._refused = answer.problem
            self._ask()

    # --- the user ------------------------------------------------------------------------------------------

    def _filter(self, text: str) -> None:
        self.sorted.show_matching(text)
        self._show_what_there_is()

    def _show_buttons(self) -> None:
        chosen = self.chosen
        one = chosen[0] if len(chosen) == 1 else None
        self.open.setEnabled(one is not None)
        self.compare.setEnabled(len(chosen) > 1 and not any(entry.trials for entry in chosen))
        set_kind(self.open, "" if len(chosen) > 1 else "primary")
        set_kind(self.compare, "primary" if len(chosen) > 1 else "")
        self.again.setEnabled(one is not None and bool(one.source) and not one.trials)
        self.rename.setEnabled(one is not None)
        self.report.setEnabled(one is not None and bool(one.folder) and not self._under_way(one))
        self.folder.setEnabled(one is not None and bool(one.folder))
        self.delete.setEnabled(bool(chosen) and not any(map(self._under_way, chosen)))
        for each in (*self._buttons, self.delete):
            each.setVisible(self.model.rowCount() > 0)
        self._show_send()

    def _show_send(self) -> None:
        run = self.chosen[0].run if self.report.isEnabled() else None
        self.send.show_run(run, self.bridge.state)

    def _under_way(self, entry: RunEntry) -> bool:
        run, sweep = self.bridge.state.run, self.bridge.state.sweep
        swept = sweep is not None and sweep.under_way and RunId(sweep.sweep) == entry.run
        return swept or (run is not None and not run.over and run.plan.run == entry.run)

    def _show_menu(self, where: QPoint) -> None:
        menu = self._menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.table.viewport().mapToGlobal(where))

    def _menu(self) -> QMenu:
        """The buttons' actions, and the note."""
        menu = QMenu(self.table)
        theme.wear(menu)
        for each in (*self._buttons, self.delete):
            if each.isEnabled():
                menu.addAction(each.text(), each.click)
        if len(self.chosen) == 1:
            menu.insertAction(
                menu.actions()[-1], menu.addAction("Edit note", lambda: self.table.edit_cell(Column.NOTE))
            )
        return menu

    def _open(self) -> None:
        chosen = self.chosen
        if len(chosen) == 1 and self._under_way(chosen[0]):
            self.live_asked.emit()  # its record is still being written
            return
        if len(chosen) == 1 or self.compare.isEnabled():
            self.open_all([entry.run for entry in chosen])

    def open_all(self, runs: list[RunId]) -> None:
        self._opening = runs
        self._opened = {}
        for run in runs:
            self.bridge.submit(GetRun(run=run), partial(self._on_details, run))

    def _again(self) -> None:
        self.again_asked.emit(self.chosen[0])

    def _label(self, run: RunId, name: str | None, note: str | None) -> None:
        self._refused = None
        self.bridge.submit(LabelRun(run=run, name=name, note=note), self._on_changed)

    def _delete(self) -> None:
        """Hides the runs immediately, and deletes them for good unless the user undoes it."""
        if not self.delete.isEnabled():
            return
        chosen = self.chosen
        first = self.table.selectionModel().selectedRows()[0].row()
        self._going += chosen
        going = tuple(self._going)
        runs = {entry.run for entry in going}
        self.sorted.hide_runs(self.sorted.hidden | runs)
        self.undo.offer(
            deleted_words(going, self.undo.undo_ms / 1000),
            lambda: self._delete_for_good(runs),
            lambda: self._keep(runs),
        )
        if self.sorted.rowCount():
            self.table.selectRow(min(first, self.sorted.rowCount() - 1))
        self._show_what_there_is()

    def _delete_for_good(self, runs: Collection[RunId]) -> None:
        """They stay hidden: the node's next list is without them."""
        self._going.clear()
        self._refused = None
        for run in sorted(runs):
            self.bridge.submit(DeleteRun(run=run), partial(self._on_deleted, run))

    def _on_deleted(self, run: RunId, answer: Answer) -> None:
        if isinstance(answer, Refused):
            self._keep({run})
        self._on_changed(answer)

    def _keep(self, runs: Collection[RunId]) -> None:
        self._going.clear()
        self.sorted.hide_runs(self.sorted.hidden.difference(runs))
        self._show_what_there_is()

    def _open_report(self) -> None:
        self.not_opened.open(Path(self.chosen[0].folder) / REPORT, "report")

    def _open_folder(self) -> None:
        self.not_opened.open(Path(self.chosen[0].folder))


def _is_report(event: Event) -> bool:
    return isinstance(event, NoticeRaised) and event.problem.code == REPORT_CAME
