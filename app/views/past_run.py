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
from app.models.runs_model import called, goes_on_from, started
from app.models.shown_run import ShownRun
from app.views.run_page import RunPage
from app.widgets.buttons import button
from app.widgets.card import Card, fill, row
from app.widgets.cluster_export import ClusterExport
from app.widgets.fold import Fold
from app.widgets.in_place_edit import InPlaceEdit
from app.widgets.labels import ElidedLabel, TextView
from app.widgets.problem_box import ProblemBox
from app.words.device_names import member_names
from core.report.points import RunPoints
from core.vocabulary import units
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.commands import MOST_NAME, MOST_NOTE
from core.vocabulary.errors import Problem
from core.vocabulary.events import CheckpointCame, CheckpointFound, Event, FetchEnded, LinkDown
from core.vocabulary.ids import RunId
from core.vocabulary.state import State
from core.vocabulary.text import plain, plain_lines

_NO_POINTS = "There are no numbers to plot."
_OF_CHECKPOINTS = (CheckpointFound, CheckpointCame, FetchEnded, LinkDown)


class PastRun(RunPage):
    """``closed``: back to the list. ``labelled(run, name, note)``: the user wrote one of the two."""

    labelled = Signal(str, object, object)
    closed = Signal()

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge, ChartPanel(_NO_POINTS))
        self._shown: list[RunId] = []
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
        self.outcome.new.hide()
        self.compared = Card()
        self.comparison = Comparison()
        self.compared.add(self.comparison)
        self.log = Fold("Log", name="log")
        self.log_text = TextView("Log", lines=14)
        self.log.body.addWidget(self.log_text)
        self.log.unfolded.connect(lambda _: self._show_log())
        self.page.add(self.about, self.notes, self.cluster, self.problem, self.outcome, self.compared)
        self.page.add(self.plots, self.log)
        self.page.body.setStretchFactor(self.plots, 1)

    def show_problem(self, problem: Problem) -> None:
        """The run cannot be read."""
        self.record, self._shown = None, []
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
        self._shown = [run.entry.run for run in runs]
        # The plots have its numbers, which take megabytes here.
        one = replace(runs[0], steps={}, epochs={}, uses={}) if len(runs) == 1 else None
        self.begin(one, state)
        self.page.verticalScrollBar().setValue(0)
        self.cluster.show_run(one)
        self.problem.show_problem(_lost(runs), "warning")
        self.outcome.setVisible(one is not None)
        self.compared.setVisible(one is None)
        for piece in (self.about, self.notes, self.rename):
            piece.setVisible(one is not None)
        self.log.setVisible(one is not None and bool(one.log))
        self.comparison.show_runs([run.entry for run in runs] if one is None else [])
        self.charts.show_coming()
        labels = labels_of([run.entry for run in runs])
        self._show_labels()
        shown = self._shown
        # A long run has thousands of points.
        in_thread(self, lambda: _sources(runs, labels), lambda sources: self._plot(shown, sources))
        if one is not None:
            self.about.say(" · ".join(_about(one.entry)))
            self.outcome.show_outcome(ShownRun.past(one), state)
        self._show_log()

    def _show_labels(self) -> None:
        """Title and note."""
        entry = self.entry
        self.page.title.say(_title(entry) if entry is not None else f"{len(self._shown)} runs compared")
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
        assert self.record is not None, "the fields belong to one run"
        entry = self.record.entry
        entry = replace(entry, name=name) if name is not None else replace(entry, note=note or "")
        self.record = replace(self.record, entry=entry)
        self._show_labels()
        self.labelled.emit(entry.run, name, note)

    def hear(self, state: State, events: Sequence[Event]) -> None:
        """Where a single run can continue may have changed."""
        if self.record is not None and any(isinstance(event, _OF_CHECKPOINTS) for event in events):
            self.outcome.show_outcome(ShownRun.past(self.record), state)
        self.hear_links(events)

    def _plot(self, runs: list[RunId], sources: Sequence[Source]) -> None:
        if runs is self._shown:  # otherwise others are open meanwhile
            self.charts.show_sources(sources)

    def _show_log(self) -> None:
        """Only if visible, and converted to plain text in a thread: thousands of lines take longer than a
        frame."""
        self.log_text.clear()
        run = self.record
        if run is not None and self.log.is_open:
            self.log_text.setPlaceholderText("Reading the log…")
            in_thread(self, lambda: "\n".join(plain_lines(run.log)), lambda text: self._read_log(run, text))

    def _read_log(self, run: RunDetails, text: str) -> None:
        if self.entry is not None and self.entry.run == run.entry.run:
            self.log_text.setPlaceholderText("")
            self.log_text.setPlainText(text)


def _sources(runs: Sequence[RunDetails], labels: Sequence[str]) -> list[Source]:
    return [
        Source(label, RunPoints.of(run), member_names(run)) for run, label in zip(runs, labels, strict=True)
    ]


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
    rate = entry.summary.speed_samples_s
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
