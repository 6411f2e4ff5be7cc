"""Asks where to save plots, saves them, and says how it went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QMenu, QWidget

from app.long_work import in_thread
from app.widgets.buttons import button
from app.widgets.inputs import FileDialog
from app.widgets.labels import BriefLabel
from core.vocabulary.errors import Problem

if TYPE_CHECKING:
    from app.charts.plot import Plot
    from app.charts.points import Source

_KINDS = {".png": "Picture (PNG)…", ".svg": "Drawing (SVG)…", ".csv": "Numbers (CSV)…"}


class ExportMenu(QObject):
    """``button`` and ``said`` go into whatever shows the plots, the children of ``picture``."""

    saved = Signal(str, object)
    """Path, and the problem or None."""

    def __init__(
        self,
        picture: QWidget,
        sources: Callable[[], Sequence[Source]],
        plots: Callable[[], Sequence[Plot]],
    ) -> None:
        super().__init__(picture)
        self._picture = picture
        self._sources = sources
        self._plots = plots
        menu = QMenu(picture)
        for suffix, words in _KINDS.items():
            menu.addAction(words).triggered.connect(lambda _=False, suffix=suffix: self._ask(suffix))
        self.button = button("Export", lambda: None, name="export")
        self.button.setMenu(menu)
        self.said = BriefLabel()
        # Queued: a table is written by a thread of its own.
        self.saved.connect(self._say, Qt.ConnectionType.QueuedConnection)

    def save(self, path: Path) -> None:
        """By the name's end, as PNG, SVG or CSV."""
        from app.charts import export
        from app.charts.picture import scene

        title = ", ".join(source.label for source in self._sources())
        match path.suffix.lower():
            case ".csv":
                named = [(source.label, source.points) for source in self._sources()]
                export.save_csv(named, path, lambda problem: self._tell(str(path), problem))
            case ".svg":
                self.saved.emit(str(path), export.save_svg(scene(title, self._plots()), path))
            case _:
                # Thousands of smooth lines at twice the size take longer than a frame.
                seen = scene(title, self._plots())
                in_thread(
                    self,
                    lambda: export.save_png(seen, path),
                    lambda problem: self.saved.emit(str(path), problem),
                )

    def _tell(self, path: str, problem: Problem | None) -> None:
        with suppress(RuntimeError):  # the window may be gone before a long table is written
            self.saved.emit(path, problem)

    def _ask(self, suffix: str) -> None:
        dialog = FileDialog(self._picture.window(), "Export", f"plots{suffix}", saves=suffix[1:])
        dialog.fileSelected.connect(lambda name: self.save(Path(name)))
        dialog.open()

    def _say(self, path: str, problem: Problem | None) -> None:
        if problem is None:
            self.said.tell(f"Saved {path}.", "faint")
        else:
            self.said.tell(str(problem), "bad")
