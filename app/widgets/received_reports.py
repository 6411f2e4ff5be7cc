"""Reports that other laptops sent: to open and to delete."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem

from app.bridge import Bridge
from app.models.runs_model import lately
from app.widgets.buttons import button
from app.widgets.card import row
from app.widgets.fold import Fold
from app.widgets.problem_box import ProblemBox
from app.widgets.undo_bar import UndoBar
from core.vocabulary import units
from core.vocabulary.answers import Answer, ReceivedReport, Refused
from core.vocabulary.commands import DeleteReport

LINES = 4
"""Most rows; more scroll."""
COLUMNS = ("Script", "From", "Received")
TITLE = "Reports from other laptops"


class ReceivedReports(Fold):
    """Hidden while there are none. ``open_asked(path)``: show that report."""

    open_asked = Signal(Path)

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(TITLE, name="received-reports")
        self._bridge = bridge
        self._reports: Sequence[ReceivedReport] = ()
        self._going: set[str] = set()
        """Paths of deleted ones that can still be restored."""
        self.table = _Table()
        self.table.itemActivated.connect(lambda *_: self._open())
        self.table.delete_asked.connect(self._delete)
        self.table.currentItemChanged.connect(lambda *_: self._show_buttons())
        self.open = button("Open report", self._open, name="open-received")
        self.delete = button("Delete", self._delete, "danger", name="delete-received")
        self.undo = UndoBar()
        self.problem = ProblemBox()
        for piece in (self.table, self.undo, self.problem):
            self.body.addWidget(piece)
        self.body.addLayout(row(self.open, 1, self.delete))
        self.hide()

    def show_reports(self, reports: Sequence[ReceivedReport]) -> None:
        """Newest first."""
        self._reports = reports
        self._going &= {report.path for report in reports}
        self._show()

    @property
    def shown(self) -> list[ReceivedReport]:
        return [report for report in self._reports if report.path not in self._going]

    def _show(self) -> None:
        shown, now_s, place = self.shown, time.time(), self.table.currentIndex().row()
        self.table.clear()
        for report in shown:
            came = lately(report.came_s, now_s)
            self.table.addTopLevelItem(QTreeWidgetItem([report.script, report.sender, came]))
        if shown:
            self.table.setCurrentIndex(self.table.model().index(min(max(0, place), len(shown) - 1), 0))
        lines = self.table.sizeHintForRow(0) * max(1, min(len(shown), LINES))
        self.table.setFixedHeight(
            self.table.header().sizeHint().height() + lines + 2 * self.table.frameWidth()
        )
        self.rename(f"{TITLE} ({len(shown)})")
        self.setVisible(bool(self._reports))
        self._show_buttons()

    def _show_buttons(self) -> None:
        for each in (self.open, self.delete):
            each.setEnabled(self._chosen is not None)

    @property
    def _chosen(self) -> ReceivedReport | None:
        at, shown = self.table.currentIndex().row(), self.shown
        return shown[at] if 0 <= at < len(shown) else None

    def _open(self) -> None:
        if (report := self._chosen) is not None:
            self.open_asked.emit(Path(report.path))

    def _delete(self) -> None:
        report = self._chosen
        if report is None:
            return
        self._going.add(report.path)
        going = sorted(self._going)
        self.problem.show_problem(None)
        which = f"Report of {report.script}" if len(going) == 1 else f"{len(going)} reports"
        after, gone = units.duration(self.undo.undo_ms / 1000), "it is" if len(going) == 1 else "they are"
        said = f"{which} deleted. In {after} {gone} gone for good."
        self.undo.offer(said, lambda: self._delete_for_good(going), self._keep)
        self._show()

    def _delete_for_good(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._bridge.submit(DeleteReport(path=path), partial(self._on_deleted, path))

    def _on_deleted(self, path: str, answer: Answer) -> None:
        if isinstance(answer, Refused):
            self.problem.show_problem(answer.problem)
        else:
            self._reports = [report for report in self._reports if report.path != path]
        self._going.discard(path)
        self._show()

    def _keep(self) -> None:
        self._going.clear()
        self._show()


class _Table(QTreeWidget):
    """``delete_asked``: the Delete key."""

    delete_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("received")
        self.setAccessibleName(TITLE)
        self.setHeaderLabels(list(COLUMNS))
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        head = self.header()
        head.setStretchLastSection(False)
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.delete_asked.emit()
        else:
            super().keyPressEvent(event)
