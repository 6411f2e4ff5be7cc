"""Help: the doctor's findings, a zip for supporters, and installed versions with their paths."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QStandardPaths, Signal
from PySide6.QtWidgets import QCheckBox, QProgressBar

from app.bridge import Bridge
from app.widgets.buttons import button
from app.widgets.card import Card, row
from app.widgets.findings import FindingsList
from app.widgets.flow import Flow
from app.widgets.folder_box import FolderBox
from app.widgets.inputs import FileDialog
from app.widgets.labels import BriefLabel, ElidedLabel, faint, heading
from app.widgets.problem_box import ProblemBox
from app.words.device_words import problem_of
from core.vocabulary.answers import Answer, Findings, Saved
from core.vocabulary.commands import Mend, RunDoctor, SaveDiagnostics
from core.vocabulary.errors import Problem
from core.vocabulary.state import Me


class HelpCard(Card):
    """``welcome_asked``: the user wants to see the first steps again."""

    welcome_asked = Signal()

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._me: Me | None = None
        self.look = button(
            "Check this laptop", lambda: self.examine(self.deep.isChecked()), "primary", name="doctor"
        )
        self.deep = QCheckBox("Load TensorFlow, too (takes up to a minute)")
        self.deep.setObjectName("deep")
        self.looking = QProgressBar()
        self.looking.setRange(0, 0)
        self.looking.setTextVisible(False)
        self.looking.setAccessibleName("Looking what works here")
        self.looking.hide()
        self.findings = FindingsList()
        self.findings.mend_asked.connect(self._mend)
        self.problem = ProblemBox()
        self.save = button("Save diagnostics…", self._ask_where, name="save-diagnostics")
        self.saved = BriefLabel()
        self.versions = faint("", wraps=True)
        self.home = ElidedLabel("", "faint")
        self.open = button("Open folder", self._open, "quiet", name="open-home")
        self.not_opened = FolderBox()
        self.welcome = button("Show the first steps again", self.welcome_asked.emit, "quiet", name="welcome")
        self.add(
            *(heading("Help"), Flow(self.look, self.deep), self.looking, self.findings, self.problem),
            faint(
                "For whoever helps you: the log, these findings and versions in one zip. Neither keys nor "
                "scripts are in it.",
                wraps=True,
            ),
            *(row(self.save, 1), self.saved, self.versions, row(self.home, self.open, 1), self.not_opened),
            faint("Keys: Ctrl+1 to Ctrl+5 go to the screens, Tab from one thing to the next.", wraps=True),
            row(self.welcome, 1),
        )

    def show_me(self, me: Me) -> None:
        if self._me is not None and self._me.versions == me.versions and self._me.home == me.home:
            return
        self._me = me
        v = me.versions
        self.versions.say(
            f"Tandem {v.tandem}, Python {v.python}, TensorFlow {v.tensorflow or 'missing'}, "
            f"Keras {v.keras or 'missing'}, {v.platform}"
        )
        self.home.say(f"Tandem's files: {me.home}")

    def examine(self, deep: bool = False) -> None:
        """Runs the doctor."""
        self._show_looking(deep)
        self._bridge.submit(RunDoctor(deep=deep), self._on_findings)

    def show_problem(self, problem: Problem | None) -> None:
        self.look.setEnabled(True)
        self.looking.hide()
        self.problem.show_problem(problem)

    def _show_looking(self, deep: bool) -> None:
        self.problem.show_problem(None)
        self.look.setEnabled(False)
        self.looking.show()
        self.deep.setChecked(deep)

    def _on_findings(self, answer: Answer) -> None:
        self.show_problem(problem_of(answer))
        if isinstance(answer, Findings):
            self.findings.show_findings(answer.findings)

    def _mend(self, code: str) -> None:
        self._show_looking(False)
        self._bridge.submit(Mend(code=code), self._on_mended)

    def _on_mended(self, answer: Answer) -> None:
        problem = problem_of(answer)
        if problem is None:
            self.examine()
        else:
            self.show_problem(problem)

    def _ask_where(self) -> None:
        """Never blocks: the window stays alive under the dialog."""
        folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        suggested = str(Path(folder) / "tandem-diagnostics.zip")
        dialog = FileDialog(self.window(), "Save diagnostics", suggested, saves="zip")
        dialog.selectFile(suggested)
        dialog.fileSelected.connect(self._save)
        dialog.open()

    def _save(self, path: str) -> None:
        self.saved.hide()
        self._bridge.submit(SaveDiagnostics(path=path), self._on_saved)

    def _on_saved(self, answer: Answer) -> None:
        self.problem.show_problem(problem_of(answer))
        if isinstance(answer, Saved):
            self.saved.tell(f"Saved as {answer.path}", "good")

    def _open(self) -> None:
        if self._me is not None:
            self.not_opened.open(Path(self._me.home))
