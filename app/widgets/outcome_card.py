"""A run's outcome and results."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.bridge import Bridge
from app.models import headline, offers, run_again
from app.models.draft import RunDraft
from app.models.shown_run import ShownRun
from app.widgets.buttons import button
from app.widgets.card import ByKey, Card, column, row
from app.widgets.figure import FigureView
from app.widgets.flow import Flow
from app.widgets.fold import Fold
from app.widgets.folder_box import FolderBox
from app.widgets.labels import Label, TextView, name_for_readers, set_kind
from app.widgets.laptop_menu import SendReportButton
from app.widgets.problem_box import ProblemBox
from app.words.advice_words import WINDOW
from app.words.run_words import (
    difference_lines,
    listed,
    models_words,
    outcome_words,
    summary_lines,
    told_apart,
)
from core.vocabulary.answers import Answer, Refused, RunEntry
from core.vocabulary.commands import StartRun, StopRun
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import ARGUMENTS_REFUSED, Finished
from core.vocabulary.plan import RunSpec
from core.vocabulary.progress import Summary
from core.vocabulary.run_folder import OUTPUTS, REPORT
from core.vocabulary.state import State
from core.vocabulary.text import capitalised

GO_ON, AGAIN, EDIT = "Resume", "Run again", "Edit arguments"
ALONE, ANEW_ALONE = "Go on with this laptop alone", "Train on this laptop alone"
ACCEPT, ACCEPTED = "Accept for this script", "Accepted from the next run on"
_LOOKING = "Looking for the newest checkpoint…"


class OutcomeCard(Card):
    """``again_asked``: fill the form with it again. ``draft_asked(draft)``: fill it with what its result
    advises. ``resumed``: it goes on, or begins anew.

    Reports failures with the script's line; the traceback is folded.
    """

    again_asked = Signal()
    draft_asked = Signal(object)
    new_asked = Signal()
    resumed = Signal()

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge
        self.setAccessibleName("Result")
        self._shown: ShownRun | None = None
        self._goes_on = ""
        self._starting = False
        self._fetching = ""
        self.head = Label("", "heading")
        self.problem = ProblemBox()
        self.traceback = Fold("What Python said", name="traceback")
        self.detail = TextView("Traceback", lines=10, wraps=True)
        self.traceback.body.addWidget(self.detail)
        self.figures = [FigureView() for _ in range(4)]
        self._figures = Flow(*self.figures, equal=True)
        self.result = Label("", wraps=True)
        self.more = Fold("Details", name="result-details")
        self.lines: list[Label] = []
        self._lines, advised = column(), column()
        self.more.body.addLayout(self._lines)
        self.more.body.addLayout(advised)
        self._drafts: dict[str, RunDraft] = {}
        self._advised = ByKey(advised, self._advise)
        self.report = button("Open report", self._open_report, name="open-report")
        self.send = SendReportButton(self, bridge)
        self.open = button("Open folder", self._open, name="open-folder")
        self.again = button(AGAIN, self.again_asked.emit, "primary", name="again")
        self.new = button("New run", self.new_asked.emit, name="new-run")
        self.go_on = button(GO_ON, self._resume, "primary", name="go-on")
        self.alone = button(ALONE, lambda: self._resume(alone=True), name="go-on-alone")
        self.stop = button("Stop", lambda: bridge.submit(StopRun()), name="stop-going-on")
        self.accept = button(ACCEPT, self._accept, name="accept-differences")
        self._code = ""
        self.where = Label("", "faint", wraps=True)
        self.not_opened = FolderBox()
        self.not_started = ProblemBox()
        buttons = (
            self.go_on,
            self.alone,
            self.stop,
            self.again,
            self.new,
            self.report,
            self.send.button,
            self.open,
            self.accept,
        )
        self.add(
            *(self.head, self.problem, self.traceback, self.not_opened, self._figures, self.result),
            *(self.not_started, self.where, Flow(*buttons), self.send.said, self.more),
        )
        self._show_go_on()

    def show_outcome(self, run: ShownRun, state: State) -> None:
        before, self._shown = self._shown, run
        self.head.say(capitalised(outcome_words(run.phase, run.summary)))
        finished = isinstance(run.phase, Finished)
        self.head.make("heading" if not finished else "good-heading" if run.good else "warning-heading")
        accepted = state.me.settings.accepted if state.me is not None else ()
        self._code = run.plan.code if run.plan is not None and run.differs and run.own else ""
        self.accept.setVisible(bool(self._code))
        self.accept.setEnabled(self._code not in accepted)
        self.accept.setText(ACCEPTED if self._code in accepted else ACCEPT)
        problem = run.problem
        self.head.setVisible(problem is None)
        self.problem.show_problem(problem)
        detail = problem.detail if problem is not None else ""
        self.traceback.setVisible(bool(detail))
        if detail != self.detail.toPlainText():
            self.detail.setPlainText(detail)
        self._show_result(run, state.me.device if state.me is not None else None)
        self._drafts = offers.after(run, state)
        self._advised.keep(self._drafts)
        if before is None or before.run != run.run:
            self.not_opened.show_problem(None)
            self.send.said.hide()
        for piece in (self.open, self.report):
            piece.setVisible(bool(self.folder))
        self.send.show_run(run.run if self.folder else None, state)
        self.again.setVisible(run.own)
        again = EDIT if problem is not None and problem.code == ARGUMENTS_REFUSED else AGAIN
        self.again.setText(again)
        self.again.setAccessibleName(again)
        self._goes_on = run.goes_on(state)
        self._fetching = run.fetching(state)
        alone = ALONE if self._goes_on else ANEW_ALONE
        self.alone.setText(alone)
        self.alone.setAccessibleName(alone)
        self.alone.setVisible(run.goes_on_alone(state))
        self._show_go_on()

    def show_start(self, refused: Problem | None, *, starting: bool) -> None:
        """Resuming was requested and is ``starting``, or was refused. Neither: as if nothing was
        requested."""
        self._starting = starting
        self.not_started.show_problem(refused)
        self._show_go_on()

    @property
    def _entry(self) -> RunEntry | None:
        return self._shown.entry if self._shown is not None else None

    @property
    def folder(self) -> str:
        return self._entry.folder if self._entry is not None else ""

    def _accept(self) -> None:
        self._bridge.submit(run_again.accepting(self._code, self._bridge.state))

    def _resume(self, *, alone: bool = False) -> None:
        """Does what ``tandem resume`` does, with ``alone`` ``tandem resume --solo``; without a checkpoint it
        begins anew."""
        entry, state = self._entry, self._bridge.state
        # The button stays enabled meanwhile: one that loses the focus would pass it to the next one.
        if entry is None or self._starting:
            return
        try:
            spec = run_again.spec_of(entry, state, resumes=True, others_said=alone, button=ALONE)
        except TandemError as error:
            self.show_start(error.problem, starting=False)
            return
        if alone:
            spec = run_again.alone(spec, state.me.device if state.me is not None else None)
        spec = replace(spec, resume=entry.run if self._goes_on else None)
        self.show_start(None, starting=True)
        self._bridge.submit(StartRun(spec=spec), lambda answer: self._on_started(spec, entry, answer))

    def _on_started(self, spec: RunSpec, entry: RunEntry, answer: Answer) -> None:
        refused = answer.problem if isinstance(answer, Refused) else None
        shown = self._shown
        if shown is not None and shown.run == entry.run:  # otherwise another run is open meanwhile
            stopped = refused is not None and refused.code == "stopped"  # the user wanted that
            if refused is not None:
                refused = run_again.with_other_ways(refused, spec, self._bridge.state, ALONE)
            self.show_start(None if stopped else refused, starting=False)
        if not isinstance(answer, Refused):
            self.resumed.emit()

    def _show_go_on(self) -> None:
        there = bool(self._goes_on) or self._starting
        self.where.say(self._fetching or (_LOOKING if self._starting else self._goes_on))
        name_for_readers(self.go_on, GO_ON, self._goes_on)
        for piece in (self.go_on, self.where):
            piece.setVisible(there)
        if self.stop.hasFocus() and not self._starting:
            self.go_on.setFocus()  # Qt would focus the next one.
        self.stop.setVisible(self._starting)
        set_kind(self.again, "" if there else "primary")  # one main action

    def _show_result(self, run: ShownRun, me: DeviceId | None) -> None:
        """The four numbers, the differences and the model; everything else is folded."""
        summary = run.summary or Summary()
        for view, figure in zip(self.figures, headline.results(summary, run.plan, me), strict=True):
            view.show_figure(figure)
        self._figures.setVisible(bool(summary.steps))
        models, written = told_apart(summary.outputs)
        differ = difference_lines(summary, run.names)
        left = [f"{models_words(models)}."] if models else []
        left += [f"The script wrote {listed(written)}."] if written else []
        self.result.say_or_hide(" ".join([*differ, *left]))
        self._show_details(
            [line for line in summary_lines(summary, run.names, "", run.plan, WINDOW) if line not in differ]
        )

    def _show_details(self, words: list[str]) -> None:
        while len(self.lines) < len(words):
            self.lines.append(Label(wraps=True))
            self._lines.addWidget(self.lines[-1])
        for number, label in enumerate(self.lines):
            label.say_or_hide(words[number] if number < len(words) else "")
        self.more.setVisible(bool(words))

    def _advise(self, words: str) -> QWidget:
        line = QWidget()
        made = button(words, lambda: self.draft_asked.emit(self._drafts[words]), name="advised")
        name_for_readers(made, words, "Fills the form for the next run")
        line.setLayout(row(made, 1))
        return line

    def _open_report(self) -> None:
        self.not_opened.open(Path(self.folder) / REPORT, "report")

    def _open(self) -> None:
        outputs = Path(self.folder) / OUTPUTS
        folder = outputs if outputs.is_dir() else Path(self.folder)
        self.not_opened.open(folder)
