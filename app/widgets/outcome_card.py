"""How a run ended and what came out of it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal

from app.run_words import (
    goes_on_words,
    in_the_window,
    listed,
    models_words,
    outcome_words,
    summary_lines,
    told_apart,
)
from app.widgets.buttons import button
from app.widgets.card import Card, column, row
from app.widgets.fold import Fold
from app.widgets.folder_box import FolderBox
from app.widgets.labels import Label, TextView, name_for_readers, set_kind
from app.widgets.problem_box import ProblemBox
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Failed, Finished, Phase, Stopped
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.progress import Summary
from core.vocabulary.run_folder import OUTPUTS

GO_ON = "Resume"
ACCEPT, ACCEPTED = "Accept for this script", "Accepted from the next run on"
_LOOKING = "Looking for the newest checkpoint…"


class OutcomeCard(Card):
    """``again_asked``: train it once more. ``go_on_asked``: from its checkpoint, where it has one;
    ``stop_asked``: not after all. ``accept_asked``: by what the result differs from one machine's is no fault
    of this code.

    Says failures with the script's line; the traceback is folded.
    """

    again_asked = Signal()
    go_on_asked = Signal()
    stop_asked = Signal()
    new_asked = Signal()
    accept_asked = Signal(str)
    """The code's digest (``Plan.code``)."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Result")
        self.folder = ""
        self._goes_on = ""
        self._starting = False
        self._fetching = ""
        self.head = Label("", "heading")
        self.problem = ProblemBox()
        self.traceback = Fold("What Python said", name="traceback")
        self.detail = TextView("Traceback", lines=10, wraps=True)
        self.traceback.body.addWidget(self.detail)
        self.lines: list[Label] = []
        self._lines = column()
        self.open = button("Open folder", self._open, name="open-folder")
        self.again = button("Run again", self.again_asked.emit, "primary", name="again")
        self.new = button("New run", self.new_asked.emit, name="new-run")
        self.go_on = button(GO_ON, self._go_on, "primary", name="go-on")
        self.stop = button("Stop", self.stop_asked.emit, name="stop-going-on")
        self.accept = button(ACCEPT, self._accept, name="accept-differences")
        self._code = ""
        self.where = Label("", "faint", wraps=True)
        self.not_opened = FolderBox()
        self.not_started = ProblemBox()
        for piece in (self.head, self.problem, self.traceback, self.not_opened):
            self.body.addWidget(piece)
        self.body.addLayout(self._lines)
        self.body.addWidget(self.not_started)
        self.body.addWidget(self.where)
        self.body.addLayout(row(self.go_on, self.stop, self.again, self.new, self.open, self.accept, 1))
        self._show_go_on()

    def show_outcome(
        self,
        phase: Phase,
        summary: Summary | None,
        names: dict[DeviceId, str],
        folder: str,
        *,
        own: bool,
        plan: Plan | None = None,
        checkpoint: Moment | None = None,
        lender: str = "",
        fetching: str = "",
        accepted: tuple[str, ...] = (),
    ) -> None:
        """``folder`` of the run, ``""`` while it is not known. ``own``: it was started on this laptop.

        ``checkpoint``: where the run can go on; None while nobody knows of one. ``lender``: on which other
        laptop that lies. ``fetching``: how much of it has come, while it is on its way. ``accepted``: code
        whose differences from one machine's result the user has accepted.
        """
        words = outcome_words(phase, summary)
        self.head.say(words[:1].upper() + words[1:])
        differs = isinstance(phase, Finished) and summary is not None and summary.differs
        good = "warning-heading" if differs else "good-heading"
        self.head.make(good if isinstance(phase, Finished) else "heading")
        self._code = plan.code if plan is not None and differs and own else ""
        self.accept.setVisible(bool(self._code))
        self.accept.setEnabled(self._code not in accepted)
        self.accept.setText(ACCEPTED if self._code in accepted else ACCEPT)
        problem = phase.problem if isinstance(phase, Failed) else None
        self.head.setVisible(problem is None)
        self.problem.show_problem(problem)
        detail = problem.detail if problem is not None else ""
        self.traceback.setVisible(bool(detail))
        if detail != self.detail.toPlainText():
            self.detail.setPlainText(detail)
        self._show_lines(_lines(summary, names, plan))
        if folder != self.folder:
            self.not_opened.show_problem(None)
        self.folder = folder
        self.open.setVisible(bool(folder))
        self.again.setVisible(own)
        may = own and isinstance(phase, Stopped | Failed) and checkpoint is not None
        self._goes_on = goes_on_words(checkpoint, lender) if may and checkpoint is not None else ""
        self._fetching = fetching
        self._show_go_on()

    def show_start(self, refused: Problem | None, *, starting: bool) -> None:
        """Going on was asked for and is ``starting``, or was refused. Neither: as if nothing was asked."""
        self._starting = starting
        self.not_started.show_problem(refused)
        self._show_go_on()

    def _accept(self) -> None:
        self.accept_asked.emit(self._code)

    def _go_on(self) -> None:
        # It stays enabled meanwhile: a button that loses the focus would give it to the next one.
        if not self._starting:
            self.go_on_asked.emit()

    def _show_go_on(self) -> None:
        there = bool(self._goes_on) or self._starting
        self.where.say(self._fetching or (_LOOKING if self._starting else self._goes_on))
        name_for_readers(self.go_on, GO_ON, self._goes_on)
        for piece in (self.go_on, self.where):
            piece.setVisible(there)
        if self.stop.hasFocus() and not self._starting:
            self.go_on.setFocus()  # Qt would go on to the next one.
        self.stop.setVisible(self._starting)
        set_kind(self.again, "" if there else "primary")  # one main action

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
        outputs = Path(self.folder) / OUTPUTS
        folder = outputs if outputs.is_dir() else Path(self.folder)
        self.not_opened.open(folder)


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
