"""The trials of a sweep: a table with the best one first, and what can be done with the sweep."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem

from app.bridge import Bridge
from app.charts.trial_curves import TrialCurves
from app.widgets.buttons import button
from app.widgets.card import Card
from app.widgets.flow import Flow
from app.widgets.labels import Label, heading, name_for_readers, set_tooltip
from app.widgets.laptop_menu import SendReportButton
from app.widgets.more_values import MoreValues
from app.words import sweep_words
from app.words.device_words import problem_of
from core.history.best import best_trial, metric_of
from core.vocabulary.answers import Answer
from core.vocabulary.commands import ResumeSweep, StopSweep
from core.vocabulary.ids import RunId, SweepId
from core.vocabulary.state import State
from core.vocabulary.sweep import Sweep, Trial
from core.vocabulary.text import plain

LINES = 7
"""Most rows; more scroll."""
COLUMNS = ("Trial", "Arguments", "Result", "State")


class SweepCard(Card):
    """``show_state``: visible while a sweep is under way, or can go on, until it is hidden.
    ``best_asked(trial)``: train with its arguments on all laptops. ``run_asked(run)``: show a trial's run."""

    best_asked = Signal(object)
    run_asked = Signal(str)

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._sweep: Sweep | None = None
        self._seen: SweepId | None = None
        self._hidden: SweepId | None = None
        self.title = heading()
        self.words = Label("", wraps=True)
        self.best = Label("", wraps=True)
        self.problem = Label("", "bad", wraps=True)
        self.table = _table()
        self.table.itemActivated.connect(self._ask_run)
        self.curves = TrialCurves(bridge)
        self.more = MoreValues()
        self.more.asked.connect(self._add)
        self.more.closed.connect(self._show_adds)
        self.stop = button("Stop all trials", self._stop, "danger", name="stop-sweep")
        set_tooltip(self.stop, "Running trials stop at the end of a step. Press again to end them at once.")
        self.go_on = button("Resume", self._go_on, name="resume-sweep")
        name_for_readers(self.go_on, "Resume the trials that have no result")
        self.longer = button("Train the best on all laptops, longer", self._ask_best, name="train-best")
        set_tooltip(
            self.longer,
            "Fills the form with its arguments, and three times its epochs.",
        )
        self.adds = button("Add values…", self._begin_adding, name="add-values")
        self.hides = button("Hide", self.dismiss, name="hide-sweep")
        self.add(self.title, self.words, self.best, self.table, self.curves, self.more, self.problem)
        self.send = SendReportButton(self, bridge)
        buttons = (self.stop, self.go_on, self.longer, self.adds, self.send.button, self.hides)
        self.add(Flow(*buttons), self.send.said)
        self.hide()

    def show_state(self, state: State) -> None:
        sweep = state.sweep
        if sweep is self._sweep:
            self.show_takers(state)
            return
        self._sweep = sweep
        if sweep is not None and sweep.under_way:
            self._seen, self._hidden = sweep.sweep, None
        is_open = sweep is not None and sweep.phase in ("stopped", "failed")
        shown = sweep is not None and (sweep.sweep == self._seen or is_open) and sweep.sweep != self._hidden
        if sweep is not None and shown:
            self.show_sweep(sweep)
            self.hides.setVisible(not sweep.under_way)
        self.setVisible(shown)

    def show_sweep(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self.show_takers(self._bridge.state)
        best, metric = best_trial(sweep), metric_of(sweep)
        self.title.say(f"Trials of {plain(sweep.script, 60)}")
        self.words.say(sweep_words.outcome_words(sweep))
        self.best.say_or_hide(sweep_words.best_words(sweep))
        self.problem.say_or_hide(sweep.problem.fix if sweep.problem is not None else "")
        place = self.table.verticalScrollBar().value()
        self.table.clear()
        items = [_item(trial, metric, is_best=trial == best) for trial in sweep_words.in_order(sweep)]
        self.table.addTopLevelItems(items)
        self.table.verticalScrollBar().setValue(place)
        lines = self.table.sizeHintForRow(0) * min(len(items), LINES)
        self.table.setFixedHeight(
            self.table.header().sizeHint().height() + lines + 2 * self.table.frameWidth()
        )
        self.curves.setVisible(any(trial.run is not None for trial in sweep.trials))
        self.curves.show_sweep(sweep)
        self.more.show_sweep(sweep)
        self._show_adds()
        self.stop.setVisible(sweep.under_way)
        self.go_on.setVisible(not sweep.under_way and not all(trial.over for trial in sweep.trials))
        self.longer.setVisible(not sweep.under_way and best is not None)

    def show_takers(self, state: State) -> None:
        """The laptops to which its report can be sent."""
        over = self._sweep is not None and not self._sweep.under_way
        self.send.show_run(RunId(self._sweep.sweep) if self._sweep is not None and over else None, state)

    def _stop(self) -> None:
        self._bridge.submit(StopSweep(), self._on_answer)

    def _go_on(self) -> None:
        if self._sweep is not None:
            self._bridge.submit(ResumeSweep(sweep=self._sweep.sweep), self._on_answer)

    def _begin_adding(self) -> None:
        self.problem.hide()
        self.more.begin()
        self._show_adds()

    def _show_adds(self) -> None:
        stopping = self._sweep is not None and self._sweep.phase == "stopping"
        self.adds.setVisible(self.more.isHidden() and not stopping)

    def _add(self, sets: tuple[tuple[str, ...], ...]) -> None:
        if self._sweep is not None:
            command = ResumeSweep(sweep=self._sweep.sweep, argument_sets=sets)
            self._bridge.submit(command, self._on_answer)

    def _ask_run(self, item: QTreeWidgetItem) -> None:
        run = self._sweep.trial(int(item.text(0))).run if self._sweep is not None else None
        if run is not None:
            self.run_asked.emit(run)

    def _ask_best(self) -> None:
        best = best_trial(self._sweep) if self._sweep is not None else None
        if best is not None:
            self.best_asked.emit(best)

    def dismiss(self) -> None:
        """Hides the card until the sweep goes on, or another begins."""
        self._hidden = self._sweep.sweep if self._sweep is not None else None
        self.hide()

    def _on_answer(self, answer: Answer) -> None:
        problem = problem_of(answer)
        self.problem.say_or_hide("" if problem is None else f"{problem.what} {problem.fix}")


def _item(trial: Trial, metric: str, *, is_best: bool) -> QTreeWidgetItem:
    value = sweep_words.value_words(trial, metric)
    words = sweep_words.arguments_words(trial), f"{value}, best" if is_best else value
    item = QTreeWidgetItem([str(trial.number), *words, sweep_words.state_words(trial)])
    if trial.problem is not None:
        item.setToolTip(3, plain(f"{trial.problem.what} {trial.problem.fix}", 600))
    if is_best:
        font = item.font(1)
        font.setBold(True)
        for at in range(len(COLUMNS)):
            item.setFont(at, font)
    return item


def _table() -> QTreeWidget:
    table = QTreeWidget()
    table.setObjectName("trials")
    name_for_readers(table, "Trials", "Enter opens a trial.")
    table.setHeaderLabels(list(COLUMNS))
    table.setRootIsDecorated(False)
    table.setUniformRowHeights(True)
    head = table.header()
    head.setStretchLastSection(False)
    for at in range(len(COLUMNS)):
        head.setSectionResizeMode(at, QHeaderView.ResizeMode.ResizeToContents)
    head.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
    return table
