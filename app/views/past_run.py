"""Runs of the history: one with its result, plots and log, or several overlaid."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.bridge import Bridge
from app.charts.comparison import Comparison
from app.charts.panel import ChartPanel
from app.charts.sources import Source
from app.long_work import in_thread
from app.models.run_comparison import labels_of, ranked
from app.models.runs_model import called, goes_on_from, samples_s, started
from app.widgets.buttons import button
from app.widgets.card import Card, column, fill, row
from app.widgets.cluster_export import ClusterExport
from app.widgets.fold import Fold
from app.widgets.in_place_edit import InPlaceEdit
from app.widgets.labels import ElidedLabel, TextView
from app.widgets.outcome_card import OutcomeCard
from app.widgets.page import Page
from app.widgets.problem_box import ProblemBox
from app.words.device_names import member_names
from core.report.points import RunPoints
from core.vocabulary import units
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.commands import MOST_NAME, MOST_NOTE
from core.vocabulary.errors import Problem
from core.vocabulary.state import State
from core.vocabulary.text import plain, plain_lines

_NO_POINTS = "There are no numbers to plot."


class PastRun(QWidget):
    """``again_asked(entry)``; ``closed``: back to the list.
    ``labelled(run, name, note)``: the user wrote one of the two."""

    labelled = Signal(str, object, object)
    again_asked = Signal(object)
    closed = Signal()

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._runs: list[RunDetails] = []
        self.page = Page("Run")
        self.setLayout(column(self.page))
        self.back = button("Back to all runs", self.closed.emit, name="back")
        self.rename = button("Rename", self._rename, "quiet", name="rename")
        self.name = InPlaceEdit("Name of this run", self.page.title, self.rename, MOST_NAME)
        self.name.kept.connect(lambda name: self._label(name, None))
        self.page.head.insertWidget(0, self.name, 1)
        self.cluster = ClusterExport()
        fill(self.page.head, self.rename, self.cluster.button, self.back)
        self.about = ElidedLabel("", "faint")
        self.noted = ElidedLabel()
        self.annotate = button("Add a note", self._annotate, "quiet", name="annotate")
        self.note = InPlaceEdit("Note about this run", self.noted, self.annotate, MOST_NOTE)
        self.note.kept.connect(lambda note: self._label(None, note))
        self.notes = QWidget()
        self.notes.setLayout(row(self.noted, self.note, self.annotate, 1))
        self.problem = ProblemBox()
        self.outcome = OutcomeCard(bridge)
        self.outcome.new.hide()
        self.outcome.again_asked.connect(lambda: self.again_asked.emit(self._runs[0].entry))
        self.compared = Card()
        self.comparison = Comparison()
        self.compared.add(self.comparison)
        self.charts = ChartPanel(_NO_POINTS)
        self.charts.bar.keep_in(bridge)
        plots = Card()
        plots.setMinimumHeight(self.fontMetrics().height() * 24)
        plots.body.addWidget(self.charts, 1)
        self.log = Fold("Log", name="log")
        self.log_text = TextView("Log", lines=14)
        self.log.body.addWidget(self.log_text)
        self.log.unfolded.connect(lambda _: self._show_log())
        self.page.add(self.about, self.notes, self.cluster, self.problem, self.outcome, self.compared)
        self.page.add(plots, self.log)
        self.page.body.setStretchFactor(plots, 1)

    def show_problem(self, problem: Problem) -> None:
        """The run cannot be read."""
        self._runs = []
        self.page.title.say("Run")
        self.cluster.show_run(None)
        self.problem.show_problem(problem)
        for piece in (self.about, self.notes, self.rename, self.outcome, self.compared, self.log):
            piece.hide()
        self.charts.show_sources([])

    def show_runs(self, runs: Sequence[RunDetails], state: State) -> None:
        """One run, or several overlaid, best first."""
        runs = [runs[place] for place in ranked([run.entry for run in runs])]
        for field in (self.name, self.note):
            field.cancel()
        self._runs = list(runs)
        self.page.verticalScrollBar().setValue(0)
        one = runs[0] if len(runs) == 1 else None
        self.cluster.show_run(one)
        self.problem.show_problem(_lost(runs), "warning")
        self.outcome.setVisible(one is not None)
        self.compared.setVisible(one is None)
        for piece in (self.about, self.notes, self.rename):
            piece.setVisible(one is not None)
        self.log.setVisible(one is not None and bool(one.log))
        self.comparison.show_runs([run.entry for run in runs] if one is None else [])
        if state.me is not None:
            self.charts.bar.show_smoothing(state.me.settings.smoothing)
        self.charts.show_coming()
        labels = labels_of([run.entry for run in runs])
        self._show_labels()
        # A long run has thousands of points.
        in_thread(
            self, lambda: [RunPoints.of(run) for run in runs], lambda points: self._plot(runs, labels, points)
        )
        if one is not None:
            self.about.say(" · ".join(_about(one.entry)))
            self._show_outcome(one, state)
            self.outcome.show_start(None, starting=False)
        self._show_log()

    def _show_labels(self) -> None:
        """Title and note."""
        entry = self.entry
        self.page.title.say(_title(entry) if entry is not None else f"{len(self._runs)} runs compared")
        note = entry.note if entry is not None else ""
        self.noted.say(note)
        words = "Edit note" if note else "Add a note"
        self.annotate.setText(words)
        self.annotate.setAccessibleName(words)

    def _rename(self) -> None:
        if self.entry is not None:
            self.name.begin(self.entry.name)

    def _annotate(self) -> None:
        if self.entry is not None:
            self.note.begin(self.entry.note)

    def _label(self, name: str | None, note: str | None) -> None:
        """Shown immediately, and saved meanwhile."""
        run = self._runs[0]
        entry = run.entry
        entry = replace(entry, name=name) if name is not None else replace(entry, note=note or "")
        self._runs = [replace(run, entry=entry)]
        self._show_labels()
        self.labelled.emit(entry.run, name, note)

    @property
    def entry(self) -> RunEntry | None:
        """The entry of a single shown run."""
        return self._runs[0].entry if len(self._runs) == 1 else None

    def show_checkpoints(self, state: State) -> None:
        """Where a single run can continue, by all that is known now."""
        if self.entry is not None:
            self._show_outcome(self._runs[0], state)

    def _show_outcome(self, run: RunDetails, state: State) -> None:
        entry = run.entry
        self.outcome.show_outcome(
            entry.phase,
            entry.summary,
            member_names(run),
            entry,
            state,
            run=entry.run,
            own=bool(entry.source),
            plan=run.plan,
            checkpoint=run.checkpoint,
        )

    def _plot(self, runs: Sequence[RunDetails], labels: list[str], points: list[RunPoints]) -> None:
        if [run.entry.run for run in self._runs] == [run.entry.run for run in runs]:
            self.charts.show_sources(
                [
                    Source(label, each, member_names(run))
                    for run, label, each in zip(runs, labels, points, strict=True)
                ]
            )

    def _show_log(self) -> None:
        """Only if visible, and converted to plain text in a thread: thousands of lines take longer than a
        frame."""
        self.log_text.clear()
        if len(self._runs) == 1 and self.log.is_open:
            run = self._runs[0]
            self.log_text.setPlaceholderText("Reading the log…")
            in_thread(self, lambda: "\n".join(plain_lines(run.log)), lambda text: self._read_log(run, text))

    def _read_log(self, run: RunDetails, text: str) -> None:
        if self.entry is not None and self.entry.run == run.entry.run:
            self.log_text.setPlaceholderText("")
            self.log_text.setPlainText(text)


def _lost(runs: Sequence[RunDetails]) -> Problem | None:
    """A run's numbers were recorded but cannot be read."""
    for run in runs:
        if run.entry.summary.steps and not run.steps and not run.epochs:
            made = f"{plain(run.entry.script, 80)} made {run.entry.summary.steps} steps"
            return Problem(
                code="run-damaged",
                what=f"{made}, but the numbers of them in its folder are gone or damaged.",
                fix=f"Its result is kept. What else is left of it: {plain(run.entry.folder, 200)}",
            )
    return None


def _about(entry: RunEntry) -> list[str]:
    """Where it ran, with what, and how fast."""
    rate = samples_s(entry.summary)
    words = [
        plain(" ".join((entry.script, *entry.arguments)), 200) if entry.arguments or entry.name else "",
        goes_on_from(entry),
        plain(", ".join(entry.devices), 80),
        started(entry) if entry.name else "",
        "" if entry.duration_s is None else units.clock(entry.duration_s),
        "" if rate is None else units.samples(rate),
    ]
    return [each for each in words if each]


def _title(entry: RunEntry) -> str:
    return called(entry) if entry.name else f"{called(entry)}, {started(entry)}"
