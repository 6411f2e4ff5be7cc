"""Asks where to save plots, saves them and reports the outcome."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QMenu, QWidget

from app.long_work import Turns, in_thread
from app.widgets.buttons import button
from app.widgets.inputs import FileDialog
from app.widgets.labels import BriefLabel
from core.vocabulary.errors import Problem

if TYPE_CHECKING:
    from app.charts.export import Table
    from app.charts.grid_of_plots import Slot
    from app.charts.picture import Picture

_KINDS = {".png": "Picture (PNG)…", ".svg": "Drawing (SVG)…", ".csv": "Numbers (CSV)…"}


class ExportMenu(QObject):
    """``button`` and ``said`` go into the widget that shows the plots."""

    saved = Signal(str, object)
    """Path, and the problem or None."""

    def __init__(
        self,
        around: QWidget,
        picture: Callable[[], Picture],
        ready: Callable[[Slot], bool],
        table: Callable[[], Table],
    ) -> None:
        """``ready``: prepares a plot for export; True once it is prepared. ``table``: of the
        visible curves."""
        super().__init__(around)
        self._around = around
        self._picture, self._ready, self._table = picture, ready, table
        self._turns = Turns(self)
        menu = QMenu(around)
        for suffix, words in _KINDS.items():
            menu.addAction(words).triggered.connect(lambda _=False, suffix=suffix: self._ask(suffix))
        self.button = button("Export", lambda: None, name="export")
        self.button.setMenu(menu)
        self.said = BriefLabel()
        # Queued: the CSV is written by its own thread.
        self.saved.connect(self._say, Qt.ConnectionType.QueuedConnection)

    def save(self, path: Path) -> None:
        """Saves as PNG, SVG or CSV, by the file's suffix."""
        from app.charts import export

        if path.suffix.lower() == ".csv":
            export.save_csv(self._table(), path, lambda problem: self._tell(str(path), problem))
            return
        # One plot per turn: each takes some milliseconds, and those out of sight are made for the picture.
        what = self._picture()
        for slot in what.slots:
            self._turns.then(partial(self._make, slot))
        self._turns.then(lambda: self._paint(path))

    def _make(self, slot: Slot) -> None:
        if shiboken6.isValid(slot) and not self._ready(slot):
            self._turns.first(partial(self._make, slot))

    def _paint(self, path: Path) -> None:
        from app.charts import export

        what = self._picture()  # a plot added meanwhile may have moved the others
        file = export.PictureFile(what, path)
        if file.begun:
            what.paint_head(file.painter)

        def paint(slot: Slot) -> None:
            if shiboken6.isValid(slot):
                what.paint(file.painter, slot, file.scale)

        def save() -> None:
            file.painter.end()
            if path.suffix.lower() == ".svg":
                self.saved.emit(str(path), file.save())
            else:  # compressing it takes longer than a frame
                in_thread(self, file.save, lambda problem: self.saved.emit(str(path), problem))

        for slot in what.slots if file.begun else ():
            self._turns.then(partial(paint, slot))
        self._turns.then(save)

    def _tell(self, path: str, problem: Problem | None) -> None:
        with suppress(RuntimeError):  # the window may be gone before a long table is written
            self.saved.emit(path, problem)

    def _ask(self, suffix: str) -> None:
        dialog = FileDialog(self._around.window(), "Export", f"plots{suffix}", saves=suffix[1:])
        dialog.fileSelected.connect(lambda name: self.save(Path(name)))
        dialog.open()

    def _say(self, path: str, problem: Problem | None) -> None:
        if problem is None:
            self.said.tell(f"Saved {path}.", "faint")
        else:
            self.said.tell(str(problem), "bad")
