"""Exports a run to a cluster: writes its job, and shows the command that starts it there."""

from __future__ import annotations

from typing import get_args

from PySide6.QtWidgets import QMenu

from app.long_work import in_thread
from app.widgets.buttons import button, copy_button
from app.widgets.card import Card, row
from app.widgets.folder_box import FolderBox
from app.widgets.labels import Label
from app.widgets.problem_box import ProblemBox
from core.export.job import Launcher, of_run
from core.export.write import Written, folder_of, write
from core.vocabulary.answers import RunDetails
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.text import plain

_NAMES: dict[Launcher, str] = {"slurm": "Slurm", "kubernetes": "Kubernetes", "ray": "Ray"}
_START = "Every node needs Tandem and the script; the file says how. Start it there:"


class ClusterExport(Card):
    """Hidden until a job was written or failed to be. ``button`` goes with the run's other actions."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Job for a cluster")
        self._run: RunDetails | None = None
        self._written: Written | None = None
        menu = QMenu(self)
        for launcher in get_args(Launcher):
            menu.addAction(_NAMES[launcher]).triggered.connect(
                lambda _=False, launcher=launcher: self.write(launcher)
            )
        self.button = button("Take it to a cluster…", lambda: None, name="take-to-cluster")
        self.button.setMenu(menu)
        self.head = Label("", "heading")
        self.command = Label("", wraps=True)
        self.problem = ProblemBox()
        self.not_opened = FolderBox()
        self._copy = copy_button(
            lambda: self._written.start if self._written is not None else "", "Copy command", name="copy-job"
        )
        self._open = button("Open folder", self._open_folder, name="open-job")
        self.add(self.head, self.command, self.problem, self.not_opened, row(self._copy, self._open, 1))
        self.show_run(None)

    def show_run(self, run: RunDetails | None) -> None:
        """None, or a run whose script lies elsewhere: there is nothing to export."""
        self._run = run
        self.button.setVisible(run is not None and bool(run.entry.source) and run.plan is not None)
        self._show(None)

    def write(self, launcher: Launcher) -> None:
        """Beside the script, as ``tandem export --again`` does."""
        run = self._run
        if run is not None:
            in_thread(self, lambda: _written(run, launcher), lambda end: self._on_end(run, launcher, end))

    def _on_end(self, run: RunDetails, launcher: Launcher, end: Written | Problem) -> None:
        if run is self._run:
            self._show(end, _NAMES[launcher])

    def _show(self, end: Written | Problem | None, name: str = "") -> None:
        self._written = end if isinstance(end, Written) else None
        self.problem.show_problem(end if isinstance(end, Problem) else None)
        self.not_opened.show_problem(None)
        if self._written is not None:
            self.head.say(f"The job for {name} is written.")
            self.command.say(f"{_START} {plain(self._written.start, 400)}")
        for piece in (self.head, self.command, self._copy, self._open):
            piece.setVisible(self._written is not None)
        self.setVisible(end is not None)

    def _open_folder(self) -> None:
        if self._written is not None:
            self.not_opened.open(self._written.folder)


def _written(run: RunDetails, launcher: Launcher) -> Written | Problem:
    try:
        job = of_run(run)
        return write(job, launcher, folder_of(job.script, launcher))
    except TandemError as error:
        return error.problem
