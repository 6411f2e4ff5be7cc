"""The curves of a sweep's trials, drawn over each other. GUI thread."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QTimer
from PySide6.QtGui import QShowEvent

from app.bridge import Bridge
from app.charts.panel import ChartPanel
from app.charts.sources import Source
from app.long_work import in_thread
from app.models.trial_lines import TrialLine, trial_lines
from app.widgets.fold import Fold
from app.widgets.labels import Label
from app.words.device_names import member_names
from core.report.points import RunPoints
from core.vocabulary.answers import Answer, RunDetails
from core.vocabulary.commands import GetRun
from core.vocabulary.ids import DeviceId, SweepId
from core.vocabulary.sweep import Sweep

REST_MS = 3_000
"""Between two looks at the records: a trial may have an epoch every few milliseconds."""
_LINES = 22
_NOTHING_YET = "The trials' curves show up here with their first epochs."


class TrialCurves(Fold):
    """Reads the trials' records while it is visible: each trial's when it has more epochs, one at a time."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__("Curves", name="trial-curves")
        self._bridge = bridge
        self._sweep: SweepId | None = None
        self._lines: tuple[TrialLine, ...] = ()
        self._read: dict[int, tuple[TrialLine, RunPoints, dict[DeviceId, str]]] = {}
        """Each trial's line when its record was read, its points and laptops' names, by trial number."""
        self._reading = False
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self._look)
        self.some = Label("", "faint", wraps=True)
        self.charts = ChartPanel(_NOTHING_YET)
        self.charts.bar.keep_in(bridge)
        self.charts.setMinimumHeight(self.fontMetrics().height() * _LINES)
        self.body.addWidget(self.some)
        self.body.addWidget(self.charts)
        self.head.setChecked(True)
        self.unfolded.connect(lambda _: self._look())

    def show_sweep(self, sweep: Sweep) -> None:
        if sweep.sweep != self._sweep:
            self._sweep, self._lines = sweep.sweep, ()
            self._read.clear()
            self.charts.show_sources([])
            if (me := self._bridge.state.me) is not None:
                self.charts.bar.show_smoothing(me.settings.smoothing)
        before, self._lines = self._lines, trial_lines(sweep)
        begun = sum(trial.run is not None for trial in sweep.trials)
        left = begun - len(self._lines)
        words = f"{len(self._lines)} of {begun} trials: those under way, and the best ones."
        self.some.say_or_hide(words if left > 0 else "")
        if [line.label for line in before] != [line.label for line in self._lines]:
            self._draw()
        self._look()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._look()

    def _look(self) -> None:
        """Read the next record that has more than was read of it."""
        if self._reading or self._rest.isActive() or not (self.isVisible() and self.is_open):
            return
        for line in self._lines:
            known = self._read.get(line.number)
            if known is None or (known[0].run, known[0].state) != (line.run, line.state):
                self._reading = True
                self._bridge.submit(GetRun(run=line.run), partial(self._on_details, self._sweep, line))
                return

    def _on_details(self, sweep: SweepId | None, line: TrialLine, answer: Answer) -> None:
        if isinstance(answer, RunDetails):
            names = member_names(answer)
            in_thread(
                self, lambda: RunPoints.of(answer), lambda points: self._on_points(sweep, line, points, names)
            )
        else:
            self._on_points(sweep, line, RunPoints(), {})  # deleted meanwhile

    def _on_points(
        self, sweep: SweepId | None, line: TrialLine, points: RunPoints, names: dict[DeviceId, str]
    ) -> None:
        self._reading = False
        if sweep == self._sweep:
            anew = line.number in self._read
            self._read[line.number] = line, points, names
            self._draw()
            if anew:
                self._rest.start()
        self._look()

    def _draw(self) -> None:
        self.charts.change_sources(
            [
                Source(line.label, *self._read[line.number][1:], strong=line.best)
                for line in self._lines
                if line.number in self._read
            ]
        )
