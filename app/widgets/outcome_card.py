"""How a run ended and what came out of it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal

from app.run_words import in_the_window, listed, models_words, phase_words, summary_lines, told_apart
from app.widgets.buttons import button
from app.widgets.card import Card, column, row
from app.widgets.fold import Fold
from app.widgets.labels import Label
from app.widgets.open_folder import open_folder
from app.widgets.problem_box import ProblemBox
from app.widgets.text_view import TextView
from core.cluster.plan import Plan
from core.ids import DeviceId
from core.run.phases import Failed, Finished, Phase
from core.run.reports import Summary


class OutcomeCard(Card):
    """``again_asked``: train it once more. Says failures with the script's line; the traceback is folded."""

    again_asked = Signal()
    new_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Result")
        self._folder = ""
        self.head = Label("", "heading")
        self.problem = ProblemBox()
        self.traceback = Fold("What Python said", name="traceback")
        self.detail = TextView("Traceback", lines=10, wraps=True)
        self.traceback.body.addWidget(self.detail)
        self.lines: list[Label] = []
        self._lines = column()
        self.open = button("Open folder", self._open, name="open-folder")
        self.again = button("Train again", self.again_asked.emit, "primary", name="again")
        self.new = button("Another run", self.new_asked.emit, name="new-run")
        self.not_opened = ProblemBox(level="warning")
        for piece in (self.head, self.problem, self.traceback, self.not_opened):
            self.body.addWidget(piece)
        self.body.addLayout(self._lines)
        self.body.addLayout(row(self.again, self.new, self.open, 1))

    def show_outcome(
        self,
        phase: Phase,
        summary: Summary | None,
        names: dict[DeviceId, str],
        folder: str,
        *,
        own: bool,
        plan: Plan | None = None,
    ) -> None:
        """``folder`` of the run, ``""`` while it is not known. ``own``: it was started on this laptop."""
        words = phase_words(phase)
        self.head.say(words[:1].upper() + words[1:])
        self.head.make("good-heading" if isinstance(phase, Finished) else "heading")
        problem = phase.problem if isinstance(phase, Failed) else None
        self.head.setVisible(problem is None)
        self.problem.show_problem(problem)
        detail = problem.detail if problem is not None else ""
        self.traceback.setVisible(bool(detail))
        if detail != self.detail.toPlainText():
            self.detail.setPlainText(detail)
        self._show_lines(_lines(summary, names, plan))
        if folder != self._folder:
            self.not_opened.show_problem(None)
        self._folder = folder
        self.open.setVisible(bool(folder))
        self.again.setVisible(own)

    def _show_lines(self, words: list[str]) -> None:
        while len(self.lines) < len(words):
            label = Label(wraps=True)
            self.lines.append(label)
            self._lines.addWidget(label)
        for label, text in zip(self.lines, words, strict=False):
            label.say(text)
        for number, label in enumerate(self.lines):
            label.setVisible(number < len(words))

    def _open(self) -> None:
        outputs = Path(self._folder) / "outputs"
        folder = outputs if outputs.is_dir() else Path(self._folder)
        self.not_opened.show_problem(open_folder(folder), "warning")


def _lines(summary: Summary | None, names: dict[DeviceId, str], plan: Plan | None) -> list[str]:
    if summary is None:
        return []
    words = [in_the_window(line) for line in summary_lines(summary, names, "", plan)]
    models, written = told_apart(summary.outputs)
    if models:
        words.append(f"{models_words(models)}.")
    if written:
        words.append(f"The script wrote {listed(written)}.")
    return words
